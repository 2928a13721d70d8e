//! The last gate before approval: what a call asks to reach beyond the sandbox must be possible here, or nobody is asked.
//!
//! The request is an argument of the call, so it is the model's word and grants nothing. A tool's result is never looked at for
//! one.

use floe_sandbox::WideningFault;
use serde::Deserialize;
use serde_json::Value;

use super::{Gate, Refusal};

/// The argument that holds a request.
pub(crate) const ARGUMENT: &str = "widen";

/// Characters of a reason, as it is shown. A longer one would push what is asked for out of the sight of the person who decides.
const LONGEST_REASON: usize = 500;

/// What a call asks to reach beyond what every command of its Session may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideningRequest {
    /// Why, in the model's words.
    pub reason: String,
    /// Paths to read.
    #[serde(default)]
    pub read: Vec<String>,
    /// Paths to read and change.
    #[serde(default)]
    pub write: Vec<String>,
    /// Hosts to reach: `name` or `name:port`.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// The request of a call, if it makes one.
pub(crate) fn request(tool: &str, arguments: &Value) -> Result<Option<WideningRequest>, Refusal> {
    let Some(request) = arguments.get(ARGUMENT).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let request = WideningRequest::deserialize(request)
        .map_err(|error| mistake(tool, "", &format!("{error}")))?;
    if request.reason.trim().is_empty() {
        return Err(mistake(
            tool,
            "/reason",
            "say why, for the person who decides",
        ));
    }
    if request.reason.escape_debug().nth(LONGEST_REASON).is_some() {
        let shorter = format!("say it in {LONGEST_REASON} characters");
        return Err(mistake(tool, "/reason", &shorter));
    }
    let WideningRequest {
        read, write, hosts, ..
    } = &request;
    if read.is_empty() && write.is_empty() && hosts.is_empty() {
        return Err(mistake(tool, "", "it names no path and no host"));
    }
    Ok(Some(request))
}

/// The words for a request that cannot be asked for.
pub(crate) fn refusal(tool: &str, fault: WideningFault) -> Refusal {
    match fault {
        WideningFault::Mistake { place, reason } => mistake(tool, &format!("/{place}"), &reason),
        WideningFault::Forbidden(line) => Refusal::policy(Gate::Widening, line),
        WideningFault::Sandbox(error) => Refusal::failed(
            Gate::Widening,
            error.code(),
            format!("[spawn error: {error}]"),
        ),
    }
}

fn mistake(tool: &str, pointer: &str, reason: &str) -> Refusal {
    let text = format!("Invalid argument \"/{ARGUMENT}{pointer}\" for {tool}: {reason}.");
    Refusal::failed(Gate::Widening, "invalid-arguments", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_without_the_argument_asks_for_nothing() {
        for arguments in [json!({"cmd": "ls"}), json!({"widen": null})] {
            assert_eq!(request("t", &arguments), Ok(None));
        }
    }

    #[test]
    fn a_request_without_a_reason_or_without_anything_to_reach_is_refused() {
        let text = |arguments| request("t", &arguments).unwrap_err().text;
        assert_eq!(
            text(json!({"widen": {"reason": " ", "read": ["/x"]}})),
            "Invalid argument \"/widen/reason\" for t: say why, for the person who decides."
        );
        assert_eq!(
            text(json!({"widen": {"reason": "because"}})),
            "Invalid argument \"/widen\" for t: it names no path and no host."
        );
        assert!(text(json!({"widen": {"reason": "x", "mode": "full"}})).contains("`mode`"));
    }

    #[test]
    fn a_reason_that_would_hide_what_is_asked_for_is_refused() {
        let asked = |character: &str, length| {
            let reason = character.repeat(length);
            request("t", &json!({"widen": {"reason": reason, "read": ["/x"]}}))
        };
        assert!(asked("é", 500).is_ok());
        assert!(asked("\u{202e}", 500).is_err());
        assert_eq!(
            asked("é", 501).unwrap_err().text,
            "Invalid argument \"/widen/reason\" for t: say it in 500 characters."
        );
    }

    #[test]
    fn a_mistake_is_failed_and_names_its_place_and_a_policy_is_aborted() {
        let fault = WideningFault::Mistake {
            place: "read/1".into(),
            reason: "\"/x\": nothing is there".into(),
        };
        let refused = refusal("t", fault);
        assert_eq!(
            refused.text,
            "Invalid argument \"/widen/read/1\" for t: \"/x\": nothing is there."
        );
        assert_eq!(refused.stop_reason, floe_protocol::StopReason::Failed);
        let refused = refusal("t", WideningFault::Forbidden("It is protected.".into()));
        assert_eq!(
            refused.text,
            "Tool call denied by policy.\nIt is protected."
        );
        assert_eq!(refused.stop_reason, floe_protocol::StopReason::Aborted);
    }
}
