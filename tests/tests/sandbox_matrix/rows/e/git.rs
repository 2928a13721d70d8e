//! What git would execute later.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::oracle::Oracle;
use crate::row::Row;
use crate::stage::{Session, Stage};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E9",
        "what git executes or obeys cannot be written, and commits go on working",
        hooks_and_settings,
    ),
    Row::new(
        "E10",
        "a git directory cannot be moved away to put another in its place",
        moved_git_directory,
    ),
    Row::new(
        "E11",
        "no folder above a nested repository can be moved away to put another in its place",
        moved_nested_repository,
    ),
    Row::new(
        "E13",
        "a linked worktree whose repository lies outside takes commits and nothing else",
        worktree_of_a_repository_outside,
    ),
    Row::new(
        "E13",
        "a git file opens no git directory that does not point back",
        git_file_that_is_not_answered,
    ),
];

/// Git as the host runs it in these rows: with no settings but its own.
fn git(folder: &Path, arguments: &[&str]) {
    let settings = [
        "user.name=Test",
        "user.email=test@example.org",
        "init.defaultBranch=main",
        "protocol.file.allow=always",
        "safe.directory=*",
    ];
    let output = Command::new("git")
        .current_dir(folder)
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
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
}

/// A repository with one commit.
fn repository(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q"]);
    fs::create_dir_all(folder.join(".git/hooks")).unwrap();
    fs::write(folder.join("file"), "first").unwrap();
    git(folder, &["add", "file"]);
    git(folder, &["commit", "-qm", "first"]);
}

const IDENTITY: &str =
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";

/// Commits something in `folder` from within, and returns how many commits there are then.
fn commit(session: &Session<'_>, folder: &str) -> String {
    session.ok(&format!(
        "{IDENTITY}; cd {folder} && echo new > new && git add -A && git commit -qm next && git log --oneline | wc -l"
    ))
}

fn hooks_and_settings(stage: &Stage) {
    let workspace = &stage.workspace;
    let origin = stage.place("origin");
    repository(&origin);
    repository(workspace);
    git(
        workspace,
        &["submodule", "add", "-q", origin.to_str().unwrap(), "m"],
    );
    git(workspace, &["worktree", "add", "-q", "x"]);
    git(workspace, &["commit", "-qm", "second"]);
    git(workspace, &["config", "extensions.worktreeConfig", "true"]);
    stage.put(".git/modules/m/hooks/update", "#!/bin/sh");
    stage.put(".git/config.worktree", "");
    stage.put(".git/worktrees/x/config.worktree", "");
    let obeyed = [
        ".git/hooks",
        ".git/config",
        ".git/config.worktree",
        ".git/modules/m/hooks",
        ".git/modules/m/config",
        ".git/worktrees/x/config.worktree",
        ".git/worktrees/x/commondir",
        ".git/worktrees/x/gitdir",
        "m/.git",
        "x/.git",
    ]
    .map(|path| workspace.join(path));
    let before = Oracle::look(&obeyed);
    let session = stage.session();
    let mut attacks: Vec<String> = [
        "echo x > .git/hooks/pre-commit",
        "ln -s /tmp/evil .git/hooks/pre-commit",
        "cp /bin/true .git/hooks/post-checkout",
        "git config core.hooksPath evil",
        "git config core.fsmonitor evil",
        "git config --worktree core.fsmonitor evil",
        "git -C m config core.fsmonitor evil",
        "git -C x config core.sshCommand evil",
        "git config alias.st '!evil'",
        "git config --unset core.bare",
        "git config --remove-section core",
        "git submodule set-url m evil",
        "echo evil > .git/modules/m/hooks/pre-commit",
        "chmod +x .git/hooks",
        "rm -rf .git/hooks",
        "mv .git/hooks .git/hooks2",
        "rmdir .git/hooks",
        "git worktree move x y",
        "git worktree remove --force x",
        "git init -q --separate-git-dir elsewhere",
        "git init -q --template /tmp -q . && test -e .git/hooks/x",
    ]
    .map(str::to_owned)
    .into();
    for file in obeyed.iter().skip(1) {
        let name = file.strip_prefix(workspace).unwrap().display().to_string();
        if file.is_dir() {
            continue;
        }
        for path in [format!("/workspace/{name}"), name] {
            attacks.extend([
                format!("echo '[core] fsmonitor = evil' >> {path}"),
                format!("echo evil > {path}"),
                format!("rm -f {path}"),
                format!("mv {path} {path}2"),
                format!("echo evil > e; mv -f e {path}"),
                format!("ln -sf /tmp/evil {path}"),
                format!("ln {path} hard"),
                format!("chmod 777 {path}"),
                format!("sed -i s/core/evil/ {path}"),
            ]);
        }
    }
    session.all_refused(&attacks);
    let differences = before.differences(&Oracle::look(&obeyed));
    assert!(differences.is_empty(), "{differences:#?}");
    for folder in [".", "m", "x"] {
        // What the attacks removed of the work trees is no matter.
        session.ok(&format!("cd {folder} && git reset -q --hard"));
        commit(&session, folder);
    }
    session.ok("git switch -qc branch; git stash list; git gc -q; git tag t; git status --short");
    // A command may ruin a repository, but for these.
    session.all_refused(&["rm -rf .git", "rm -rf m x", "rm -rf * .git"]);
    assert_eq!(before, Oracle::look(&obeyed));
}

