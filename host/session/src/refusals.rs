//! What happens when a model will not take no for an answer (spec/sandbox.md 5c.6): a call that was refused is refused again without
//! asking anybody, and the third refusal of the same stops the run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use floe_environment::{Action, Answer, Approver, CallOutcome, Question, ToolCallOutput};
use floe_network::HostGrants;
use floe_protocol::{DecidedBy, StopReason, ToolCall};
use floe_sandbox::Widening;
use serde_json::Value;

/// Refusals of one and the same after which the run stops.
const ENOUGH: u32 = 3;

/// Counts the refusals of one run by what was refused.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    counts: HashMap<String, u32>,
}

impl Refusals {
    /// Takes note of how a call ended. True where the same has now been refused often enough.
    pub(crate) fn note(&mut self, call: &ToolCall, output: &ToolCallOutput) -> bool {
        let is_refusal = match output.end {
            CallOutcome::Denied => true,
            // Only policy ends a call as aborted at a gate; the others are mistakes that the model is told how to mend.
            CallOutcome::Gate(_) => output.stop_reason == StopReason::Aborted,
            CallOutcome::Ran | CallOutcome::Interrupted => false,
        };
        if !is_refusal {
            return false;
        }
        let mut enough = false;
        for effect in effects(call) {
            let count = self.counts.entry(effect).or_default();
            *count += 1;
            enough |= *count >= ENOUGH;
        }
        enough
    }
}

/// What a call would do, as keys: how the arguments are written does not matter, and of a command only what runs and where.
/// What it wants to reach beyond the sandbox counts by itself as well, each path and host, whatever it wants that for and with.
fn effects(call: &ToolCall) -> BTreeSet<String> {
    let arguments = match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(arguments)) => arguments,
        _ => return BTreeSet::from([format!("{} {}", call.name, call.arguments)]),
    };
    let command = ["cmd", "command"]
        .into_iter()
        .find_map(|name| arguments.get(name)?.as_str());
    let effect = match command {
        Some(command) => {
            let directory = arguments.get("workdir").and_then(Value::as_str);
            format!(
                "{} {command:?} in {:?}",
                call.name,
                directory.unwrap_or(".")
            )
        }
        None => {
            let sorted: std::collections::BTreeMap<_, _> = arguments.iter().collect();
            format!("{} {sorted:?}", call.name)
        }
    };
    let widening = command.and(arguments.get("widen"));
    let wanted = ["read", "write", "hosts"].into_iter().flat_map(|name| {
        let list = widening.and_then(|widening| widening.get(name)?.as_array());
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(move |text| format!("widening {name} {}", in_one_spelling(name, text)))
    });
    std::iter::once(effect).chain(wanted).collect()
}

/// A path without what means nothing in it; a host as it would be granted.
fn in_one_spelling(list: &str, text: &str) -> String {
    if list != "hosts" {
        let path: PathBuf = Path::new(text).components().collect();
        return path.display().to_string();
    }
    HostGrants::parse(&[text])
        .ok()
        .and_then(|host| Some(host.iter().next()?.to_string()))
        .unwrap_or_else(|| text.to_owned())
}

/// What was denied: the tool, what it would have done, and what it wanted for that where the question was about it.
type Denied = (String, Action, Option<Widening>);

/// Answers for the approver behind it where the same was denied before in this run.
pub(crate) struct RememberingApprover {
    approver: Arc<dyn Approver>,
    denied: Mutex<HashSet<Denied>>,
}

impl RememberingApprover {
    pub(crate) fn new(approver: Arc<dyn Approver>) -> RememberingApprover {
        RememberingApprover {
            approver,
            denied: Mutex::default(),
        }
    }

    /// A new run begins: the person may be asked everything again.
    pub(crate) fn forget(&self) {
        self.denied().clear();
    }

    fn denied(&self) -> MutexGuard<'_, HashSet<Denied>> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Approver for RememberingApprover {
    async fn decide(&self, question: &Question) -> Answer {
        let key = (
            question.tool.clone(),
            question.action.clone(),
            question
                .widening
                .as_ref()
                .map(|asked| asked.widening.clone()),
        );
        if self.denied().contains(&key) {
            return Answer::Deny;
        }
        let answer = self.approver.decide(question).await;
        if answer == Answer::Deny {
            self.denied().insert(key);
        }
        answer
    }

