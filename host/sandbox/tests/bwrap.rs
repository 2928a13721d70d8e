//! What is peculiar to the walls that bubblewrap builds. Everything else that holds within any walls is tried within these
//! too, by the tests of each kind.

mod support;

use std::fs;

use floe_sandbox::{Event, LayerName, SandboxOptions, Tier};
use support::{Session, again_without_privileges, eventually, has_bwrap, processes_with};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

fn within(options: &mut SandboxOptions) {
    options.tier = Some(Tier::Bwrap);
}

fn session() -> Session {
    Session::with(|_, options| within(options))
}

/// The processes of the host that `pid` has started, with what each of them executes.
fn children(pid: u32) -> Vec<(u32, String)> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let named = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        (pid, name.trim().to_owned())
    };
    let pids = listed.split_ascii_whitespace();
    pids.filter_map(|pid| pid.parse().ok()).map(named).collect()
}

#[test]
fn every_wall_stands_and_is_told_as_what_it_is() {
    if !has_bwrap() {
        return;
    }
    let session = session();
    session.ok("true");
    let confinement = session.sandbox.confinement();
    assert_eq!(
        (confinement.as_str(), confinement.tier),
        ("bwrap", Tier::Bwrap)
    );
    let names: Vec<&str> = confinement
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect();
    assert_eq!(names, LayerName::ALL.map(LayerName::as_str));
    assert!(
        confinement.layers.iter().all(|layer| layer.active),
        "{confinement:#?}"
    );
    // It was asked for, so there is nothing to warn of.
    assert_eq!(session.sandbox.warning(), None);
}

#[test]
fn the_helper_is_the_first_process_within_and_bubblewrap_only_waits_outside() {
    if !has_bwrap() {
        return;
    }
    let session = session();
    let running = session.spawn("cat /proc/1/comm; echo $PPID; read x");
    let outside = children(running.pid);
    let [(bubblewrap, name)] = outside.as_slice() else {
        panic!("{outside:?}")
    };
    assert_eq!(name, "bwrap");
    let inside = children(*bubblewrap);
    assert_eq!(inside.len(), 1, "{inside:?}");
    let outcome = running.finish();
    let mut lines = outcome.stdout.lines();
    assert_eq!(lines.next(), Some(inside[0].1.as_str()));
    assert_eq!(lines.next(), Some("1"));
}

#[test]
fn nothing_survives_bubblewrap_being_killed() {
    if !has_bwrap() {
        return;
    }
    let session = session();
    let mark = format!("floe-test-bwrap-killed-{}", std::process::id());
    let running = session.spawn(&format!(
        "(setsid bash -c 'exec -a {mark} sleep 600' &); touch ready; sleep 600"
    ));
    eventually("it runs", || {
        session.workspace.join("ready").exists() && !processes_with(&mark).is_empty()
    });
    let [(bubblewrap, _)] = children(running.pid)[..] else {
        panic!("bubblewrap is not there alone")
    };
    let bubblewrap = rustix::process::Pid::from_raw(bubblewrap as i32).unwrap();
    rustix::process::kill_process(bubblewrap, rustix::process::Signal::KILL).unwrap();
    assert_eq!(running.finish().event, Event::SandboxEnded);
    eventually("all of it is gone", || processes_with(&mark).is_empty());
}

#[test]
fn a_view_that_bubblewrap_cannot_build_is_told_in_its_words_and_runs_nothing() {
    if !has_bwrap() {
        return;
    }
    let session = Session::with(|_, options| {
        within(options);
        options.policy.limits.shared_memory_mb = u64::MAX;
    });
    let error = session.try_spawn("touch it-ran").unwrap_err();
    assert_eq!(error.code(), "sandbox-bwrap", "{error}");
    assert!(error.to_string().contains("--size"), "{error}");
    assert!(!session.workspace.join("it-ran").exists());
}

#[test]
fn a_session_keeps_its_user_and_network_namespace_and_gives_every_command_the_others() {
    if !has_bwrap() {
        return;
    }
    let session = session();
    let namespaces = || {
        let names = ["net", "mnt", "pid"];
        let links = names.map(|name| format!("/proc/self/ns/{name}"));
        let printed = session.ok(&format!("readlink {}", links.join(" ")));
        let lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        <[String; 3]>::try_from(lines).unwrap()
    };
    let (first, second) = (namespaces(), namespaces());
    assert_eq!(first[0], second[0]);
    let host = fs::read_link("/proc/self/ns/net").unwrap();
    assert_ne!(first[0], host.to_str().unwrap());
    // Kept open, so that the kernel gives none of their numbers out again.
    let running = session.spawn("readlink /proc/self/ns/mnt /proc/self/ns/pid; read x");
    let other = namespaces();
    let kept = running.finish().stdout;
    for name in &other[1..3] {
        assert!(!kept.contains(name.as_str()), "{kept}");
    }
}
