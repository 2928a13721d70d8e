//! The environment of a command: what it has, what it never has, and whose it is.

use floe_command::{CommandSpec, Status};

use crate::row::Row;
use crate::stage::{Stage, put};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S38",
        "variables of hundreds of kibibytes are not inherited and keep no command from starting",
        huge_variables,
    ),
    Row::new(
        "S45",
        "the profile is read once for a Session and not for every command, and its PATH holds",
        profile_is_read_once,
    ),
    Row::new(
        "S39",
        "without a person's locale it is C.UTF-8: characters are characters, order and dates are stable",
        locale,
    ),
];

fn huge_variables(stage: &Stage) {
    let session = stage.session_with(|setup| {
        for name in ["BIG", "LC_BIG", "LC_BIGGER"] {
            let value = "v".repeat(200 * 1024);
            setup
                .commands
                .environment
                .host
                .push((name.into(), value.into()));
        }
    });
    let outcome = session.run("env | grep -c BIG; env | wc -c");
    let numbers: Vec<usize> = outcome
        .stdout
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!((outcome.status, numbers[0]), (Status::Exited(0), 0));
    assert!(numbers[1] < 10_000, "{} bytes", numbers[1]);
    // Nor is what would steer a program away from what is hardened, or into another's port.
    let session = stage.session_with(|setup| {
        for name in [
            "PORT",
            "HOST",
            "FORCE_COLOR",
            "CLICOLOR_FORCE",
            "force_color",
            "BASH_ENV",
            "ENV",
            "PROMPT_COMMAND",
            "BASH_FUNC_ls%%",
            "LD_PRELOAD",
            "OPENAI_API_KEY",
            "SSH_AUTH_SOCK",
        ] {
            setup
                .commands
                .environment
                .host
                .push((name.into(), "from-the-host".into()));
        }
    });
    let hardened = "echo $NO_COLOR $TERM $PAGER $GIT_PAGER $GIT_EDITOR $GIT_TERMINAL_PROMPT; env | grep -c from-the-host";
    let overridden = CommandSpec {
        environment: [
            ("NO_COLOR", ""),
            ("TERM", "xterm"),
            ("PAGER", "less"),
            ("GIT_PAGER", "less"),
            ("GIT_EDITOR", "vi"),
            ("GIT_TERMINAL_PROMPT", "1"),
            ("BASH_ENV", "/dev/stdin"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        ..CommandSpec::shell(hardened)
    };
    assert_eq!(
        session.run_spec(overridden).text,
        "1 dumb cat cat true 0\n0\n"
    );
    // One that the call gives is refused in words, and one that fits is there beside a long script.
    let with = |length: usize, script: &str| CommandSpec {
        environment: vec![("GIVEN".into(), "v".repeat(length))],
        ..CommandSpec::shell(script)
    };
    let refused = stage
        .wait(session.try_start(with(200 * 1024, "true")))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the environment variable GIVEN has 204800 bytes (limit 131072); pass large values in files"
    );
    let script = format!("echo ${{#GIVEN}}\n# {}", "x".repeat(90_000));
    assert_eq!(session.run_spec(with(100 * 1024, &script)).text, "102400\n");
}

fn profile_is_read_once(stage: &Stage) {
    let profile = format!(
        "echo read >> {}/profile-log; sleep 0.2; export PATH=\"$HOME/tools/bin:$PATH\"",
        stage.workspace.display()
    );
    put(&stage.person.join(".profile"), &profile);
    put(&stage.person.join(".bash_profile"), ". ~/.profile\n");
    let person = stage.person.clone();
    let session =
        stage.session_with(|setup| setup.commands.environment.person_home = Some(person.clone()));
    let wanted = format!("{}/tools/bin:", person.display());
    for _ in 0..10 {
        let path = session.ok("echo $PATH");
        assert!(path.starts_with(&wanted), "{path}");
        // Without a slash twice or a place that the host had and the profile has lost.
        assert!(path.contains("/usr/local/bin"), "{path}");
    }
    assert_eq!(session.notes.warnings(), []);
    assert_eq!(stage.read("profile-log"), "read\n");
}

fn locale(stage: &Stage) {
    let session = stage.session_with(|setup| {
        let host = &mut setup.commands.environment.host;
        host.retain(|(name, _)| name != "LANG" && !name.to_string_lossy().starts_with("LC_"));
    });
    let script = r#"echo $LANG; printf '\xc3\xa9' | wc -m; printf 'b\na\nB\nA\n' | sort | tr '\n' ' '; date -u -d @0 '+%A %B'
        python3 -c 'import sys; print(sys.stdout.encoding.lower(), "é")'"#;
    let outcome = session.run(script);
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("C.UTF-8\n1\nA B a b Thursday January\nutf-8 é\n", "")
    );
    // A person's own is kept.
    let session = stage.session_with(|setup| {
        let host = &mut setup.commands.environment.host;
        host.retain(|(name, _)| name != "LANG");
        host.extend([
            ("LANG".into(), "C".into()),
            ("LC_TIME".into(), "POSIX".into()),
        ]);
    });
    assert_eq!(session.ok("echo $LANG $LC_TIME"), "C POSIX\n");
}
