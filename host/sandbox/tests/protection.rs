//! The protected paths of a Workspace, and that git goes on working beside them.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use floe_sandbox::{AppearanceKind, Event, HardLinks, SandboxError, Search};
use support::{Session, again_within_bwrap, again_without_privileges};

#[test]
fn all_of_this_holds_for_a_host_without_privileges() {
    again_without_privileges();
}

#[test]
fn all_of_this_holds_within_walls_that_bubblewrap_builds() {
    again_within_bwrap();
}

/// Git as the host runs it in these tests: with no settings but its own.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const COMMIT: &str =
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    echo new > new && git add -A && git commit -qm second && git log --oneline | wc -l";

fn repository(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q"]);
    fs::create_dir_all(folder.join(".git/hooks")).unwrap();
    fs::write(folder.join("file"), "first").unwrap();
    git(folder, &["add", "file"]);
    git(folder, &["commit", "-qm", "first"]);
}

/// Every file below `folder` with its content, mode and owner.
fn state(folder: &Path) -> Vec<String> {
    let mut state = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, metadata) = (entry.path(), entry.metadata().unwrap());
            let content = if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            state.push(format!(
                "{} {:o} {} {content:?}",
                path.display(),
                metadata.mode(),
                metadata.uid()
            ));
            if metadata.is_dir() {
                waiting.push(path);
            }
        }
    }
    state.sort();
    state
}

#[test]
fn what_git_executes_cannot_be_changed_and_commits_go_on_working() {
    let session = Session::with(|workspace, _| repository(workspace));
    let before = (
        state(&session.workspace.join(".git/hooks")),
        fs::read(session.workspace.join(".git/config")).unwrap(),
    );
    for attack in [
        "echo evil > .git/hooks/pre-commit",
        "echo evil >> .git/config",
        "git config core.hooksPath evil",
        "git config core.fsmonitor evil",
        "rm -f .git/config",
        "rm -rf .git/hooks",
        "mv .git/hooks .git/hooks2",
        "mv .git/config .git/config2",
        "ln .git/config hard",
        "chmod 777 .git/hooks",
        "cd /workspace && echo evil > .git/hooks/pre-commit",
        "cd /workspace && mv .git .git2",
        "umount .git/hooks",
    ] {
        session.refused(attack);
    }
    let busy = session
        .refused("mv .git .git2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit");
    assert!(busy.contains("busy"), "{busy}");
    session.run("rm -rf .git/hooks .git/config");
    let after = (
        state(&session.workspace.join(".git/hooks")),
        fs::read(session.workspace.join(".git/config")).unwrap(),
    );
    assert_eq!(before, after);
    assert_eq!(session.ok(COMMIT), "2\n");
    assert_eq!(
        session.ok("git switch -qc branch && git stash list && git gc -q && git status --short"),
        ""
    );
    assert_eq!(
        git(&session.workspace, &["log", "--oneline"])
            .lines()
            .count(),
        2
    );
}

#[test]
fn a_nested_repository_is_protected_with_every_folder_above_it() {
    let session = Session::with(|workspace, _| repository(&workspace.join("libs/sub")));
    for attack in [
        "echo evil > libs/sub/.git/hooks/pre-commit",
        "mv libs/sub/.git libs/sub/.git2",
        "mv libs/sub libs/sub2 && mkdir -p libs/sub/.git/hooks",
        "mv libs libs2 && mkdir -p libs/sub/.git/hooks",
    ] {
        session.refused(attack);
    }
    assert_eq!(session.ok(&format!("cd libs/sub; {COMMIT}")), "2\n");
}

#[test]
fn submodules_and_linked_worktrees_are_protected_too() {
    let session = Session::with(|workspace, _| {
        let origin = workspace.join("origin");
        repository(&origin);
        repository(workspace);
        git(
            workspace,
            &["submodule", "add", "-q", origin.to_str().unwrap(), "module"],
        );
        git(workspace, &["worktree", "add", "-q", "tree"]);
        fs::create_dir_all(workspace.join(".git/modules/module/hooks")).unwrap();
    });
    for attack in [
        "echo evil > .git/modules/module/hooks/pre-commit",
        "echo evil >> .git/modules/module/config",
        "mv .git/modules .git/modules2",
        "echo ../../evil > .git/worktrees/tree/commondir",
        "echo evil > module/.git",
        "rm -f tree/.git",
        "mv tree tree2",
    ] {
        session.refused(attack);
    }
    assert_eq!(session.ok(&format!("cd module; {COMMIT}")), "2\n");
    assert_eq!(session.ok(&format!("cd tree; {COMMIT}")), "2\n");
}

