//! The door as a whole, over tools that are closures: the order of the gates, the one decision, and what runs in the end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use floe_protocol::{
    ApprovalDecision, ApprovalMode, Body, DecidedBy, Decision, EventMsg, Mode, ModelMsg,
    OmniMessage, Permission, Phase, Scope, StopReason, ToolCall, ToolDefinition, Truncation,
};
use floe_runtime::{
    Call, CallEnd, CallRequest, Capability, CapabilitySet, HostFacts, Hosts, ToolResult,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::*;

/// Keeps every message, and says whether records are kept.
#[derive(Default)]
struct Recorder {
    messages: Mutex<Vec<OmniMessage>>,
    /// After so many messages nothing is recorded any more.
    full_after: Mutex<Option<usize>>,
}

impl MessageSink for Recorder {
    fn emit(&self, message: OmniMessage) {
        self.messages.lock().unwrap().push(message);
    }

    fn recording(&self) -> Result<(), String> {
        match *self.full_after.lock().unwrap() {
            Some(limit) if self.messages.lock().unwrap().len() >= limit => {
                Err("the disk is full".into())
            }
            _ => Ok(()),
        }
    }
}

impl Recorder {
    fn messages(&self) -> Vec<OmniMessage> {
        self.messages.lock().unwrap().clone()
    }

    fn decisions(&self) -> Vec<ApprovalDecision> {
        self.messages()
            .into_iter()
            .filter_map(|message| match message.body {
                Body::EventMsg(EventMsg::ApprovalDecision(decision)) => Some(decision),
                _ => None,
            })
            .collect()
    }

    /// The kinds of the messages, in order.
    fn shape(&self) -> Vec<String> {
        self.messages()
            .iter()
            .map(|message| match &message.body {
                Body::EventMsg(EventMsg::ApprovalDecision(decision)) => {
                    format!("decision {:?}", decision.decision)
                }
                Body::EventMsg(_) => "event".into(),
                Body::ModelMsg(ModelMsg::PartialToolCallOutput {
                    event_type, output, ..
                }) => match event_type {
                    Phase::Start => "start".into(),
                    Phase::Delta => format!("delta {output}"),
                    Phase::Stop => "stop".into(),
                },
                Body::ModelMsg(ModelMsg::ToolCallOutput { .. }) => "complete".into(),
                other => format!("{other:?}"),
            })
            .collect()
    }
}

struct NoHosts;

impl HostsFactory for NoHosts {
    fn hosts(&self, _call: &CallSite) -> Arc<Hosts> {
        Arc::new(Hosts::deny())
    }
}

type Work = Box<dyn Fn(&CallRequest) -> ToolResult + Send + Sync>;

/// A tool that is a closure.
struct Closure {
    imports: CapabilitySet,
    permission: Result<Permission, String>,
    work: Work,
    /// Where it is set, the call waits for it before it returns.
    gate: Option<Arc<Notify>>,
    running: Arc<AtomicUsize>,
}

#[async_trait]
impl ToolBody for Closure {
    fn imports(&self) -> CapabilitySet {
        self.imports
    }

    async fn permission_for(&self, _arguments: &str) -> Result<Permission, String> {
        self.permission.clone()
    }

    async fn run(&self, request: CallRequest) -> Call {
        self.running.fetch_add(1, Ordering::SeqCst);
        let result = (self.work)(&request);
        let end = match &self.gate {
            Some(gate) => tokio::select! {
                () = gate.notified() => CallEnd::Returned(result),
                () = request.cancel.cancelled() => CallEnd::Cancelled,
            },
            None => CallEnd::Returned(result),
        };
        Call {
            end,
            facts: HostFacts::default(),
        }
    }
}

fn definition(name: &str, permission: Permission) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        aliases: Vec::new(),
        description: format!("The tool {name}."),
        parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
        permission,
        permission_varies: false,
        for_model: Default::default(),
        timeout_ms: 1000,
        max_output_length: 16000,
        truncation: Truncation::HeadTail,
        output_schema: None,
        metadata: Vec::new(),
    }
}

struct House {
    registry: Registry,
    running: Arc<AtomicUsize>,
    gate: Arc<Notify>,
    sink: Arc<Recorder>,
}

impl House {
    /// `reader` (alias `look`) echoes its text, `writer` and `runner` need more, `hidden` is in no toolset but `all`.
    fn new() -> House {
        let mut house = House {
            registry: Registry::new(),
            running: Arc::default(),
            gate: Arc::default(),
            sink: Arc::default(),
        };
        let mut reader = definition("reader", Permission::ReadOnly);
        reader.aliases = vec!["look".into()];
        house.add(reader, &[Capability::Workspace]);
        house.add(
            definition("writer", Permission::Write),
            &[Capability::Edits],
        );
        house.add(
            definition("runner", Permission::Execute),
            &[Capability::Commands, Capability::Workspace],
        );
        house
    }

