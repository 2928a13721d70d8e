//! What a person granted one command beyond the policy: it is there for that command, as it was seen, and nothing else is.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use floe_sandbox::{Event, Policy, SandboxError, Tier, Widening, WideningFault, WorkspaceMode};
use support::{Outcome, Running, Session, again_within_bwrap, again_without_privileges};

#[test]
fn all_of_this_holds_for_an_ordinary_user_too() {
    again_without_privileges();
}

#[test]
fn all_of_this_holds_within_walls_that_bubblewrap_builds() {
    again_within_bwrap();
}

/// A Session with exactly these walls.
fn in_tier(tier: Tier) -> Session {
    Session::with(|_, options| options.tier = Some(tier))
}

/// What there is to ask for.
fn outside(session: &Session) -> PathBuf {
    let outside = &session.outside;
    for folder in ["data/deep", "repository/.git/hooks", "repository/source"] {
        fs::create_dir_all(outside.join(folder)).unwrap();
    }
    for (file, text) in [
        ("data/table", "42"),
        ("data/deep/leaf", "43"),
        ("data/.env", "KEY=1"),
        ("alone", "44"),
        ("repository/.git/HEAD", "ref: refs/heads/main"),
        ("repository/.git/config", "[core]"),
        ("repository/.git/hooks/pre-commit", "#!/bin/sh"),
    ] {
        fs::write(outside.join(file), text).unwrap();
    }
    outside.clone()
}

fn texts(paths: &[&Path]) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.to_str().unwrap().to_owned())
        .collect()
}

fn granted(session: &Session, read: &[&Path], write: &[&Path]) -> Widening {
    session
        .sandbox
        .widening(&texts(read), &texts(write))
        .unwrap()
}

fn run(session: &Session, widening: &Widening, script: &str) -> Outcome {
    let mut command = session.command(script);
    command.widening = widening.clone();
    Running::new(
        session
            .sandbox
            .spawn(&command)
            .unwrap_or_else(|error| panic!("{error}")),
    )
    .finish()
}

fn fault(session: &Session, read: &[&str], write: &[&str]) -> WideningFault {
    let owned = |paths: &[&str]| {
        paths
            .iter()
            .map(|path| (*path).to_owned())
            .collect::<Vec<_>>()
    };
    session
        .sandbox
        .widening(&owned(read), &owned(write))
        .unwrap_err()
}

#[test]
fn a_granted_path_is_there_for_the_one_command_and_for_no_other() {
    let session = Session::new();
    let outside = outside(&session);
    let script = format!(
        "cat {0}/data/table {0}/data/deep/leaf {0}/alone",
        outside.display()
    );
    session.refused(&script);
    let widening = granted(
        &session,
        &[&outside.join("data"), &outside.join("alone")],
        &[],
    );
    assert_eq!(run(&session, &widening, &script).stdout, "424344");
    session.refused(&script);
}

#[test]
fn what_may_be_read_may_not_be_changed_and_what_is_beside_it_is_not_there() {
    let session = Session::new();
    let outside = outside(&session);
    let widening = granted(&session, &[&outside.join("data")], &[]);
    for script in [
        "echo x > data/table",
        "rm data/table",
        "touch data/new",
        "cat alone",
        "ls repository",
    ] {
        let script = format!("cd {} && {script}", outside.display());
        let outcome = run(&session, &widening, &script);
        assert_ne!(outcome.event, Event::Exited(0), "{script}");
    }
    assert_eq!(
        fs::read_to_string(outside.join("data/table")).unwrap(),
        "42"
    );
    assert!(!outside.join("data/new").exists());
}

#[test]
fn a_granted_folder_and_a_granted_file_may_be_written() {
    let session = Session::new();
    let outside = outside(&session);
    let paths = [outside.join("data"), outside.join("alone")];
    fs::set_permissions(&paths[0], fs::Permissions::from_mode(0o777)).unwrap();
    let widening = granted(&session, &[], &[&paths[0], &paths[1]]);
    let script = format!(
        "cd {} && echo new > data/made && mkdir data/folder && echo more >> alone",
        outside.display()
    );
    let outcome = run(&session, &widening, &script);
    assert_eq!(outcome.event, Event::Exited(0), "{}", outcome.stderr);
    assert_eq!(
        fs::read_to_string(outside.join("data/made")).unwrap(),
        "new\n"
    );
    assert_eq!(
        fs::read_to_string(outside.join("alone")).unwrap(),
        "44more\n"
    );
}

