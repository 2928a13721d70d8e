//! `spawn_subagent`: a task for a child Session, whose model plays the part that a script has for it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use floe_model::{Script, ScriptDriver};
use floe_protocol::{
    AgentId, AskedQuestion, Body, EventMsg, Home, Mode, ModelMsg, OmniMessage, Permission,
    SubagentState,
};
use floe_session::{AgentDefinition, AgentSource, Clarifier, Reply, SessionOptions};
use floe_trace::VerifyTarget;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::rig::{Answer, LONG, Rig, definition};

/// A Session whose children play these scripts, one after the other.
fn with_children(scripts: Value) -> Rig {
    changed(scripts, |_| {})
}

fn changed(scripts: Value, change: impl FnOnce(&mut SessionOptions)) -> Rig {
    Rig::over(
        |workspace| std::fs::write(workspace.join("notes.txt"), "swordfish\n").unwrap(),
        |options| {
            options.model = Some(script(&scripts));
            change(options);
        },
    )
}

fn script(children: &Value) -> Arc<ScriptDriver> {
    let text = json!({"turns": [], "subagents": children}).to_string();
    let script = Script::parse(&text, Path::new("test.yaml")).unwrap();
    Arc::new(ScriptDriver::new("test.yaml", script))
}

/// One child that makes these calls, expects these outputs, and then says `done`.
fn child(calls: Value, expect: Value) -> Value {
    json!([{"turns": [{"tool_calls": calls}, {"expect": expect, "text": "done"}]}])
}

async fn spawn(rig: &Rig, prompt: &str) -> Answer {
    rig.call("spawn_subagent", json!({"prompt": prompt})).await
}

/// The answer of a child, without the note below it.
fn answer(output: &Answer) -> &str {
    let (text, note) = output.completed().rsplit_once('\n').unwrap();
    assert!(note.starts_with("[task_id: subagent-"), "{note}");
    text
}

/// What the tool says for programs, by name.
fn structured(output: &Answer, name: &str) -> String {
    let structured = output.facts.structured.as_ref().expect("it says more");
    structured[name].as_str().unwrap().to_owned()
}

fn home(rig: &Rig) -> Home {
    Home::new(rig.workspace().parent().unwrap().join("home"))
}

/// The records of a Session's Trace, which must verify, and its last hash.
fn trace(rig: &Rig, session: &str) -> (Vec<OmniMessage>, String) {
    let home = home(rig);
    let target = VerifyTarget::Session {
        home: &home,
        id: session.to_owned(),
    };
    let verification = floe_trace::verify(&target, None).unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    let files = floe_trace::find(&home, session).unwrap();
    let records = files.files.iter().flat_map(|path| {
        let records = floe_trace::read(path).unwrap();
        records.map(|record| record.unwrap().message)
    });
    (records.collect(), verification.last_hash.unwrap())
}

#[tokio::test]
async fn a_missing_prompt_is_refused() {
    let rig = with_children(json!([]));
    for arguments in [json!({}), json!({"prompt": ""}), json!({"prompt": " \n"})] {
        let output = rig.call("spawn_subagent", arguments).await;
        assert_eq!(
            output.failed(),
            "Missing required argument \"prompt\" for spawn_subagent."
        );
    }
    assert!(
        rig.messages()
            .iter()
            .all(|message| message.origin.is_empty())
    );
}

#[test]
fn its_definition_has_the_limits_the_alias_and_the_arguments_of_the_contract() {
    let definition = definition("spawn_subagent");
    assert_eq!(definition.aliases, ["task"]);
    assert_eq!(
        (definition.timeout_ms, definition.max_output_length),
        (0, 16_000)
    );
    let properties = definition.parameters["properties"].as_object().unwrap();
    let names: Vec<&String> = properties.keys().collect();
    assert_eq!(
        names,
        ["prompt", "description", "agent_id", "model_id", "task_id"]
    );
    assert_eq!(definition.parameters["required"], json!(["prompt"]));
}

struct Scout;

impl AgentSource for Scout {
    fn ids(&self) -> Vec<AgentId> {
        vec!["scout".parse().unwrap()]
    }

    fn agent(&self, id: &AgentId) -> Result<Option<AgentDefinition>, String> {
        Ok((id.as_str() == "scout").then(|| AgentDefinition {
            system_prompt: "Look, and touch nothing.".into(),
            tools: Some(vec![definition("file_read"), definition("list")]),
            ..AgentDefinition::default()
        }))
    }
}