    fn add(&mut self, definition: ToolDefinition, imports: &[Capability]) {
        self.add_body(
            definition,
            imports,
            Ok(Permission::None),
            None,
            Box::new(echo),
        );
    }

    fn add_body(
        &mut self,
        definition: ToolDefinition,
        imports: &[Capability],
        permission: Result<Permission, String>,
        gate: Option<Arc<Notify>>,
        work: Work,
    ) {
        let imports: CapabilitySet = imports.iter().copied().collect();
        self.registry
            .insert(RegisteredTool {
                definition,
                body: Arc::new(Closure {
                    imports,
                    permission,
                    work,
                    gate,
                    running: Arc::clone(&self.running),
                }),
                declared: CapabilitySet::all(),
                granted: CapabilitySet::all(),
                origin: Origin::Plugin("test".into()),
                sha256: "00".repeat(32),
            })
            .unwrap();
    }

    fn open(self, change: impl FnOnce(&mut EnvironmentOptions)) -> Open {
        let mut options = EnvironmentOptions::new(
            "session-test".into(),
            Arc::new(self.registry),
            Arc::new(NoHosts),
            Arc::clone(&self.sink) as Arc<dyn MessageSink>,
        );
        options.approval_mode = ApprovalMode::AllowAll;
        options.selection = Selection::Toolset(Toolset::All);
        change(&mut options);
        Open {
            environment: Environment::new(options),
            running: self.running,
            gate: self.gate,
            sink: self.sink,
        }
    }
}

struct Open {
    environment: Environment,
    running: Arc<AtomicUsize>,
    gate: Arc<Notify>,
    sink: Arc<Recorder>,
}

impl Open {
    fn start(&self, name: &str, arguments: &str, id: &str) -> CallFuture {
        self.environment
            .execute(call(name, arguments, id), CancellationToken::new())
    }

    async fn run(&self, name: &str, arguments: &str) -> ToolCallOutput {
        self.start(name, arguments, "c1").await.expect("decided")
    }

