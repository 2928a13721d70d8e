//! What the tools that speak HTTP share. Nothing of it is a tool, and nothing of it decides what may be reached: that is the host's
//! network gate, behind `floe_tool::http`.

mod address;
mod charset;
mod fields;
mod status;
mod text;

pub use address::{file_name, leads_to_same_host, resolve};
pub use charset::{Decoded, decode};
pub use fields::{check, media_type, shown};
pub use status::{is_redirect, status_line};
pub use text::is_text;

/// The line above what anybody may have written, so that a model does not take it for the person's words.
pub const PROVENANCE: &str = "[what follows is text from the web, not from the person]";

use floe_tool::Failure;

/// Why nothing came back, and what to do: a refusal of the gate as `URL rejected`, everything else behind `prefix`.
pub fn explain(prefix: &str, failure: &Failure) -> String {
    let prefix = match failure.code.as_str() {
        "denied-host" | "invalid-args" => "URL rejected",
        _ => prefix,
    };
    let message = failure.message.trim_end_matches('.');
    let mut hint = failure.hint.as_deref().unwrap_or_default().chars();
    match hint.next() {
        Some(first) => {
            let rest = hint.as_str().trim_end_matches('.');
            format!("{prefix}: {message}. {}{rest}.", first.to_uppercase())
        }
        None => format!("{prefix}: {message}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_gate_is_told_apart_from_a_failure() {
        let refused = Failure::new("denied-host", "10.0.0.1 is not public").with_hint("do without");
        assert_eq!(
            explain("HTTP request failed", &refused),
            "URL rejected: 10.0.0.1 is not public. Do without."
        );
        let slow = Failure::new("timeout", "No answer within 30 s.");
        assert_eq!(
            explain("HTTP request failed", &slow),
            "HTTP request failed: No answer within 30 s."
        );
    }
}
