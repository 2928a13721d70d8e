//! What a question shows: exactly what would run, where, what it may reach, what it needs and who asks. A pure rendering:
//! every character that comes from a model or a plugin is made visible here.

use std::fmt::Write as _;

use floe_environment::{Action, AskedWidening, Origin, Question};
use floe_protocol::ApprovalMode;
use floe_sandbox::{GrantedPath, MinimumTier, Network, Widening, WorkspaceMode};

use crate::config::Shell;
use crate::terminal::{Keep, Paint, Style, visible};

/// What is the same for every question of a Session.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// What the sandbox allows.
    pub(crate) shell: Shell,
    /// Why questions are asked where no rule wants them.
    pub(crate) approval_mode: ApprovalMode,
    /// Who asks where no child Session does.
    pub(crate) asked_by: String,
    /// Whether an answer for the whole Session makes sense.
    pub(crate) lasting: bool,
}

/// More rows than this may not be on the screen any more when the question waits.
const ROWS_IN_SIGHT: usize = 12;
/// The width of a row's label.
const LABEL: usize = 11;

/// The question, without the line that waits for the answer, for a terminal of so many columns. No line of it is longer: a terminal
/// goes on at the left edge, where the words of a model could pass for the question's own.
pub(crate) fn render(
    question: &Question,
    standing: &Standing,
    paint: Paint,
    columns: usize,
) -> String {
    let mut text = subject(question, paint, columns);
    let above = text.lines().count();
    text.push('\n');
    let mut rows = rows(question, standing);
    if above > ROWS_IN_SIGHT {
        rows.insert(
            0,
            ("length", format!("{above} lines; scroll up to read all")),
        );
    }
    for (label, value) in rows {
        let label = paint.paint(Style::Quiet, format!("{label:<LABEL$}"));
        let value = visible(&value, Keep::Nothing);
        let style = if value.contains("UNCONFINED") {
            Style::Bad
        } else {
            Style::Plain
        };
        for (index, part) in folded(&value, columns, 2 + LABEL).into_iter().enumerate() {
            let part = paint.paint(style, part);
            // Writing to a String cannot fail.
            let _ = match index {
                0 => writeln!(text, "  {label}{part}"),
                _ => writeln!(text, "  {:LABEL$}{part}", ""),
            };
        }
    }
    text
}

/// What would happen.
fn subject(question: &Question, paint: Paint, columns: usize) -> String {
    let tool = paint.paint(Style::Name, visible(&question.tool, Keep::Nothing));
    if let Some(asked) = &question.widening {
        let wanted = quoted(&wanted(&asked.widening), paint, columns);
        return format!(
            "\n{tool} asks to reach beyond the sandbox:\n\n{wanted}\nfor this call:\n\n{}",
            quoted(&action(&question.action), paint, columns)
        );
    }
    match &question.action {
        Action::Command { text, .. } => format!(
            "\n{tool} asks to run this command:\n\n{}",
            quoted(text, paint, columns)
        ),
        Action::Input { process_id, text } => {
            let process = visible(process_id, Keep::Nothing);
            if text.is_empty() {
                format!("\n{tool} asks to read on from {process}.\n")
            } else {
                format!(
                    "\n{tool} asks to type this into {process}:\n\n{}",
                    quoted(text, paint, columns)
                )
            }
        }
        Action::Arguments(arguments) => {
            format!(
                "\n{tool} asks to run with these arguments:\n\n{}",
                quoted(arguments, paint, columns)
            )
        }
    }
}

/// What a widening would give, one a line.
fn wanted(widening: &Widening) -> String {
    let Widening { read, write, hosts } = widening;
    let paths = |paths: &[GrantedPath], verb: &str| -> Vec<String> {
        let line = |path: &GrantedPath| {
            // A line break in a name must not begin a line that says something else.
            let path = visible(&path.path().display().to_string(), Keep::Nothing);
            format!("{verb} {path}")
        };
        paths.iter().map(line).collect()
    };
    let hosts = hosts.iter().map(|host| format!("reach  {host}"));
    let mut lines = paths(write, "change");
    lines.extend(paths(read, "read  "));
    lines.extend(hosts);
    lines.join("\n")
}

/// What the call does, in short, where the question is about something else.
fn action(action: &Action) -> String {
    match action {
        Action::Command { text, .. } | Action::Arguments(text) => text.clone(),
        Action::Input { process_id, text } => format!("{process_id}: {text}"),
    }
}