    async fn wait_for_question(&self) -> PendingApproval {
        loop {
            if let Some(pending) = self.environment.pending().pop() {
                return pending;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn call(name: &str, arguments: &str, id: &str) -> ToolCall {
    ToolCall {
        name: name.into(),
        arguments: arguments.into(),
        tool_call_id: id.into(),
    }
}

fn echo(request: &CallRequest) -> ToolResult {
    let arguments: serde_json::Value = serde_json::from_str(&request.arguments).unwrap();
    if let Some(text) = arguments["text"].as_str() {
        request.output.write(text);
    }
    ToolResult::default()
}

/// Answers as it is told, and counts.
struct Script(Answer, AtomicUsize);

impl Script {
    fn new(answer: Answer) -> Arc<Script> {
        Arc::new(Script(answer, AtomicUsize::new(0)))
    }
}

#[async_trait]
impl Approver for Script {
    async fn decide(&self, _question: &Question) -> Answer {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.clone()
    }
}

struct Panics;

#[async_trait]
impl Approver for Panics {
    async fn decide(&self, _question: &Question) -> Answer {
        panic!("the callback broke off");
    }
}

#[tokio::test]
async fn a_call_is_decided_then_streams_then_completes() {
    let open = House::new().open(|_| {});
    let output = open.run("reader", r#"{"text":"hi"}"#).await;
    assert_eq!(output.output, "hi");
    assert_eq!(output.exit_status(), 0);
    assert_eq!(
        open.sink.shape(),
        ["decision Allow", "start", "delta hi", "stop", "complete"]
    );
}

#[tokio::test]
async fn a_decision_carries_every_field() {
    let open = House::new().open(|_| {});
    open.run("look", "{}").await;
    assert_eq!(
        open.sink.decisions(),
        [ApprovalDecision {
            decision: Decision::Allow,
            tool_call_id: "c1".into(),
            tool: "look".into(),
            kind: floe_protocol::DecisionKind::Call,
            mode: ApprovalMode::AllowAll,
            by: DecidedBy::Mode,
            gate: None,
            rule: None,
            scope: Scope::Once,
            arguments_sha256: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
                .into(),
            tool_sha256: Some("00".repeat(32)),
            capabilities: vec!["workspace".into()],
            waited_ms: 0,
        }]
    );
}

#[tokio::test]
async fn every_gate_ends_a_call_framed_after_exactly_one_decision_that_names_it() {
    struct Case {
        gate: Gate,
        tool: &'static str,
        arguments: String,
        text: &'static str,
        stop_reason: StopReason,
        change: fn(&mut EnvironmentOptions),
    }
    let deny_writer = |options: &mut EnvironmentOptions| {
        options.rules = Rules(vec![Rule {
            id: "no-writing".into(),
            effect: Effect::Deny,
            tool: "writer".into(),
        }]);
    };
    let failed = StopReason::Failed;
    let cases = [
        Case {
            gate: Gate::Size,
            tool: "reader",
            arguments: " ".repeat(5_000_000),
            text: "Arguments of reader are too long: 5000000 bytes (limit 4194304).",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Name,
            tool: "nope",
            arguments: "{".into(),
            text: "Unknown tool: nope",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Json,
            tool: "look",
            arguments: " ".into(),
            text: "Tool call \"reader\" failed: the arguments field is empty. Re-issue the call with a complete JSON object.",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Schema,
            tool: "reader",
            arguments: r#"{"path":"x"}"#.into(),
            text: "Unknown argument \"path\" for reader; it takes text.",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Visibility,
            tool: "reader",
            arguments: "{}".into(),
            text: "Unknown tool: reader",
            stop_reason: failed,
            change: |options| options.selection = Selection::Toolset(Toolset::Minimal),
        },
        Case {
            gate: Gate::Mode,
            tool: "writer",
            arguments: "{}".into(),
            text: "Tool call denied by policy.\nwriter needs write; plan mode allows at most read-only. The person can switch this Session to build mode.",
            stop_reason: StopReason::Aborted,
            change: |options| options.mode = Mode::Plan,
        },
        Case {
            gate: Gate::Surface,
            tool: "runner",
            arguments: "{}".into(),
            text: "Tool call denied by policy.\nrunner needs execute; floe call is limited to write. The person can raise it with --max-permission execute or under `surfaces` in the configuration.",
            stop_reason: StopReason::Aborted,
            change: |options| {
                options.surface = Surface::Call;
                options.max_permission = Some(Permission::Write);
            },
        },
        Case {
            gate: Gate::Rule,
            tool: "writer",
            arguments: "{}".into(),
            text: "Tool call denied by policy.\nwriter needs write; a rule of the configuration allows no call of it. The person can change the rules.",
            stop_reason: StopReason::Aborted,
            change: deny_writer,
        },
        Case {
            gate: Gate::Rate,
            tool: "reader",
            arguments: "{}".into(),
            text: "Rate limit exceeded: 0 calls in 1 s. Call again in 2 s.",
            stop_reason: failed,
            change: |options| {
                options.rate = Some(Rate {
                    calls: 0,
                    per: Duration::from_secs(1),
                });
            },
        },
    ];
    for case in cases {
        let open = House::new().open(case.change);
        let output = open.run(case.tool, &case.arguments).await;
        assert_eq!(output.output, case.text);
        assert_eq!(output.stop_reason, case.stop_reason, "{}", case.text);
        assert_eq!(output.end, CallOutcome::Gate(case.gate));
        let shape = open.sink.shape();
        assert_eq!(
            shape,
            [
                "decision Deny",
                "start",
                &format!("delta {}", case.text),
                "stop",
                "complete"
            ]
        );
        let decision = open.sink.decisions().pop().unwrap();
        assert_eq!(decision.by, DecidedBy::Gate);
        assert_eq!(decision.gate.as_deref(), Some(case.gate.as_str()));
        assert_eq!(decision.tool, case.tool);
        assert_eq!(open.running.load(Ordering::SeqCst), 0, "{}", case.text);
        let status = if case.stop_reason == StopReason::Aborted {
            3
        } else {
            1
        };
        assert_eq!(output.exit_status(), status);
    }
}

#[tokio::test]
async fn the_earlier_gate_speaks_where_several_would() {
    let everything_wrong = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Plan;
        options.max_permission = Some(Permission::None);
        options.rules = Rules(vec![Rule {
            id: "all".into(),
            effect: Effect::Deny,
            tool: "*".into(),
        }]);
        options.rate = Some(Rate {
            calls: 0,
            per: Duration::from_secs(1),
        });
        options.approval_mode = ApprovalMode::DenyAll;
    };
    let ended_by = async |tool: &str, arguments: &str, change: fn(&mut EnvironmentOptions)| {
        let open = House::new().open(|options| {
            everything_wrong(options);
            change(options);
        });
        open.run(tool, arguments).await.end
    };
    let long = "[".repeat(5_000_000);
    assert_eq!(
        ended_by("nope", &long, |_| {}).await,
        CallOutcome::Gate(Gate::Size)
    );
    assert_eq!(
        ended_by("nope", "[", |_| {}).await,
        CallOutcome::Gate(Gate::Name)
    );
    assert_eq!(
        ended_by("writer", "[", |_| {}).await,
        CallOutcome::Gate(Gate::Json)
    );
    let minimal = |options: &mut EnvironmentOptions| {
        options.selection = Selection::Toolset(Toolset::Minimal);
    };
    assert_eq!(
        ended_by("writer", r#"{"x":1}"#, minimal).await,
        CallOutcome::Gate(Gate::Schema)
    );
    assert_eq!(
        ended_by("writer", "{}", minimal).await,
        CallOutcome::Gate(Gate::Visibility)
    );
    assert_eq!(
        ended_by("writer", "{}", |_| {}).await,
        CallOutcome::Gate(Gate::Mode)
    );
    let build = |options: &mut EnvironmentOptions| options.mode = Mode::Build;
    assert_eq!(
        ended_by("writer", "{}", build).await,
        CallOutcome::Gate(Gate::Surface)
    );
    let uncapped = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Build;
        options.max_permission = None;
    };
    assert_eq!(
        ended_by("writer", "{}", uncapped).await,
        CallOutcome::Gate(Gate::Rule)
    );
    let unruled = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Build;
        options.max_permission = None;
        options.rules = Rules::default();
    };
    assert_eq!(
        ended_by("writer", "{}", unruled).await,
        CallOutcome::Gate(Gate::Rate)
    );
    let unlimited = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Build;
        options.max_permission = None;
        options.rules = Rules::default();
        options.rate = None;
    };
    assert_eq!(
        ended_by("writer", "{}", unlimited).await,
        CallOutcome::Denied
    );
}

#[tokio::test]
async fn what_was_judged_is_what_runs() {
    let open = House::new().open(|_| {});
    let output = open
        .run("reader", r#"{"text":"first","text":"second"}"#)
        .await;
    assert_eq!(output.output, "second");
    let output = open.run("reader", "[1, 2]").await;
    assert_eq!(output.output, "[no output]");
}

#[tokio::test]
async fn a_tool_may_raise_its_permission_and_never_lower_it() {
    for (answer, needs) in [
        (Permission::Execute, "execute"),
        (Permission::None, "write"),
    ] {
        let mut house = House::new();
        let mut varies = definition("varies", Permission::Write);
        varies.permission_varies = true;
        house.add_body(varies, &[], Ok(answer), None, Box::new(echo));
        let open = house.open(|options| options.max_permission = Some(Permission::ReadOnly));
        let output = open.run("varies", "{}").await;
        assert!(
            output.output.contains(&format!("varies needs {needs};")),
            "{}",
            output.output
        );
    }
}

#[tokio::test]
async fn a_tool_that_cannot_say_what_it_needs_does_not_run() {
    let mut house = House::new();
    let mut varies = definition("varies", Permission::None);
    varies.permission_varies = true;
    house.add_body(
        varies,
        &[],
        Err("it broke off".into()),
        None,
        Box::new(echo),
    );
    let open = house.open(|_| {});
    let output = open.run("varies", "{}").await;
    assert_eq!(output.output, "[tool error] it broke off");
    assert_eq!(output.end, CallOutcome::Gate(Gate::Permission));
}

#[tokio::test]
async fn without_a_trace_only_readers_run() {
    let house = House::new();
    *house.sink.full_after.lock().unwrap() = Some(0);
    let open = house.open(|_| {});
    assert_eq!(open.run("reader", r#"{"text":"x"}"#).await.output, "x");
    let output = open.run("writer", "{}").await;
    assert_eq!(output.output, "[trace unavailable: the disk is full]");
    assert_eq!(output.end, CallOutcome::Gate(Gate::Trace));
    assert_eq!(output.stop_reason, StopReason::Failed);
}

#[tokio::test]
async fn a_decision_that_could_not_be_recorded_lets_no_writer_run() {
    let house = House::new();
    *house.sink.full_after.lock().unwrap() = Some(1);
    let open = house.open(|_| {});
    let output = open.run("writer", "{}").await;
    assert_eq!(output.output, "[trace unavailable: the disk is full]");
    assert_eq!(open.sink.decisions().len(), 1);
    assert_eq!(open.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn each_approval_mode_allows_asks_or_denies() {
    use ApprovalMode::{AllowAll, AlwaysAsk, DenyAll, ReadOnly};
    let cases = [
        (AllowAll, "runner", DecidedBy::Mode, true, 0),
        (DenyAll, "reader", DecidedBy::Mode, false, 0),
        (ReadOnly, "reader", DecidedBy::Mode, true, 0),
        (ReadOnly, "writer", DecidedBy::Callback, true, 1),
        (ReadOnly, "runner", DecidedBy::Callback, true, 1),
        (AlwaysAsk, "reader", DecidedBy::Callback, true, 1),
    ];
    for (mode, tool, by, runs, questions) in cases {
        let approver = Script::new(Answer::Allow);
        let open = House::new().open(|options| {
            options.approval_mode = mode;
            options.approver = Some(approver.clone());
        });
        let output = open.run(tool, "{}").await;
        let decision = open.sink.decisions().pop().unwrap();
        assert_eq!(decision.by, by, "{mode:?} {tool}");
        assert_eq!(decision.mode, mode);
        assert_eq!(
            open.running.load(Ordering::SeqCst) == 1,
            runs,
            "{mode:?} {tool}"
        );
        assert_eq!(
            approver.1.load(Ordering::SeqCst),
            questions,
            "{mode:?} {tool}"
        );
        assert_eq!(output.stop_reason == StopReason::Completed, runs);
    }
}

#[tokio::test]
async fn a_denied_call_is_a_complete_output_alone() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Script::new(Answer::Deny));
    });
    let output = open.run("reader", "{}").await;
    assert_eq!(output.output, "Tool call denied by user.");
    assert_eq!(output.stop_reason, StopReason::Aborted);
    assert_eq!(output.exit_status(), 3);
    assert_eq!(open.sink.shape(), ["decision Deny", "complete"]);
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_call_is_denied() {
    let unavailable = Script::new(Answer::Unavailable("there is no terminal".into()));
    for approver in [None, Some(unavailable as Arc<dyn Approver>)] {
        let open = House::new().open(|options| {
            options.approval_mode = ApprovalMode::AlwaysAsk;
            options.approver = approver;
        });
        let output = open.run("reader", "{}").await;
        assert_eq!(output.end, CallOutcome::Denied);
        assert_eq!(open.sink.decisions()[0].by, DecidedBy::Nobody);
    }
}

#[tokio::test]
async fn an_approver_that_breaks_off_denies() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(Panics));
    });
    let output = open.run("reader", "{}").await;
    assert_eq!(output.end, CallOutcome::Denied);
    assert_eq!(open.sink.decisions()[0].by, DecidedBy::Callback);
}

