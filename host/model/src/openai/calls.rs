//! Puts the fragments of parallel tool calls together.
//!
//! A fragment belongs to the call of its `index`, so interleaved calls are never merged. Services that leave the index out, or give
//! all calls the same, are understood by a new id or a new name. A call is handed over as soon as it is surely whole: when
//! something else begins and its arguments are one complete JSON object, or when the answer ends.

use floe_protocol::StopReason;

use super::chunk::CallFragment;
use crate::segments::{CallHandle, Segments};
use crate::{ModelError, ModelErrorKind};

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
    /// `Malformed` where a fragment adds to a call that was already whole.
    pub(super) fn take(
        &mut self,
        fragment: CallFragment,
        segments: &mut Segments<'_>,
    ) -> Result<(), ModelError> {
        let position = match self.position_of(&fragment, segments) {
            Some(position) => position,
            None => {
                self.end_whole_calls(segments);
                self.calls.push(Call {
                    index: fragment.index,
                    given_id: String::new(),
                    early_arguments: String::new(),
                    handle: None,
                    name: String::new(),
                });
                self.calls.len() - 1
            }
        };
        self.calls[position].extend(fragment, segments)
    }

    /// Hands over the calls whose arguments are one complete JSON object; nothing but white space could follow in them.
    pub(super) fn end_whole_calls(&mut self, segments: &mut Segments<'_>) {
        for handle in self.calls.iter().filter_map(|call| call.handle) {
            if segments.open_arguments(handle).is_some_and(is_whole_object) {
                segments.end_call(handle, StopReason::Completed);
            }
        }
    }

    /// True where a call was begun and not ended.
    pub(super) fn is_any_open(&self, segments: &Segments<'_>) -> bool {
        self.calls.iter().any(|call| {
            call.handle
                .is_none_or(|handle| segments.open_arguments(handle).is_some())
        })
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
            .is_some_and(|handle| segments.open_arguments(handle).is_none_or(is_whole_object));
        let adds = !fragment.function.arguments.trim().is_empty();
        let begins = (another_id && names)
            || (names && call.handle.is_some() && fragment.function.name != call.name)
            // The same name again after arguments that are whole. Under one index it may be a mere repetition.
            || (names && is_over && (adds || fragment.index.is_none()));
        (!begins).then_some(position)
    }
}

impl Call {
    fn extend(
        &mut self,
        fragment: CallFragment,
        segments: &mut Segments<'_>,
    ) -> Result<(), ModelError> {
        if self.given_id.is_empty() {
            self.given_id = fragment.id;
        }
        let handle = match self.handle {
            Some(handle) => handle,
            None if fragment.function.name.is_empty() => {
                self.early_arguments.push_str(&fragment.function.arguments);
                return Ok(());
            }
            None => {
                self.name = fragment.function.name;
                let id = if self.given_id.is_empty() {
                    make_id()
                } else {
                    self.given_id.clone()
                };
                let handle = segments.begin_call(id, self.name.clone());
                segments.extend_call(handle, &std::mem::take(&mut self.early_arguments));
                self.handle = Some(handle);
                handle
            }
        };
        let arguments = fragment.function.arguments;
        if segments.open_arguments(handle).is_some() {
            segments.extend_call(handle, &arguments);
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

/// True for one complete JSON object.
fn is_whole_object(arguments: &str) -> bool {
    let arguments = arguments.trim();
    arguments.starts_with('{')
        && arguments.ends_with('}')
        && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
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
