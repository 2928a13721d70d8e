//! Children of a Session over the real Environment, Traces and script driver; only the tools are doubles.

mod doubles;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use floe_environment::{Answer, Approver, Question, Selection, Toolset};
use floe_model::{ModelAnswer, ModelDriver, ModelError, ModelRequest, Script, ScriptDriver};
use floe_protocol::{
    AgentId, ApprovalMode, Body, DecidedBy, EventMsg, Home, Mode, ModelMsg, OmniMessage,
    Permission, SessionMeta, Source, SubagentState,
};
use floe_session::{
    AgentDefinition, AgentSource, ModelSource, Observer, RunEnd, Session, SessionOptions,
};
use floe_trace::VerifyTarget;
use floe_workspace::Workspace;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use doubles::{Kept, registry};

/// A wait that no test should ever sit out.
const LONG: Duration = Duration::from_secs(60);

struct Fixture {
    folder: tempfile::TempDir,
    observer: Arc<Kept>,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        Fixture {
            folder,
            observer: Arc::default(),
        }
    }

    fn home(&self) -> Home {
        Home::new(self.folder.path().join("home"))
    }

    /// A Session without a model whose children play this script's `subagents`.
    fn options(&self, script: &str) -> SessionOptions {
        let script = Script::parse(script, Path::new("test.yaml")).unwrap();
        let workspace = Workspace::open(&self.folder.path().join("workspace")).unwrap();
        SessionOptions {
            observer: Arc::clone(&self.observer) as Arc<dyn Observer>,
            approval_mode: ApprovalMode::AllowAll,
            selection: Selection::Toolset(Toolset::All),
            model: Some(Arc::new(ScriptDriver::new("test.yaml", script))),
            ..SessionOptions::new(self.home(), workspace, registry())
        }
    }

    fn open(&self, script: &str) -> Session {
        Session::open(self.options(script)).unwrap()
    }

    /// The Trace of a Session.
    fn records(&self, session: &str) -> Vec<OmniMessage> {
        let files = floe_trace::find(&self.home(), session).unwrap();
        let paths: Vec<PathBuf> = files.files;
        paths
            .iter()
            .flat_map(|path| floe_trace::read(path).unwrap())
            .map(|record| record.unwrap().message)
            .collect()
    }

    fn meta(&self, session: &str) -> SessionMeta {
        match self.records(session).remove(0).body {
            Body::SessionMeta(meta) => meta,
            other => panic!("the first record is the meta: {other:?}"),
        }
    }

    /// The last hash of a Session's Trace, which must verify.
    fn verified(&self, session: &str) -> String {
        let home = self.home();
        let target = VerifyTarget::Session {
            home: &home,
            id: session.to_owned(),
        };
        let verification = floe_trace::verify(&target, None).unwrap();
        assert!(verification.is_sound(), "{verification:?}");
        verification.last_hash.unwrap()
    }
}

/// A call of `spawn_subagent`: its text, and the child's Session by its note.
async fn spawn(session: &Session, arguments: serde_json::Value) -> (String, String) {
    let cancel = CancellationToken::new();
    let arguments = arguments.to_string();
    let call = session.call("spawn_subagent", &arguments, &cancel);
    let output = tokio::time::timeout(LONG, call)
        .await
        .expect("the call ends")
        .output;
    match output.rsplit_once('\n') {
        Some((text, child)) => (text.to_owned(), child.to_owned()),
        None => (output, String::new()),
    }
}

fn outputs(messages: &[OmniMessage]) -> Vec<String> {
    messages
        .iter()
        .filter_map(|message| match &message.body {
            Body::ModelMsg(ModelMsg::ToolCallOutput { output, .. }) => Some(output.clone()),
            _ => None,
        })
        .collect()
}

/// What a Trace says of children: state and hash.
fn subagents(messages: &[OmniMessage]) -> Vec<(String, SubagentState, Option<String>)> {
    messages
        .iter()
        .filter_map(|message| match &message.body {
            Body::EventMsg(EventMsg::Subagent {
                session_id,
                state,
                hash,
                ..
            }) => Some((session_id.clone(), *state, hash.clone())),
            _ => None,
        })
        .collect()
}

const ONE_TOOL: &str = "turns: []\nsubagents:\n- turns:\n  - tool_calls: [{name: list}]\n  - expect: ['^src$']\n    text: One folder.\n";