#[tokio::test]
async fn a_question_that_nobody_answers_in_time_denies() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
        options.approval_timeout = Some(Duration::from_millis(10));
    });
    let output = open.run("reader", "{}").await;
    assert_eq!(output.end, CallOutcome::Denied);
    assert_eq!(open.sink.decisions()[0].by, DecidedBy::Timeout);
    assert!(open.environment.pending().is_empty());
}

#[tokio::test]
async fn an_interrupt_while_the_question_is_pending_leaves_no_decision_and_no_output() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let cancel = CancellationToken::new();
    let running = open
        .environment
        .execute(call("reader", "{}", "c1"), cancel.clone());
    open.wait_for_question().await;
    cancel.cancel();
    assert_eq!(running.await, None);
    assert_eq!(open.sink.messages(), []);
    assert!(open.environment.pending().is_empty());
    assert!(!open.environment.answer("c1", Answer::Allow));
}

#[tokio::test]
async fn a_question_holds_what_a_terminal_needs() {
    let mut house = House::new();
    let mut exec = definition("exec", Permission::Execute);
    exec.parameters =
        json!({"properties": {"cmd": {"type": "string"}, "workdir": {"type": "string"}}});
    house.add(exec, &[Capability::Commands]);
    let open = house.open(|options| {
        options.approval_mode = ApprovalMode::ReadOnly;
        options.approver = Some(Arc::new(AnswerLater));
        options.asked_by = Some("session-child".into());
        options.reach.workspace = "/home/x/project".into();
    });
    let running = open.start("exec", r#"{"cmd":"make\n","workdir":"src"}"#, "c1");
    let question = open.wait_for_question().await.question;
    assert_eq!(
        *question,
        Question {
            session_id: "session-test".into(),
            tool_call_id: "c1".into(),
            tool: "exec".into(),
            action: Action::Command {
                text: "make\n".into(),
                working_directory: "src".into()
            },
            permission: Permission::Execute,
            capabilities: vec!["commands".into()],
            reach: Reach {
                workspace: "/home/x/project".into(),
                network: false,
                confined: true
            },
            mode: Mode::Build,
            kind: floe_protocol::DecisionKind::Call,
            origin: Origin::Plugin("test".into()),
            asked_by: Some("session-child".into()),
            rule: None,
        }
    );
    assert!(open.environment.answer("c1", Answer::Allow));
    assert_eq!(running.await.unwrap().end, CallOutcome::Ran);
}

#[tokio::test]
async fn a_parked_call_outlives_the_request_that_made_it() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    drop(open.start("reader", r#"{"text":"later"}"#, "c7"));
    let pending = open.wait_for_question().await;
    assert_eq!(pending.question.tool_call_id, "c7");
    let resumed = open.environment.resume("c7").expect("the call is kept");
    assert!(open.environment.answer("c7", Answer::Allow));
    assert_eq!(resumed.await.unwrap().output, "later");
    assert!(open.environment.resume("c7").is_none());
    let decision = open.sink.decisions().pop().unwrap();
    assert_eq!(decision.by, DecidedBy::Person);
}

#[tokio::test]
async fn results_that_nobody_takes_do_not_pile_up() {
    let open = House::new().open(|_| {});
    for number in 0..200 {
        drop(open.start("reader", "{}", &format!("c{number}")));
    }
    open.run("reader", "{}").await;
    while open.running.load(Ordering::SeqCst) < 201 {
        tokio::task::yield_now().await;
    }
    drop(open.start("reader", "{}", "last"));
    let kept = (0..200)
        .filter(|number| open.environment.resume(&format!("c{number}")).is_some())
        .count();
    assert!(kept <= 65, "{kept}");
}

#[tokio::test]
async fn decisions_are_in_call_order_while_allowed_calls_run_at_once() {
    let mut house = House::new();
    let gate = Arc::clone(&house.gate);
    house.add_body(
        definition("slow", Permission::Write),
        &[],
        Ok(Permission::None),
        Some(gate),
        Box::new(echo),
    );
    let open = house.open(|options| {
        options.approval_mode = ApprovalMode::ReadOnly;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let first = open.start("slow", "{}", "c1");
    let second = open.start("reader", "{}", "c2");
    let third = open.start("slow", "{}", "c3");
    assert_eq!(open.wait_for_question().await.question.tool_call_id, "c1");
    // The second needs no question, and still does not pass the first.
    assert_eq!(open.sink.decisions().len(), 0);
    open.environment.answer("c1", Answer::Allow);
    second.await.unwrap();
    assert_eq!(open.wait_for_question().await.question.tool_call_id, "c3");
    open.environment.answer("c3", Answer::Allow);
    while open.running.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    open.gate.notify_waiters();
    open.gate.notify_one();
    let ids: Vec<String> = open
        .sink
        .decisions()
        .into_iter()
        .map(|decision| decision.tool_call_id)
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
    assert!(first.await.is_some());
    open.gate.notify_one();
    assert!(third.await.is_some());
}

#[tokio::test]
async fn a_call_cancelled_in_the_line_lets_the_next_one_pass_only_in_its_turn() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let first = open.start("reader", "{}", "c1");
    let cancel = CancellationToken::new();
    let second = open
        .environment
        .execute(call("reader", "{}", "c2"), cancel.clone());
    let third = open.start("reader", "{}", "c3");
    open.wait_for_question().await;
    cancel.cancel();
    assert_eq!(second.await, None);
    assert_eq!(open.wait_for_question().await.question.tool_call_id, "c1");
    open.environment.answer("c1", Answer::Allow);
    assert!(first.await.is_some());
    open.wait_for_question().await;
    open.environment.answer("c3", Answer::Deny);
    assert_eq!(third.await.unwrap().end, CallOutcome::Denied);
}

#[tokio::test]
async fn a_mode_that_changed_during_the_wait_is_obeyed() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let running = open.start("writer", "{}", "c1");
    open.wait_for_question().await;
    open.environment.set_mode(Mode::Plan);
    open.environment.answer("c1", Answer::Allow);
    let output = running.await.unwrap();
    assert_eq!(output.end, CallOutcome::Gate(Gate::Mode));
    let decisions = open.sink.decisions();
    assert_eq!(decisions.len(), 1);
    assert_eq!(
        (decisions[0].decision, decisions[0].by),
        (Decision::Deny, DecidedBy::Gate)
    );
}

#[tokio::test]
async fn deny_all_during_the_wait_denies_what_was_allowed() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let running = open.start("writer", "{}", "c1");
    open.wait_for_question().await;
    open.environment.set_approval_mode(ApprovalMode::DenyAll);
    open.environment.answer("c1", Answer::Allow);
    assert_eq!(running.await.unwrap().end, CallOutcome::Denied);
    assert_eq!(open.sink.decisions()[0].by, DecidedBy::Mode);
}

#[tokio::test]
async fn the_next_decision_uses_the_mode_of_that_moment() {
    let open = House::new().open(|_| {});
    open.environment.set_approval_mode(ApprovalMode::DenyAll);
    assert_eq!(open.run("reader", "{}").await.end, CallOutcome::Denied);
    open.environment.set_approval_mode(ApprovalMode::AllowAll);
    assert_eq!(open.run("reader", "{}").await.end, CallOutcome::Ran);
}

fn rule(effect: Effect) -> Rules {
    Rules(vec![Rule {
        id: "r1".into(),
        effect,
        tool: "*".into(),
    }])
}

#[tokio::test]
async fn a_rule_may_ask_where_the_mode_allows_and_allow_where_it_asks() {
    let approver = Script::new(Answer::Allow);
    let open = House::new().open(|options| {
        options.rules = rule(Effect::Ask);
        options.approver = Some(approver.clone());
    });
    open.run("reader", "{}").await;
    assert_eq!(approver.1.load(Ordering::SeqCst), 1);
    assert_eq!(open.sink.decisions()[0].rule.as_deref(), Some("r1"));

    let open = House::new().open(|options| {
        options.rules = rule(Effect::Allow);
        options.approval_mode = ApprovalMode::AlwaysAsk;
    });
    open.run("runner", "{}").await;
    let decision = open.sink.decisions().pop().unwrap();
    assert_eq!(
        (decision.decision, decision.by),
        (Decision::Allow, DecidedBy::Rule)
    );
}

#[tokio::test]
async fn no_rule_lifts_deny_all() {
    let open = House::new().open(|options| {
        options.rules = rule(Effect::Allow);
        options.approval_mode = ApprovalMode::DenyAll;
    });
    assert_eq!(open.run("reader", "{}").await.end, CallOutcome::Denied);
}

#[tokio::test]
async fn what_was_allowed_for_the_session_is_asked_once_for_the_same_arguments() {
    let approver = Script::new(Answer::AllowForSession);
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(approver.clone());
    });
    for arguments in [r#"{"text":"a"}"#, r#"{"text":"a"}"#, r#"{"text":"b"}"#] {
        open.run("reader", arguments).await;
    }
    assert_eq!(approver.1.load(Ordering::SeqCst), 2);
    let scopes: Vec<Scope> = open.sink.decisions().iter().map(|one| one.scope).collect();
    assert_eq!(scopes, [Scope::Session; 3]);
}

