//! What a command leaves behind for programs outside the sandbox: it may, and the person and the model are told.

use std::fs;

use floe_command::Status;
use floe_sandbox::HardLinks;

use crate::row::Row;
use crate::stage::{Session, Stage, finish, read_until};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E6",
        "a file with a further name outside is told before it is written to",
        hard_links_are_told,
    ),
    Row::new(
        "E6",
        "no command runs beside a file with a further name outside where the operator wants that",
        hard_links_are_refused,
    ),
    Row::new(
        "E12",
        "a repository may be started, and is told with its hooks and the settings that git executes",
        new_repositories_are_told,
    ),
    Row::new(
        "E12",
        "however a repository comes to be it is told, and again when there is more in it to execute",
        every_kind_of_repository,
    ),
    Row::new(
        "E12",
        "a command in the background is told of when the next one starts and when it ends",
        told_while_another_runs,
    ),
    Row::new(
        "E14",
        "Floe's own settings and those of others cannot be written",
        own_settings_are_protected,
    ),
    Row::new(
        "E14",
        "settings that were missing are told when they are made, and obeyed by no command",
        own_settings_that_were_missing,
    ),
];

/// A file outside that anybody may write to, with a second name in the Workspace, as an archive that was unpacked earlier
/// may have made it. It is not among what is watched: that it can be written to is what the row is about.
fn plant(stage: &Stage) -> std::path::PathBuf {
    let outside = stage.place("linked").join("file");
    fs::write(&outside, "theirs\n").unwrap();
    fs::create_dir(stage.workspace.join("d")).unwrap();
    fs::hard_link(&outside, stage.workspace.join("d/planted")).unwrap();
    stage.put("own", "ours\n");
    fs::hard_link(stage.workspace.join("own"), stage.workspace.join("own2")).unwrap();
    outside
}

fn hard_links_are_told(stage: &Stage) {
    let outside = plant(stage);
    let session = stage.session();
    session.ok("true");
    let told = session.notes.of("hard_links");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("d/planted") && !told[0].contains("own"),
        "{told:?}"
    );
    // This is what the warning is about: no wall stands between two names of one file.
    session.ok("echo evil >> d/planted");
    assert_eq!(fs::read_to_string(outside).unwrap(), "theirs\nevil\n");
    assert_eq!(session.notes.of("hard_links").len(), 1);
}

fn hard_links_are_refused(stage: &Stage) {
    let outside = plant(stage);
    let session = stage.session_with(|setup| {
        setup.sandbox.policy.hard_links = HardLinks::Deny;
    });
    let spec = floe_command::CommandSpec::shell("echo evil >> d/planted");
    let refused = stage.wait(session.try_start(spec)).unwrap_err().to_string();
    assert!(
        refused.contains("d/planted") && refused.contains("shell.hard_links"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(outside).unwrap(), "theirs\n");
    // Once its names are all within the Workspace the file is no danger.
    fs::remove_file(stage.workspace.join("d/planted")).unwrap();
    session.ok("echo mine >> own");
    assert_eq!(stage.read("own2"), "ours\nmine\n");
}

/// Runs a script and returns what the model is told of what it left behind. The person is told the same.
fn left_by(session: &Session<'_>, stage: &Stage, script: &str) -> String {
    let before = session.notes.of("executed_later").len();
    let left = stage.wait(async {
        let command = session.start(script).await;
        let outcome = finish(&command).await;
        assert_eq!(outcome.status, Status::Exited(0), "{script}: {outcome:?}");
        command.left_behind().unwrap_or_default().to_owned()
    });
    let told = session.notes.of("executed_later").split_off(before);
    assert_eq!(told.concat(), left, "{script}");
    left
}

fn new_repositories_are_told(stage: &Stage) {
    let session = stage.session();
    assert_eq!(left_by(&session, stage, "echo harmless > file"), "");
    let left = left_by(
        &session,
        stage,
        "git init -q && echo evil > .git/hooks/pre-commit && git config core.fsmonitor evil && git config alias.st '!evil' \
         && git config user.name me && printf '[core]\\n  sshCommand = ev\\\\\\nil\\n[filter \"x\"]\\n\\tclean = evil' >> .git/config",
    );
    for word in [
        "\".git\"",
        "hook pre-commit",
        "core.fsmonitor",
        "alias.st",
        "core.sshcommand",
        "filter.\\\"x\\\".clean",
    ] {
        assert!(
            left.contains(word) || left.contains(&word.replace('\\', "")),
            "{word}: {left}"
        );
    }
    assert!(
        !left.contains("user.name") && !left.contains(".sample"),
        "{left}"
    );
    // Told once. From then on it is protected as any other.
    assert_eq!(
        left_by(&session, stage, "git status --short >/dev/null; true"),
        ""
    );
    session.all_refused(&[
        "echo evil > .git/hooks/post-merge",
        "git config core.pager evil",
        "mv .git .git2",
    ]);
}

fn every_kind_of_repository(stage: &Stage) {
    let session = stage.session();
    const NO_HOOKS: &str = "git init -q --template=";
    for (script, words) in [
        (
            "mkdir -p a/b/c/d/e/f/g/h/i && git init -q a/b/c/d/e/f/g/h/i && cp /bin/true a/b/c/d/e/f/g/h/i/.git/hooks/update",
            &["a/b/c/d/e/f/g/h/i/.git", "hook update"][..],
        ),
        // In a folder like this git obeys the settings in it without any `.git`.
        (
            "git init -q --bare bare; git -C bare config core.fsmonitor evil",
            &["bare", "core.fsmonitor"],
        ),
        (
            "mkdir fake; cd fake; mkdir objects refs; echo 'ref: refs/heads/x' > HEAD; printf '[core]\\nhooksPath=../h\\n' > config; mkdir ../h; echo evil > ../h/pre-push",
            &["fake", "core.hookspath", "hook pre-push"],
        ),
        (
            "git init -q --separate-git-dir store tree && git -C tree config core.editor evil",
            &["store", "core.editor"],
        ),
        (
            "git init -q t && cd t && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git worktree add -q ../w && git config extensions.worktreeConfig true && git -C ../w config --worktree core.pager evil",
            &["t/.git/worktrees/w", "core.pager"],
        ),
        (
            "cd t && git -c protocol.file.allow=always submodule --quiet add ./ m && git -C m config diff.x.textconv evil",
            &["t/.git/modules/m", "diff.\"x\".textconv"],
        ),
        (
            "mkdir -p n && ln -s ../store n/.git && cp /bin/true store/hooks/applypatch-msg",
            &["hook applypatch-msg", "store"],
        ),
        (
            "git init -q inc && echo '[include] path = ../../more' >> inc/.git/config && echo '[gpg] program = evil' > more",
            &["inc/.git", "include.path", "gpg.program"],
        ),
        ("git init -q plain", &["plain/.git", "without hooks"]),
        (
            "echo evil > plain/.git/hooks/pre-commit",
            &["plain/.git", "hook pre-commit"],
        ),
        (
            "echo more evil > plain/.git/hooks/pre-commit",
            &["plain/.git", "hook pre-commit"],
        ),
        (
            "rm -rf plain && git clone -q t plain && mkdir plain/.vscode",
            &["plain/.vscode"],
        ),
        ("cp -r plain moved", &["moved/.git", "moved/.vscode"]),
        ("mv moved over", &["over/.git", "over/.vscode"]),
        (
            "mkdir ev && cd ev && git init -q $'il\\n\\e[31m\\u202e'",
            &["il\\n\\u{1b}[31m\\u{202e}"],
        ),
    ] {
        let left = left_by(&session, stage, &format!("set -e; {script}"));
        for word in words {
            assert!(left.contains(word), "{script}: {word}: {left}");
        }
        assert!(!left.contains(['\n', '\u{1b}', '\u{202e}']), "{left:?}");
    }
    assert_eq!(
        left_by(&session, stage, &format!("cd /tmp && {NO_HOOKS} elsewhere")),
        ""
    );
}

fn told_while_another_runs(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let command = session
            .start("git init -q first; echo up; read x; mkdir .idea; echo evil > first/.git/hooks/pre-push; sync .idea")
            .await;
        command.keep(false);
        read_until(&command, "up\n").await;
        let other = session.start("true").await;
        finish(&other).await;
        let told = session.notes.of("executed_later").concat();
        assert!(told.contains("first/.git"), "{told}");
        command.write_stdin(b"\n").await.unwrap();
        finish(&command).await;
        let left = command.left_behind().unwrap().to_owned();
        assert!(left.contains(".idea") && left.contains("hook pre-push"), "{left}");
    });
}