#[test]
fn what_is_protected_or_hidden_in_a_workspace_is_so_in_a_granted_folder() {
    let session = Session::new();
    let outside = outside(&session);
    let widening = granted(
        &session,
        &[&outside.join("data")],
        &[&outside.join("repository")],
    );
    let in_outside = |script: &str| format!("cd {} && {script}", outside.display());
    let outcome = run(
        &session,
        &widening,
        &in_outside("touch repository/source/file repository/.git/index"),
    );
    assert_eq!(outcome.event, Event::Exited(0), "{}", outcome.stderr);
    for script in [
        "echo evil > repository/.git/hooks/pre-commit",
        "echo evil > repository/.git/config",
        "mv repository/.git repository/git2",
        "rm -rf repository/.git/hooks",
        "cat data/.env | grep KEY",
    ] {
        let outcome = run(&session, &widening, &in_outside(script));
        assert_ne!(outcome.event, Event::Exited(0), "{script}");
    }
    let hook = fs::read_to_string(outside.join("repository/.git/hooks/pre-commit")).unwrap();
    assert_eq!(hook, "#!/bin/sh");
}

#[test]
fn a_link_is_granted_as_what_it_leads_to_and_a_later_swap_grants_nothing() {
    let session = Session::new();
    let outside = outside(&session);
    let link = outside.join("link");
    symlink(outside.join("data"), &link).unwrap();
    let widening = granted(&session, &[&link], &[]);
    assert_eq!(
        widening.read[0].path(),
        outside.join("data").canonicalize().unwrap()
    );

    fs::remove_file(&link).unwrap();
    symlink(&outside, &link).unwrap();
    let script = format!("cat {}/link/alone", outside.display());
    assert_ne!(run(&session, &widening, &script).event, Event::Exited(0));

    // The path itself leads elsewhere now: the command is not run at all.
    fs::rename(outside.join("data"), outside.join("was-data")).unwrap();
    symlink(&outside, outside.join("data")).unwrap();
    let mut command = session.command("touch ran");
    command.widening = widening.clone();
    let refusal = session.sandbox.spawn(&command).unwrap_err();
    assert!(
        matches!(refusal, SandboxError::Widening { .. }),
        "{refusal}"
    );
    fs::remove_file(outside.join("data")).unwrap();
    fs::create_dir(outside.join("data")).unwrap();
    let refusal = session.sandbox.spawn(&command).unwrap_err().to_string();
    assert!(
        refusal.contains("no longer leads to what the person allowed"),
        "{refusal}"
    );
    assert!(!session.workspace.join("ran").exists());
}

#[test]
fn a_command_may_be_held_to_reading_in_a_workspace_that_others_write() {
    let session = Session::new();
    session.ok("echo 1 > file");
    let mut command = session.command("cat file; echo 2 > file");
    command.workspace = WorkspaceMode::ReadOnly;
    let outcome = Running::new(session.sandbox.spawn(&command).unwrap()).finish();
    assert_eq!(outcome.stdout, "1\n");
    assert_ne!(outcome.event, Event::Exited(0));
    session.ok("echo 3 > file");
    assert_eq!(
        fs::read_to_string(session.workspace.join("file")).unwrap(),
        "3\n"
    );
}

#[test]
fn what_commands_have_anyway_is_not_asked_for() {
    let session = Session::with(|workspace, _| fs::write(workspace.join("file"), "").unwrap());
    let inside = session.workspace.join("file");
    let seen = granted(
        &session,
        &[&inside, Path::new("/usr/bin"), Path::new("/workspace/file")],
        &[&inside],
    );
    assert!(seen.is_empty(), "{seen:?}");
}

#[test]
fn a_path_that_cannot_be_meant_is_a_mistake_that_says_where_and_what_to_do() {
    let person = tempfile::tempdir().unwrap();
    let home = person.path().canonicalize().unwrap();
    let session = Session::with(|_, options| options.person_home = Some(home.clone()));
    let root = session.outside.to_str().unwrap().to_owned();
    let missing = format!("{root}/missing");
    let dotted = format!("{root}/../x");
    let above = session.folder().parent().unwrap();
    for (path, expected) in [
        ("data", "must be absolute"),
        ("~/x", "`~` is not expanded"),
        (dotted.as_str(), "must not hold `..`"),
        ("/a\nb", "control character"),
        (missing.as_str(), "nothing is there"),
        ("/", "name what you need in it"),
        ("/proc/1/root", "belongs to the sandbox itself"),
        ("/run/docker.sock", "belongs to the sandbox itself"),
        (home.to_str().unwrap(), "whole home"),
        (session.folder().to_str().unwrap(), "it holds the Workspace"),
        (above.to_str().unwrap(), "name what you need in it"),
    ] {
        let fault = fault(&session, &["/usr", path], &[]);
        let WideningFault::Mistake { place, reason } = fault else {
            panic!("{path}: {fault:?}")
        };
        assert_eq!(place, "read/1");
        assert!(reason.contains(expected), "{path}: {reason}");
    }
    let many = vec!["/usr"; 17];
    assert!(
        fault(&session, &many, &[])
            .to_string()
            .contains("at most 16 paths")
    );
    let socket = session.outside.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(
        fault(&session, &[socket.to_str().unwrap()], &[])
            .to_string()
            .contains("neither a file nor a folder")
    );
    assert!(
        fault(&session, &[], &[&missing])
            .to_string()
            .contains("ask for the folder that it goes into")
    );
}