#[tokio::test]
async fn in_plan_mode_no_call_is_given_edits_or_commands() {
    let granted = Arc::new(Mutex::new(CapabilitySet::all()));
    let mut house = House::new();
    let seen = Arc::clone(&granted);
    // Declared read-only and importing everything: the mode gate stops what has such power, whatever it declares.
    house.add_body(
        definition("liar", Permission::ReadOnly),
        &[Capability::Edits, Capability::Workspace],
        Ok(Permission::None),
        None,
        Box::new(move |request| {
            *seen.lock().unwrap() = request.granted;
            ToolResult::default()
        }),
    );
    let open = house.open(|options| options.max_permission = Some(Permission::ReadOnly));
    open.run("liar", "{}").await;
    assert_eq!(granted.lock().unwrap().names(), ["workspace"]);
    open.environment.set_mode(Mode::Plan);
    assert_eq!(
        open.run("liar", "{}").await.end,
        CallOutcome::Gate(Gate::Mode)
    );
}

#[tokio::test]
async fn only_a_single_call_is_told_that_nothing_comes_after_it() {
    for (surface, told) in [(Surface::Call, true), (Surface::Run, false)] {
        let seen = Arc::new(Mutex::new(None));
        let mut house = House::new();
        let keep = Arc::clone(&seen);
        house.add_body(
            definition("looks", Permission::None),
            &[],
            Ok(Permission::None),
            None,
            Box::new(move |request| {
                *keep.lock().unwrap() = Some(request.context.metadata.clone());
                ToolResult::default()
            }),
        );
        house
            .open(|options| options.surface = surface)
            .run("looks", "{}")
            .await;
        let metadata = seen.lock().unwrap().take().unwrap();
        let one_shot = ("one-shot".to_owned(), "true".to_owned());
        assert_eq!(metadata.contains(&one_shot), told, "{surface}");
    }
}

