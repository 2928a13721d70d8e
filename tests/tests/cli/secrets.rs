//! The keys of the process: none reaches an output, a kept output or a Trace, by whatever way it got into the Workspace.

use crate::support::{Place, ended};

const KEY: &str = "sk-test-0123456789abcdef";

/// Every file below `FLOE_HOME` that holds the key.
fn leaks(place: &Place) -> Vec<std::path::PathBuf> {
    let mut files = place.state();
    files.retain(|file| {
        let contents = std::fs::read(file).unwrap();
        contents
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes())
    });
    files
}

#[test]
fn a_key_of_the_process_reaches_no_output_and_no_trace() {
    let place = Place::new();
    place.workspace_file("settings.txt", format!("OPENAI_API_KEY={KEY}\n"));
    let script = place.file(
        "script.yaml",
        format!(
            "turns:\n  - tool_calls:\n      - {{name: file_read, arguments: {{path: settings.txt}}}}\n      \
             - {{name: exec_command, arguments: {{cmd: 'printf sk-test-0123; sleep 0.3; echo 456789abcdef; echo {KEY}; for i in $(seq 9000); do cat settings.txt; done; exit 3'}}}}\n      \
             - {{name: exec_command, arguments: {{cmd: 'env; cat /proc/*/environ', {KEY}: x}}}}\n  \
             - text: done\n"
        ),
    );
    for form in ["text", "json"] {
        let run = place
            .command(&["run", "-m", KEY, "--output", form])
            .env("FLOE_MODEL", format!("script:{}", script.display()))
            .env("OPENAI_API_KEY", KEY)
            .output()
            .unwrap();
        let run = ended(run);
        run.expect(0);
        let shown = format!("{}{}", run.stdout, run.stderr);
        assert!(shown.contains("[redacted:OPENAI_API_KEY]"), "{shown}");
        assert!(!shown.contains(KEY), "{shown}");
    }
    assert_eq!(leaks(&place), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_variable_that_the_configuration_names_is_a_key_too() {
    let place = Place::new();
    place.config("openai:\n  api_key_env: MY_KEY\n");
    place.workspace_file("notes.txt", format!("{KEY}\n"));
    let call = place
        .command(&["call", "file_read", r#"{"path":"notes.txt"}"#])
        .env("MY_KEY", KEY)
        .output()
        .unwrap();
    assert_eq!(ended(call).expect(0).stdout, "[redacted:MY_KEY]\n");
    assert_eq!(leaks(&place), Vec::<std::path::PathBuf>::new());
}
