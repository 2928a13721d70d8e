//! What `floe` does on a machine on which not every wall can be built. Each such machine is made for the run: an outer user
//! namespace, or a filter of system calls such as containers have. Nothing is changed for anybody else.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde_json::Value;

use crate::support::{Ended, Place, binary, ended};

/// What a machine lacks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lack {
    UserNamespaces,
    /// All that a container's filter refuses.
    ContainerFilter,
    Landlock,
    WholeProc,
    /// One of two ways to make a user namespace, which is the one that bwrap does not go.
    Unshare,
}

/// The four that leave no walls but Landlock's, or not even those.
const ALL: [Lack; 4] = [
    Lack::UserNamespaces,
    Lack::ContainerFilter,
    Lack::Landlock,
    Lack::WholeProc,
];

impl Lack {
    /// The wall that a refusal names, and a word of its remedy.
    fn words(self) -> [&'static str; 2] {
        match self {
            Lack::UserNamespaces => ["user namespace", "sysctl -w user.max_user_namespaces"],
            Lack::ContainerFilter | Lack::Unshare => ["user namespace", "seccomp=unconfined"],
            Lack::Landlock => ["landlock", "ordinary user"],
            Lack::WholeProc => ["proc", "systempaths=unconfined"],
        }
    }

    /// An ordinary user does without Landlock beside the mounts.
    fn is_borne(self) -> bool {
        self == Lack::Landlock && !rustix::process::geteuid().is_root()
    }
}

/// Set in a run of this program that becomes `floe` on a poor machine.
const LACK: &str = "FLOE_TEST_LACK";
/// What `floe` is to be given, as JSON.
const ARGUMENTS: &str = "FLOE_TEST_ARGUMENTS";

fn refuse(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) {
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let action = SeccompAction::Errno(errno as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture);
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
}

fn calls<const N: usize>(calls: [i64; N]) -> BTreeMap<i64, Vec<SeccompRule>> {
    calls.map(|call| (call, Vec::new())).into()
}

/// `call` where it asks for a user namespace.
fn for_a_user_namespace(call: i64) -> BTreeMap<i64, Vec<SeccompRule>> {
    let flag = libc::CLONE_NEWUSER as u64;
    let wanted = SeccompCmpOp::MaskedEq(flag);
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, wanted, flag).unwrap();
    [(call, vec![SeccompRule::new(vec![condition]).unwrap()])].into()
}

#[test]
#[ignore = "becomes the program that other tests start"]
fn a_floe_under_a_filter() {
    let Ok(lack) = std::env::var(LACK) else {
        return;
    };
    match lack.as_str() {
        "ContainerFilter" => {
            refuse(
                calls([
                    libc::SYS_unshare,
                    libc::SYS_setns,
                    libc::SYS_mount,
                    libc::SYS_open_tree,
                    libc::SYS_move_mount,
                    libc::SYS_fsopen,
                ]),
                libc::EPERM,
            );
            refuse(for_a_user_namespace(libc::SYS_clone), libc::EPERM);
            refuse(calls([libc::SYS_clone3]), libc::ENOSYS);
        }
        "Landlock" => refuse(calls([libc::SYS_landlock_create_ruleset]), libc::ENOSYS),
        "Unshare" => refuse(for_a_user_namespace(libc::SYS_unshare), libc::EPERM),
        other => panic!("{other}"),
    }
    let arguments: Vec<String> = serde_json::from_str(&std::env::var(ARGUMENTS).unwrap()).unwrap();
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .env_remove(LACK)
        .env_remove(ARGUMENTS);
    panic!("{}", command.exec());
}

/// What `floe` prints of its own, without what the test program around it says first.
const FIRST_LINES: &str = "\nrunning 1 test\n";

