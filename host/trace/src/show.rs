//! Records for a person at a terminal: one line each, and nothing in it that a terminal would obey.

use std::path::Path;

use floe_protocol::{
    Body, DecisionKind, EventMsg, Facts, Keep, ModelMsg, OmniMessage, QuestionAnswered, Reached,
    Role, Scope, SessionMeta, Todo, TodoStatus, visible,
};

use crate::Record;

/// The longest gist, in characters.
const LONGEST: usize = 160;

/// The line of a record: its time, its kind, and what it says in short. Control and direction characters are made visible, so that
/// the text of a program cannot draw on the terminal.
pub fn show(record: &Record) -> String {
    let (kind, gist) = gist(&record.message);
    let mark = if record.intact { "" } else { "[changed] " };
    format!(
        "{}  {kind:<18}  {mark}{}",
        short(&record.message.timestamp),
        short(&gist)
    )
    .trim_end()
    .to_owned()
}

/// A text on one line, made visible.
pub(crate) fn shown(text: &str) -> String {
    visible(text, Keep::Nothing)
}

/// A path, made visible.
pub(crate) fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// The beginning of a text, made visible.
pub(crate) fn short(text: &str) -> String {
    let cut = text.char_indices().nth(LONGEST).map(|(end, _)| end);
    match cut {
        Some(end) => format!("{}…", shown(&text[..end])),
        None => shown(text),
    }
}

