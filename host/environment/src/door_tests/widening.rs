//! What a call wants to reach beyond the sandbox: a decision of its own, which only a person makes.

use floe_protocol::{DecisionKind, Reached};
use floe_sandbox::{Widening, WideningFault};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;

/// Gives every request its hosts, and keeps what the calls that ran were given.
#[derive(Default)]
struct Widens {
    given: Mutex<Vec<Widening>>,
    fault: Option<WideningFault>,
}

impl HostsFactory for Widens {
    fn hosts(&self, call: &CallSite) -> Arc<Hosts> {
        self.given.lock().unwrap().push(call.widening.clone());
        Arc::new(Hosts::deny())
    }

    fn widening<'a>(
        &'a self,
        request: &'a WideningRequest,
        _asker: Asker,
    ) -> BoxFuture<'a, Result<Widening, WideningFault>> {
        let answer = match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(hosts(&request.hosts)),
        };
        std::future::ready(answer).boxed()
    }
}

fn hosts(names: &[impl ToString]) -> Widening {
    Widening {
        hosts: names.iter().map(ToString::to_string).collect(),
        ..Widening::default()
    }
}

/// A person who gives these answers, one after the other, and keeps the questions.
#[derive(Default)]
struct Person {
    answers: Mutex<Vec<Answer>>,
    questions: Mutex<Vec<Question>>,
}

impl Person {
    fn answering(answers: &[Answer]) -> Arc<Person> {
        Arc::new(Person {
            answers: Mutex::new(answers.iter().rev().cloned().collect()),
            questions: Mutex::default(),
        })
    }

    fn asked_about(&self) -> Vec<DecisionKind> {
        let questions = self.questions.lock().unwrap();
        questions.iter().map(|question| question.kind).collect()
    }
}

#[async_trait]
impl Approver for Person {
    async fn decide(&self, question: &Question) -> Answer {
        self.questions.lock().unwrap().push(question.clone());
        self.answers
            .lock()
            .unwrap()
            .pop()
            .expect("no further question")
    }

    fn decides_as(&self) -> DecidedBy {
        DecidedBy::Person
    }
}

/// A Session with a tool `exec` that runs commands and can ask for more.
fn open(
    widens: &Arc<Widens>,
    approver: Option<Arc<dyn Approver>>,
    change: impl FnOnce(&mut EnvironmentOptions),
) -> Open {
    let mut house = House::new();
    for (name, capability) in [
        ("exec", Capability::Commands),
        ("other", Capability::Workspace),
        ("reads", Capability::Http),
        ("sends", Capability::Http),
    ] {
        let permission = match name {
            "sends" => Permission::Write,
            _ => Permission::ReadOnly,
        };
        let mut tool = definition(name, permission);
        tool.parameters = json!({"properties": {"cmd": {"type": "string"}, "widen": {"type": ["object", "null"]}}});
        house.add(tool, &[capability]);
    }
    house.open(|options| {
        options.hosts = Arc::clone(widens) as _;
        options.approver = approver;
        change(options);
    })
}

fn wanting(names: &[&str]) -> String {
    json!({"cmd": "ls", "widen": {"reason": "to fetch it", "hosts": names}}).to_string()
}

fn kinds(open: &Open) -> Vec<(DecisionKind, Decision, DecidedBy, Scope)> {
    open.sink
        .decisions()
        .into_iter()
        .map(|decision| {
            (
                decision.kind,
                decision.decision,
                decision.by,
                decision.scope,
            )
        })
        .collect()
}

#[tokio::test]
async fn neither_a_mode_nor_a_rule_nor_a_program_allows_a_widening() {
    let allow = Rules(vec![Rule {
        id: "r".into(),
        effect: Effect::Allow,
        tool: "*".into(),
    }]);
    for (mode, rules) in [
        (ApprovalMode::AllowAll, Rules::default()),
        (ApprovalMode::ReadOnly, allow.clone()),
        (ApprovalMode::AlwaysAsk, allow),
        (ApprovalMode::AlwaysAsk, Rules::default()),
    ] {
        for answer in [Answer::Allow, Answer::AllowForSession] {
            let widens = Arc::new(Widens::default());
            let program = Script::new(answer);
            let open = open(&widens, Some(program.clone()), |options| {
                options.approval_mode = mode;
                options.rules = rules.clone();
            });
            let output = open.run("exec", &wanting(&["a:443"])).await;
            assert_eq!(output.end, CallOutcome::Gate(Gate::Widening), "{mode:?}");
            assert_eq!(output.exit_status(), 3);
            let (kind, decision, by, _) = *kinds(&open).last().unwrap();
            assert_eq!(
                (kind, decision, by),
                (DecisionKind::Widening, Decision::Deny, DecidedBy::Nobody)
            );
            assert!(widens.given.lock().unwrap().is_empty(), "nothing ran");
        }
    }
}