#[test]
fn settings_that_are_obeyed_later_cannot_be_changed() {
    let session = Session::with(|workspace, options| {
        for folder in [".floe", ".vscode", ".claude", "mine"] {
            fs::create_dir(workspace.join(folder)).unwrap();
            fs::write(workspace.join(folder).join("settings.json"), "{}").unwrap();
        }
        fs::write(workspace.join(".mcp.json"), "{}").unwrap();
        options.policy.protect = vec!["mine/settings.json".into()];
    });
    for attack in [
        "echo evil > .floe/settings.json",
        "touch .vscode/tasks.json",
        "mv .claude .claude2",
        "rm -f .mcp.json",
        "echo evil > .mcp.json",
        "echo evil > new && mv new .mcp.json",
        "echo evil > mine/settings.json",
        "mv mine mine2",
    ] {
        session.refused(attack);
    }
    assert_eq!(
        session.ok("touch mine/other && cat .floe/settings.json"),
        "{}"
    );
}

#[test]
fn a_protected_link_can_be_neither_replaced_nor_followed_to_a_change() {
    let session = Session::with(|workspace, _| {
        fs::create_dir(workspace.join("settings")).unwrap();
        fs::write(workspace.join("settings/tasks.json"), "{}").unwrap();
        symlink("settings", workspace.join(".vscode")).unwrap();
    });
    for attack in [
        "rm -f .vscode",
        "ln -sfn /tmp .vscode",
        "mv .vscode old",
        "echo evil > .vscode/tasks.json",
        "echo evil > settings/tasks.json",
        "mv settings settings2",
    ] {
        session.refused(attack);
    }
    assert_eq!(session.ok("cat settings/tasks.json"), "{}");
    assert_eq!(
        fs::read_link(session.workspace.join(".vscode")).unwrap(),
        Path::new("settings")
    );
}

#[test]
fn nothing_is_created_in_the_workspace_to_hold_a_place() {
    let session =
        Session::with(|workspace, _| fs::write(workspace.join("file"), "content").unwrap());
    let before = state(&session.workspace);
    session.ok("true");
    session.spawn("sleep 60").control.kill();
    assert_eq!(before, state(&session.workspace));
    // A repository may be started, and from then on is protected like any other.
    session.ok("git init -q . && ls .git/config");
    session.refused("echo evil >> .git/config");
}

#[test]
fn a_workspace_that_is_too_large_to_be_searched_is_refused_with_the_way_out() {
    let session = Session::with(|workspace, options| {
        for number in 0..50 {
            fs::write(workspace.join(number.to_string()), "").unwrap();
        }
        options.policy.search = Search {
            depth: 6,
            entries: 40,
        };
    });
    let error = session.try_spawn("true").unwrap_err();
    assert!(matches!(error, SandboxError::Protection { .. }), "{error}");
    assert!(error.to_string().contains("search.entries"), "{error}");
}

#[test]
fn a_linked_worktree_whose_repository_lies_outside_takes_commits_and_nothing_else() {
    let main = tempfile::tempdir().unwrap();
    let main = main.path().canonicalize().unwrap().join("main");
    repository(&main);
    let session = Session::with(|workspace, _| {
        git(
            &main,
            &["worktree", "add", "-qf", workspace.to_str().unwrap()],
        );
    });
    let git_directory = main.join(".git");
    assert_eq!(session.ok(COMMIT), "2\n");
    let git_path = git_directory.display();
    for attack in [
        format!("echo evil > {git_path}/hooks/pre-commit"),
        format!("echo evil >> {git_path}/config"),
        format!("touch {git_path}/evil"),
        format!("cat {}", main.join("file").display()),
        "echo 'gitdir: /tmp/evil' > .git".to_owned(),
    ] {
        session.refused(&attack);
    }
    assert_eq!(
        git(&session.workspace, &["log", "--oneline"])
            .lines()
            .count(),
        2
    );
}

#[test]
fn what_a_command_adds_to_a_git_directory_outside_is_told() {
    let main = tempfile::tempdir().unwrap();
    let main = main.path().canonicalize().unwrap().join("main");
    repository(&main);
    let session = Session::with(|workspace, _| {
        git(
            &main,
            &["worktree", "add", "-qf", workspace.to_str().unwrap()],
        );
    });
    let pointer = fs::read_to_string(session.workspace.join(".git")).unwrap();
    let own = Path::new(pointer.trim_start_matches("gitdir: ").trim());
    session.refused(&format!("echo evil > {}/commondir", own.display()));
    assert!(session.sandbox.appeared().is_empty());
    session.ok(&format!("echo > {}/config.worktree", own.display()));
    assert_eq!(appeared(&session), [own.join("config.worktree")]);
}

#[test]
fn a_git_file_that_is_not_answered_from_where_it_points_opens_nothing() {
    let foreign = tempfile::tempdir().unwrap();
    repository(foreign.path());
    let foreign_git = foreign.path().join(".git");
    let session = Session::with(|workspace, _| {
        fs::write(
            workspace.join(".git"),
            format!("gitdir: {}\n", foreign_git.display()),
        )
        .unwrap();
    });
    session.refused(&format!("ls {}", foreign_git.display()));
    let outcome = session.run("git status");
    assert_ne!(outcome.event, Event::Exited(0));
}