#[test]
fn what_no_person_may_grant_is_forbidden_before_anybody_is_asked() {
    let session = Session::with(|workspace, options| {
        let floe = workspace.parent().unwrap().join("floe-home");
        for folder in [
            floe.join("sessions"),
            workspace.join(".git/hooks"),
            workspace.join(".floe"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(workspace.join(".env"), "").unwrap();
        symlink(&floe, workspace.join("way")).unwrap();
        options.private = vec![floe];
    });
    let outside = outside(&session);
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let floe = session.folder().join("floe-home");
    let forbidden = |read: &[String], write: &[String], expected: &str| {
        let fault = session.sandbox.widening(read, write).unwrap_err();
        assert!(
            matches!(fault, WideningFault::Forbidden(_)),
            "{read:?} {write:?} {fault:?}"
        );
        assert!(fault.to_string().contains(expected), "{fault}");
    };
    for path in [
        floe.clone(),
        floe.join("sessions"),
        floe.join("missing"),
        session.workspace.join("way/sessions"),
    ] {
        forbidden(&[text(path.clone())], &[], "where Floe keeps its own files");
        forbidden(&[], &[text(path)], "where Floe keeps its own files");
    }
    for path in [
        session.workspace.join(".git/hooks"),
        session.workspace.join(".floe"),
        outside.join("repository/.git/hooks"),
        outside.join("repository/.git/config"),
    ] {
        forbidden(&[], &[text(path)], "which is protected");
    }
    forbidden(
        &[],
        &["/workspace/.git/hooks".to_owned()],
        "which is protected",
    );
    for path in [session.workspace.join(".env"), outside.join("data/.env")] {
        forbidden(&[text(path)], &[], "shell.deny_read");
    }
}

#[test]
fn a_workspace_that_may_only_be_read_is_not_widened() {
    let session = Session::with(|workspace, options| {
        fs::create_dir(workspace.join("source")).unwrap();
        options.policy = Policy {
            workspace: WorkspaceMode::ReadOnly,
            ..Policy::default()
        };
    });
    let source = session.workspace.join("source");
    let fault = fault(&session, &[], &[source.to_str().unwrap()]).to_string();
    assert!(fault.contains("shell.mode: read-only"), "{fault}");
}

#[test]
fn floes_own_folder_is_no_extra_path_either() {
    let session = Session::with(|workspace, options| {
        let floe = workspace.parent().unwrap().join("floe-home");
        fs::create_dir(&floe).unwrap();
        options.policy.extra_read = vec![workspace.parent().unwrap().to_owned()];
        options.private = vec![floe];
    });
    let refusal = session.try_spawn("true").unwrap_err().to_string();
    assert!(refusal.contains("`extra_read`"), "{refusal}");
    assert!(refusal.contains("Floe keeps its own files"), "{refusal}");
}

#[test]
fn landlock_alone_widens_nothing_and_says_what_the_person_can_do() {
    let session = in_tier(Tier::Landlock);
    let outside = outside(&session);
    let data = outside.join("data");
    for (read, write, flag) in [
        (vec![&data], vec![], "--allow-read"),
        (vec![], vec![&data], "--allow-write"),
    ] {
        let list = |paths: &[&PathBuf]| {
            texts(&paths.iter().map(|path| path.as_path()).collect::<Vec<_>>())
        };
        let fault = session
            .sandbox
            .widening(&list(&read), &list(&write))
            .unwrap_err();
        assert!(matches!(fault, WideningFault::Forbidden(_)), "{fault:?}");
        assert!(fault.to_string().contains(flag), "{fault}");
    }
    // Not even where the host says that it was granted.
    let mut command = session.command("true");
    command.widening = granted(&in_tier(Tier::Native), &[&data], &[]);
    let refusal = session.sandbox.spawn(&command).unwrap_err();
    assert!(
        matches!(refusal, SandboxError::Widening { .. }),
        "{refusal}"
    );
}