#[tokio::test]
async fn an_unknown_agent_id_lists_those_available() {
    let rig = changed(json!([]), |options| options.agents = Some(Arc::new(Scout)));
    let arguments = json!({"prompt": "x", "agent_id": "builder"});
    let output = rig.call("spawn_subagent", arguments.clone()).await;
    assert!(
        output
            .failed()
            .starts_with("spawn_subagent failed: unknown agent_id 'builder'. Available: scout."),
        "{output:?}"
    );
    let output = with_children(json!([]))
        .call("spawn_subagent", arguments)
        .await;
    assert!(output.failed().contains("Available: none."), "{output:?}");
}

#[tokio::test]
async fn an_agents_tools_are_a_named_scope_that_filters_those_of_the_parent() {
    let calls = json!([
        {"name": "file_read", "arguments": {"path": "notes.txt"}},
        {"name": "exec_command", "arguments": {"cmd": "true"}},
        {"name": "grep", "arguments": {"pattern": "x"}},
    ]);
    let expect = json!([
        "swordfish",
        "^Unknown tool: exec_command$",
        "^Unknown tool: grep$"
    ]);
    let rig = changed(child(calls, expect), |options| {
        options.agents = Some(Arc::new(Scout));
    });
    let arguments = json!({"prompt": "look", "agent_id": "scout"});
    let output = rig.call("task", arguments).await;
    assert_eq!(answer(&output), "done");
}

#[tokio::test]
async fn a_subagent_cannot_spawn_a_subagent() {
    let calls = json!([
        {"name": "spawn_subagent", "arguments": {"prompt": "x"}},
        {"name": "task", "arguments": {"prompt": "x"}},
    ]);
    let expect = json!(["^Unknown tool: spawn_subagent$", "^Unknown tool: task$"]);
    let rig = with_children(child(calls, expect));
    let output = spawn(&rig, "delegate").await;
    assert_eq!(answer(&output), "done");
    let origins = rig
        .messages()
        .into_iter()
        .map(|message| message.origin.len());
    assert_eq!(origins.max(), Some(1));
}

#[tokio::test]
async fn a_subagent_uses_one_tool_then_returns_its_last_text() {
    let calls = json!([{"name": "file_read", "arguments": {"path": "notes.txt"}}]);
    let rig = with_children(child(calls, json!(["swordfish"])));
    let output = spawn(&rig, "Which word is it?").await;
    assert_eq!(answer(&output), "done");
    assert_eq!(structured(&output, "status"), "completed");
    let task_id = structured(&output, "task_id");
    let session_id = structured(&output, "session_id");
    assert_eq!(floe_protocol::subagent_name(&session_id), task_id);
    assert!(output.text.contains(&task_id));
}

#[tokio::test]
async fn a_subagent_without_words_says_so_and_one_that_fails_says_why() {
    let rig = with_children(json!([
        {"turns": [{"text": ""}]},
        {"turns": [{"tool_calls": [{"name": "list"}]}, {"expect": ["no such thing"]}]},
    ]));
    let output = spawn(&rig, "be quiet").await;
    assert_eq!(answer(&output), "[subagent finished without a text answer]");
    let output = spawn(&rig, "fail").await;
    assert!(
        output.failed().starts_with("[subagent error: "),
        "{output:?}"
    );
    assert!(output.text.contains("no such thing"), "{output:?}");
    assert_eq!(structured(&output, "status"), "failed");
}

#[tokio::test]
async fn a_blocked_tool_call_gets_a_message_and_not_a_crash() {
    let calls = json!([
        {"name": "file_write", "arguments": {"path": "made", "content": "x"}},
        {"name": "no_such_tool"},
        {"name": "file_read", "arguments": {"path": "../secret"}},
    ]);
    let expect = json!([
        "Tool call denied by policy",
        "^Unknown tool: no_such_tool$",
        "outside the Workspace"
    ]);
    let rig = changed(child(calls, expect), |options| {
        options.max_permission = Some(Permission::ReadOnly);
    });
    let output = spawn(&rig, "try everything").await;
    assert_eq!(answer(&output), "done");
    assert!(!rig.path("made").exists());
}

#[tokio::test]
async fn its_permission_is_the_highest_of_its_tools_under_cap_and_mode() {
    let rig = with_children(json!([]));
    let permission = || rig.session.environment().permission_of("spawn_subagent");
    assert_eq!(permission(), Some(Permission::Execute));
    rig.session
        .environment()
        .set_max_permission(Some(Permission::Write));
    assert_eq!(permission(), Some(Permission::Write));
    rig.session.environment().set_mode(Mode::Plan);
    assert_eq!(permission(), Some(Permission::ReadOnly));
    let tools = rig.session.tools();
    let listed = tools.iter().find(|tool| tool.name == "spawn_subagent");
    assert_eq!(listed.unwrap().permission, Permission::ReadOnly);
}