/// Text behind a bar on each line, so that nothing in it can pass for the question. Behind a colon a line goes on.
pub(super) fn quoted(text: &str, paint: Paint, columns: usize) -> String {
    let mut quoted = String::new();
    for line in text.split('\n') {
        let line = visible(line, Keep::Nothing);
        for (index, part) in folded(&line, columns, 4).into_iter().enumerate() {
            let bar = paint.paint(Style::Warning, if index == 0 { "|" } else { ":" });
            let _ = writeln!(quoted, "  {bar} {part}");
        }
    }
    quoted
}

/// The parts of a line that fit beside an indentation, cut behind a space where there is one. Whatever is not ASCII counts as
/// two columns, which is the most it takes.
pub(super) fn folded(line: &str, columns: usize, indentation: usize) -> Vec<&str> {
    /// Room enough to read, and too little to draw anything with.
    const LEAST: usize = 8;
    // The last column stays free: some terminals go on as soon as it is filled.
    let room = columns.saturating_sub(indentation + 1).max(LEAST);
    let columns_of = |text: &str| -> usize { text.chars().map(width_of).sum() };
    let mut parts = Vec::new();
    let (mut start, mut width) = (0, 0);
    // Behind the last space of this part.
    let mut gap = None;
    for (position, character) in line.char_indices() {
        while width + width_of(character) > room {
            let cut = gap.take().unwrap_or(position);
            parts.push(&line[start..cut]);
            (start, width) = (cut, columns_of(&line[cut..position]));
        }
        width += width_of(character);
        if character == ' ' {
            gap = Some(position + 1);
        }
    }
    parts.push(&line[start..]);
    parts
}

fn width_of(character: char) -> usize {
    if character.is_ascii() { 1 } else { 2 }
}

fn rows(question: &Question, standing: &Standing) -> Vec<(&'static str, String)> {
    if let Some(asked) = &question.widening {
        return widening_rows(question, asked, standing);
    }
    let mut rows = vec![("where", place(question))];
    rows.extend(reach(question, &standing.shell));
    let mut needs = question.permission.to_string();
    if !question.capabilities.is_empty() {
        let _ = write!(needs, " ({})", question.capabilities.join(", "));
    }
    rows.push(("needs", needs));
    if let Origin::Plugin(name) = &question.origin {
        rows.push(("tool of", format!("the plugin {name}")));
    }
    rows.push(("asked by", asker(question, standing)));
    rows.push((
        "because",
        match &question.rule {
            Some(rule) => format!("the rule {rule}"),
            None => format!("the approval mode is {}", standing.approval_mode.as_str()),
        },
    ));
    rows
}

/// What the person needs to know of a widening beside what it gives.
fn widening_rows(
    question: &Question,
    asked: &AskedWidening,
    standing: &Standing,
) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        (
            "why",
            format!(
                "{:?} (its own claim, which nobody has checked)",
                asked.reason
            ),
        ),
        (
            "how long",
            match standing.lasting {
                true => "for this call; with s, for what asks for the same or less in this Session"
                    .to_owned(),
                false => "for this call".to_owned(),
            },
        ),
        ("where", place(question)),
    ];
    if let Origin::Plugin(name) = &question.origin {
        rows.push(("tool of", format!("the plugin {name}")));
    }
    rows.push(("asked by", asker(question, standing)));
    rows.push((
        "because",
        "only a person may allow this, whatever the approval mode".to_owned(),
    ));
    rows
}

fn asker(question: &Question, standing: &Standing) -> String {
    match &question.asked_by {
        Some(child) => format!("the child Session {child}"),
        None => standing.asked_by.clone(),
    }
}

/// The folder that the call works in, as the person knows it.
fn place(question: &Question) -> String {
    let workspace = question.reach.workspace.display();
    match &question.action {
        Action::Command {
            working_directory, ..
        } if working_directory != "." => {
            format!("{working_directory} in the Workspace {workspace}")
        }
        _ => format!("the Workspace {workspace}"),
    }
}

