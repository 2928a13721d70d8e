//! A wall that cannot be built means that nothing runs, and that somebody is told why and what to do.
//!
//! Each machine that lacks something is made for the test: a host of its own, in an outer user namespace or under a
//! filter of its own. Nothing is changed for anybody else.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use floe_sandbox::{
    Confinement, Doctor, Examined, LayerName, MinimumTier, SandboxError, SandboxOptions, Tier,
    doctor,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use support::{HELPER, Session, again_without_privileges, host};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

const ROLE: &str = "FLOE_TEST_ROLE";

/// How the person has configured the host that lacks something.
const WORD: &str = "FLOE_TEST_WORD";

/// Installs a filter for this thread and its children, as a container would.
fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) {
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let action = SeccompAction::Errno(errno as u32);
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)
        .unwrap()
        .try_into()
        .unwrap();
    apply_filter(&program).unwrap();
}

/// Refuses `calls`, whatever their arguments.
fn refuse(calls: &[i64], errno: i32) {
    filter(
        calls.iter().map(|&call| (call, Vec::new())).collect(),
        errno,
    );
}

/// Refuses `call` where its first argument has all bits of `flags`.
fn refuse_flags(call: i64, flags: i32, errno: i32) {
    let flags = flags as u32 as u64;
    let wanted = SeccompCmpOp::MaskedEq(flags);
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, wanted, flags).unwrap();
    let rule = SeccompRule::new(vec![condition]).unwrap();
    filter(BTreeMap::from([(call, vec![rule])]), errno);
}

/// What became of the first command of a host that lacks something.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
enum Became {
    Ran {
        confinement: Confinement,
        warning: Option<String>,
    },
    Refused(SandboxError),
}

impl Became {
    #[track_caller]
    fn refused(self) -> SandboxError {
        match self {
            Became::Refused(error) => error,
            ran => panic!("{ran:#?}"),
        }
    }

    #[track_caller]
    fn ran(self) -> (Confinement, Option<String>) {
        match self {
            Became::Ran {
                confinement,
                warning,
            } => (confinement, warning),
            Became::Refused(error) => panic!("{error}"),
        }
    }
}