/// Runs `floe` on a machine that lacks something.
fn floe(place: &Place, lack: Lack, arguments: &[&str]) -> Ended {
    let script = match lack {
        Lack::UserNamespaces => "echo 0 > /proc/sys/user/max_user_namespaces",
        Lack::WholeProc => "mount -t tmpfs none /proc/acpi",
        _ => return floe_under_a_filter(place, lack, arguments),
    };
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "bash", "-euc"])
        .arg(format!("{script}; exec \"$@\""))
        .arg("floe")
        .arg(binary())
        .args(arguments);
    place.prepare(&mut command);
    ended(command.output().unwrap())
}

fn floe_under_a_filter(place: &Place, lack: Lack, arguments: &[&str]) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "tiers::a_floe_under_a_filter",
        "--include-ignored",
        "--nocapture",
    ]);
    place.prepare(&mut command);
    command
        .env(LACK, format!("{lack:?}"))
        .env(ARGUMENTS, serde_json::to_string(arguments).unwrap())
        .env_remove("FLOE_BIN");
    if let Some(binary) = std::env::var_os("FLOE_BIN") {
        command.env("FLOE_BIN", binary);
    }
    let mut ended = ended(command.output().unwrap());
    let own = ended
        .stdout
        .find(FIRST_LINES)
        .map(|at| at + FIRST_LINES.len());
    ended.stdout.replace_range(..own.unwrap_or_default(), "");
    ended
}

const CALL: [&str; 3] = [
    "call",
    "exec_command",
    r#"{"cmd":"touch it-ran; echo out"}"#,
];

fn call(place: &Place, lack: Lack, more: &[&str]) -> Ended {
    floe(place, lack, &[&CALL, more].concat())
}

fn ran(place: &Place) -> bool {
    place.workspace().join("it-ran").exists()
}

