//! Puts the fragments of parallel tool calls together.
//!
//! A fragment belongs to the call of its `index`, so interleaved calls are never merged. Services that leave the index out, or give
//! all calls the same, are understood by a new id or a new name. A call is handed over as soon as it is surely whole: when
//! something else begins and its arguments are one complete JSON object, or when the answer ends.

use floe_protocol::StopReason;

use super::chunk::CallFragment;
use crate::segments::{CallHandle, Segments};
use crate::{ModelError, ModelErrorKind};

/// Calls that one answer may have; far above any real one, and an end to a model that repeats itself.
const MOST_CALLS: usize = 256;
/// Bytes that an id or a name may have: both are repeated with every fragment that is passed on.
const LONGEST_NAME: usize = 1024;

/// The calls of one answer.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
}

struct Call {
    /// As the service counts; none where it does not.
    index: Option<u64>,
    /// As the service named it; empty where it did not.
    given_id: String,
    /// As it is handed over: the given one where it is unique in this answer; empty until the name is known.
    id: String,
    /// Arguments that came before the name.
    early_arguments: String,
    /// None until the name is known.
    handle: Option<CallHandle>,
    name: String,
}

impl Calls {
    /// Takes one fragment.
    ///
    /// # Errors
    ///
    /// `Malformed` where a fragment adds to a call that was already whole, for more calls than anybody makes, and for
    /// an id or a name that nobody gives.
    pub(super) fn take(
        &mut self,
        fragment: CallFragment,
        segments: &mut Segments<'_>,
    ) -> Result<(), ModelError> {
        let longest = fragment.id.len().max(fragment.function.name.len());
        if longest > LONGEST_NAME {
            return Err(ModelError::new(
                ModelErrorKind::Malformed,
                format!("The model sent a tool call with an id or a name of {longest} bytes."),
            ));
        }
        let position = match self.position_of(&fragment, segments) {
            Some(position) => position,
            None => {
                if self.calls.len() == MOST_CALLS {
                    return Err(ModelError::new(
                        ModelErrorKind::Malformed,
                        format!("The model made more than {MOST_CALLS} tool calls in one answer."),
                    ));
                }
                self.end_whole_calls(segments);
                self.calls.push(Call {
                    index: fragment.index,
                    given_id: String::new(),
                    id: String::new(),
                    early_arguments: String::new(),
                    handle: None,
                    name: String::new(),
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.given_id.is_empty() {
            call.given_id.clone_from(&fragment.id);
        }
        if call.handle.is_none() && !fragment.function.name.is_empty() {
            let id = self.free_id(position);
            self.calls[position].begin(id, &fragment.function.name, segments);
        }
        self.calls[position].extend(&fragment.function.arguments, segments)
    }

    /// An id that no other call of this answer has. Some services name all calls of a function alike; the number that tells them
    /// apart goes again when the call is sent back.
    fn free_id(&self, position: usize) -> String {
        let given = &self.calls[position].given_id;
        if given.is_empty() {
            return make_id();
        }
        let is_taken = |id: &String| self.calls.iter().any(|call| call.id == *id);
        std::iter::once(given.clone())
            .chain((2..).map(|number| format!("{given}#{number}")))
            .find(|id| !is_taken(id))
            .unwrap_or_else(make_id)
    }

    /// Hands over the calls whose arguments are complete.
    pub(super) fn end_whole_calls(&mut self, segments: &mut Segments<'_>) {
        for handle in self.calls.iter().filter_map(|call| call.handle) {
            if segments.is_whole(handle) {
                segments.end_call(handle, StopReason::Completed);
            }
        }
    }

    /// True where a call was begun and not ended.
    pub(super) fn is_any_open(&self, segments: &Segments<'_>) -> bool {
        self.calls
            .iter()
            .any(|call| call.handle.is_none_or(|handle| segments.is_open(handle)))
    }

    /// Checks that every call got a name before the answer ended.
    ///
    /// # Errors
    ///
    /// `Malformed` for a call without a name, which nobody could run or answer.
    pub(super) fn check_names(&self) -> Result<(), ModelError> {
        if self.calls.iter().any(|call| call.handle.is_none()) {
            return Err(ModelError::new(
                ModelErrorKind::Malformed,
                "The model sent a tool call without a name.",
            ));
        }
        Ok(())
    }

    /// The call that a fragment continues; none where it begins one.
    fn position_of(&self, fragment: &CallFragment, segments: &Segments<'_>) -> Option<usize> {
        let candidate = match fragment.index {
            Some(index) => self
                .calls
                .iter()
                .rposition(|call| call.index == Some(index)),
            None if !fragment.id.is_empty() => {
                // With an id but no index: the call of that id, or the last one if that has had no id yet.
                let same = |call: &Call| call.given_id == fragment.id;
                return match self.calls.iter().rposition(same) {
                    Some(position) => self.unless_it_begins_another(position, fragment, segments),
                    None => self
                        .calls
                        .iter()
                        .rposition(|call| call.given_id.is_empty() && call.handle.is_none()),
                };
            }
            None => self.calls.len().checked_sub(1),
        };
        self.unless_it_begins_another(candidate?, fragment, segments)
    }

    /// Tells a fragment that continues a call from one that begins the next under the same index.
    fn unless_it_begins_another(
        &self,
        position: usize,
        fragment: &CallFragment,
        segments: &Segments<'_>,
    ) -> Option<usize> {
        let call = &self.calls[position];
        let names = !fragment.function.name.is_empty();
        let another_id =
            !fragment.id.is_empty() && !call.given_id.is_empty() && fragment.id != call.given_id;
        let is_over = call
            .handle
            .is_some_and(|handle| !segments.is_open(handle) || segments.is_whole(handle));
        let adds = !fragment.function.arguments.trim().is_empty();
        let begins = (another_id && names)
            || (names && call.handle.is_some() && fragment.function.name != call.name)
            // The same name again after arguments that are whole. Under one index it may be a mere repetition.
            || (names && is_over && (adds || fragment.index.is_none()));
        (!begins).then_some(position)
    }
}

impl Call {
    /// The name is known: the call begins, with what came of its arguments before.
    fn begin(&mut self, id: String, name: &str, segments: &mut Segments<'_>) {
        self.id.clone_from(&id);
        self.name = name.to_owned();
        let handle = segments.begin_call(id, self.name.clone());
        segments.extend_call(handle, &std::mem::take(&mut self.early_arguments));
        self.handle = Some(handle);
    }

    fn extend(&mut self, arguments: &str, segments: &mut Segments<'_>) -> Result<(), ModelError> {
        let Some(handle) = self.handle else {
            self.early_arguments.push_str(arguments);
            return Ok(());
        };
        if segments.is_open(handle) {
            segments.extend_call(handle, arguments);
        } else if !arguments.trim().is_empty() {
            return Err(ModelError::new(
                ModelErrorKind::Malformed,
                format!(
                    "The model added to the call of `{}` after its end.",
                    self.name
                ),
            ));
        }
        Ok(())
    }
}

/// An id for a call that came without one.
fn make_id() -> String {
    let mut random = [0; 8];
    if getrandom::fill(&mut random).is_err() {
        // Only uniqueness within the Session matters, and the loop sees to that.
        random = [0; 8];
    }
    format!("call_{:016x}", u64::from_be_bytes(random))
}

#[cfg(test)]
mod tests {
    use floe_protocol::ModelMsg;
    use serde_json::{Value, json};

    use super::*;

    /// The ids and arguments of the calls that come of these fragments.
    fn calls(fragments: Value) -> Vec<(String, String)> {
        let fragments: Vec<CallFragment> = serde_json::from_value(fragments).unwrap();
        let mut messages = Vec::new();
        let mut emit = |message| messages.push(message);
        let mut segments = Segments::new(&mut emit);
        let mut calls = Calls::default();
        for fragment in fragments {
            calls.take(fragment, &mut segments).unwrap();
        }
        calls.check_names().unwrap();
        segments.end_all(StopReason::Completed);
        messages
            .into_iter()
            .filter_map(|message| match message {
                ModelMsg::ToolCall {
                    tool_call_id,
                    arguments,
                    ..
                } => Some((tool_call_id, arguments)),
                _ => None,
            })
            .collect()
    }

    fn pair(id: &str, arguments: &str) -> (String, String) {
        (id.to_owned(), arguments.to_owned())
    }

    #[test]
    fn calls_of_one_answer_that_share_an_id_are_kept_apart() {
        let fragment = |index: u64, arguments: &str| json!({"index": index, "id": "list", "function": {"name": "list", "arguments": arguments}});
        let more = |index: u64, arguments: &str| json!({"index": index, "function": {"arguments": arguments}});
        assert_eq!(
            calls(json!([
                fragment(0, "{"),
                fragment(1, ""),
                more(0, "}"),
                more(1, "{\"a\":1}")
            ])),
            [pair("list", "{}"), pair("list#2", "{\"a\":1}")]
        );
        assert_eq!(
            calls(json!([fragment(0, ""), fragment(1, "")])),
            [pair("list", ""), pair("list#2", "")]
        );
    }

    #[test]
    fn a_name_that_is_repeated_with_every_fragment_begins_nothing() {
        let fragment = |arguments: &str| json!({"index": 0, "id": "a", "function": {"name": "list", "arguments": arguments}});
        assert_eq!(
            calls(json!([
                fragment(""),
                fragment("{\"a\""),
                fragment(":1}"),
                fragment("")
            ])),
            [pair("a", "{\"a\":1}")]
        );
    }

    #[test]
    fn arguments_that_come_before_the_name_are_kept() {
        let fragments = json!([
            {"index": 0, "function": {"arguments": "{\"a\":"}},
            {"index": 0, "id": "a", "function": {"name": "list", "arguments": "1}"}},
        ]);
        assert_eq!(calls(fragments), [pair("a", "{\"a\":1}")]);
    }

    #[test]
    fn an_id_without_an_index_finds_its_call() {
        let fragments = json!([
            {"id": "a", "function": {"name": "list", "arguments": "{"}},
            {"id": "b", "function": {"name": "list", "arguments": "{"}},
            {"id": "a", "function": {"arguments": "}"}},
            {"id": "b", "function": {"arguments": "\"x\":1}"}},
        ]);
        assert_eq!(calls(fragments), [pair("a", "{}"), pair("b", "{\"x\":1}")]);
    }

    #[test]
    fn an_answer_of_more_calls_than_anybody_makes_is_malformed() {
        let mut emit = |_| {};
        let mut segments = Segments::new(&mut emit);
        let mut calls = Calls::default();
        let fragment = || {
            let call = json!({"id": "a", "function": {"name": "list", "arguments": "{}"}});
            serde_json::from_value::<CallFragment>(call).unwrap()
        };
        for _ in 0..MOST_CALLS {
            calls.take(fragment(), &mut segments).unwrap();
        }
        let error = calls.take(fragment(), &mut segments).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
    }

    #[test]
    fn an_id_or_a_name_that_is_no_name_is_malformed() {
        for (id, name) in [(1025, 4), (1, 1025)] {
            let mut emit = |_| panic!("nothing of it is passed on");
            let mut segments = Segments::new(&mut emit);
            let call = json!({"id": "i".repeat(id), "function": {"name": "n".repeat(name)}});
            let error = Calls::default()
                .take(serde_json::from_value(call).unwrap(), &mut segments)
                .unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Malformed);
            assert!(error.message.len() < 200, "{}", error.message);
        }
    }

    #[test]
    fn a_call_without_an_id_gets_one() {
        let made = calls(json!([
            {"index": 0, "function": {"name": "list", "arguments": "{}"}},
            {"index": 1, "function": {"name": "list", "arguments": "{}"}},
        ]));
        assert!(made[0].0.starts_with("call_") && made[0].0 != made[1].0);
    }
}
