//! What becomes of a script: bytes, pagers, signals, exit codes.

use floe_command::{CommandSpec, Status};
use floe_protocol::StopReason;

use super::doors;
use crate::row::Row;
use crate::stage::{Stage, finish};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S37",
        "a script reaches bash byte for byte, at any length",
        byte_for_byte,
    ),
    Row::new(
        "S40",
        "no pager holds a command, in a terminal either",
        no_pager,
    ),
    Row::new(
        "S41",
        "a broken pipe ends a program without noise",
        broken_pipe,
    ),
    Row::new(
        "S42",
        "a command starts with standard signals, mask, priority and descriptors",
        standard_start,
    ),
    Row::new(
        "S43",
        "exit codes and signals are told apart, and a missing command from a refusal",
        exit_codes,
    ),
    Row::new(
        "S44",
        "words that sound like a refusal are the program's own and are taken for nothing else",
        words_are_no_refusal,
    ),
];

fn byte_for_byte(stage: &Stage) {
    let session = stage.session();
    // As bash has it: its argument, or the file that it reads.
    let show = "if [ -f \"$0\" ]; then cat \"$0\"; else tail -c +9 /proc/$$/cmdline | head -c -1; fi; exit\n";
    let bodies = [
        "echo wow!! !$ !x \\\\ \\n $'a\\tb' \"$HOME\" `id` ${x:?} %s %% \u{7f}\n".to_owned(),
        "cat <<'E'\nline with $x `y` \\z !\nE\n".to_owned(),
        "echo one\r\necho two\r\n".to_owned(),
        "é ≤ 😀 \u{feff}\u{202e} \u{1b}[31m \t\u{1}\u{2}\n".to_owned(),
        "no line feed at the end".to_owned(),
        format!("# {}\n", "y!\\'\"".repeat(40_000)),
    ];
    for body in bodies {
        let script = format!("{show}{body}");
        let spec = CommandSpec {
            raw_output: true,
            ..CommandSpec::shell(&script)
        };
        let text = session.run_spec(spec).stdout;
        assert!(text == script, "{text:.500}\nis not\n{script:.500}");
    }
    let cases: [(&str, &[u8]); 6] = [
        ("echo hello!! '!x' \"!y\"", b"hello!! !x !y\n"),
        (
            "printf '%s|' 'a\\nb' \"a\\\\b\" $'t\\tt' $'\\x41'",
            b"a\\nb|a\\b|t\tt|A|",
        ),
        (
            "cat <<'E'\n$x `y` \\z !\nE\ncat <<E\n$((1+1)) \\$x\nE",
            b"$x `y` \\z !\n2 $x\n",
        ),
        ("echo one\r\necho two\r\n", b"one\r\ntwo\r\n"),
        ("printf %s 'é≤😀'", "é≤😀".as_bytes()),
        ("echo \\\n joined", b"joined\n"),
    ];
    for (script, wanted) in cases {
        let outcome = stage.wait(async {
            let spec = CommandSpec {
                raw_output: true,
                ..CommandSpec::shell(script)
            };
            finish(&session.try_start(spec).await.unwrap()).await
        });
        assert_eq!(outcome.stdout.as_bytes(), wanted, "{script:?}");
        assert_eq!(outcome.status, Status::Exited(0), "{script:?}");
    }
}

fn no_pager(stage: &Stage) {
    let session = stage.session();
    let repository = r#"export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
        git init -q --template= repository && cd repository
        for i in {1..60}; do git commit -q --allow-empty -m "commit number $i"; done; seq 500 > f"#;
    session.ok(repository);
    let pages: [(&str, &str); 5] = [
        ("cd repository && git log", "commit number 60"),
        (
            "cd repository && git -c core.pager=less log -p --stat",
            "commit number 1",
        ),
        (
            "cd repository && git branch -a && git help -a && git tag",
            "commit",
        ),
        ("less repository/f", "\n500"),
        (
            "if command -v man >/dev/null; then man ls || true; fi; echo read",
            "read",
        ),
    ];
    for (script, wanted) in pages {
        let outcome = session.run(script);
        assert_eq!(
            outcome.status,
            Status::Exited(0),
            "{script}: {}",
            outcome.text
        );
        assert!(outcome.text.contains(wanted), "{script}: {}", outcome.text);
        // `less` itself pages in a terminal: somebody asked for it.
        if script.starts_with("less") {
            continue;
        }
        let outcome = session.run_spec(CommandSpec {
            terminal: true,
            ..CommandSpec::shell(script)
        });
        assert_eq!(
            outcome.status,
            Status::Exited(0),
            "{script}: {}",
            outcome.text
        );
        assert!(outcome.text.contains(wanted), "{script}: {}", outcome.text);
    }
}

fn broken_pipe(stage: &Stage) {
    let session = stage.session();
    let outcome = session.run("yes | head -1; echo ${PIPESTATUS[@]}");
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("y\n141 0\n", "")
    );
    // A program that is asked to fail instead does so in its own way.
    let outcome = session
        .run("python3 -c 'print(\"x\\n\" * 100000)' 2>/dev/null | head -1; echo ${PIPESTATUS[1]}");
    assert_eq!(outcome.stdout, "x\n0\n");
}