    fn decides_as(&self) -> DecidedBy {
        self.approver.decides_as()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use floe_environment::{AskedWidening, Gate, Origin, Reach};
    use floe_protocol::{DecisionKind, Mode, Permission};

    use super::*;

    fn call(arguments: &str) -> ToolCall {
        ToolCall {
            name: "exec_command".into(),
            arguments: arguments.into(),
            tool_call_id: "a".into(),
        }
    }

    fn output(end: CallOutcome, stop_reason: StopReason) -> ToolCallOutput {
        ToolCallOutput {
            tool_call_id: "a".into(),
            output: String::new(),
            images: vec![],
            stop_reason,
            facts: None,
            end,
        }
    }

    #[test]
    fn the_third_refusal_of_the_same_effect_is_enough() {
        let mut refusals = Refusals::default();
        let denied = output(CallOutcome::Denied, StopReason::Aborted);
        assert!(!refusals.note(&call(r#"{"cmd":"rm x"}"#), &denied));
        assert!(!refusals.note(&call(r#"{"cmd":"rm y"}"#), &denied));
        assert!(!refusals.note(&call(r#"{"yield_time_ms":5, "cmd":"rm x"}"#), &denied));
        assert!(refusals.note(&call(r#"{"workdir":".","cmd":"rm x"}"#), &denied));
    }

    #[test]
    fn a_gate_counts_only_where_policy_refused() {
        let mut refusals = Refusals::default();
        for _ in 0..5 {
            let mistake = output(CallOutcome::Gate(Gate::Schema), StopReason::Failed);
            assert!(!refusals.note(&call("{"), &mistake));
            let ran = output(CallOutcome::Ran, StopReason::Aborted);
            assert!(!refusals.note(&call("{}"), &ran));
        }
        let policy = output(CallOutcome::Gate(Gate::Surface), StopReason::Aborted);
        assert!(!refusals.note(&call(r#"{"b":1,"a":2}"#), &policy));
        assert!(!refusals.note(&call(r#"{"a":2,"b":1}"#), &policy));
        assert!(refusals.note(&call(r#"{"b":1, "a":2}"#), &policy));
    }

    struct Counting(AtomicUsize);

    #[async_trait]
    impl Approver for Counting {
        async fn decide(&self, _question: &Question) -> Answer {
            self.0.fetch_add(1, Ordering::Relaxed);
            Answer::Deny
        }
    }

    fn question() -> Question {
        Question {
            session_id: "s".into(),
            tool_call_id: "a".into(),
            tool: "exec_command".into(),
            action: Action::Command {
                text: "rm x".into(),
                working_directory: ".".into(),
            },
            permission: Permission::Execute,
            capabilities: vec![],
            reach: Reach::default(),
            mode: Mode::Build,
            kind: DecisionKind::Call,
            origin: Origin::BuiltIn,
            asked_by: None,
            rule: None,
            widening: None,
        }
    }

    #[tokio::test]
    async fn what_was_denied_is_denied_again_without_asking_until_the_next_run() {
        let person = Arc::new(Counting(AtomicUsize::new(0)));
        let approver = RememberingApprover::new(Arc::clone(&person) as Arc<dyn Approver>);
        let mut question = question();
        for _ in 0..3 {
            assert_eq!(approver.decide(&question).await, Answer::Deny);
        }
        assert_eq!(person.0.load(Ordering::Relaxed), 1);
        question.action = Action::Arguments("{}".into());
        approver.decide(&question).await;
        assert_eq!(person.0.load(Ordering::Relaxed), 2);
        approver.forget();
        approver.decide(&question).await;
        assert_eq!(person.0.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_denied_widening_is_denied_again_and_the_call_without_it_is_not() {
        let person = Arc::new(Counting(AtomicUsize::new(0)));
        let approver = RememberingApprover::new(Arc::clone(&person) as Arc<dyn Approver>);
        let asked = |reason: &str| {
            let mut question = question();
            question.kind = DecisionKind::Widening;
            question.widening = Some(AskedWidening {
                reason: reason.into(),
                widening: Widening {
                    hosts: vec!["a:443".into()],
                    ..Widening::default()
                },
            });
            question
        };
        approver.decide(&asked("please")).await;
        approver.decide(&asked("pretty please")).await;
        assert_eq!(person.0.load(Ordering::Relaxed), 1);
        approver.decide(&question()).await;
        assert_eq!(person.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_third_refusal_of_one_widening_stops_the_run_whatever_it_was_wanted_for() {
        let mut refusals = Refusals::default();
        let mut refused = |command: &str, reason: &str| {
            let arguments = serde_json::json!({
                "cmd": command, "widen": {"reason": reason, "read": ["/home/x/.ssh"]}
            });
            let denied = output(CallOutcome::Denied, StopReason::Aborted);
            refusals.note(&call(&arguments.to_string()), &denied)
        };
        assert!(!refused("ls", "to look"));
        assert!(!refused("ls -l", "to look closer"));
        assert!(refused("cat", "to read"));
    }

    #[test]
    fn another_spelling_and_more_beside_it_make_no_other_widening() {
        let denied = output(CallOutcome::Denied, StopReason::Aborted);
        for wanted in [
            [
                serde_json::json!({"read": ["/home/x/.ssh"]}),
                serde_json::json!({"read": ["/tmp/a", "/home/x//.ssh/"]}),
                serde_json::json!({"read": ["/home/x/./.ssh", "/tmp/b"]}),
            ],
            [
                serde_json::json!({"hosts": ["a.example"]}),
                serde_json::json!({"hosts": ["A.example.:443"], "read": ["/tmp/a"]}),
                serde_json::json!({"hosts": ["b.example", "a.example:443"]}),
            ],
        ] {
            let mut refusals = Refusals::default();
            let stops: Vec<bool> = wanted
                .iter()
                .enumerate()
                .map(|(number, widen)| {
                    let arguments =
                        serde_json::json!({"cmd": format!("ls {number}"), "widen": widen});
                    refusals.note(&call(&arguments.to_string()), &denied)
                })
                .collect();
            assert_eq!(stops, [false, false, true], "{wanted:?}");
        }
        // Said three times in one call it is still asked for once.
        let mut refusals = Refusals::default();
        let thrice = serde_json::json!({"cmd": "ls", "widen": {"read": ["/a", "/a/", "/a"]}});
        assert!(!refusals.note(&call(&thrice.to_string()), &denied));
    }
}
