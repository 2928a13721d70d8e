//! A Session over the real Environment, Trace and script driver; only the tools are doubles.

mod doubles;

use std::path::Path;
use std::sync::Arc;

use floe_environment::Surface;
use floe_model::{Script, ScriptDriver};
use floe_protocol::{ApprovalMode, Body, EventMsg, Home, ModelMsg, OmniMessage, Source};
use floe_session::{Observer, RunEnd, Session, SessionOptions};
use floe_trace::VerifyTarget;
use floe_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use doubles::{Kept, registry};

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

    fn options(&self) -> SessionOptions {
        let workspace = Workspace::open(&self.folder.path().join("workspace")).unwrap();
        SessionOptions {
            observer: Arc::clone(&self.observer) as Arc<dyn Observer>,
            approval_mode: ApprovalMode::AllowAll,
            ..SessionOptions::new(self.home(), workspace, registry())
        }
    }

    fn scripted(&self, script: &str) -> SessionOptions {
        let script = Script::parse(script, Path::new("test.yaml")).unwrap();
        SessionOptions {
            model: Some(Arc::new(ScriptDriver::new("test.yaml", script))),
            ..self.options()
        }
    }
}

fn records(trace: &Path) -> Vec<OmniMessage> {
    floe_trace::read(trace)
        .unwrap()
        .map(|record| record.unwrap().message)
        .collect()
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

#[tokio::test]
async fn a_scripted_run_uses_the_tools_and_leaves_a_trace_that_verifies() {
    let fixture = Fixture::new();
    let session = Session::open(fixture.scripted(
        "turns:\n- tool_calls: [{name: list}]\n- expect: ['^src$']\n  text: All there.\n",
    ))
    .unwrap();
    let id = session.id().clone();
    assert_eq!(
        session.run("look", &CancellationToken::new()).await,
        RunEnd::Ended {
            text: "All there.".into()
        }
    );
    let closed = session.close().await;
    assert_eq!(closed.trace_fault, None);
    let records = records(&closed.trace.unwrap());
    let Body::SessionMeta(meta) = &records[0].body else {
        panic!("the first record is the meta");
    };
    assert_eq!(meta.model_id.as_deref(), Some("test.yaml"));
    assert!(meta.system_prompt.contains("/workspace"));
    assert_eq!(outputs(&records), ["src"]);
    let home = fixture.home();
    let target = VerifyTarget::Session {
        home: &home,
        id: id.to_string(),
    };
    let verification = floe_trace::verify(&target, None).unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    let head = closed.head.unwrap();
    assert_eq!(verification.last_hash.as_deref(), Some(head.hash.as_str()));
    assert_eq!(head.seq + 1, records.len() as u64);
}

#[tokio::test]
async fn a_second_run_goes_on_with_the_conversation() {
    let fixture = Fixture::new();
    let session = Session::open(fixture.scripted("turns: [{text: one}, {text: two}]")).unwrap();
    let cancel = CancellationToken::new();
    for text in ["one", "two", "[script ended]"] {
        assert_eq!(
            session.run("on", &cancel).await,
            RunEnd::Ended { text: text.into() }
        );
    }
    let tool_lists = fixture
        .observer
        .messages()
        .iter()
        .filter(|message| matches!(message.body, Body::EventMsg(EventMsg::ToolListReady { .. })))
        .count();
    assert_eq!(tool_lists, 1, "told once");
}

#[tokio::test]
async fn a_missed_expectation_fails_the_run_with_its_place() {
    let fixture = Fixture::new();
    let session = Session::open(
        fixture.scripted("turns:\n- tool_calls: [{name: list}]\n- expect: [lib]\n  text: x\n"),
    )
    .unwrap();
    let end = session.run("look", &CancellationToken::new()).await;
    let RunEnd::Failed { reason } = &end else {
        panic!("{end:?}");
    };
    for part in ["turn 2", "output 1", "`lib`", "src"] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
    assert_eq!(end.exit_status(), 1);
}

#[tokio::test]
async fn a_single_call_is_a_session_without_a_model() {
    let fixture = Fixture::new();
    let session = Session::open(SessionOptions {
        source: Some(Source::Call),
        surface: Surface::Call,
        ..fixture.options()
    })
    .unwrap();
    let output = session.call("list", "{}", &CancellationToken::new()).await;
    assert_eq!((output.output.as_str(), output.exit_status()), ("src", 0));
    let unknown = session.call("nope", "{}", &CancellationToken::new()).await;
    assert_eq!(unknown.output, "Unknown tool: nope");
    assert_eq!(unknown.exit_status(), 1);
    let closed = session.close().await;
    let records = records(&closed.trace.unwrap());
    let Body::SessionMeta(meta) = &records[0].body else {
        panic!("the first record is the meta");
    };
    assert_eq!((&meta.model_id, meta.source), (&None, Some(Source::Call)));
    let decisions = records
        .iter()
        .filter(|message| matches!(message.body, Body::EventMsg(EventMsg::ApprovalDecision(_))))
        .count();
    assert_eq!(decisions, 2, "one for every call");
    assert!(closed.head.is_some());
}

#[tokio::test]
async fn where_nobody_can_be_asked_a_question_is_denied() {
    let fixture = Fixture::new();
    let session = Session::open(SessionOptions {
        approval_mode: ApprovalMode::AlwaysAsk,
        ..fixture.options()
    })
    .unwrap();
    let output = session.call("list", "{}", &CancellationToken::new()).await;
    assert_eq!(output.output, "Tool call denied by user.");
    assert_eq!(output.exit_status(), 3);
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_its_decision_is_interrupted() {
    let fixture = Fixture::new();
    let session = Session::open(fixture.options()).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let output = session.call("list", "{}", &cancel).await;
    assert_eq!(output.output, "[interrupted: tool aborted by user]");
    assert_eq!(output.exit_status(), 130);
}

#[tokio::test]
async fn where_the_trace_cannot_be_written_only_reading_goes_on_and_the_run_fails() {
    let fixture = Fixture::new();
    std::fs::write(fixture.home().root(), "a file where the folder should be").unwrap();
    let session = Session::open(
        fixture
            .scripted("turns:\n- tool_calls: [{name: list}, {name: file_write}]\n- text: Done.\n"),
    )
    .unwrap();
    let end = session.run("go", &CancellationToken::new()).await;
    let outputs = outputs(&fixture.observer.messages());
    assert_eq!(outputs[0], "src");
    assert!(
        outputs[1].starts_with("[trace unavailable: "),
        "{outputs:?}"
    );
    let RunEnd::Failed { reason } = &end else {
        panic!("{end:?}");
    };
    assert!(reason.contains("Trace"), "{reason}");
    assert!(session.close().await.trace_fault.is_some());
}

#[tokio::test]
async fn a_session_that_was_not_used_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let session = Session::open(fixture.options()).unwrap();
    assert_eq!(session.tools().len(), 3);
    let closed = session.close().await;
    assert!(closed.head.is_none() && closed.trace.is_none() && closed.trace_fault.is_none());
    assert!(!fixture.home().root().exists());
}

#[tokio::test]
async fn a_session_without_a_model_says_so() {
    let fixture = Fixture::new();
    let session = Session::open(fixture.options()).unwrap();
    let end = session.run("go", &CancellationToken::new()).await;
    assert_eq!(end.exit_status(), 1);
}