#[tokio::test]
async fn a_child_uses_a_tool_and_returns_and_both_traces_fit_together() {
    let fixture = Fixture::new();
    let session = fixture.open(ONE_TOOL);
    let (text, child) = spawn(
        &session,
        json!({"prompt": "look", "description": "looking"}),
    )
    .await;
    assert_eq!(text, "One folder.");
    let parent = session.id().to_string();
    session.close().await;
    let records = fixture.records(&child);
    let meta = fixture.meta(&child);
    assert_eq!(meta.source, Some(Source::Subagent));
    assert_eq!(meta.session_id, child);
    let Body::ModelMsg(ModelMsg::Text { text, sender, .. }) = &records[1].body else {
        panic!("{:?}", records[1]);
    };
    assert_eq!(
        (text.as_str(), sender.as_deref()),
        ("look", Some("parent_agent"))
    );
    assert_eq!(outputs(&records), ["src"]);
    let records = fixture.records(&parent);
    assert!(records.iter().all(|record| record.origin.is_empty()));
    let told = subagents(&records);
    let states: Vec<SubagentState> = told.iter().map(|(_, state, _)| *state).collect();
    assert_eq!(
        states,
        [
            SubagentState::Running,
            SubagentState::Idle,
            SubagentState::Finished
        ]
    );
    assert!(told.iter().all(|(id, ..)| *id == child));
    assert_eq!(told[0].2, None);
    assert!(told[1].2.is_some());
    fixture.verified(&parent);
    assert_eq!(told[2].2, Some(fixture.verified(&child)));
}

#[tokio::test]
async fn a_childs_stream_is_shown_with_its_origin_from_its_meta_on() {
    let fixture = Fixture::new();
    let session = fixture.open(ONE_TOOL);
    let (_, child) = spawn(&session, json!({"prompt": "look"})).await;
    let shown: Vec<OmniMessage> = fixture
        .observer
        .messages()
        .into_iter()
        .filter(|message| !message.origin.is_empty())
        .collect();
    assert!(
        shown
            .iter()
            .all(|message| message.origin == [child.clone()])
    );
    assert!(matches!(&shown[0].body, Body::SessionMeta(meta) if meta.session_id == child));
    assert!(
        matches!(&shown[1].body, Body::ModelMsg(ModelMsg::Text { text, .. }) if text == "look")
    );
    assert_eq!(outputs(&shown), ["src"]);
}

#[tokio::test]
async fn a_child_cannot_spawn_and_its_tools_do_not_name_what_could() {
    let fixture = Fixture::new();
    let session = fixture.open(
        "turns: []\nsubagents:\n- turns:\n  - tool_calls: [{name: spawn_subagent, arguments: {prompt: x}}]\n  - expect: ['^Unknown tool: spawn_subagent$']\n    text: Alone.\n",
    );
    let (text, child) = spawn(&session, json!({"prompt": "delegate"})).await;
    assert_eq!(text, "Alone.");
    let names = fixture
        .records(&child)
        .iter()
        .find_map(|record| match &record.body {
            Body::EventMsg(EventMsg::ToolListReady { tools }) => Some(tools.clone()),
            _ => None,
        })
        .unwrap();
    let names: Vec<_> = names.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["exec_command", "list", "file_write"]);
}

#[tokio::test]
async fn a_child_has_no_more_than_its_parents_cap_and_goes_on_after_a_refusal() {
    let fixture = Fixture::new();
    let mut options = fixture.options(
        "turns: []\nsubagents:\n- turns:\n  - tool_calls: [{name: file_write}, {name: list}]\n  - expect: ['limited to read-only', '^src$']\n    text: Read only.\n",
    );
    options.max_permission = Some(Permission::ReadOnly);
    let session = Session::open(options).unwrap();
    let permission = session.environment().permission_of("spawn_subagent");
    assert_eq!(permission, Some(Permission::ReadOnly));
    let (text, _) = spawn(&session, json!({"prompt": "write"})).await;
    assert_eq!(text, "Read only.");
}

#[tokio::test]
async fn the_children_of_plan_mode_are_in_plan_mode_and_build_later_where_the_parent_does() {
    let fixture = Fixture::new();
    let mut options = fixture.options(
        "turns: []\nsubagents:\n- turns:\n  - tool_calls: [{name: file_write}]\n  - expect: ['plan mode allows at most read-only']\n    text: Planned.\n  - tool_calls: [{name: file_write}]\n  - expect: ['^written$']\n    text: Built.\n",
    );
    options.mode = Mode::Plan;
    let session = Session::open(options).unwrap();
    assert_eq!(
        session.environment().permission_of("spawn_subagent"),
        Some(Permission::ReadOnly)
    );
    let (text, child) = spawn(&session, json!({"prompt": "write"})).await;
    assert_eq!(text, "Planned.");
    assert_eq!(fixture.meta(&child).mode, Mode::Plan);
    session.environment().set_mode(Mode::Build);
    let (text, _) = spawn(&session, json!({"prompt": "now", "task_id": child})).await;
    assert_eq!(text, "Built.");
}

