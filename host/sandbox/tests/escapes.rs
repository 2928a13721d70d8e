//! Ways out of the walls that were found and closed: each test is one of them, tried as whoever found it would.

#[path = "support/mod.rs"]
mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use support::{Running, Session, again_within_bwrap, again_without_privileges};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

#[test]
fn all_of_this_holds_within_walls_that_bubblewrap_builds() {
    again_within_bwrap();
}

/// A Workspace with a repository in its root and one in a folder of its own, and a secret.
fn repositories() -> Session {
    Session::with(|workspace, options| {
        for repository in ["", "a/sub"] {
            let git = workspace.join(repository).join(".git");
            fs::create_dir_all(git.join("hooks")).unwrap();
            fs::create_dir_all(git.join("modules/m/hooks")).unwrap();
            fs::write(git.join("modules/m/HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(git.join("config"), "[core]\n").unwrap();
        }
        fs::write(workspace.join("a/.env"), "the secret").unwrap();
        options.policy.deny_read = vec!["**/.env".into()];
    })
}

/// Runs a script, where the walls can be built at all; what it said.
fn attempt(session: &Session, script: &str) -> String {
    match session.try_spawn(script) {
        Ok(child) => format!("{:?}", Running::new(child).finish()),
        Err(error) => error.to_string(),
    }
}

/// A command of an ordinary user's host may take from that user, who is its own, the right to look into a folder, and give
/// it back later: what the host cannot see it must not take for missing.
#[test]
fn what_lies_in_a_folder_that_the_host_may_not_look_into_stays_protected() {
    let attack = "cat a/.env; for git in .git a/sub/.git; do echo evil > $git/hooks/pre-commit; \
                  echo evil > $git/modules/m/hooks/pre-commit; echo evil >> $git/config; done";
    let closed = [
        ".git",
        ".git/modules",
        ".git/modules/m",
        "a/sub/.git",
        "a/sub",
        "a",
        ".",
    ];
    for (folder, mode) in closed
        .iter()
        .flat_map(|folder| ["000", "300", "400"].map(|mode| (folder, mode)))
    {
        let session = repositories();
        attempt(&session, &format!("chmod {mode} {folder}"));
        let said = attempt(
            &session,
            &format!("cd /; chmod 755 /workspace/{folder}; cd /workspace; {attack}"),
        );
        let said = format!("{mode} {folder}: {said}");
        assert!(!said.contains("the secret"), "{said}");
        reset(&session.workspace);
        assert_no_evil(&session.workspace, &said);
    }
}

/// The same where a Session before has taken the right away.
#[test]
fn what_lies_in_a_folder_that_a_session_cannot_look_into_at_its_start_stays_protected() {
    let attack = "chmod -R u+rwx . ; cat a/.env; echo evil > a/sub/.git/hooks/pre-commit";
    for (folder, mode) in [
        ("a", "000"),
        ("a", "300"),
        ("a/sub", "000"),
        ("a/sub", "300"),
        (".", "000"),
        (".", "300"),
    ] {
        let session = repositories();
        let closed = session.workspace.join(folder);
        fs::set_permissions(
            &closed,
            Permissions::from_mode(u32::from_str_radix(mode, 8).unwrap()),
        )
        .unwrap();
        let said = format!("{mode} {folder}: {}", attempt(&session, attack));
        let said = said + &attempt(&session, attack);
        assert!(!said.contains("the secret"), "{said}");
        reset(&session.workspace);
        assert_no_evil(&session.workspace, &said);
    }
}

/// A filter that looks at one of two calls that do the same looks at none.
#[test]
fn no_socket_of_another_family_is_made_in_pairs_and_no_snapshot_taken() {
    let session = Session::new();
    let script = r#"python3 - <<'END'
import ctypes, errno, os
kernel = ctypes.CDLL(None, use_errno=True)
pair = (ctypes.c_int * 2)()
def refusal(result):
    return "made" if result == 0 else errno.errorcode[ctypes.get_errno()]
print(refusal(kernel.socketpair(1, 1, 0, pair)))
for family in [17, 30, 38, 40]:
    print(refusal(kernel.socketpair(family, 5, 0, pair)))
here = os.open(".", os.O_RDONLY)
for request in [0x50009401, 0x50009417]:
    print(refusal(kernel.ioctl(here, ctypes.c_ulong(request), bytes(4096))))
END"#;
    let expected: String = std::iter::once("made\n").chain(["EPERM\n"; 6]).collect();
    assert_eq!(session.ok(script), expected);
}

/// What the view shows by its path lies where a command may write, for as long as a person allows it: a link that it leaves
/// on the way would show later commands what that leads to.
#[test]
fn a_link_on_the_way_to_what_is_shown_leads_nobody_elsewhere() {
    let session = Session::with(|workspace, options| {
        let outside = workspace.with_file_name("outside");
        fs::create_dir_all(outside.join("data/tools/bin")).unwrap();
        fs::create_dir_all(outside.join("data/tools/share")).unwrap();
        fs::create_dir_all(outside.join("person/bin")).unwrap();
        fs::create_dir_all(outside.join("person/share")).unwrap();
        fs::write(outside.join("person/share/token"), "the secret").unwrap();
        options.search_path = format!("{}/data/tools/bin:/usr/bin:/bin", outside.display()).into();
    });
    let data = session.outside.join("data");
    session.ok("true");
    let mut widened = session.command(&format!(
        "mv {0}/tools {0}/away && ln -s {1}/person {0}/tools",
        data.display(),
        session.outside.display()
    ));
    widened.widening = session
        .sandbox
        .widening(&[], &[data.display().to_string()])
        .unwrap();
    let child = session.sandbox.spawn(&widened).unwrap();
    Running::new(child).finish();
    let said = attempt(
        &session,
        &format!("cat {}/tools/share/token", data.display()),
    );
    assert!(!said.contains("the secret"), "{said}");
}

/// What git is told to execute may be named by another name of the Workspace: a home that is a link on this system, say.
#[test]
fn hooks_that_are_named_by_another_name_of_the_workspace_cannot_be_changed() {
    let session = Session::with(|workspace, _| {
        let alias = workspace.with_file_name("alias");
        symlink(workspace, &alias).unwrap();
        fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
        fs::create_dir_all(workspace.join("tools/hooks")).unwrap();
        let config = format!("[core]\nhooksPath = {}/tools/hooks\n", alias.display());
        fs::write(workspace.join(".git/config"), config).unwrap();
    });
    session.refused("echo evil > tools/hooks/pre-commit");
    session.refused("mv tools tools2");
    assert_no_evil(&session.workspace, "");
}

/// Git is not the only one that executes what its settings say.
#[test]
fn what_other_version_controls_execute_cannot_be_changed_and_their_stores_can() {
    let obeyed = [
        ".hg/hgrc",
        ".hg/requires",
        ".jj/repo/config.toml",
        ".sl/config",
    ];
    let session = Session::with(|workspace, _| {
        for path in obeyed.map(|path| workspace.join(path)) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    });
    for path in obeyed {
        session.refused(&format!("echo evil > {path}"));
        session.refused(&format!("echo evil > new && mv new {path}"));
    }
    session.refused("mv .hg .hg2");
    session.ok("rm -f new; mkdir .hg/store && echo x > .hg/store/data");
    assert_no_evil(&session.workspace, "");
}

/// The devices in the view are the machine's own. To set the mode and the times that they have would change nothing, and
/// must be refused all the same.
#[test]
fn the_machines_devices_are_written_to_and_not_changed() {
    let session = Session::new();
    for device in ["null", "zero", "full", "random", "urandom", "tty"] {
        let path = format!("/dev/{device}");
        session.refused(&format!("chmod --reference {path} {path}"));
        session.refused(&format!("chown --reference {path} {path}"));
        session.refused(&format!("touch --reference {path} {path}"));
    }
    session.ok("echo x > /dev/null && head -c 1 /dev/zero > /dev/null && ! echo x > /dev/full");
}

/// Gives the test, and whoever removes its folders, the right to look everywhere.
fn reset(folder: &Path) {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            reset(&entry.path());
        }
    }
}