/// A machine that lacks something, as a test host in which it is so.
#[derive(Debug, Clone, Copy)]
enum Machine {
    /// What the host does to itself before its first command.
    Role(&'static str),
    /// What a shell does to the user and mount namespaces made for the host.
    After(&'static str),
}

const WITHOUT_USER_NAMESPACES: Machine =
    Machine::After("echo 0 > /proc/sys/user/max_user_namespaces");
const LIKE_A_CONTAINER: Machine = Machine::Role("container");
const WITHOUT_LANDLOCK: Machine = Machine::Role("no-landlock");
const WITH_A_HIDDEN_PROC: Machine = Machine::After("mount -t tmpfs none /proc/acpi");

impl Machine {
    /// Has the host on this machine run its first command; `word` is what the person has configured.
    #[track_caller]
    fn first_command(self, word: &str) -> Became {
        let output = self
            .host("a_host_that_lacks_something")
            .env(WORD, word)
            .output();
        said(&output.unwrap())
    }

    /// This test program as a host on this machine, which runs only the (ignored) test `name`.
    fn host(self, name: &str) -> Command {
        let host = host(name);
        match self {
            Machine::Role(role) => {
                let mut command = host;
                command.env(ROLE, role);
                command
            }
            Machine::After(script) => {
                let mut command = Command::new("unshare");
                command
                    .args(["--user", "--map-root-user", "--mount", "bash", "-euc"])
                    .arg(format!("{script}; exec \"$@\""))
                    .arg("host")
                    .arg(host.get_program())
                    .args(host.get_args())
                    .env(ROLE, "plain");
                command
            }
        }
    }
}

/// What a host printed after the word `said`.
#[track_caller]
fn said<T: serde::de::DeserializeOwned>(output: &Output) -> T {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("said "));
    let line = line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(line).unwrap()
}

fn say(what: &impl serde::Serialize) {
    println!("\nsaid {}", serde_json::to_string(what).unwrap());
}

/// Makes this host lack what its role says; `None` where it is no such host at all.
fn play() -> Option<()> {
    match std::env::var(ROLE).ok()?.as_str() {
        // As the filter of Docker.
        "container" => {
            refuse(
                &[
                    libc::SYS_unshare,
                    libc::SYS_setns,
                    libc::SYS_mount,
                    libc::SYS_open_tree,
                    libc::SYS_move_mount,
                    libc::SYS_fsopen,
                ],
                libc::EPERM,
            );
            refuse_flags(libc::SYS_clone, libc::CLONE_NEWUSER, libc::EPERM);
            refuse(&[libc::SYS_clone3], libc::ENOSYS);
        }
        "no-unshare" => refuse_flags(libc::SYS_unshare, libc::CLONE_NEWUSER, libc::EPERM),
        "no-mount" => refuse(&[libc::SYS_move_mount, libc::SYS_mount], libc::EPERM),
        "old-kernel" => refuse(&[libc::SYS_mount_setattr], libc::ENOSYS),
        "no-landlock" => refuse(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS),
        _ => {}
    }
    Some(())
}

/// Configures a Session as the person's word says.
fn configure(options: &mut SandboxOptions) {
    match std::env::var(WORD).unwrap_or_default().as_str() {
        "landlock" => options.policy.minimum_tier = MinimumTier::Landlock,
        "native only" => options.tier = Some(Tier::Native),
        "unconfined" => options.unconfined = true,
        _ => {}
    }
}

#[test]
#[ignore = "a host that other tests start"]
fn a_host_that_lacks_something() {
    if play().is_none() {
        return;
    }
    let session = Session::with(|_, options| configure(options));
    let mark = session.workspace.join("it-ran");
    say(&match session.try_spawn("touch it-ran") {
        Ok(child) => {
            support::Running::new(child).finish();
            assert!(mark.exists());
            let warning = session.sandbox.warning();
            assert_eq!(session.sandbox.warning(), None, "told once");
            Became::Ran {
                confinement: session.sandbox.confinement(),
                warning,
            }
        }
        Err(error) => {
            assert!(!mark.exists());
            Became::Refused(error)
        }
    });
}

#[track_caller]
fn assert_explained(error: &SandboxError, layer: LayerName, remedy: &str) {
    let failure = error.layer().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(failure.layer, layer, "{error}");
    assert!(failure.remedy.contains(remedy), "{error}");
    assert!(error.to_string().contains("--unsafe-no-sandbox"), "{error}");
}

#[test]
fn without_user_namespaces_nothing_runs_and_the_sysctl_is_named() {
    const LIMIT: &str = "/proc/sys/user/max_user_namespaces";
    let before = fs::read_to_string(LIMIT).unwrap();
    // The limit belongs to the user namespace in which it is written: the one that `unshare` has just made.
    let error = WITHOUT_USER_NAMESPACES.first_command("").refused();
    assert_explained(
        &error,
        LayerName::UserNamespace,
        "sysctl -w user.max_user_namespaces",
    );
    assert_eq!(fs::read_to_string(LIMIT).unwrap(), before);
}

#[test]
fn under_a_filter_like_a_containers_nothing_runs_and_the_filter_is_named() {
    let error = LIKE_A_CONTAINER.first_command("").refused();
    assert_explained(&error, LayerName::UserNamespace, "seccomp=unconfined");
    let error = Machine::Role("no-mount").first_command("").refused();
    assert_explained(&error, LayerName::Mounts, "seccomp=unconfined");
}

#[test]
fn a_kernel_without_a_needed_call_runs_nothing() {
    let error = Machine::Role("old-kernel").first_command("native only");
    let error = error.refused();
    assert_explained(&error, LayerName::Mounts, "");
    assert!(error.to_string().contains("mount_setattr"), "{error}");
}

#[test]
fn where_proc_is_partly_hidden_nothing_runs_and_the_remedy_is_named() {
    let error = WITH_A_HIDDEN_PROC.first_command("").refused();
    assert_explained(&error, LayerName::Proc, "systempaths=unconfined");
}

#[test]
fn landlock_is_required_of_root_and_its_absence_is_reported_to_others() {
    for word in ["", "landlock"] {
        let became = WITHOUT_LANDLOCK.first_command(word);
        if rustix::process::geteuid().is_root() {
            assert_explained(&became.refused(), LayerName::Landlock, "ordinary user");
            continue;
        }
        let (confinement, _) = became.ran();
        assert_eq!(confinement.tier, Tier::Native);
        let layers = &confinement.layers;
        let landlock = layers.iter().find(|layer| layer.name == "landlock");
        let landlock = landlock.unwrap();
        assert!(
            !landlock.active && landlock.remedy.is_some(),
            "{landlock:?}"
        );
    }
}

#[test]
fn a_refusal_says_what_the_other_sets_of_walls_lack() {
    let error = LIKE_A_CONTAINER.first_command("").refused().to_string();
    assert!(
        error.contains("The tier `bwrap` does not stand either: "),
        "{error}"
    );
    assert!(!error.contains("The tier `landlock`"), "{error}");
}

#[test]
fn whatever_is_missing_the_word_of_the_operator_runs_commands_unconfined() {
    for machine in [
        WITHOUT_USER_NAMESPACES,
        LIKE_A_CONTAINER,
        WITHOUT_LANDLOCK,
        WITH_A_HIDDEN_PROC,
    ] {
        let (confinement, warning) = machine.first_command("unconfined").ran();
        assert_eq!(confinement.as_str(), "UNCONFINED", "{machine:?}");
        assert_eq!(warning, None);
    }
}

#[test]
fn where_landlock_is_the_minimum_commands_run_within_it_and_the_person_is_told() {
    for (machine, layer) in [
        (WITHOUT_USER_NAMESPACES, "user namespace failed"),
        (LIKE_A_CONTAINER, "user namespace failed"),
        (WITH_A_HIDDEN_PROC, "proc failed"),
    ] {
        let (confinement, warning) = machine.first_command("landlock").ran();
        assert_eq!(confinement.as_str(), "landlock", "{machine:?}");
        let warning = warning.unwrap();
        for word in ["shell.min_tier", layer, "Remedy: ", "`bwrap`"] {
            assert!(warning.contains(word), "{word}: {warning}");
        }
    }
}

#[test]
fn where_bwrap_can_do_what_floe_cannot_it_is_taken_and_the_person_is_told() {
    if !bwrap_is_there() {
        return;
    }
    for (role, failed) in [
        (
            "no-unshare",
            "user namespace failed (unshare(CLONE_NEWUSER)",
        ),
        ("old-kernel", "mount_setattr"),
    ] {
        // As an ordinary user bwrap goes the refused way as well, after its own.
        if role == "no-unshare" && !rustix::process::geteuid().is_root() {
            continue;
        }
        for word in ["", "landlock"] {
            let (confinement, warning) = Machine::Role(role).first_command(word).ran();
            assert_eq!(confinement.as_str(), "bwrap", "{role}");
            let warning = warning.unwrap();
            for word in ["system's bwrap", failed, "Remedy: "] {
                assert!(warning.contains(word), "{word}: {warning}");
            }
        }
    }
}

/// CI installs it; elsewhere what needs it is passed over.
fn bwrap_is_there() -> bool {
    let there = std::path::Path::new("/usr/bin/bwrap").exists();
    assert!(there || std::env::var_os("CI").is_none(), "CI has bwrap");
    if !there {
        eprintln!("not run: /usr/bin/bwrap is not installed");
    }
    there
}

#[test]
fn where_better_walls_stand_a_lower_minimum_changes_nothing() {
    let (confinement, warning) = Machine::Role("plain").first_command("landlock").ran();
    assert_eq!((confinement.tier, warning), (Tier::Native, None));
}

#[test]
#[ignore = "a host that another test starts"]
fn a_host_whose_first_commands_come_together() {
    if play().is_none() {
        return;
    }
    let session = Session::with(|_, options| configure(options));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| session.ok("true"));
        }
    });
    let warnings = session.sandbox.warning().into_iter();
    let warnings = warnings.chain(session.sandbox.warning()).count();
    say(&(session.sandbox.confinement().tier, warnings));
}

