//! What commands find around them: a home and a network that they share, the person's name for git, the login environment, tool
//! chains without their credentials, and repositories that they can commit to.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Ended, Place, ended};

/// Plays these calls of `exec_command` one after the other in one Session; each output must match its pattern.
fn session(place: &Place, calls: &[(Value, &str)]) -> Ended {
    let mut turns: Vec<Value> = Vec::new();
    let mut expected: Option<&str> = None;
    for (arguments, pattern) in calls {
        let mut turn = json!({"tool_calls": [{"name": "exec_command", "arguments": arguments}]});
        if let Some(pattern) = expected {
            turn["expect"] = json!([pattern]);
        }
        turns.push(turn);
        expected = Some(pattern);
    }
    turns.push(json!({"expect": [expected], "text": "The end."}));
    let script = place.file("script.yaml", json!({ "turns": turns }).to_string());
    let model = format!("script:{}", script.display());
    place.floe(&[
        "run",
        "-m",
        "Go.",
        "--model",
        &model,
        "--background-wait",
        "0",
    ])
}

fn cmd(command: &str) -> Value {
    json!({ "cmd": command })
}

/// Runs git as the person does, outside.
fn git(place: &Place, folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    place.prepare(&mut command);
    let output = command
        .args([
            "-c",
            "user.name=Outside",
            "-c",
            "user.email=outside@example.org",
        ])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    ended(output).expect(0);
}

fn person(place: &Place, name: &str, contents: &str) {
    place.file(&format!("person/{name}"), contents);
}

#[test]
fn a_server_that_one_command_left_running_answers_the_curl_of_the_next() {
    let place = Place::new();
    place.workspace_file("page", "served from the Workspace");
    let server = json!({
        "cmd": "exec python3 -m http.server 8321 --bind 127.0.0.1",
        "run_in_background": true,
    });
    let fetch = "for i in $(seq 200); do curl -sf http://127.0.0.1:8321/page && exit 0; sleep 0.1; done; exit 1";
    session(
        &place,
        &[
            (server, "process_id"),
            (cmd(fetch), "^served from the Workspace"),
        ],
    )
    .expect(0);
}