/// Names that Floe, other agents, editors or shells obey.
const OBEYED: [&str; 10] = [
    ".floe/config.yaml",
    ".floe/plugins/evil/plugin.yaml",
    ".mcp.json",
    ".claude/settings.json",
    ".codex/config.toml",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".envrc",
    ".bashrc",
];

fn own_settings_are_protected(stage: &Stage) {
    for path in OBEYED {
        stage.put(path, "{}");
    }
    let session = stage.session();
    let mut attacks = Vec::new();
    for path in OBEYED {
        let top = path.split('/').next().unwrap();
        attacks.extend([
            format!("echo evil > {path}"),
            format!("echo evil >> /workspace/{path}"),
            format!("rm -f {path}"),
            format!("echo evil > x; mv -f x {path}"),
            format!("mv {top} elsewhere"),
            format!("rm -rf {top}"),
            format!("mkdir -p x.d; mv -T x.d {top}"),
            format!("ln -sfn /tmp {top}; test -L {top}"),
            format!("chmod 777 {top}"),
        ]);
        if path.contains('/') {
            attacks.push(format!("touch {top}/new"));
        }
    }
    session.all_refused(&attacks);
    for path in OBEYED {
        assert_eq!(stage.read(path), "{}");
    }
    assert_eq!(session.notes.of("executed_later"), [""; 0]);
}

fn own_settings_that_were_missing(stage: &Stage) {
    let session = stage.session();
    let outside = stage.outside.display();
    let wide = format!(
        "shell: {{network: host, mode: full, extra_write: [\"{outside}\"], min_tier: landlock}}"
    );
    for path in OBEYED.iter().filter(|path| !path.ends_with("plugin.yaml")) {
        let top = path.split('/').next().unwrap();
        let left = left_by(
            &session,
            stage,
            &format!("mkdir -p $(dirname {path}) && echo '{wide}' > {path}"),
        );
        assert!(left.contains(&format!("{top:?}")), "{path}: {left}");
    }
    // The next command is confined as the first one was, and finds what was made protected.
    session.all_refused(&[
        format!("touch {outside}/evil"),
        "exec 3<>/dev/tcp/192.0.2.1/80".to_owned(),
        "echo evil >> .floe/config.yaml".to_owned(),
        "rm -rf .floe".to_owned(),
        "mv .vscode elsewhere".to_owned(),
    ]);
}
