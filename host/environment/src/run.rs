//! Runs a call that was allowed, and turns the way it ended into the words of the close-out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use floe_protocol::{Facts, ToolCall};
use floe_runtime::{
    Call, CallContext, CallEnd, CallLimits, CallRequest, Capability, Failure, HostFacts, Image,
    OutputSink, ToolResult,
};
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Offer;
use crate::close_out::{CloseOut, Ending, SelfReport, UNCONFINED};
use crate::door::Passed;
use crate::environment::Inner;
use crate::options::{CallSite, Surface};
use crate::output::{CallOutput, Frames, ToolCallOutput};
use crate::registry::{Origin, RegisteredTool};

/// Bytes of one image (spec/environment.md 6).
const IMAGE_LIMIT: usize = 5 << 20;
/// The largest thing that a call of the tool holds and hands to the host in one piece, in MiB: an entry of a definition's metadata.
const CARRIES_MIB: &str = "carries-mib";

impl Inner {
    /// Runs a call to its end, whatever that is.
    pub(crate) async fn run(
        &self,
        call: ToolCall,
        passed: Passed,
        frames: Frames,
        cancel: CancellationToken,
    ) -> ToolCallOutput {
        let definition = &passed.offer.definition;
        let keeper = self
            .outputs
            .as_ref()
            .map(|outputs| outputs.keeper(&definition.name, &call.tool_call_id));
        let close_out = CloseOut::new(definition.max_output_length, definition.truncation, keeper);
        let output = CallOutput::start(frames, close_out);
        let site = CallSite {
            tool_call_id: call.tool_call_id.clone(),
            tool: definition.name.clone(),
            capabilities: passed.capabilities,
            mode: passed.mode,
            permission: passed.permission,
            workspace: passed.offer.tool().workspace,
            widening: passed.widening.clone(),
            cancel: cancel.clone(),
        };
        let hosts = self.options.hosts.hosts(&site);
        cancel
            .run_until_cancelled(self.options.hosts.prepare(&site))
            .await;
        let deadline = self.deadline(&passed);
        let request = CallRequest {
            arguments: passed.text,
            context: CallContext {
                tool_call_id: call.tool_call_id,
                session_id: self.options.session_id.clone(),
                metadata: self.call_metadata(),
            },
            granted: passed.capabilities,
            hosts,
            output: Arc::clone(&output) as Arc<dyn OutputSink>,
            limits: self.limits(passed.offer.tool(), deadline),
            cancel: cancel.clone(),
        };
        let mut ran = AssertUnwindSafe(passed.offer.tool().body.run(request))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| broke_off(&definition.name));
        ran.facts.notes.extend(self.options.hosts.notes(&site));
        output.finish(ending(&passed.offer, ran, cancel.is_cancelled()))
    }
}

impl Inner {
    /// What a call may use up. A tool of the binary may say in its definition that it carries large things, a download for example; the
    /// word of a plugin gives it nothing.
    fn limits(&self, tool: &RegisteredTool, deadline: Option<Duration>) -> CallLimits {
        let usual = CallLimits {
            memory_bytes: self.options.memory_bytes,
            deadline,
            ..CallLimits::default()
        };
        let metadata = &tool.definition.metadata;
        let said = metadata.iter().find(|(name, _)| name == CARRIES_MIB);
        let Some(carried) = said
            .filter(|_| tool.origin == Origin::BuiltIn)
            .and_then(|(_, mebibytes)| mebibytes.parse::<usize>().ok())
            .and_then(|mebibytes| mebibytes.checked_mul(1 << 20))
        else {
            return usual;
        };
        CallLimits {
            // It is held once as it arrives, and once more where the room for it grows.
            memory_bytes: usual.memory_bytes.saturating_add(carried.saturating_mul(2)),
            host_call_fuel: usual.host_call_fuel.max(carried.saturating_add(1 << 20)),
            ..usual
        }
    }

    /// What a tool is told beside the ids: whether there is no call after this one that could reach what it leaves running, and
    /// whether somebody is told of the end of that.
    fn call_metadata(&self) -> Vec<(String, String)> {
        let said = [
            ("one-shot", self.is_single_call()),
            ("reports-ends", self.options.reports_ends),
        ];
        said.into_iter()
            .filter(|(_, holds)| *holds)
            .map(|(name, _)| (name.to_owned(), "true".to_owned()))
            .collect()
    }

    /// Whether no call comes after this one. A child of such a call makes as many as it likes.
    fn is_single_call(&self) -> bool {
        self.options.surface == Surface::Call && self.options.parent.is_none()
    }

    /// The wall clock of a call; none where its definition disables it, and none for a command in a single call, which a person
    /// waits for and can interrupt, unless an agent's entry sets one.
    fn deadline(&self, passed: &Passed) -> Option<Duration> {
        let runs_commands = passed.capabilities.contains(Capability::Commands);
        if self.is_single_call() && runs_commands && !passed.offer.is_entry() {
            return None;
        }
        u64::try_from(passed.offer.definition.timeout_ms)
            .ok()
            .filter(|limit| *limit > 0)
            .map(Duration::from_millis)
    }
}