/// Puts another repository in the place of the one at `path`, in every way there is.
fn replacements(path: &str) -> Vec<String> {
    let plant = format!("mkdir -p {path}/hooks && echo evil > {path}/hooks/pre-commit");
    let swap = format!(
        "python3 -c \"
import ctypes, os
os.makedirs('evil/.git/hooks', exist_ok=True); open('evil/.git/hooks/pre-commit', 'w')
raise SystemExit(0 if ctypes.CDLL(None).renameat2(-100, b'{path}', -100, b'evil/.git', 2) == 0 else 1)\""
    );
    vec![
        format!("mv {path} {path}2 && {plant}"),
        format!("mv {path} /tmp/gone && {plant}"),
        format!("mkdir -p evil/hooks; mv -T evil {path} && {plant}"),
        format!("rm -rf {path} && {plant}"),
        format!("mv {path}/hooks {path}/old && {plant}"),
        format!("ln -sfn /tmp/evil {path} && test -L {path}"),
        format!("cp -r {path} copy; rm -rf {path}; mv copy {path} && {plant}"),
        swap,
    ]
}

fn moved_git_directory(stage: &Stage) {
    repository(&stage.workspace);
    let session = stage.session();
    let obeyed = [".git/hooks", ".git/config"].map(|path| stage.workspace.join(path));
    let before = Oracle::look(&obeyed);
    let said = session
        .refused("mv .git .git2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit");
    assert!(said.contains("busy"), "{said}");
    session.all_refused(&replacements(".git"));
    session.all_refused(&replacements("/workspace/.git"));
    assert_eq!(before, Oracle::look(&obeyed));
}

fn moved_nested_repository(stage: &Stage) {
    repository(&stage.workspace.join("libs/deep/sub"));
    repository(&stage.workspace.join("bare.place"));
    let session = stage.session();
    let obeyed =
        ["hooks", "config"].map(|name| stage.workspace.join("libs/deep/sub/.git").join(name));
    let before = Oracle::look(&obeyed);
    session.all_refused(&replacements("libs/deep/sub/.git"));
    let plant =
        "mkdir -p libs/deep/sub/.git/hooks && echo evil > libs/deep/sub/.git/hooks/pre-commit";
    for folder in ["libs", "libs/deep", "libs/deep/sub"] {
        session.all_refused(&[
            format!("mv {folder} gone && {plant}"),
            format!("rm -rf {folder} && {plant}"),
            format!("rmdir {folder}"),
            format!("mkdir -p evil; mv -T evil {folder}"),
            format!("ln -sfn /tmp {folder} && test -L {folder}"),
            format!("cd {folder}/.. && mv /workspace/{folder} gone && cd /workspace && {plant}"),
        ]);
    }
    assert_eq!(before, Oracle::look(&obeyed));
    // The attack that removes what it can has left the objects of the repository alone or not: it is git's to say.
    commit(&session, "bare.place");
}

fn worktree_of_a_repository_outside(stage: &Stage) {
    let main = stage.place("main");
    repository(&main);
    let git_directory = main.join(".git");
    git(
        &main,
        &["worktree", "add", "-qf", stage.workspace.to_str().unwrap()],
    );
    fs::write(git_directory.join("hooks/update"), "#!/bin/sh").unwrap();
    let obeyed = [
        "hooks",
        "config",
        "worktrees/workspace/commondir",
        "worktrees/workspace/gitdir",
        "HEAD",
        "description",
    ]
    .map(|name| git_directory.join(name));
    let before = Oracle::look(&obeyed);
    let session = stage.session();
    assert_eq!(commit(&session, "."), "2\n");
    let path = git_directory.display();
    let own = format!("{path}/worktrees/workspace");
    session.all_refused(&[
        format!("echo evil > {path}/hooks/pre-commit"),
        format!("echo '[core] fsmonitor = evil' >> {path}/config"),
        format!("mv {path}/hooks {path}/hooks2"),
        format!("mv {path} {path}2"),
        format!("touch {path}/evil"),
        format!("echo evil > {path}/HEAD"),
        format!("rm -rf {path}/hooks"),
        format!("echo evil > {own}/commondir"),
        format!("echo evil > {own}/gitdir"),
        format!("mv {own} {own}2"),
        "git config core.fsmonitor evil".to_owned(),
        "git config core.hooksPath evil".to_owned(),
        "echo 'gitdir: /tmp/evil' > .git".to_owned(),
        "rm -f .git".to_owned(),
        "mv .git old".to_owned(),
        format!("cat {}/file", main.display()),
    ]);
    let differences = before.differences(&Oracle::look(&obeyed));
    assert!(differences.is_empty(), "{differences:#?}");
    // What is written beside the git directory is lost with the command.
    session.run(&format!(
        "echo evil > {0}/file; touch {0}/evil",
        main.display()
    ));
    assert_eq!(fs::read_to_string(main.join("file")).unwrap(), "first");
    assert!(!main.join("evil").exists());
}

fn git_file_that_is_not_answered(stage: &Stage) {
    let victim = stage.outside.join(".git");
    fs::write(
        stage.workspace.join(".git"),
        format!("gitdir: {}\n", victim.display()),
    )
    .unwrap();
    fs::create_dir_all(stage.workspace.join("sub")).unwrap();
    symlink(&victim, stage.workspace.join("sub/.git")).unwrap();
    let session = stage.session();
    let victim = victim.display();
    session.all_refused(&[
        format!("ls {victim}"),
        format!("cat {victim}/config"),
        format!("echo evil >> {victim}/config"),
        format!("echo evil > {victim}/hooks/pre-commit"),
        "cat sub/.git/config".to_owned(),
        "git add -A && git commit -m x".to_owned(),
    ]);
}