#[test]
fn first_commands_that_come_together_get_the_same_walls_and_one_warning_comes_of_it() {
    let mut host = LIKE_A_CONTAINER.host("a_host_whose_first_commands_come_together");
    let output = host.env(WORD, "landlock").output();
    assert_eq!(said::<(Tier, usize)>(&output.unwrap()), (Tier::Landlock, 1));
}

#[test]
#[ignore = "a host that another test starts"]
fn a_host_that_loses_something_between_two_commands() {
    if play().is_none() {
        return;
    }
    let session = Session::with(|_, options| {
        options.policy.minimum_tier = MinimumTier::Landlock;
    });
    session.ok("true");
    refuse(&[libc::SYS_move_mount], libc::EPERM);
    let error = session.try_spawn("touch it-ran").unwrap_err();
    assert!(!session.workspace.join("it-ran").exists());
    assert_eq!(session.sandbox.confinement().tier, Tier::Native);
    say(&error);
}

#[test]
fn a_session_keeps_its_walls_and_a_command_for_which_they_do_not_stand_fails() {
    let output = Machine::Role("plain")
        .host("a_host_that_loses_something_between_two_commands")
        .output();
    let error: SandboxError = said(&output.unwrap());
    assert_explained(&error, LayerName::Mounts, "seccomp=unconfined");
}

#[test]
fn a_workspace_that_the_walls_cannot_take_in_gets_no_weaker_ones() {
    // Only root can make a repository that its own helper, where nobody else's identity is known, may not look into.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let session = Session::with(|workspace, options| {
        options.policy.minimum_tier = MinimumTier::Landlock;
        let repository = workspace.join(".git");
        fs::create_dir(&repository).unwrap();
        fs::write(repository.join("config"), "").unwrap();
        fs::set_permissions(&repository, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&repository, Some(12345), Some(12345)).unwrap();
    });
    let error = session.try_spawn("touch it-ran").unwrap_err();
    assert!(!session.workspace.join("it-ran").exists());
    assert_eq!(
        error.layer().unwrap().layer,
        LayerName::ProtectedPaths,
        "{error}"
    );
}

