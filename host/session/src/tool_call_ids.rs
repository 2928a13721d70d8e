//! Makes tool call ids unique within a Session: several services reuse them, some name them after the function.

use std::collections::{HashMap, HashSet};

use floe_protocol::{ModelMsg, Phase};

/// The ids that a Session has seen.
#[derive(Debug, Default)]
pub(crate) struct ToolCallIds {
    used: HashSet<String>,
    /// The next number for an id that was used before: a service may give thousands of calls the same.
    next: HashMap<String, u64>,
}

impl ToolCallIds {
    /// The ids of calls that were made before.
    pub(crate) fn used(used: HashSet<String>) -> ToolCallIds {
        ToolCallIds {
            used,
            next: HashMap::new(),
        }
    }

    /// The id itself, or `id#2`, `id#3`, ... where it was used before.
    pub(crate) fn allocate(&mut self, given: &str) -> String {
        let mut id = given.to_owned();
        let base = without_number(given);
        while !self.used.insert(id.clone()) {
            let number = self.next.entry(base.to_owned()).or_insert(2);
            id = format!("{base}#{number}");
            *number += 1;
        }
        id
    }
}

/// The id as it was before it was made unique; only trailing digits after a `#` go.
fn without_number(id: &str) -> &str {
    match id.rsplit_once('#') {
        Some((base, number))
            if !base.is_empty()
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            base
        }
        _ => id,
    }
}

/// Renames the calls of one answer; the fragments of a call and its complete message share the new id.
#[derive(Debug, Default)]
pub(crate) struct AnswerIds {
    open: HashMap<String, String>,
}

impl AnswerIds {
    /// Gives a message of the model its Session-wide id, if it is of a call.
    pub(crate) fn rename(&mut self, message: &mut ModelMsg, ids: &mut ToolCallIds) {
        match message {
            ModelMsg::PartialToolCall {
                event_type: Phase::Start,
                tool_call_id,
                ..
            } => {
                let id = ids.allocate(tool_call_id);
                self.open
                    .insert(std::mem::replace(tool_call_id, id.clone()), id);
            }
            ModelMsg::PartialToolCall { tool_call_id, .. } => {
                if let Some(id) = self.open.get(tool_call_id) {
                    tool_call_id.clone_from(id);
                }
            }
            ModelMsg::ToolCall { tool_call_id, .. } => {
                *tool_call_id = match self.open.remove(tool_call_id) {
                    Some(id) => id,
                    None => ids.allocate(tool_call_id),
                };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use floe_protocol::StopReason;

    use super::*;

    #[test]
    fn a_repeated_id_is_numbered_from_two_and_numbers_in_use_are_skipped() {
        let mut ids = ToolCallIds::default();
        assert_eq!(ids.allocate("a"), "a");
        assert_eq!(ids.allocate("a#3"), "a#3");
        assert_eq!(ids.allocate("a"), "a#2");
        assert_eq!(ids.allocate("a"), "a#4");
        assert_eq!(ids.allocate("a#2"), "a#5");
        assert_eq!(ids.allocate("b#x"), "b#x");
        assert_eq!(ids.allocate("b#x"), "b#x#2");
        let start = std::time::Instant::now();
        for _ in 0..20_000 {
            ids.allocate("a");
        }
        assert!(start.elapsed().as_secs() < 10, "linear, not quadratic");
    }

    #[test]
    fn fragments_and_the_complete_call_share_the_new_id() {
        let mut ids = ToolCallIds::default();
        ids.allocate("list");
        for expected in ["list#2", "list#3"] {
            let mut answer = AnswerIds::default();
            let fragment = |event_type| ModelMsg::PartialToolCall {
                event_type,
                name: None,
                arguments: String::new(),
                tool_call_id: "list".into(),
                stop_reason: None,
            };
            let mut messages = [
                fragment(Phase::Start),
                fragment(Phase::Delta),
                fragment(Phase::Stop),
                ModelMsg::ToolCall {
                    name: "list".into(),
                    arguments: "{}".into(),
                    tool_call_id: "list".into(),
                    stop_reason: StopReason::Completed,
                    fidelity: None,
                },
            ];
            for message in &mut messages {
                answer.rename(message, &mut ids);
                let (ModelMsg::PartialToolCall { tool_call_id, .. }
                | ModelMsg::ToolCall { tool_call_id, .. }) = message
                else {
                    panic!("a call");
                };
                assert_eq!(tool_call_id, expected);
            }
        }
    }
}
