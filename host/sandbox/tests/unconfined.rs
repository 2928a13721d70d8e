//! Commands without walls, which only the operator's explicit word brings about: the same life, and an honest name.

mod support;

use std::fs;

use floe_sandbox::{Event, SandboxOptions, Signal, Streams, Tier};
use support::{Session, again_without_privileges, eventually};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

fn unconfined() -> Session {
    Session::with(|_, options| options.unconfined = true)
}

#[test]
fn it_is_never_the_default_and_says_what_it_is() {
    let session = Session::new();
    assert_eq!(session.sandbox.confinement().as_str(), "native");
    let session = unconfined();
    let confinement = session.sandbox.confinement();
    assert_eq!(
        (confinement.as_str(), confinement.tier),
        ("UNCONFINED", Tier::Unconfined)
    );
    session.ok("true");
    assert!(session.sandbox.confinement().layers.is_empty());
    let json = serde_json::to_value(session.sandbox.confinement()).unwrap();
    assert_eq!(json["tier"], "UNCONFINED");
    // The options themselves never come from a file.
    let _: fn(_, _, _, _, _) -> SandboxOptions = SandboxOptions::new;
}

#[test]
fn a_command_has_its_directory_environment_streams_and_exit_code() {
    let session = unconfined();
    let workspace = session.workspace.display();
    assert_eq!(session.ok("pwd -P"), format!("{workspace}\n"));
    let home = session.folder().canonicalize().unwrap().join("home");
    assert_eq!(session.ok("echo $HOME"), format!("{}\n", home.display()));
    assert!(!session.ok("env").contains("CARGO_MANIFEST"));
    assert_eq!(session.run("exit 42").event, Event::Exited(42));
    let running = session.spawn("cat; echo err >&2; kill -9 $$");
    running.write("in");
    let outcome = running.finish();
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("in", "err\n")
    );
    assert_eq!(outcome.event, Event::Signaled(Signal::KILL));
}

#[test]
fn a_long_script_runs_and_its_file_goes_with_it() {
    let session = unconfined();
    let script = format!("# {}\necho long", "x".repeat(200 * 1024));
    assert_eq!(session.ok(&script), "long\n");
    let left = || fs::read_dir(session.folder().join("tmp")).unwrap().count();
    eventually("the file is gone", || left() == 0);
}

#[test]
fn a_terminal_works() {
    let session = unconfined();
    let mut command = session.command("tty; stty size");
    command.terminal = Some((80, 24));
    let child = session.sandbox.spawn(&command).unwrap();
    let Streams::Terminal(master) = child.streams else {
        panic!("pipes")
    };
    let mut seen = Vec::new();
    let _ = std::io::Read::read_to_end(&mut fs::File::from(master), &mut seen);
    assert!(String::from_utf8_lossy(&seen).contains("24 80"));
}

#[test]
fn its_descendants_are_hunted_down_at_its_end_and_when_it_is_killed() {
    let session = unconfined();
    support::hunts_descendants_down(&session);
}