fn of(found: &Doctor, tier: Tier) -> &Examined {
    found
        .tiers
        .iter()
        .find(|examined| examined.tier == tier)
        .unwrap()
}

#[test]
fn the_doctor_tries_every_wall_of_every_tier_and_finds_them_standing() {
    let found = doctor(HELPER.as_ref(), MinimumTier::Native);
    assert_eq!((found.ok, found.tier), (true, Some(Tier::Native)));
    let tiers: Vec<&str> = found
        .tiers
        .iter()
        .map(|examined| examined.tier.as_str())
        .collect();
    assert_eq!(tiers, ["native", "bwrap", "landlock", "UNCONFINED"]);
    let native = of(&found, Tier::Native);
    assert!(native.stands && native.fault.is_none());
    for tier in [Tier::Native, Tier::Landlock] {
        let layers = &of(&found, tier).layers;
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, LayerName::ALL.map(LayerName::as_str), "{tier}");
    }
    assert!(
        native.layers.iter().all(|layer| layer.active),
        "{native:#?}"
    );
    assert!(of(&found, Tier::Landlock).stands);
    assert!(of(&found, Tier::Unconfined).stands);
    let json = serde_json::to_value(&found).unwrap();
    let fields = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(fields(&json), ["ok", "minimum", "tier", "tiers"]);
    let first = &json["tiers"][0];
    assert_eq!(fields(first), ["tier", "stands", "fault", "layers"]);
    let layer = &first["layers"][0];
    assert_eq!(fields(layer), ["name", "active", "detail", "remedy"]);
}

#[test]
#[ignore = "a doctor that another test sends to a poor machine"]
fn a_doctor_on_a_machine_that_lacks_something() {
    if play().is_none() {
        return;
    }
    let minimum = match std::env::var(WORD).as_deref() {
        Ok("landlock") => MinimumTier::Landlock,
        _ => MinimumTier::Native,
    };
    say(&doctor(HELPER.as_ref(), minimum));
}

fn doctor_on(machine: Machine, word: &str) -> Doctor {
    let mut host = machine.host("a_doctor_on_a_machine_that_lacks_something");
    said(&host.env(WORD, word).output().unwrap())
}

#[test]
fn the_doctor_says_on_every_poor_machine_which_walls_a_session_would_get() {
    let root = rustix::process::geteuid().is_root();
    for (machine, layer, with_landlock) in [
        (
            WITHOUT_USER_NAMESPACES,
            LayerName::UserNamespace,
            Some(Tier::Landlock),
        ),
        (
            LIKE_A_CONTAINER,
            LayerName::UserNamespace,
            Some(Tier::Landlock),
        ),
        (WITHOUT_LANDLOCK, LayerName::Landlock, None),
        (WITH_A_HIDDEN_PROC, LayerName::Proc, Some(Tier::Landlock)),
    ] {
        let found = doctor_on(machine, "");
        let layers = &of(&found, Tier::Native).layers;
        let failed = layers.iter().find(|found| found.name == layer.as_str());
        let failed = failed.unwrap();
        assert!(!failed.active && failed.remedy.is_some(), "{failed:?}");
        if layer == LayerName::Landlock && !root {
            assert_eq!((found.ok, found.tier), (true, Some(Tier::Native)));
            continue;
        }
        assert_eq!((found.ok, found.tier), (false, None), "{machine:?}");
        let found = doctor_on(machine, "landlock");
        assert_eq!(found.tier, with_landlock, "{machine:?}");
        assert_eq!(found.ok, with_landlock.is_some());
        let unconfined = of(&found, Tier::Unconfined);
        assert!(unconfined.stands, "{unconfined:?}");
    }
}

#[test]
fn the_doctor_names_the_wall_that_does_not_stand_and_those_it_could_not_try() {
    let found = doctor_on(Machine::Role("no-mount"), "");
    assert_eq!((found.ok, found.tier), (false, None));
    assert!(!of(&found, Tier::Native).stands);
    assert!(of(&found, Tier::Landlock).stands);
    let state = |name: LayerName| {
        of(&found, Tier::Native)
            .layers
            .iter()
            .find(|layer| layer.name == name.as_str())
            .unwrap()
    };
    assert!(state(LayerName::UserNamespace).active);
    assert!(!state(LayerName::Mounts).active && state(LayerName::Mounts).remedy.is_some());
    assert_eq!(state(LayerName::Seccomp).detail, "not tried");
}