/// How the command of a call with `--output json` was confined.
fn confinement(ended: &Ended) -> String {
    let messages = ended.json_lines();
    let mut payloads = messages.iter().map(|message| &message["payload"]);
    let output = payloads.find(|payload| payload["type"] == "tool_call_output");
    output.unwrap()["facts"]["confinement"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn where_a_wall_is_missing_a_call_fails_closed_and_names_the_wall_and_the_remedy() {
    for lack in ALL {
        let place = Place::new();
        let ended = call(&place, lack, &[]);
        if lack.is_borne() {
            ended.expect(0);
            continue;
        }
        assert!(!ran(&place), "{lack:?}");
        let said = &ended.expect(1).stdout;
        for word in lack.words().into_iter().chain(["--unsafe-no-sandbox"]) {
            assert!(said.contains(word), "{lack:?}: `{word}` is not in {said}");
        }
    }
}

#[test]
fn with_the_flag_it_runs_and_its_result_says_unconfined() {
    for lack in ALL {
        let place = Place::new();
        let text = call(&place, lack, &["--unsafe-no-sandbox"]);
        let said = &text.expect(0).stdout;
        assert!(
            said.starts_with("out\n")
                && said.ends_with("\n[UNCONFINED: ran without the sandbox]\n"),
            "{lack:?}: {said}"
        );
        assert!(ran(&place));
        let json = call(&place, lack, &["--unsafe-no-sandbox", "--output", "json"]);
        assert_eq!(confinement(json.expect(0)), "UNCONFINED", "{lack:?}");
    }
}

#[test]
fn where_the_person_accepts_landlock_it_runs_within_that_and_says_so() {
    for lack in ALL {
        let place = Place::new();
        place.config("shell: {min_tier: landlock}\n");
        let ended = call(&place, lack, &["--output", "json"]);
        if lack == Lack::Landlock {
            assert_eq!(ran(&place), lack.is_borne());
            continue;
        }
        assert_eq!(confinement(ended.expect(0)), "landlock", "{lack:?}");
        assert!(ran(&place));
        let warnings = warnings(&ended);
        assert!(
            warnings.contains("shell.min_tier") && warnings.contains(lack.words()[0]),
            "{lack:?}: {warnings}"
        );
    }
}

/// The warnings that a call with `--output json` told of.
fn warnings(ended: &Ended) -> String {
    let messages = ended.json_lines();
    let payloads = messages.iter().map(|message| &message["payload"]);
    let warnings = payloads.filter(|payload| payload["type"] == "warning");
    warnings
        .map(|payload| payload["message"].to_string())
        .collect()
}

#[test]
fn a_project_cannot_lower_the_minimum() {
    let place = Place::new();
    place.workspace_file(".floe/config.yaml", "shell: {min_tier: landlock}\n");
    call(&place, Lack::ContainerFilter, &[]).expect_usage(&["shell.min_tier", "widens"]);
    assert!(!ran(&place));
}

#[test]
fn doctor_names_what_is_missing_and_ends_with_one_unless_the_minimum_holds() {
    for lack in ALL {
        let place = Place::new();
        let json = |place: &Place| floe(place, lack, &["doctor", "--output", "json"]);
        let found = json(&place);
        let doctor = found.json();
        if lack.is_borne() {
            assert_eq!(doctor["tier"], "native");
            found.expect(0);
            continue;
        }
        found.expect(1);
        assert_eq!(
            (&doctor["ok"], &doctor["tier"]),
            (&Value::Bool(false), &Value::Null)
        );
        let layers = doctor["tiers"][0]["layers"].as_array().unwrap();
        let [name, remedy] = lack.words();
        let failed = layers.iter().find(|layer| layer["name"] == name).unwrap();
        assert_eq!(failed["active"], false, "{lack:?}");
        assert!(
            failed["remedy"].as_str().unwrap().contains(remedy),
            "{failed}"
        );
        let text = floe(&place, lack, &["doctor"]);
        assert!(text.expect(1).stdout.contains(remedy), "{}", text.stdout);

        place.config("shell: {min_tier: landlock}\n");
        let found = json(&place);
        let doctor = found.json();
        assert_eq!(doctor["minimum"], "landlock");
        if lack == Lack::Landlock {
            found.expect(1);
        } else {
            found.expect(0);
            assert_eq!(doctor["tier"], "landlock", "{lack:?}");
        }
    }
}

#[test]
fn where_bwrap_can_do_what_floe_cannot_it_is_taken_and_a_warning_says_so() {
    let place = Place::new();
    let doctor = floe(&place, Lack::Unshare, &["doctor", "--output", "json"]).json();
    assert_eq!(doctor["tiers"][0]["stands"], false, "{doctor}");
    let bwrap = &doctor["tiers"][1];
    if bwrap["stands"] != true
        && std::env::var_os("CI").is_none()
        && !std::path::Path::new("/usr/bin/bwrap").exists()
    {
        eprintln!("not run: there is no bwrap: {}", bwrap["fault"]);
        return;
    }
    assert_eq!(doctor["tier"], "bwrap", "{bwrap}");
    let ended = call(&place, Lack::Unshare, &["--output", "json"]);
    assert_eq!(confinement(ended.expect(0)), "bwrap");
    assert!(ran(&place));
    let warnings = warnings(&ended);
    assert!(
        warnings.contains("bwrap") && warnings.contains("user namespace failed"),
        "{warnings}"
    );
}

#[test]
fn with_landlock_alone_no_allowed_host_is_reached_and_a_warning_says_so() {
    let place = Place::new();
    place.config(
        "shell: {min_tier: landlock, network: proxy, allow_hosts: ['web.test:80=127.0.0.1:1']}\n",
    );
    let script =
        r#"{"cmd":"env | grep -ci _proxy=; curl -s -m 5 http://127.0.0.1:1/ || echo nothing"}"#;
    let arguments = ["call", "exec_command", script];
    let ended = floe(&place, Lack::ContainerFilter, &arguments);
    assert_eq!(ended.expect(0).stdout, "0\nnothing\n");
    let trace = std::fs::read_to_string(place.trace()).unwrap();
    assert_eq!(trace.matches("network_unavailable").count(), 1, "{trace}");
}