#[test]
fn hooks_that_are_reached_by_links_or_by_settings_cannot_be_changed() {
    let session = Session::with(|workspace, _| {
        repository(workspace);
        fs::create_dir_all(workspace.join("tools/hooks")).unwrap();
        fs::create_dir_all(workspace.join(".husky")).unwrap();
        fs::remove_dir_all(workspace.join(".git/hooks")).unwrap();
        symlink(workspace.join("first"), workspace.join(".git/hooks")).unwrap();
        symlink("tools/hooks", workspace.join("first")).unwrap();
        git(workspace, &["config", "core.hooksPath", ".husky"]);
    });
    for attack in [
        "rm -f first",
        "mv first second",
        "ln -sfn /tmp first",
        "mv tools tools2",
        "echo evil > tools/hooks/pre-commit",
        "echo evil > .husky/pre-commit",
        "mv .husky husky",
    ] {
        session.refused(attack);
    }
    let folder = |path: &str| fs::read_dir(session.workspace.join(path)).unwrap().count();
    assert_eq!((folder("tools/hooks"), folder(".husky")), (0, 0));
}

#[test]
fn a_git_directory_of_another_name_is_protected_as_any_other() {
    let session = Session::with(|workspace, _| {
        git(workspace, &["init", "-q", "--separate-git-dir", "store"]);
    });
    let before = fs::read(session.workspace.join("store/config")).unwrap();
    session.refused("echo '[core] fsmonitor = evil' >> store/config");
    session.refused("git config core.fsmonitor evil");
    session.refused("mv store store2");
    assert_eq!(session.ok(COMMIT), "1\n");
    let after = fs::read(session.workspace.join("store/config")).unwrap();
    assert_eq!(before, after);
}

#[test]
fn what_a_command_leaves_for_others_to_obey_is_told_once() {
    let session = Session::with(|workspace, _| repository(workspace));
    session.ok("true");
    assert!(session.sandbox.appeared().is_empty());
    session.ok("echo ../evil > .git/commondir; mkdir .vscode; echo x > plain");
    let expected: Vec<&Path> = vec![Path::new(".git/commondir"), Path::new(".vscode")];
    assert_eq!(appeared(&session), expected);
    assert!(session.sandbox.appeared().is_empty());
}

#[test]
fn a_repository_in_a_folder_that_was_closed_is_told_when_the_folder_is_open_again() {
    let session = Session::new();
    session.ok("git init -q closed/sub; chmod 000 closed");
    // A host that is root sees it at once.
    let early = appeared(&session);
    session.ok("chmod 700 closed");
    let all: Vec<_> = early.into_iter().chain(appeared(&session)).collect();
    assert_eq!(all, [Path::new("closed/sub/.git")]);
}

#[test]
fn a_repository_that_a_command_makes_is_told_with_what_it_would_execute_and_again_when_that_grows()
{
    let session = Session::new();
    session.ok("git init -q deep/er/sub && cd deep/er/sub && echo x > .git/hooks/pre-commit");
    session.ok("cd deep/er/sub && git config core.fsmonitor evil");
    let [new] = &session.sandbox.appeared()[..] else {
        panic!("one repository");
    };
    assert_eq!(new.path, Path::new("deep/er/sub/.git"));
    assert_eq!(new.kind, AppearanceKind::Repository);
    assert_eq!(new.executes, ["core.fsmonitor", "hook pre-commit"]);
    session.ok("echo y > deep/er/sub/.git/hooks/pre-push; git init -q --bare bare");
    let told: Vec<_> = session
        .sandbox
        .appeared()
        .into_iter()
        .map(|new| (new.path, new.kind, new.executes))
        .collect();
    let sub = (
        "deep/er/sub/.git".into(),
        AppearanceKind::Executed,
        vec!["hook pre-push".to_owned()],
    );
    assert_eq!(
        told,
        [("bare".into(), AppearanceKind::Repository, vec![]), sub]
    );
    assert!(session.sandbox.appeared().is_empty());
}

#[test]
fn a_file_with_a_name_elsewhere_is_told_or_refused_as_the_operator_wants() {
    let plant = |workspace: &Path| {
        let outside = workspace.with_file_name("outside").join("file");
        fs::write(&outside, "theirs").unwrap();
        fs::hard_link(outside, workspace.join("planted")).unwrap();
        fs::write(workspace.join("own"), "ours").unwrap();
        fs::hard_link(workspace.join("own"), workspace.join("own2")).unwrap();
    };
    let session = Session::with(|workspace, _| plant(workspace));
    session.ok("true");
    assert_eq!(session.sandbox.hard_links(), [Path::new("planted")]);
    assert!(session.sandbox.hard_links().is_empty());
    let session = Session::with(|workspace, options| {
        plant(workspace);
        options.policy.hard_links = HardLinks::Deny;
    });
    let error = session.try_spawn("true").unwrap_err().to_string();
    assert!(
        error.contains("planted") && error.contains("shell.hard_links"),
        "{error}"
    );
}

fn appeared(session: &Session) -> Vec<std::path::PathBuf> {
    let all = session.sandbox.appeared().into_iter();
    all.map(|new| new.path).collect()
}