/// As much of a text as a gist can show, and one character more, by which [`short`] knows that there was more.
fn beginning(text: &str) -> &str {
    match text.char_indices().nth(LONGEST + 1) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn gist(message: &OmniMessage) -> (&'static str, String) {
    match &message.body {
        Body::SessionMeta(meta) => ("session_meta", session(meta)),
        Body::ModelMsg(message) => model(message),
        Body::EventMsg(event) => self::event(event),
    }
}

fn session(meta: &SessionMeta) -> String {
    format!(
        "{} in {}, {}, {}, {}",
        meta.session_id,
        meta.workspace,
        meta.model_id.as_deref().unwrap_or("no model"),
        meta.mode.as_str(),
        meta.approval_mode.as_str()
    )
}

fn model(message: &ModelMsg) -> (&'static str, String) {
    match message {
        ModelMsg::Text { role, text, .. } => {
            ("text", format!("{}: {}", who(*role), beginning(text)))
        }
        ModelMsg::ImageUrl { image_url, .. } => ("image_url", beginning(image_url).to_owned()),
        ModelMsg::InlineData {
            mime_type, data, ..
        } => (
            "inline_data",
            format!("{mime_type}, {} characters of base64", data.len()),
        ),
        ModelMsg::Thinking { thinking, .. } => ("thinking", beginning(thinking).to_owned()),
        ModelMsg::ToolCall {
            name, arguments, ..
        } => ("tool_call", format!("{name} {}", beginning(arguments))),
        ModelMsg::ToolCallOutput {
            output,
            stop_reason,
            facts,
            ..
        } => (
            "tool_call_output",
            format!(
                "{stop_reason}{}: {}",
                verdict(facts.as_ref()),
                beginning(output)
            ),
        ),
        ModelMsg::PartialText { text, .. } => ("partial_text", text.clone()),
        ModelMsg::PartialThinking { thinking, .. } => ("partial_thinking", thinking.clone()),
        ModelMsg::PartialToolCall { arguments, .. } => ("partial_tool_call", arguments.clone()),
        ModelMsg::PartialToolCallOutput { output, .. } => {
            ("partial_tool_call_output", output.clone())
        }
    }
}

fn who(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

fn verdict(facts: Option<&Facts>) -> String {
    let Some(facts) = facts else {
        return String::new();
    };
    let mut text = String::new();
    if let Some(code) = facts.exit_code {
        text.push_str(&format!(", exit code {code}"));
    }
    if let Some(signal) = &facts.signal {
        text.push_str(&format!(", {signal}"));
    }
    if let Some(code) = &facts.code {
        text.push_str(&format!(", {code}"));
    }
    text
}

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// What a widening reaches, and for how long.
fn widening(reached: &Reached, scope: Scope) -> String {
    let Reached { read, write, hosts } = reached;
    let parts = [("read", read), ("write", write), ("reach", hosts)];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(verb, names)| format!("{verb} {}", names.join(" ")))
        .collect();
    let scope = match scope {
        Scope::Once => "once",
        Scope::Session => "for the Session",
        Scope::Project => "for the project",
    };
    format!(", to {} {scope}", parts.join(", "))
}

/// What came of a question.
fn answer(answered: &QuestionAnswered) -> String {
    let said = answered.answer.as_deref().map(beginning);
    let parts = answered.selected.iter().map(String::as_str).chain(said);
    let parts: Vec<&str> = parts.collect();
    let source = answered.source.as_str();
    match parts.is_empty() {
        true => format!("by {source}"),
        false => format!("by {source}: {}", parts.join(", ")),
    }
}

/// How far a list is, and what is under way.
fn todos(todos: &[Todo]) -> String {
    let with = |status| todos.iter().filter(move |todo| todo.status == status);
    let mut text = format!(
        "{} of {} done",
        with(TodoStatus::Completed).count(),
        todos.len()
    );
    if let Some(todo) = with(TodoStatus::InProgress).next() {
        text.push_str(&format!(", now: {}", beginning(&todo.content)));
    }
    text
}

fn event(event: &EventMsg) -> (&'static str, String) {
    match event {
        EventMsg::ApprovalDecision(decision) => {
            let plan = match decision.kind {
                DecisionKind::Plan => "the plan of ",
                DecisionKind::Call | DecisionKind::Widening => "",
            };
            let mut text = format!(
                "{} {plan}{} by {} ({})",
                decision.decision.as_str(),
                decision.tool,
                decision.by.as_str(),
                decision.mode.as_str()
            );
            if let Some(reached) = &decision.widening {
                text.push_str(&widening(reached, decision.scope));
            }
            if let Some(gate) = &decision.gate {
                text.push_str(&format!(", gate {gate}"));
            }
            if let Some(rule) = &decision.rule {
                text.push_str(&format!(", rule {rule}"));
            }
            ("approval_decision", text)
        }
        EventMsg::Question(asked) => (
            "question",
            format!("{} asks: {}", asked.tool, beginning(&asked.text)),
        ),
        EventMsg::QuestionAnswered(answered) => ("question_answered", answer(answered)),
        EventMsg::PlanProposed { plan, .. } => ("plan_proposed", beginning(plan).to_owned()),
        EventMsg::TodoList { todos } => ("todo_list", self::todos(todos)),
        EventMsg::Abort { reason } => ("abort", reason.clone().unwrap_or_default()),
        EventMsg::TokenUsage { session, request } => (
            "token_usage",
            format!(
                "{} for this request, {} so far",
                request.total, session.total
            ),
        ),
        EventMsg::RequestBegin {} => ("request_begin", String::new()),
        EventMsg::RequestEnd {
            status,
            error_message,
            ..
        } => (
            "request_end",
            match error_message {
                Some(message) => format!("{status}: {message}"),
                None => status.to_string(),
            },
        ),
        EventMsg::ToolListReady { tools } => ("tool_list_ready", format!("{} tools", tools.len())),
        EventMsg::Subagent {
            session_id,
            agent,
            description,
            state,
            hash,
        } => {
            let mut text = session_id.clone();
            if let Some(agent) = agent {
                text.push_str(&format!(" ({agent})"));
            }
            text.push_str(&format!(": {}", state.as_str()));
            if let Some(description) = description {
                text.push_str(&format!(", {}", beginning(description)));
            }
            if let Some(hash) = hash {
                text.push_str(&format!(", last hash {hash}"));
            }
            ("subagent", text)
        }
        EventMsg::ToolProgress { characters, .. } => {
            ("tool_progress", format!("{characters} characters"))
        }
        EventMsg::BackgroundTaskDone(task) => (
            "background_task_done",
            format!("{} `{}`: {}", task.id, task.label, task.detail),
        ),
        EventMsg::Warning { code, message } => ("warning", format!("{code}: {message}")),
        EventMsg::TraceHealed { bytes } => (
            "trace_healed",
            format!("ended a torn line of {}", counted(*bytes, "byte")),
        ),
        EventMsg::TraceGap { records, reason } => (
            "trace_gap",
            format!(
                "{} could not be written: {reason}",
                counted(*records, "record")
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use floe_protocol::{
        AnswerSource, ApprovalDecision, ApprovalMode, AskedQuestion, DecidedBy, Decision,
        DecisionKind, Mode, StopReason, TokenCount,
    };

    use super::*;

    fn line(body: Body) -> String {
        show(&Record {
            line: 1,
            seq: Some(0),
            intact: true,
            message: OmniMessage {
                timestamp: "2026-11-30T09:00:00.000Z".into(),
                body,
                origin: Vec::new(),
            },
        })
    }

    #[test]
    fn a_record_is_one_line_with_its_time_its_kind_and_its_gist() {
        let lines = [
            line(Body::SessionMeta(SessionMeta {
                session_id: "session-1".into(),
                provider: None,
                model_id: None,
                model_context_window: "unknown".into(),
                system_prompt: String::new(),
                agent_state: String::new(),
                workspace: "/home/ada/engine".into(),
                source: None,
                mode: Mode::Build,
                approval_mode: ApprovalMode::AllowAll,
            })),
            line(Body::ModelMsg(ModelMsg::user_text("mend it\n"))),
            line(Body::ModelMsg(ModelMsg::ToolCall {
                name: "exec_command".into(),
                arguments: "{\"cmd\":\"make\"}".into(),
                tool_call_id: "c1".into(),
                stop_reason: StopReason::Completed,
                fidelity: None,
            })),
            line(Body::EventMsg(EventMsg::ApprovalDecision(
                ApprovalDecision {
                    decision: Decision::Deny,
                    tool_call_id: "c1".into(),
                    tool: "exec_command".into(),
                    kind: DecisionKind::Call,
                    mode: ApprovalMode::AllowAll,
                    by: DecidedBy::Gate,
                    gate: Some("surface".into()),
                    rule: None,
                    scope: Scope::Once,
                    arguments_sha256: String::new(),
                    tool_sha256: None,
                    capabilities: Vec::new(),
                    waited_ms: 0,
                    widening: None,
                },
            ))),
            line(Body::ModelMsg(ModelMsg::ToolCallOutput {
                role: Role::User,
                output: "a\u{1b}[31mb".into(),
                images: None,
                tool_call_id: "c1".into(),
                stop_reason: StopReason::Failed,
                facts: Some(Facts {
                    exit_code: Some(2),
                    ..Facts::default()
                }),
            })),
            line(Body::EventMsg(EventMsg::TokenUsage {
                session: TokenCount {
                    total: 30,
                    ..TokenCount::default()
                },
                request: TokenCount {
                    total: 12,
                    ..TokenCount::default()
                },
            })),
            line(Body::EventMsg(EventMsg::RequestBegin {})),
            line(Body::EventMsg(EventMsg::TraceHealed { bytes: 41 })),
        ];
        expect![[r#"
            2026-11-30T09:00:00.000Z  session_meta        session-1 in /home/ada/engine, no model, build, allow-all
            2026-11-30T09:00:00.000Z  text                user: mend it\n
            2026-11-30T09:00:00.000Z  tool_call           exec_command {"cmd":"make"}
            2026-11-30T09:00:00.000Z  approval_decision   deny exec_command by gate (allow-all), gate surface
            2026-11-30T09:00:00.000Z  tool_call_output    failed, exit code 2: a\x1b[31mb
            2026-11-30T09:00:00.000Z  token_usage         12 for this request, 30 so far
            2026-11-30T09:00:00.000Z  request_begin
            2026-11-30T09:00:00.000Z  trace_healed        ended a torn line of 41 bytes
        "#]].assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn what_a_person_is_asked_and_answers_is_told_in_short() {
        let asked = EventMsg::Question(AskedQuestion {
            tool_call_id: "c1".into(),
            tool: "ask_clarification".into(),
            header: None,
            text: "Which\ndatabase?".into(),
            choices: vec![],
            multiple: false,
            free_text: true,
            suggested: None,
        });
        let answered = |source, answer: Option<&str>, selected: &[&str]| {
            EventMsg::QuestionAnswered(QuestionAnswered {
                tool_call_id: "c1".into(),
                source,
                answer: answer.map(str::to_owned),
                selected: selected.iter().map(|label| (*label).to_owned()).collect(),
                waited_ms: 7,
            })
        };
        let todo = |content: &str, status| Todo {
            content: content.into(),
            status,
        };
        let lines = [
            asked,
            answered(AnswerSource::User, Some("a small one"), &["sqlite", "none"]),
            answered(AnswerSource::Timeout, None, &[]),
            EventMsg::PlanProposed {
                tool_call_id: "c2".into(),
                plan: "1. Look.".into(),
            },
            EventMsg::TodoList {
                todos: vec![
                    todo("a", TodoStatus::Completed),
                    todo("b", TodoStatus::InProgress),
                ],
            },
        ]
        .map(|event| line(Body::EventMsg(event)));
        expect![[r#"
            2026-11-30T09:00:00.000Z  question            ask_clarification asks: Which\ndatabase?
            2026-11-30T09:00:00.000Z  question_answered   by user: sqlite, none, a small one
            2026-11-30T09:00:00.000Z  question_answered   by timeout
            2026-11-30T09:00:00.000Z  plan_proposed       1. Look.
            2026-11-30T09:00:00.000Z  todo_list           1 of 2 done, now: b
        "#]]
        .assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let shown = line(Body::ModelMsg(ModelMsg::user_text("é".repeat(1000))));
        assert!(shown.ends_with("é…"));
        assert!(shown.chars().count() < 220);
    }

    #[test]
    fn a_record_whose_hash_is_wrong_is_marked() {
        let mut record = Record {
            line: 1,
            seq: None,
            intact: true,
            message: OmniMessage::model(ModelMsg::user_text("x")),
        };
        assert!(!show(&record).contains("[changed]"));
        record.intact = false;
        assert!(show(&record).contains("[changed] user: x"));
    }
}
