//! A wall that cannot be built means that nothing runs, and that somebody is told why and what to do.
//!
//! Each machine that lacks something is made for the test: a host of its own, in an outer user namespace or under a
//! filter of its own. Nothing is changed for anybody else.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use floe_sandbox::{Doctor, Examined, Layer, LayerName, MinimumTier, SandboxError, Tier, doctor};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use support::{HELPER, Session, again_without_privileges, host};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

const ROLE: &str = "FLOE_TEST_ROLE";

/// Refuses `calls` with `errno` for this whole process and its children, as a container's filter would.
fn refuse(calls: &[i64], errno: i32) {
    let rules: BTreeMap<i64, _> = calls.iter().map(|&call| (call, Vec::new())).collect();
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let action = SeccompAction::Errno(errno as u32);
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)
        .unwrap()
        .try_into()
        .unwrap();
    apply_filter(&program).unwrap();
}

/// Runs this program's host test in the given role and returns the failure that it printed.
fn failure_of(mut command: Command) -> SandboxError {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("failure "));
    let line = line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(line).unwrap()
}

fn in_role(role: &str) -> Command {
    let mut command = host("a_host_that_lacks_something");
    command.env(ROLE, role);
    command
}

/// The same, after a shell script has changed the user and mount namespaces made for it.
fn in_role_after(role: &str, script: &str) -> Command {
    let host = in_role(role);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-euc"]);
    command
        .arg(format!("{script}; exec \"$@\""))
        .arg("host")
        .arg(host.get_program())
        .args(host.get_args());
    command.env(ROLE, role);
    command
}

#[test]
#[ignore = "a host that other tests start"]
fn a_host_that_lacks_something() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    match role.as_str() {
        "no-unshare" => refuse(
            &[libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount],
            libc::EPERM,
        ),
        "no-mount" => refuse(&[libc::SYS_move_mount], libc::EPERM),
        "old-kernel" => refuse(&[libc::SYS_mount_setattr], libc::ENOSYS),
        "no-landlock" => refuse(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS),
        _ => {}
    }
    let session = Session::new();
    let mark = session.workspace.join("it-ran");
    match session.try_spawn("touch it-ran") {
        Ok(child) => {
            support::Running::new(child).finish();
            let layers: Vec<Layer> = session.sandbox.confinement().layers;
            println!("\nran {}", serde_json::to_string(&layers).unwrap());
        }
        Err(error) => {
            assert!(!mark.exists());
            println!("\nfailure {}", serde_json::to_string(&error).unwrap());
        }
    }
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
    let error = failure_of(in_role_after("plain", &format!("echo 0 > {LIMIT}")));
    assert_explained(
        &error,
        LayerName::UserNamespace,
        "sysctl -w user.max_user_namespaces",
    );
    assert_eq!(fs::read_to_string(LIMIT).unwrap(), before);
}

#[test]
fn under_a_filter_like_a_containers_nothing_runs_and_the_filter_is_named() {
    let error = failure_of(in_role("no-unshare"));
    assert_explained(&error, LayerName::UserNamespace, "seccomp=unconfined");
    let error = failure_of(in_role("no-mount"));
    assert_explained(&error, LayerName::Mounts, "seccomp=unconfined");
}

#[test]
fn a_kernel_without_a_needed_call_runs_nothing() {
    let error = failure_of(in_role("old-kernel"));
    assert_explained(&error, LayerName::Mounts, "");
    assert!(error.to_string().contains("mount_setattr"), "{error}");
}

#[test]
fn where_proc_is_partly_hidden_nothing_runs_and_the_remedy_is_named() {
    let error = failure_of(in_role_after("plain", "mount -t tmpfs none /proc/acpi"));
    assert_explained(&error, LayerName::Proc, "systempaths=unconfined");
}

#[test]
fn landlock_is_required_of_root_and_its_absence_is_reported_to_others() {
    if rustix::process::geteuid().is_root() {
        let error = failure_of(in_role("no-landlock"));
        assert_explained(&error, LayerName::Landlock, "ordinary user");
        return;
    }
    let output = in_role("no-landlock").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("ran "))
        .unwrap_or_else(|| panic!("{text}"));
    let layers: Vec<Layer> = serde_json::from_str(line).unwrap();
    let landlock = layers
        .iter()
        .find(|layer| layer.name == "landlock")
        .unwrap();
    assert!(
        !landlock.active && landlock.remedy.is_some(),
        "{landlock:?}"
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
fn a_doctor_under_a_filter() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    refuse(&[libc::SYS_move_mount], libc::EPERM);
    println!(
        "\nfound {}",
        serde_json::to_string(&doctor(HELPER.as_ref(), MinimumTier::Native)).unwrap()
    );
}

#[test]
fn the_doctor_names_the_wall_that_does_not_stand_and_those_it_could_not_try() {
    let output = host("a_doctor_under_a_filter")
        .env(ROLE, "doctor")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("found "))
        .unwrap_or_else(|| panic!("{text}"));
    let found: Doctor = serde_json::from_str(line).unwrap();
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