fn assert_no_evil(folder: &Path, said: &str) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            assert_no_evil(&path, said);
        } else {
            let evil = fs::read_to_string(&path).unwrap().contains("evil");
            assert!(!evil, "{}: {said}", path.display());
        }
    }
}

/// A pattern that names a folder hides what is in it, however deep, whatever the folder is called by; the names that are
/// hidden by default are those of files.
#[test]
fn a_folder_that_may_not_be_read_hides_all_that_it_holds() {
    let session = Session::with(|workspace, options| {
        for file in [
            "secrets/key",
            "secrets/deep/er/key",
            "a/private/key",
            ".env/bin/activate",
        ] {
            let file = workspace.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "the content\n").unwrap();
        }
        symlink("secrets", workspace.join("innocent")).unwrap();
        let patterns = ["secrets", "**/private", "**/.env"];
        options.policy.deny_read = patterns.map(Into::into).to_vec();
    });
    let script = "cat secrets/key secrets/deep/er/key innocent/key a/private/key; mv secrets b; cat b/key; \
                  ls secrets; cat .env/bin/activate";
    let said = attempt(&session, script);
    assert_eq!(said.matches("the content").count(), 1, "{said}");
}

/// Nothing is protected by a pattern, so nobody may take one for a protection.
#[test]
fn a_pattern_among_protected_paths_is_refused() {
    for pattern in ["**/x", "sub/*", "a?", "[ab]"] {
        let session = Session::with(|_, options| options.policy.protect = vec![pattern.into()]);
        let said = attempt(&session, "true");
        assert!(said.contains("takes paths, no patterns"), "{said}");
    }
}