#[tokio::test]
async fn a_subagent_of_plan_mode_is_clamped_to_reading_and_its_mode_does_not_leak() {
    let write = json!([{"name": "file_write", "arguments": {"path": "made", "content": "x"}}]);
    let run = json!([
        {"name": "exec_command", "arguments": {"cmd": "true"}},
        write[0],
    ]);
    let scripts = json!([
        child(run, json!(["plan mode", "plan mode"]))[0],
        child(write, json!([""]))[0],
    ]);
    let rig = changed(scripts, |options| options.mode = Mode::Plan);
    assert_eq!(answer(&spawn(&rig, "write").await), "done");
    assert!(!rig.path("made").exists());
    assert_eq!(rig.session.environment().mode(), Mode::Plan);
    rig.session.environment().set_mode(Mode::Build);
    assert_eq!(answer(&spawn(&rig, "write").await), "done");
    assert_eq!(rig.read_text("made"), "x");
}

#[tokio::test]
async fn two_subagents_and_their_parent_do_not_share_todos() {
    let todos = |content: &str| json!({"todos": [{"content": content, "status": "pending"}]});
    let calls = |content: &str| json!([{"name": "todowrite", "arguments": todos(content)}]);
    let rig = with_children(json!([
        child(calls("of the first"), json!(["1 item"]))[0],
        child(calls("of the second"), json!(["1 item"]))[0],
    ]));
    rig.call("todowrite", todos("of the parent")).await;
    for _ in 0..2 {
        assert_eq!(answer(&spawn(&rig, "plan").await), "done");
    }
    let lists: Vec<(usize, String)> = rig
        .messages()
        .into_iter()
        .filter_map(|message| match message.body {
            Body::EventMsg(EventMsg::TodoList { todos }) => {
                Some((message.origin.len(), todos[0].content.clone()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        lists,
        [
            (0, "of the parent".to_owned()),
            (1, "of the first".to_owned()),
            (1, "of the second".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_task_id_continues_a_subagent_and_an_unknown_one_is_a_clear_error() {
    let rig = with_children(json!([{"turns": [{"text": "one"}, {"text": "two"}]}]));
    let first = spawn(&rig, "begin").await;
    assert_eq!(answer(&first), "one");
    for (id, said) in [("task_id", "two"), ("session_id", "[script ended]")] {
        let arguments = json!({"prompt": "go on", "task_id": structured(&first, id)});
        let next = rig.call("spawn_subagent", arguments).await;
        assert_eq!(answer(&next), said);
        assert_eq!(structured(&next, "task_id"), structured(&first, "task_id"));
    }
    let arguments = json!({"prompt": "go on", "task_id": "subagent-00000000"});
    let output = rig.call("spawn_subagent", arguments).await;
    assert!(
        output.failed().contains("no subagent 'subagent-00000000'"),
        "{output:?}"
    );
    assert!(output.text.contains(&structured(&first, "task_id")));
    let arguments = json!({
        "prompt": "go on", "task_id": structured(&first, "task_id"), "agent_id": "scout",
    });
    let output = rig.call("spawn_subagent", arguments).await;
    assert!(output.failed().contains("leave agent_id or task_id out"));
}

/// Keeps what it is asked, and answers it.
#[derive(Default)]
struct Person(Mutex<Vec<AskedQuestion>>);

#[async_trait]
impl Clarifier for Person {
    async fn clarify(&self, question: &AskedQuestion) -> Reply {
        self.0.lock().unwrap().push(question.clone());
        Reply::Answered {
            text: Some("the blue one".into()),
            selected: Vec::new(),
        }
    }
}

#[tokio::test]
async fn a_question_of_a_subagent_reaches_the_person_of_its_parent_at_once() {
    let calls = json!([{"name": "ask_clarification", "arguments": {"question": "Which one?"}}]);
    let person = Arc::new(Person::default());
    let rig = changed(child(calls, json!(["the blue one"])), |options| {
        options.clarifier = Some(Arc::clone(&person) as _);
    });
    let output = spawn(&rig, "ask").await;
    assert_eq!(answer(&output), "done");
    let asked = person.0.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].text, "Which one?");
    assert_eq!(asked[0].header, Some(structured(&output, "task_id")));
    // Where a surface has the parent's calls, this is the one that waits.
    let own = rig
        .messages()
        .into_iter()
        .find_map(|message| match message.body {
            Body::ModelMsg(ModelMsg::ToolCall { tool_call_id, .. })
                if message.origin.is_empty() =>
            {
                Some(tool_call_id)
            }
            _ => None,
        });
    assert_eq!(Some(asked[0].tool_call_id.clone()), own);
}

#[tokio::test]
async fn progress_of_a_subagent_is_streamed_with_the_session_that_it_comes_from() {
    let calls = json!([{"name": "list"}]);
    let rig = with_children(child(calls, json!(["notes.txt"])));
    let output = spawn(&rig, "look").await;
    let child = structured(&output, "session_id");
    let messages = rig.messages();
    let own = messages
        .iter()
        .filter(|message| message.origin == [child.clone()]);
    let own: Vec<&OmniMessage> = own.collect();
    assert!(matches!(&own[0].body, Body::SessionMeta(meta) if meta.session_id == child));
    let calls_list = |message: &&OmniMessage| matches!(&message.body, Body::ModelMsg(ModelMsg::ToolCall { name, .. }) if name == "list");
    assert!(own.iter().any(calls_list));
}

#[tokio::test]
async fn the_description_of_a_task_is_told_on_one_line_of_at_most_80_characters() {
    let turns = || json!({"turns": [{"text": "one"}]});
    let rig = with_children(json!([turns(), turns(), turns()]));
    for description in ["look\n  for  it", " \n", &"x".repeat(81)] {
        let arguments = json!({"prompt": "look", "description": description});
        answer(&rig.call("spawn_subagent", arguments).await);
    }
    let messages = rig.messages();
    let told = messages.iter().filter_map(|message| match &message.body {
        Body::EventMsg(EventMsg::Subagent {
            state: SubagentState::Running,
            description,
            ..
        }) => Some(description.clone()),
        _ => None,
    });
    let told: Vec<Option<String>> = told.collect();
    assert_eq!(
        told,
        [
            Some("look for it".to_owned()),
            None,
            Some("x".repeat(79) + "…")
        ]
    );
}

#[tokio::test]
async fn the_trace_of_the_parent_verifies_and_holds_the_hash_of_the_childs() {
    let rig = with_children(json!([{"turns": [{"text": "one"}]}]));
    let output = spawn(&rig, "say one").await;
    let child = structured(&output, "session_id");
    rig.session.close().await;
    let (records, hash) = trace(&rig, &child);
    let texts: Vec<&str> = records
        .iter()
        .filter_map(|record| match &record.body {
            Body::ModelMsg(ModelMsg::Text { text, .. }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["say one", "one"]);
    let (records, _) = trace(&rig, rig.session.id().as_str());
    let last = records.iter().rev().find_map(|record| match &record.body {
        Body::EventMsg(EventMsg::Subagent {
            session_id,
            agent,
            state,
            hash,
            ..
        }) => Some((session_id, agent.clone(), *state, hash.clone())),
        _ => None,
    });
    let agent = Some(AgentId::default().to_string());
    assert_eq!(
        last,
        Some((&child, agent, SubagentState::Finished, Some(hash)))
    );
}

/// The processes of this machine whose command line holds `word`.
fn processes_with(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(word))
        .count()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = std::time::Instant::now() + LONG;
    while !holds() {
        assert!(std::time::Instant::now() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn cancelling_the_parents_call_cascades_and_leaves_no_process() {
    // Nobody else on this machine sleeps just as long.
    let word = format!("86000.{}", std::process::id());
    let command = format!("sleep {word}");
    let calls = json!([{"name": "exec_command", "arguments": {"cmd": command}}]);
    let rig = with_children(child(calls, json!([null])));
    let cancel = CancellationToken::new();
    let call = rig
        .session
        .name_call("spawn_subagent", &json!({"prompt": "wait"}).to_string());
    let running = tokio::spawn(rig.session.start_call(call, cancel.clone()));
    until("the command runs", || processes_with(&word) > 0).await;
    cancel.cancel();
    let output = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
    assert!(
        output
            .output
            .contains("[interrupted: tool aborted by user]"),
        "{output:?}"
    );
    until("no process is left", || processes_with(&word) == 0).await;
    let aborted = || {
        rig.messages().iter().any(|message| {
            !message.origin.is_empty()
                && matches!(message.body, Body::EventMsg(EventMsg::Abort { .. }))
        })
    };
    until("the child knows", aborted).await;
    tokio::time::timeout(LONG, rig.session.close())
        .await
        .unwrap();
}