/// A fault of the host itself ends the call and nothing else.
fn broke_off(tool: &str) -> Call {
    tracing::error!(tool, "the host broke off while it ran a tool");
    Call {
        end: CallEnd::Trapped {
            message: "the host broke off while it ran this tool; its log says where".into(),
        },
        facts: HostFacts::default(),
    }
}

/// How a call ended, in the terms of the close-out. `interrupted` is what holds now: an interrupt that comes before the close-out
/// wins over a tool that has just returned.
fn ending(offer: &Offer, call: Call, interrupted: bool) -> Ending {
    let HostFacts {
        exit_code,
        signal,
        confinement,
        notes: mut host_notes,
    } = call.facts;
    if confinement
        .as_deref()
        .is_some_and(|confinement| confinement.starts_with("UNCONFINED"))
    {
        host_notes.insert(0, UNCONFINED.to_owned());
    }
    let mut ending = Ending {
        interrupted,
        host_notes,
        facts: Facts {
            exit_code,
            signal,
            confinement,
            ..Facts::default()
        },
        ..Ending::default()
    };
    match call.end {
        CallEnd::Returned(result) => returned(offer, result, &mut ending),
        CallEnd::Failed(failure) => {
            ending.error = Some(words(&failure));
            ending.facts.code = Some(failure.code);
        }
        CallEnd::Trapped { message } => ending.error = Some(message),
        CallEnd::Cancelled => ending.interrupted = true,
        CallEnd::DeadlineExceeded => ending.timed_out = Some(offer.definition.timeout_ms),
    }
    ending
}

fn returned(offer: &Offer, result: ToolResult, ending: &mut Ending) {
    ending.facts.structured = result.structured.filter(|structured| {
        let fits = offer.check_structured(structured);
        if let Err(fault) = &fits {
            let tool = &offer.definition.name;
            tracing::warn!(%tool, %fault, "a structured result is dropped");
        }
        fits.is_ok()
    });
    let mut note = result.note;
    let mut images = Vec::new();
    for image in result.images {
        match data_url(&image) {
            Ok(url) => images.push(url),
            Err(reason) => {
                let note = note.get_or_insert_default();
                if !note.is_empty() {
                    note.push('\n');
                }
                note.push_str(&reason);
            }
        }
    }
    ending.returned = SelfReport {
        stop_reason: result.stop_reason,
        note,
        images,
    };
}

/// A message and what to do about it.
fn words(failure: &Failure) -> String {
    match failure.hint.as_deref() {
        Some(hint) if !hint.is_empty() => {
            let ends = failure.message.ends_with(['.', '!', '?']);
            format!("{}{} {hint}", failure.message, if ends { "" } else { ";" })
        }
        _ => failure.message.clone(),
    }
}

/// An image as the model takes it.
fn data_url(image: &Image) -> Result<String, String> {
    let Image { mime_type, data } = image;
    let known = mime_type.strip_prefix("image/").is_some_and(|kind| {
        !kind.is_empty()
            && kind.len() <= 64
            && kind
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    if !known {
        return Err("[image left out: its type is no image type]".into());
    }
    if data.len() > IMAGE_LIMIT {
        return Err(format!(
            "[image left out: {} bytes (limit {IMAGE_LIMIT})]",
            data.len()
        ));
    }
    Ok(format!("data:{mime_type};base64,{}", STANDARD.encode(data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_follows_its_message_as_a_sentence_or_after_a_semicolon() {
        let said = |message: &str| words(&Failure::new("io", message).with_hint("try again"));
        assert_eq!(said("it broke"), "it broke; try again");
        assert_eq!(said("It broke."), "It broke. try again");
        assert_eq!(words(&Failure::new("io", "it broke")), "it broke");
    }

    #[test]
    fn an_image_becomes_a_data_url() {
        let image = Image {
            mime_type: "image/png".into(),
            data: vec![0, 1],
        };
        assert_eq!(data_url(&image).unwrap(), "data:image/png;base64,AAE=");
    }

    #[test]
    fn an_image_that_is_too_large_or_none_is_left_out_with_a_reason() {
        for (mime_type, length) in [
            ("image/png", IMAGE_LIMIT + 1),
            ("text/html", 1),
            ("image/a,b", 1),
        ] {
            let image = Image {
                mime_type: mime_type.into(),
                data: vec![0; length],
            };
            assert!(
                data_url(&image)
                    .unwrap_err()
                    .starts_with("[image left out: ")
            );
        }
    }

    #[test]
    fn a_failure_says_what_to_do_about_it() {
        let failure = Failure::new("denied", "It is not granted.").with_hint("Grant it.");
        assert_eq!(words(&failure), "It is not granted. Grant it.");
    }
}