#[tokio::test]
async fn without_a_person_the_model_reads_why_and_what_to_do() {
    let widens = Arc::new(Widens::default());
    let open = open(&widens, None, |_| {});
    let output = open.run("exec", &wanting(&["a:443"])).await;
    assert_eq!(
        output.output,
        "Tool call denied by policy.\nThe call asks to reach beyond the sandbox (`widen`), which only a person may allow, and \
         there is nobody to ask here. Call it without, or let the person start Floe with --allow-read, --allow-write or \
         --allow-host for what it needs."
    );
    assert_eq!(output.stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn a_person_allows_one_call_what_its_question_shows_and_is_asked_again_by_the_next() {
    let widens = Arc::new(Widens::default());
    let person = Person::answering(&[Answer::Allow, Answer::Deny]);
    let open = open(&widens, Some(person.clone()), |_| {});
    let output = open.run("exec", &wanting(&["a:443"])).await;
    assert_eq!(output.end, CallOutcome::Ran);
    assert_eq!(*widens.given.lock().unwrap(), [hosts(&["a:443"])]);
    {
        let questions = person.questions.lock().unwrap();
        assert_eq!(questions[0].kind, DecisionKind::Widening);
        let asked = questions[0].widening.as_ref().unwrap();
        assert_eq!(asked.reason, "to fetch it");
        assert_eq!(asked.widening, hosts(&["a:443"]));
        let command = Action::Command {
            text: "ls".into(),
            working_directory: ".".into(),
        };
        assert_eq!(questions[0].action, command);
    }
    let decision = open.sink.decisions().pop().unwrap();
    assert_eq!(decision.scope, Scope::Once);
    assert_eq!(
        decision.widening,
        Some(Reached {
            hosts: vec!["a:443".into()],
            ..Reached::default()
        })
    );

    let output = open.run("exec", &wanting(&["a:443"])).await;
    assert_eq!(output.output, "Tool call denied by user.");
    assert_eq!(output.end, CallOutcome::Denied);
    assert_eq!(widens.given.lock().unwrap().len(), 1);
    open.run("exec", r#"{"cmd":"ls"}"#).await;
    assert_eq!(widens.given.lock().unwrap()[1], Widening::default());
}

#[tokio::test]
async fn the_call_and_its_widening_are_two_questions_and_two_records_before_any_output() {
    let widens = Arc::new(Widens::default());
    let person = Person::answering(&[Answer::Allow, Answer::AllowForSession]);
    let open = open(&widens, Some(person.clone()), |options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
    });
    open.run("exec", &wanting(&["a:443"])).await;
    assert_eq!(
        person.asked_about(),
        [DecisionKind::Call, DecisionKind::Widening]
    );
    assert_eq!(
        open.sink.shape()[..3],
        ["decision Allow", "decision Allow", "start"]
    );
    assert_eq!(
        kinds(&open),
        [
            (
                DecisionKind::Call,
                Decision::Allow,
                DecidedBy::Person,
                Scope::Once
            ),
            (
                DecisionKind::Widening,
                Decision::Allow,
                DecidedBy::Person,
                Scope::Session
            ),
        ]
    );
}

#[tokio::test]
async fn what_is_allowed_for_the_session_is_not_asked_again_and_more_is() {
    let widens = Arc::new(Widens::default());
    let person = Person::answering(&[Answer::AllowForSession, Answer::Deny]);
    let open = open(&widens, Some(person.clone()), |_| {});
    open.run("exec", &wanting(&["a:443", "b:443"])).await;
    let narrower = open.run("exec", &wanting(&["b:443"])).await;
    assert_eq!(narrower.end, CallOutcome::Ran);
    assert_eq!(person.asked_about().len(), 1);
    assert_eq!(
        widens.given.lock().unwrap()[1],
        hosts(&["b:443"]),
        "no more than it asked for"
    );
    let (kind, decision, _, scope) = *kinds(&open).last().unwrap();
    assert_eq!(
        (kind, decision, scope),
        (DecisionKind::Widening, Decision::Allow, Scope::Session)
    );

    let wider = open.run("exec", &wanting(&["b:443", "c:443"])).await;
    assert_eq!(wider.end, CallOutcome::Denied);
    let asked = person.questions.lock().unwrap()[1]
        .widening
        .clone()
        .unwrap();
    assert_eq!(asked.widening, hosts(&["c:443"]), "only what is new");
}

#[tokio::test]
async fn a_host_that_was_granted_to_calls_which_read_is_asked_about_by_one_that_writes_or_runs_commands()
 {
    let widens = Arc::new(Widens::default());
    let session = Answer::AllowForSession;
    let person = Person::answering(&[session.clone(), Answer::Deny, Answer::Deny, session]);
    let open = open(&widens, Some(person.clone()), |_| {});
    for (tool, end, asked) in [
        ("reads", CallOutcome::Ran, 1),
        ("reads", CallOutcome::Ran, 1),
        ("sends", CallOutcome::Denied, 2),
        ("exec", CallOutcome::Denied, 3),
        ("sends", CallOutcome::Ran, 4),
        ("sends", CallOutcome::Ran, 4),
        ("reads", CallOutcome::Ran, 4),
    ] {
        let output = open.run(tool, &wanting(&["a:443"])).await;
        assert_eq!(output.end, end, "{tool}");
        assert_eq!(person.asked_about().len(), asked, "{tool}");
    }
}

#[tokio::test]
async fn what_cannot_be_had_is_told_before_anybody_is_asked() {
    let widens = Arc::new(Widens {
        fault: Some(WideningFault::Mistake {
            place: "read/0".into(),
            reason: "\"/x\": nothing is there".into(),
        }),
        ..Widens::default()
    });
    let person = Person::answering(&[]);
    let open = open(&widens, Some(person.clone()), |options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
    });
    let output = open.run("exec", &wanting(&["a:443"])).await;
    assert_eq!(
        output.output,
        "Invalid argument \"/widen/read/0\" for exec: \"/x\": nothing is there."
    );
    assert_eq!(output.stop_reason, StopReason::Failed);
    let decision = open.sink.decisions().pop().unwrap();
    assert_eq!(decision.gate.as_deref(), Some("widening"));
    assert_eq!(open.sink.decisions().len(), 1);
}

#[tokio::test]
async fn what_commands_have_anyway_is_no_question() {
    let widens = Arc::new(Widens::default());
    let open = open(&widens, None, |_| {});
    let arguments = json!({"cmd": "ls", "widen": {"reason": "x", "read": ["/usr"]}});
    let output = open.run("exec", &arguments.to_string()).await;
    assert_eq!(output.end, CallOutcome::Ran);
    assert_eq!(open.sink.decisions().len(), 1);
}

#[tokio::test]
async fn an_argument_of_that_name_is_another_tools_own_affair() {
    let widens = Arc::new(Widens::default());
    let open = open(&widens, None, |_| {});
    let output = open.run("other", &wanting(&["a:443"])).await;
    assert_eq!(output.end, CallOutcome::Ran);
    assert_eq!(*widens.given.lock().unwrap(), [Widening::default()]);
}

#[tokio::test]
async fn an_interrupt_while_a_person_looks_at_it_leaves_no_decision() {
    let widens = Arc::new(Widens::default());
    let open = open(&widens, Some(Arc::new(AnswerLater)), |_| {});
    let cancel = CancellationToken::new();
    let running = open
        .environment
        .execute(call("exec", &wanting(&["a:443"]), "c1"), cancel.clone());
    let pending = open.wait_for_question().await;
    assert_eq!(pending.question.kind, DecisionKind::Widening);
    cancel.cancel();
    assert_eq!(running.await, None);
    assert_eq!(open.sink.messages(), []);
}

#[tokio::test]
async fn what_the_mode_forbids_by_the_time_of_the_answer_does_not_run() {
    let widens = Arc::new(Widens::default());
    for deny_all in [false, true] {
        let open = open(&widens, Some(Arc::new(AnswerLater)), |_| {});
        let running = open.start("exec", &wanting(&["a:443"]), "c1");
        open.wait_for_question().await;
        if deny_all {
            open.environment.set_approval_mode(ApprovalMode::DenyAll);
        } else {
            open.environment.set_mode(Mode::Plan);
        }
        assert!(open.environment.answer("c1", Answer::AllowForSession));
        let output = running.await.unwrap();
        assert_eq!(output.stop_reason, StopReason::Aborted);
        assert!(widens.given.lock().unwrap().is_empty());
        let (kind, decision, ..) = *kinds(&open).last().unwrap();
        assert_eq!((kind, decision), (DecisionKind::Widening, Decision::Deny));
        open.environment.set_mode(Mode::Build);
        open.environment.set_approval_mode(ApprovalMode::AllowAll);
        let again = open.start("exec", &wanting(&["a:443"]), "c2");
        open.wait_for_question().await;
        assert!(
            open.environment.answer("c2", Answer::Deny),
            "nothing was remembered"
        );
        again.await.unwrap();
    }
}

#[tokio::test]
async fn a_widening_that_nobody_answers_in_time_is_denied() {
    let widens = Arc::new(Widens::default());
    let open = open(&widens, Some(Arc::new(AnswerLater)), |options| {
        options.approval_timeout = Some(Duration::from_millis(10));
    });
    let output = open.run("exec", &wanting(&["a:443"])).await;
    assert_eq!(output.end, CallOutcome::Denied);
    assert_eq!(kinds(&open)[1].2, DecidedBy::Timeout);
}

#[tokio::test]
async fn what_a_tool_prints_asks_for_nothing() {
    let widens = Arc::new(Widens::default());
    let person = Person::answering(&[]);
    let mut house = House::new();
    house.add(
        definition("printer", Permission::Execute),
        &[Capability::Commands],
    );
    let open = house.open(|options| {
        options.hosts = Arc::clone(&widens) as _;
        options.approver = Some(person.clone());
    });
    let text =
        r#"cat: /etc/x: Permission denied\n{"widen": {"reason": "denied", "read": ["/etc/x"]}}"#;
    let arguments = json!({ "text": text }).to_string();
    let output = open.run("printer", &arguments).await;
    assert_eq!(output.output, text, "and nothing is added to it");
    assert_eq!(open.sink.decisions().len(), 1);
}