fn standard_start(stage: &Stage) {
    let own = |path: &str| std::fs::read_to_string(path).unwrap().trim().to_owned();
    let adjustment: i32 = own("/proc/self/oom_score_adj").parse().unwrap();
    let nice = std::process::Command::new("nice").output().unwrap();
    let nice = String::from_utf8(nice.stdout).unwrap();
    let session = stage.session();
    // By a program that takes over and by one that is started, since a shell sets some of it anew for itself.
    let script = "grep -E '^Sig(Pnd|Blk|Ign)' /proc/self/status | tr -d '\\t\\n'; echo
        umask; nice; cat /proc/self/oom_score_adj; ls /proc/self/fd | tr '\\n' ' '; echo; pwd -P; ulimit -c";
    let workspace = stage.workspace.display();
    let zeros = "0".repeat(16);
    let wanted = format!(
        "SigPnd:{zeros}SigBlk:{zeros}SigIgn:{zeros}\n0022\n{}\n{}\n0 1 2 3 \n{workspace}\n0\n",
        nice.trim(),
        (adjustment + 500).min(1000),
    );
    assert_eq!(session.run(script).text, wanted);
    let direct = CommandSpec {
        command: "grep".into(),
        args: Some(vec![
            "-hE".into(),
            "^Sig(Pnd|Blk|Ign)".into(),
            "/proc/self/status".into(),
        ]),
        ..CommandSpec::default()
    };
    let direct = session.run_spec(direct).text;
    assert_eq!(direct.matches(&zeros).count(), 3, "{direct}");
    // In a terminal too, with the same three descriptors.
    let terminal = CommandSpec {
        terminal: true,
        ..CommandSpec::shell(
            "grep -E '^Sig(Pnd|Blk|Ign)' /proc/self/status | tr -d '\\t\\n'; echo; umask; ls /proc/self/fd | tr '\\n' ' '; echo; pwd -P",
        )
    };
    let wanted = format!(
        "SigPnd:{zeros}SigBlk:{zeros}SigIgn:{zeros}\r\n0022\r\n0 1 2 3 \r\n{workspace}\r\n"
    );
    assert_eq!(session.run_spec(terminal).text, wanted);
}

fn exit_codes(stage: &Stage) {
    let session = stage.session();
    let exited = Status::Exited;
    let signaled = |name: &str| Status::Signaled(name.into());
    stage.put("not-executable", "#!/bin/sh\n");
    let cases = [
        ("exit 0", exited(0)),
        ("exit 1", exited(1)),
        ("./not-executable 2>/dev/null", exited(126)),
        ("no-such-program-here 2>/dev/null", exited(127)),
        (
            "{ bash -c 'kill -TERM $$'; } 2>/dev/null; exit $?",
            exited(143),
        ),
        ("exit 137", exited(137)),
        ("exit 255", exited(255)),
        ("exit 256", exited(0)),
        ("exit -1", exited(255)),
        ("kill -TERM $$", signaled("SIGTERM")),
        ("kill -KILL $$", signaled("SIGKILL")),
        ("kill -SYS $$", signaled("SIGSYS")),
        ("kill -SEGV $$", signaled("SIGSEGV")),
        ("kill -PIPE $$", signaled("SIGPIPE")),
        ("kill -USR1 $$", signaled("SIGUSR1")),
        ("ulimit -S -t 1; while :; do :; done", signaled("SIGXCPU")),
    ];
    for (script, wanted) in cases {
        let outcome = session.run(script);
        assert_eq!(
            (outcome.status, outcome.text.as_str()),
            (wanted, ""),
            "{script}"
        );
    }
    // The shell's own words, and the sandbox's: they have nothing in common.
    let missing = session.run("no-such-program-here");
    assert_eq!(
        missing.text,
        "bash: line 1: no-such-program-here: command not found\n"
    );
    let refused = session.run("mkdir /usr/mine");
    assert_eq!(refused.status, exited(1));
    assert!(
        refused.text.starts_with("mkdir: cannot create directory"),
        "{}",
        refused.text
    );
    let program = CommandSpec {
        command: "no-such-program-here".into(),
        args: Some(Vec::new()),
        ..CommandSpec::default()
    };
    let error = stage.wait(session.try_start(program)).unwrap_err();
    assert_eq!(error.code(), "program", "{error}");
    assert!(
        error.to_string().contains("no-such-program-here"),
        "{error}"
    );
}

fn words_are_no_refusal(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let words = "bash: /etc/shadow: Permission denied\nOperation not permitted\nRead-only file system\n[spawn error: sandbox]";
        let script = format!("printf '{}\\n' >&2; exit 1", words.replace('\n', "\\n"));
        let output = door.exec(&script).await;
        assert_eq!(output.output, format!("{words}\n\n[exit code: 1]"));
        assert_eq!(output.stop_reason, StopReason::Failed);
        let facts = output.facts.unwrap();
        assert_eq!((facts.exit_code, facts.code), (Some(1), None));
    });
    assert_eq!(session.notes.warnings(), []);
}