#[tokio::test]
async fn an_interrupt_keeps_what_was_written_and_is_aborted() {
    let mut house = House::new();
    let gate = Arc::clone(&house.gate);
    house.add_body(
        definition("slow", Permission::None),
        &[],
        Ok(Permission::None),
        Some(gate),
        Box::new(echo),
    );
    let open = house.open(|_| {});
    let cancel = CancellationToken::new();
    let running = open
        .environment
        .execute(call("slow", r#"{"text":"begin\n"}"#, "c1"), cancel.clone());
    while open.running.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    let output = running.await.unwrap();
    assert_eq!(
        output.output,
        "begin\n\n[interrupted: tool aborted by user]"
    );
    assert_eq!(output.stop_reason, StopReason::Aborted);
    assert_eq!(output.exit_status(), 130);
}

#[tokio::test]
async fn a_fault_of_the_host_ends_the_call_and_nothing_else() {
    let mut house = House::new();
    house.add_body(
        definition("breaks", Permission::None),
        &[],
        Ok(Permission::None),
        None,
        Box::new(|request| {
            request.output.write("ab");
            panic!("a fault of the host")
        }),
    );
    let open = house.open(|_| {});
    let output = open.run("breaks", "{}").await;
    assert!(
        output
            .output
            .starts_with("ab\n[tool error] the host broke off")
    );
    assert_eq!(output.stop_reason, StopReason::Failed);
    assert_eq!(open.run("reader", r#"{"text":"x"}"#).await.output, "x");
}

#[tokio::test]
async fn a_structured_result_that_does_not_fit_its_schema_is_dropped() {
    for (value, kept) in [
        (json!({"count": 1}), true),
        (json!({"count": "one"}), false),
    ] {
        let mut house = House::new();
        let mut counts = definition("counts", Permission::None);
        counts.output_schema = Some(json!({"properties": {"count": {"type": "integer"}}}));
        let returned = value.clone();
        house.add_body(
            counts,
            &[],
            Ok(Permission::None),
            None,
            Box::new(move |_| ToolResult {
                structured: Some(returned.clone()),
                ..ToolResult::default()
            }),
        );
        let output = house.open(|_| {}).run("counts", "{}").await;
        let structured = output.facts.and_then(|facts| facts.structured);
        assert_eq!(structured, kept.then_some(value));
    }
}

#[tokio::test]
async fn the_whole_of_a_cut_output_is_kept_where_its_line_says() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        House::new().open(|options| options.outputs_dir = Some(folder.path().join("outputs")));
    let text = "é".repeat(20_000);
    let output = open.run("reader", &json!({"text": text}).to_string()).await;
    let facts = output.facts.unwrap();
    let path = facts.full_output.unwrap();
    assert!(output.output.contains(&format!(
        "\n[output truncated: kept first 8000 and last 8000 of 20000 chars]\n[full output: {path}]\n"
    )));
    let name = path.strip_prefix("/floe/outputs/").unwrap();
    let kept = std::fs::read_to_string(folder.path().join("outputs").join(name)).unwrap();
    assert_eq!(kept, text);
    assert_eq!(facts.truncated, Some(true));
}

#[tokio::test]
async fn minimal_cuts_every_output_at_its_head() {
    let mut house = House::new();
    let mut exec = definition("exec_command", Permission::None);
    exec.max_output_length = 5;
    house.add(exec, &[]);
    let open = house.open(|options| options.selection = Selection::Toolset(Toolset::Minimal));
    let output = open.run("exec_command", r#"{"text":"hello world"}"#).await;
    assert_eq!(output.output, "hello\n[output truncated: exceeded 5 chars]");
}

#[tokio::test]
async fn tools_are_listed_in_a_stable_order_without_what_the_mode_or_the_cap_stops() {
    let mut house = House::new();
    house.add(definition("grep", Permission::ReadOnly), &[]);
    house.add(
        definition("exec_command", Permission::Execute),
        &[Capability::Commands],
    );
    let open = house.open(|_| {});
    let names = |open: &Open| -> Vec<String> {
        open.environment
            .tools()
            .into_iter()
            .map(|tool| tool.name)
            .collect()
    };
    assert_eq!(
        names(&open),
        ["exec_command", "grep", "reader", "runner", "writer"]
    );
    open.environment.set_mode(Mode::Plan);
    assert_eq!(names(&open), ["grep", "reader"]);

    let open = House::new().open(|options| options.max_permission = Some(Permission::Write));
    assert_eq!(names(&open), ["reader", "writer"]);
}

#[tokio::test]
async fn a_listing_has_the_fields_of_the_contract() {
    let open = House::new().open(|options| options.max_permission = Some(Permission::ReadOnly));
    assert_eq!(
        serde_json::to_value(open.environment.tools()).unwrap(),
        json!([{
            "name": "reader",
            "description": "The tool reader.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
            "permission": "read-only",
            "capabilities": ["workspace"],
            "origin": "plugin:test",
        }])
    );
    assert_eq!(
        open.environment.permission_of("look"),
        Some(Permission::ReadOnly)
    );
    assert_eq!(open.environment.permission_of("nope"), None);
}

#[tokio::test]
async fn an_agents_entries_replace_the_toolset_and_what_nothing_provides_is_hidden_with_a_warning()
{
    let mut writer = definition("writer", Permission::Write);
    writer.max_output_length = 3;
    writer.truncation = Truncation::Head;
    let entries = vec![writer, definition("teleport", Permission::None)];
    let open = House::new().open(|options| options.selection = Selection::Entries(entries));
    let names: Vec<String> = open
        .environment
        .tools()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["writer"]);
    let warnings: Vec<OmniMessage> = open.sink.messages();
    assert_eq!(warnings.len(), 1);
    let Body::EventMsg(EventMsg::Warning { code, message }) = &warnings[0].body else {
        panic!("{warnings:?}");
    };
    assert_eq!(code, "unknown_tool");
    assert!(message.ends_with(": teleport"), "{message}");
    let output = open.run("writer", r#"{"text":"abcdef"}"#).await;
    assert_eq!(output.output, "abc\n[output truncated: exceeded 3 chars]");
    assert_eq!(
        open.run("reader", "{}").await.output,
        "Unknown tool: reader"
    );
    assert_eq!(
        open.run("teleport", "{}").await.output,
        "Unknown tool: teleport"
    );
}

#[tokio::test]
async fn a_tool_for_other_models_is_not_there() {
    for (vision, there) in [(true, "sees"), (false, "reads")] {
        let mut house = House::new();
        let mut sees = definition("sees", Permission::ReadOnly);
        sees.for_model = floe_protocol::ModelClass::Vision;
        let mut reads = definition("reads", Permission::ReadOnly);
        reads.for_model = floe_protocol::ModelClass::TextOnly;
        house.add(sees, &[]);
        house.add(reads, &[]);
        let open = house.open(|options| options.vision = vision);
        let found: Vec<&str> = ["sees", "reads"]
            .into_iter()
            .filter(|name| open.environment.permission_of(name).is_some())
            .collect();
        assert_eq!(found, [there]);
    }
}

#[test]
fn two_tools_cannot_share_a_name_or_an_alias() {
    let mut house = House::new();
    for (name, alias) in [("reader", None), ("look", None), ("new", Some("writer"))] {
        let mut taken = definition(name, Permission::None);
        taken.aliases = alias.map(str::to_owned).into_iter().collect();
        let tool = RegisteredTool {
            definition: taken,
            ..house.registry.get("reader").unwrap().clone()
        };
        let error = house.registry.insert(tool).unwrap_err();
        assert!(error.to_string().contains("is taken by"), "{error}");
    }
}