#[tokio::test]
async fn a_task_id_goes_on_with_the_childs_conversation() {
    let fixture = Fixture::new();
    let session = fixture.open("turns: []\nsubagents:\n- turns: [{text: one}, {text: two}]\n");
    let (text, child) = spawn(&session, json!({"prompt": "first"})).await;
    assert_eq!(text, "one");
    let short = floe_protocol::subagent_name(&child);
    let (text, same) = spawn(&session, json!({"prompt": "second", "task_id": short})).await;
    assert_eq!((text.as_str(), &same), ("two", &child));
    let said: Vec<String> = fixture
        .records(&child)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::ModelMsg(ModelMsg::Text { text, .. }) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["first", "one", "second", "two"]);
    let (text, _) = spawn(
        &session,
        json!({"prompt": "x", "task_id": "subagent-00000000"}),
    )
    .await;
    for part in ["no subagent 'subagent-00000000'", &short, "Without an id"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[tokio::test]
async fn a_child_that_is_not_kept_goes_with_its_call() {
    let fixture = Fixture::new();
    let session = fixture.open("turns: []\nsubagents:\n- turns: [{text: one}]\n");
    let (_, child) = spawn(&session, json!({"prompt": "first", "keep": false})).await;
    let (text, _) = spawn(&session, json!({"prompt": "x", "task_id": child})).await;
    assert!(text.contains("It has none."), "{text}");
    let parent = session.id().to_string();
    session.close().await;
    let told = subagents(&fixture.records(&parent));
    assert_eq!(told.last().unwrap().1, SubagentState::Finished);
}

#[tokio::test]
async fn the_ninth_child_takes_the_place_of_the_one_that_has_rested_longest() {
    let fixture = Fixture::new();
    let session = fixture.open("turns: []\n");
    let mut children = Vec::new();
    for _ in 0..9 {
        let (text, child) = spawn(&session, json!({"prompt": "x"})).await;
        assert_eq!(text, "[script ended]");
        children.push(child);
    }
    let again = |child: &String| json!({"prompt": "y", "task_id": child});
    assert!(
        spawn(&session, again(&children[0]))
            .await
            .0
            .contains("no subagent")
    );
    for child in &children[1..] {
        assert_eq!(spawn(&session, again(child)).await.0, "[script ended]");
    }
}

/// Answers nothing until it is cancelled.
struct Silent;

#[async_trait]
impl ModelDriver for Silent {
    fn model_id(&self) -> &str {
        "silent"
    }

    fn provider(&self) -> &str {
        "double"
    }

    fn context_window(&self) -> Option<u64> {
        None
    }

    fn vision(&self) -> bool {
        false
    }

    async fn stream(
        &self,
        _request: &ModelRequest,
        _emit: &mut (dyn FnMut(ModelMsg) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelAnswer, ModelError> {
        cancel.cancelled().await;
        Err(ModelError::aborted())
    }
}

/// Waits until the parent's stream tells so often of a running child.
async fn until_running(observer: &Kept, count: usize) {
    let seen = || {
        subagents(&observer.messages())
            .iter()
            .filter(|(_, state, _)| *state == SubagentState::Running)
            .count()
    };
    let running = async {
        while seen() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, running).await.expect("they run");
}

#[tokio::test]
async fn an_interrupt_of_the_call_ends_the_child_and_a_ninth_one_at_work_is_refused() {
    let fixture = Fixture::new();
    let options = SessionOptions {
        model: Some(Arc::new(Silent)),
        ..fixture.options("turns: []\n")
    };
    let session = Session::open(options).unwrap();
    let cancel = CancellationToken::new();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let call = session.name_call("spawn_subagent", r#"{"prompt":"x"}"#);
            tokio::spawn(session.start_call(call, cancel.clone()))
        })
        .collect();
    until_running(&fixture.observer, 8).await;
    let (text, _) = spawn(&session, json!({"prompt": "x"})).await;
    assert!(text.contains("too many background subagents"), "{text}");
    cancel.cancel();
    for call in calls {
        let output = tokio::time::timeout(LONG, call).await.unwrap().unwrap();
        assert!(output.output.contains("[interrupted"), "{}", output.output);
    }
    let parent = session.id().to_string();
    tokio::time::timeout(LONG, session.close())
        .await
        .expect("nothing is left to wait for");
    let told = subagents(&fixture.records(&parent));
    let finished: Vec<_> = told
        .iter()
        .filter(|(_, state, _)| *state == SubagentState::Finished)
        .collect();
    assert_eq!(finished.len(), 8);
    for (child, _, hash) in finished {
        assert_eq!(*hash, Some(fixture.verified(child)));
        let abort = fixture.records(child).pop().unwrap();
        assert!(matches!(abort.body, Body::EventMsg(EventMsg::Abort { .. })));
    }
}

/// Keeps what it is asked, and allows it.
#[derive(Default)]
struct Asked(Mutex<Vec<Question>>);

#[async_trait]
impl Approver for Asked {
    async fn decide(&self, question: &Question) -> Answer {
        self.0.lock().unwrap().push(question.clone());
        Answer::Allow
    }

    fn decides_as(&self) -> DecidedBy {
        DecidedBy::Person
    }
}

#[tokio::test]
async fn a_childs_question_is_put_to_its_parents_person_about_the_parents_call() {
    let fixture = Fixture::new();
    let asked = Arc::new(Asked::default());
    let options = SessionOptions {
        approval_mode: ApprovalMode::ReadOnly,
        approver: Some(Arc::clone(&asked) as _),
        ..fixture.options(
            "turns: []\nsubagents:\n- turns:\n  - tool_calls: [{name: list}, {name: file_write}]\n  - expect: ['^src$', '^written$']\n    text: Done.\n",
        )
    };
    let session = Session::open(options).unwrap();
    let (text, child) = spawn(&session, json!({"prompt": "write"})).await;
    assert_eq!(text, "Done.");
    let asked = asked.0.lock().unwrap();
    let about: Vec<_> = asked
        .iter()
        .map(|question| (question.tool.as_str(), question.asked_by.as_deref()))
        .collect();
    assert_eq!(
        about,
        [
            ("spawn_subagent", None),
            ("file_write", Some(child.as_str()))
        ]
    );
    assert_eq!(asked[0].permission, Permission::Execute);
    assert_eq!(asked[0].tool_call_id, asked[1].tool_call_id);
    assert_eq!(asked[1].session_id, child);
}

/// One agent, `scout`, and one model, `double:silent`.
struct Sources(Vec<floe_protocol::ToolDefinition>);

impl AgentSource for Sources {
    fn ids(&self) -> Vec<AgentId> {
        vec!["builder".parse().unwrap(), "scout".parse().unwrap()]
    }

    fn agent(&self, id: &AgentId) -> Result<Option<AgentDefinition>, String> {
        match id.as_str() {
            "scout" => Ok(Some(AgentDefinition {
                system_prompt: "I am {{AGENT_ID}}.".into(),
                max_turns: Some(2),
                max_tokens: None,
                tools: Some(self.0.clone()),
            })),
            "builder" => Err("its file has a fault.".into()),
            _ => Ok(None),
        }
    }
}

impl ModelSource for Sources {
    fn model(&self, specification: Option<&str>) -> Result<Arc<dyn ModelDriver>, String> {
        match specification {
            Some("double:one") | None => {
                let script = Script::parse("turns: [{text: other}]", Path::new("other.yaml"));
                Ok(Arc::new(ScriptDriver::new("other.yaml", script.unwrap())))
            }
            Some(_) => Err("there is only double:one.".into()),
        }
    }
}

/// The tools of an agent's file, which would like to have more than they may.
fn entries() -> Vec<floe_protocol::ToolDefinition> {
    let registry = registry();
    ["list", "file_write", "spawn_subagent"]
        .map(|name| {
            let mut definition = registry.get(name).unwrap().definition.clone();
            definition.permission = Permission::None;
            definition
        })
        .to_vec()
}

#[tokio::test]
async fn an_agent_brings_its_prompt_turns_and_tools_and_nothing_that_its_parent_has_not() {
    let fixture = Fixture::new();
    let sources = Arc::new(Sources(entries()));
    let mut options = fixture.options(
        "turns: []\nsubagents:\n- turns:\n  - tool_calls: [{name: list}, {name: file_write}, {name: spawn_subagent, arguments: {prompt: x}}]\n  - expect: ['^src$', '^Unknown tool: file_write$', '^Unknown tool: spawn_subagent$']\n    text: Seen.\n",
    );
    options.agents = Some(sources);
    let own = registry().get("list").unwrap().definition.clone();
    let spawns = registry().get("spawn_subagent").unwrap().definition.clone();
    options.selection = Selection::Entries(vec![own, spawns]);
    let session = Session::open(options).unwrap();
    let (text, child) = spawn(&session, json!({"prompt": "look", "agent_id": "scout"})).await;
    assert_eq!(text, "Seen.");
    let meta = fixture.meta(&child);
    assert_eq!(meta.system_prompt, "I am scout.");
    assert!(meta.agent_state.ends_with("agents/scout"));
    let failed = |agent: &str| json!({"prompt": "look", "agent_id": agent});
    let (text, _) = spawn(&session, failed("nobody")).await;
    assert!(
        text.contains("unknown agent_id 'nobody'. Available: builder, scout."),
        "{text}"
    );
    let (text, _) = spawn(&session, failed("../scout")).await;
    assert!(text.contains("unknown agent_id '../scout'."), "{text}");
    let (text, _) = spawn(&session, failed("builder")).await;
    assert!(text.contains("its file has a fault."), "{text}");
}

#[tokio::test]
async fn an_agents_entry_needs_no_less_of_a_permission_than_its_parents() {
    let fixture = Fixture::new();
    let options = SessionOptions {
        agents: Some(Arc::new(Sources(entries()))),
        max_permission: Some(Permission::ReadOnly),
        ..fixture.options(
            "turns: []\nsubagents:\n- turns:\n  - tool_calls: [{name: file_write}]\n  - expect: ['file_write needs write']\n    text: Refused.\n",
        )
    };
    let session = Session::open(options).unwrap();
    let (text, _) = spawn(&session, json!({"prompt": "x", "agent_id": "scout"})).await;
    assert_eq!(text, "Refused.");
}

#[tokio::test]
async fn a_child_has_its_parents_model_or_the_one_that_is_named() {
    let fixture = Fixture::new();
    let options = SessionOptions {
        models: Some(Arc::new(Sources(Vec::new()))),
        ..fixture.options(
            "turns: []\nsubagents: [{turns: [{text: first}]}, {turns: [{text: second}]}]\n",
        )
    };
    let session = Session::open(options.clone()).unwrap();
    let named = json!({"prompt": "x", "model_id": "double:one"});
    assert_eq!(spawn(&session, named.clone()).await.0, "other");
    // The k-th script is that of the k-th child that has its parent's model.
    for expected in ["first", "second", "[script ended]"] {
        let (text, child) = spawn(&session, json!({"prompt": "x"})).await;
        assert_eq!(text, expected);
        assert!(
            fixture
                .meta(&child)
                .model_id
                .unwrap()
                .starts_with("test.yaml#subagents[")
        );
    }
    let (text, _) = spawn(&session, json!({"prompt": "x", "model_id": "double:two"})).await;
    assert!(
        text.contains("the model 'double:two' cannot be used: there is only double:one."),
        "{text}"
    );
    // A Session without a model takes the one that a Session without a word about it has.
    let without = SessionOptions {
        model: None,
        ..options.clone()
    };
    let session = Session::open(without.clone()).unwrap();
    assert_eq!(spawn(&session, json!({"prompt": "x"})).await.0, "other");
    let session = Session::open(SessionOptions {
        models: None,
        ..without
    })
    .unwrap();
    let (text, _) = spawn(&session, json!({"prompt": "x"})).await;
    assert!(text.contains("no model for a subagent"), "{text}");
}

#[tokio::test]
async fn two_children_of_one_turn_work_side_by_side() {
    let fixture = Fixture::new();
    let session = fixture.open(
        "turns:\n- tool_calls: [{name: spawn_subagent, arguments: {prompt: a}}, {name: spawn_subagent, arguments: {prompt: b}}]\n- expect: ['^(one|two)\\n', '^(one|two)\\n']\n  text: Both.\nsubagents: [{turns: [{text: one}]}, {turns: [{text: two}]}]\n",
    );
    let cancel = CancellationToken::new();
    let run = session.run("go", &cancel);
    let end = tokio::time::timeout(LONG, run).await.expect("the run ends");
    assert_eq!(
        end,
        RunEnd::Ended {
            text: "Both.".into()
        }
    );
}