/// What the call may read, change and reach with the capabilities that it has.
fn reach(question: &Question, shell: &Shell) -> Vec<(&'static str, String)> {
    let has = |capability: &str| question.capabilities.iter().any(|name| name == capability);
    if has("commands") && !question.reach.confined {
        let all = |verb: &str| format!("UNCONFINED: everything that you can {verb}");
        return vec![
            ("may read", all("read")),
            ("may change", all("change")),
            ("may reach", all("reach")),
        ];
    }
    let mut reads = Vec::new();
    let mut changes = Vec::new();
    let mut reaches = Vec::new();
    let reading = ["workspace", "edits", "commands", "language-server"];
    if reading.into_iter().any(has) {
        reads.push("the Workspace".to_owned());
    }
    if has("edits") || (has("commands") && shell.mode == WorkspaceMode::WorkspaceWrite) {
        changes.push("the Workspace without its protected paths".to_owned());
    }
    if has("commands") {
        reads.push("the system's folders and tool chains".to_owned());
        changes.push("a /tmp and a HOME of this Session".to_owned());
        if shell.min_tier == MinimumTier::Landlock {
            let weaker = "where Landlock alone confines";
            reads.push(format!("what deny_read names, {weaker}"));
            changes.push(format!("the protected paths too, {weaker}"));
        }
        let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        reads.extend(paths(&shell.extra_read));
        reads.extend(paths(&shell.extra_write));
        changes.extend(paths(&shell.extra_write));
        reaches.push(match shell.network {
            Network::Off => "no network, only a loopback of this Session".to_owned(),
            Network::Proxy if shell.allow_hosts.is_empty() => {
                "no host, because allow_hosts is empty".to_owned()
            }
            Network::Proxy => shell.allow_hosts.join(", "),
            Network::Host => "all that this machine reaches".to_owned(),
        });
    }
    if has("http") || has("web-search") {
        reaches.push("hosts on the public network".to_owned());
    }
    if has("language-server") {
        reads.push("with its server the system's folders and tool chains".to_owned());
    }
    if has("subagents") {
        for list in [&mut reads, &mut changes, &mut reaches] {
            list.push("what each call of the subagent is allowed by itself".to_owned());
        }
    }
    let listed = |what: Vec<String>| {
        if what.is_empty() {
            "nothing".to_owned()
        } else {
            what.join(", ")
        }
    };
    vec![
        ("may read", listed(reads)),
        ("may change", listed(changes)),
        ("may reach", listed(reaches)),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use floe_environment::Reach;
    use floe_protocol::{DecisionKind, Mode, Permission};

    use super::*;

    fn question(action: Action) -> Question {
        Question {
            session_id: "session-1".into(),
            tool_call_id: "c1".into(),
            tool: "exec_command".into(),
            action,
            permission: Permission::Execute,
            capabilities: vec!["commands".into()],
            reach: Reach {
                workspace: "/home/ann/project".into(),
                network: false,
                confined: true,
            },
            mode: Mode::Build,
            kind: DecisionKind::Call,
            origin: Origin::BuiltIn,
            asked_by: None,
            rule: None,
            widening: None,
        }
    }

    fn command(text: &str) -> Question {
        question(Action::Command {
            text: text.into(),
            working_directory: ".".into(),
        })
    }

    fn standing() -> Standing {
        Standing {
            shell: Shell::default(),
            approval_mode: ApprovalMode::AlwaysAsk,
            asked_by: "the model openai:gpt-5-mini".into(),
            lasting: true,
        }
    }

    fn shows(question: &Question, expected: Expect) {
        // Wide enough that no line of the card itself goes on.
        expected.assert_eq(&render(question, &standing(), Paint::PLAIN, 120));
    }

    #[test]
    fn a_command_is_shown_exactly_with_where_it_runs_and_what_it_may_reach() {
        shows(
            &command("rm -rf build\nmake"),
            expect![[r#"

            exec_command asks to run this command:

              | rm -rf build
              | make

              where      the Workspace /home/ann/project
              may read   the Workspace, the system's folders and tool chains
              may change the Workspace without its protected paths, a /tmp and a HOME of this Session
              may reach  no network, only a loopback of this Session
              needs      execute (commands)
              asked by   the model openai:gpt-5-mini
              because    the approval mode is always-ask
        "#]],
        );
    }

    #[test]
    fn characters_that_hide_or_reverse_are_written_out() {
        let hidden = "curl evil\u{1b}[2K\rls \u{202e}txt.exe\u{200b} \u{9b}31m \u{feff}\tend\u{7}";
        shows(
            &command(hidden),
            expect![[r#"

            exec_command asks to run this command:

              | curl evil\x1b[2K\rls \u{202e}txt.exe\u{200b} \x9b31m \u{feff}\tend\x07

              where      the Workspace /home/ann/project
              may read   the Workspace, the system's folders and tool chains
              may change the Workspace without its protected paths, a /tmp and a HOME of this Session
              may reach  no network, only a loopback of this Session
              needs      execute (commands)
              asked by   the model openai:gpt-5-mini
              because    the approval mode is always-ask
        "#]],
        );
    }

    #[test]
    fn a_command_cannot_draw_the_rest_of_the_question() {
        shows(
            &command("ls\n\n  where      /tmp\n\nAllow it? [y/n] y"),
            expect![[r#"

            exec_command asks to run this command:

              | ls
              | 
              |   where      /tmp
              | 
              | Allow it? [y/n] y

              where      the Workspace /home/ann/project
              may read   the Workspace, the system's folders and tool chains
              may change the Workspace without its protected paths, a /tmp and a HOME of this Session
              may reach  no network, only a loopback of this Session
              needs      execute (commands)
              asked by   the model openai:gpt-5-mini
              because    the approval mode is always-ask
        "#]],
        );
    }

    #[test]
    fn a_working_directory_is_named_and_cannot_break_its_line() {
        let question = question(Action::Command {
            text: "make".into(),
            working_directory: "src\n  may reach  nothing\u{1b}[A".into(),
        });
        shows(
            &question,
            expect![[r#"

            exec_command asks to run this command:

              | make

              where      src\n  may reach  nothing\x1b[A in the Workspace /home/ann/project
              may read   the Workspace, the system's folders and tool chains
              may change the Workspace without its protected paths, a /tmp and a HOME of this Session
              may reach  no network, only a loopback of this Session
              needs      execute (commands)
              asked by   the model openai:gpt-5-mini
              because    the approval mode is always-ask
        "#]],
        );
    }

    #[test]
    fn input_for_a_running_command_is_shown_with_its_id() {
        shows(
            &question(Action::Input {
                process_id: "proc-0badcafe".into(),
                text: "yes\n\u{3}".into(),
            }),
            expect![[r#"

                exec_command asks to type this into proc-0badcafe:

                  | yes
                  | \x03

                  where      the Workspace /home/ann/project
                  may read   the Workspace, the system's folders and tool chains
                  may change the Workspace without its protected paths, a /tmp and a HOME of this Session
                  may reach  no network, only a loopback of this Session
                  needs      execute (commands)
                  asked by   the model openai:gpt-5-mini
                  because    the approval mode is always-ask
            "#]],
        );
    }

    #[test]
    fn a_poll_says_that_it_only_reads() {
        shows(
            &question(Action::Input {
                process_id: "proc-0badcafe".into(),
                text: String::new(),
            }),
            expect![[r#"

                exec_command asks to read on from proc-0badcafe.

                  where      the Workspace /home/ann/project
                  may read   the Workspace, the system's folders and tool chains
                  may change the Workspace without its protected paths, a /tmp and a HOME of this Session
                  may reach  no network, only a loopback of this Session
                  needs      execute (commands)
                  asked by   the model openai:gpt-5-mini
                  because    the approval mode is always-ask
            "#]],
        );
    }

    #[test]
    fn a_tool_that_only_reads_says_so() {
        let mut question = question(Action::Arguments(
            "{\n  \"path\": \"src/main.rs\"\n}".into(),
        ));
        question.tool = "file_read".into();
        question.permission = Permission::ReadOnly;
        question.capabilities = vec!["workspace".into()];
        shows(
            &question,
            expect![[r#"

            file_read asks to run with these arguments:

              | {
              |   "path": "src/main.rs"
              | }

              where      the Workspace /home/ann/project
              may read   the Workspace
              may change nothing
              may reach  nothing
              needs      read-only (workspace)
              asked by   the model openai:gpt-5-mini
              because    the approval mode is always-ask
        "#]],
        );
    }

    #[test]
    fn a_plugin_a_child_and_a_rule_are_named() {
        let mut question = question(Action::Arguments("{}".into()));
        question.tool = "weather".into();
        question.permission = Permission::Write;
        question.capabilities = vec!["edits".into(), "http".into()];
        question.origin = Origin::Plugin("weather\u{202e}".into());
        question.asked_by = Some("session-child".into());
        question.rule = Some("ask before http".into());
        shows(
            &question,
            expect![[r#"

            weather asks to run with these arguments:

              | {}

              where      the Workspace /home/ann/project
              may read   the Workspace
              may change the Workspace without its protected paths
              may reach  hosts on the public network
              needs      write (edits, http)
              tool of    the plugin weather\u{202e}
              asked by   the child Session session-child
              because    the rule ask before http
        "#]],
        );
    }

    #[test]
    fn what_a_subagent_and_a_language_server_reach_is_named() {
        let mut question = question(Action::Arguments("{}".into()));
        let rows = |question: &Question| reach(question, &standing().shell);
        question.capabilities = vec!["subagents".into()];
        for (row, what) in rows(&question) {
            assert_eq!(
                what, "what each call of the subagent is allowed by itself",
                "{row}"
            );
        }
        question.capabilities = vec!["language-server".into()];
        let read = "the Workspace, with its server the system's folders and tool chains";
        assert_eq!(rows(&question)[0].1, read);
        assert_eq!(rows(&question)[1].1, "nothing");
    }

    #[test]
    fn a_command_without_a_sandbox_says_unconfined_in_every_row_of_its_reach() {
        let mut question = command("make");
        question.reach.confined = false;
        shows(
            &question,
            expect![[r#"

            exec_command asks to run this command:

              | make

              where      the Workspace /home/ann/project
              may read   UNCONFINED: everything that you can read
              may change UNCONFINED: everything that you can change
              may reach  UNCONFINED: everything that you can reach
              needs      execute (commands)
              asked by   the model openai:gpt-5-mini
              because    the approval mode is always-ask
        "#]],
        );
    }

    #[test]
    fn where_weaker_walls_are_accepted_what_they_let_through_is_named() {
        let mut standing = standing();
        standing.shell.min_tier = MinimumTier::Landlock;
        let card = render(&command("make"), &standing, Paint::PLAIN, 300);
        for line in [
            "tool chains, what deny_read names, where Landlock alone confines\n",
            "a HOME of this Session, the protected paths too, where Landlock alone confines\n",
        ] {
            assert!(card.contains(line), "{card}");
        }
    }

    fn widening(reason: &str) -> Question {
        let widening = serde_json::json!({
            "read": [{"path": "/home/ann/data", "device": 1, "inode": 2}],
            "write": [{"path": "/home/ann/out\n| reach  nothing", "device": 1, "inode": 3}],
            "hosts": ["crates.io:443"],
        });
        let mut question = command("cargo fetch");
        question.kind = DecisionKind::Widening;
        question.widening = Some(AskedWidening {
            reason: reason.into(),
            widening: serde_json::from_value(widening).unwrap(),
        });
        question
    }

    #[test]
    fn a_widening_shows_what_it_gives_and_the_reason_as_a_claim() {
        shows(
            &widening("to build\n\nAllow it? [y] y \u{1b}[A\u{202e}"),
            expect![[r#"

                exec_command asks to reach beyond the sandbox:

                  | change /home/ann/out\n| reach  nothing
                  | read   /home/ann/data
                  | reach  crates.io:443

                for this call:

                  | cargo fetch

                  why        "to build\n\nAllow it? [y] y \u{1b}[A\u{202e}" (its own claim, which nobody has checked)
                  how long   for this call; with s, for what asks for the same or less in this Session
                  where      the Workspace /home/ann/project
                  asked by   the model openai:gpt-5-mini
                  because    only a person may allow this, whatever the approval mode
            "#]],
        );
    }

    #[test]
    fn of_a_widening_no_line_reaches_the_left_edge() {
        let card = render(&widening(&"x ".repeat(400)), &standing(), Paint::PLAIN, 60);
        for line in card.lines().filter(|line| !line.is_empty()) {
            let own = line.starts_with("exec_command") || line == "for this call:";
            assert!(line.starts_with("  ") || own, "{line}");
            assert!(line.chars().count() < 60, "{line}");
        }
    }

    #[test]
    fn a_long_line_never_reaches_the_left_edge_of_the_terminal() {
        let fake = format!(
            "ls{}  may reach  nothing{}\u{4e00}\u{202e}",
            " ".repeat(74),
            "x".repeat(300)
        );
        let mut question = command(&fake);
        if let Action::Command {
            working_directory, ..
        } = &mut question.action
        {
            working_directory.clone_from(&fake);
        }
        for columns in [1, 20, 40, 79, 80, 81, 200] {
            let card = render(&question, &standing(), Paint::PLAIN, columns);
            for line in card.lines().filter(|line| !line.is_empty()) {
                assert!(
                    line.starts_with("  ") || line.starts_with("exec_command"),
                    "{line}"
                );
                assert!(
                    columns < 40 || line.chars().count() < columns,
                    "{columns}: {line}"
                );
            }
            let told: String = card
                .lines()
                .filter_map(|line| line.strip_prefix("  | ").or(line.strip_prefix("  : ")))
                .collect();
            assert_eq!(told, visible(&fake, Keep::Nothing), "nothing is left out");
        }
    }

    #[test]
    fn a_long_command_says_how_long_it_is_beside_the_answer() {
        let card = render(
            &command(&"true\n".repeat(5000)),
            &standing(),
            Paint::PLAIN,
            80,
        );
        let rows = &card[card.rfind("| \n").unwrap()..];
        assert!(
            rows.contains("  length     5004 lines; scroll up to read all\n"),
            "{rows}"
        );
        let card = render(&command("true"), &standing(), Paint::PLAIN, 80);
        assert!(!card.contains("  length"), "{card}");
    }
}