#[test]
fn a_package_that_pip_installed_for_the_user_is_there_for_the_next_command() {
    let place = Place::new();
    place.workspace_file(
        "wheel.py",
        "import zipfile
name = 'greeting-1.0.dist-info/'
with zipfile.ZipFile('greeting-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('greeting.py', 'WORDS = \"good morning\"')
    wheel.writestr(name + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.0\\n')
    wheel.writestr(name + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(name + 'RECORD', 'greeting.py,,\\n' + name + 'METADATA,,\\n' + name + 'WHEEL,,\\n' + name + 'RECORD,,\\n')
",
    );
    let install = "python3 wheel.py && PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --user --no-index --no-deps \
                   ./greeting-1.0-py3-none-any.whl && echo installed";
    let import = "python3 -c 'import greeting; print(greeting.WORDS)'";
    session(
        &place,
        &[(cmd(install), "installed"), (cmd(import), "^good morning")],
    )
    .expect(0);
    assert!(
        !place
            .workspace()
            .parent()
            .unwrap()
            .join("person/.local")
            .exists()
    );
}

#[test]
fn home_is_a_folder_of_the_session_that_its_commands_share_and_not_the_persons() {
    let place = Place::new();
    person(&place, "secret", "hidden");
    let person = place.workspace().parent().unwrap().join("person");
    let look = format!("exec 2>&1; cat ~/kept; ls {}; echo $HOME", person.display());
    session(
        &place,
        &[
            (cmd("echo kept > ~/kept; ls ~"), "^kept"),
            (cmd(&look), "^kept\nls: (.|\n)*\n/floe/home"),
        ],
    )
    .expect(0);
    assert!(!person.join("kept").exists());
}

#[test]
fn a_commit_in_an_existing_repository_works_and_has_the_persons_name() {
    let place = Place::new();
    person(
        &place,
        ".gitconfig",
        "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n",
    );
    git(&place, &place.workspace(), &["init", "-q"]);
    place.workspace_file("file", "1");
    git(&place, &place.workspace(), &["add", "file"]);
    git(&place, &place.workspace(), &["commit", "-qm", "first"]);
    let commit = "echo 2 > file && git commit -qam second && git log --format='%an <%ae> %cn %s'";
    session(
        &place,
        &[(
            cmd(commit),
            "^Ada Lovelace <ada@example.org> Ada Lovelace second\nOutside ",
        )],
    )
    .expect(0);
    git(&place, &place.workspace(), &["fsck", "--strict"]);
}

#[test]
fn a_commit_in_a_linked_worktree_works_and_lands_in_the_repository() {
    let place = Place::new();
    person(
        &place,
        ".gitconfig",
        "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n",
    );
    place.file("main/file", "1");
    let main = place.workspace().parent().unwrap().join("main");
    git(&place, &main, &["init", "-q"]);
    git(&place, &main, &["add", "file"]);
    git(&place, &main, &["commit", "-qm", "first"]);
    let workspace = place.workspace();
    git(
        &place,
        &main,
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "side",
            workspace.to_str().unwrap(),
        ],
    );
    let commit = "echo 2 > file && git commit -qam second && git status --short && git log -1 --format=%an:%s";
    let hook = format!("echo evil > {}/.git/hooks/post-commit", main.display());
    session(
        &place,
        &[
            (cmd(commit), "Ada Lovelace:second"),
            (cmd(&hook), "exit code"),
        ],
    )
    .expect(0);
    git(&place, &main, &["merge", "-q", "side"]);
    assert_eq!(std::fs::read_to_string(main.join("file")).unwrap(), "2\n");
    assert!(!main.join(".git/hooks/post-commit").exists());
}

#[test]
fn a_git_file_that_points_to_a_repository_which_does_not_know_it_opens_nothing() {
    let place = Place::new();
    place.file("other/file", "1");
    let other = place.workspace().parent().unwrap().join("other");
    git(&place, &other, &["init", "-q"]);
    git(&place, &other, &["add", "file"]);
    git(&place, &other, &["commit", "-qm", "first"]);
    place.workspace_file(".git", format!("gitdir: {}/.git\n", other.display()));
    session(
        &place,
        &[(
            cmd("git log; git commit --allow-empty -m x"),
            "not a git repository",
        )],
    )
    .expect(0);
}

#[test]
fn of_the_login_environment_commands_get_what_the_configuration_names() {
    let place = Place::new();
    person(
        &place,
        ".bash_profile",
        "export TZ=Europe/Vienna SECRET=hidden PATH=/opt/of-the-profile:$PATH BASH_ENV=/etc/passwd\n",
    );
    session(
        &place,
        &[(
            cmd("echo \"$TZ-$SECRET-$BASH_ENV\"; case $PATH in /opt/of-the-profile:*) echo found;; esac; echo $PAGER $TERM"),
            "^Europe/Vienna--\nfound\ncat dumb",
        )],
    )
    .expect(0);
}

#[test]
fn a_tool_chain_in_the_persons_home_runs_and_its_credentials_stay_unread() {
    let place = Place::new();
    person(&place, ".cargo/bin/greet", "#!/bin/sh\necho good morning\n");
    person(
        &place,
        ".cargo/credentials.toml",
        "token = \"n0t-f0r-y0u\"\n",
    );
    let cargo = place.workspace().parent().unwrap().join("person/.cargo");
    std::fs::set_permissions(
        cargo.join("bin/greet"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let arguments = cmd(&format!("greet; cat {}/credentials.toml", cargo.display())).to_string();
    let mut command = place.command(&["call", "exec_command", &arguments]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", cargo.join("bin").display()));
    let ended = ended(command.output().unwrap());
    assert!(
        ended.stdout.starts_with("good morning\n"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("n0t-f0r-y0u"), "{}", ended.stdout);
}

#[test]
fn what_deny_read_names_is_read_by_no_tool() {
    let place = Place::new();
    place.workspace_file(".env", "KEY=n0t-f0r-y0u");
    for (tool, arguments) in [
        (
            "exec_command",
            r#"{"cmd":"cat .env; cp .env copy; cat copy"}"#,
        ),
        ("file_read", r#"{"path":".env"}"#),
    ] {
        let ended = place.floe(&["call", tool, arguments]);
        assert!(
            !format!("{ended:?}").contains("n0t-f0r-y0u"),
            "{tool}: {ended:?}"
        );
    }
}
