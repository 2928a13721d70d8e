//! Takes the values of secrets out of what comes back, wherever the pieces of a body part them: a service that repeats the header
//! fields of a request must not hand a tool what the tool may not have.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::secrets::HostSecrets;

/// What is looked for.
#[derive(Debug)]
pub(super) struct Scrub {
    searcher: AhoCorasick,
    shown: Vec<String>,
    longest: usize,
}

impl Scrub {
    /// None where there is nothing to look for.
    pub(super) fn new(secrets: &HostSecrets) -> Option<Arc<Scrub>> {
        let (mut forms, mut shown) = (Vec::new(), Vec::new());
        for (name, value) in secrets.values() {
            for form in forms_of(value) {
                if !forms.contains(&form) {
                    forms.push(form);
                    shown.push(format!("[redacted:{name}]"));
                }
            }
        }
        let longest = forms.iter().map(String::len).max()?;
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms)
            .ok()?;
        Some(Arc::new(Scrub {
            searcher,
            shown,
            longest,
        }))
    }

    /// Bytes that are whole.
    pub(super) fn all(&self, bytes: &[u8]) -> Vec<u8> {
        self.searcher.replace_all_bytes(bytes, &self.shown)
    }

    /// Takes out of `held` what can go on; the rest may be the beginning of a value. At the end all goes on.
    pub(super) fn settle(&self, held: &mut Vec<u8>, is_end: bool) -> Vec<u8> {
        let settled = match is_end {
            true => held.len(),
            false => (held.len() + 1).saturating_sub(self.longest),
        };
        let mut out = Vec::with_capacity(settled);
        let mut from = 0;
        while from < settled {
            let found = self.searcher.find(&held[from..]);
            let Some(found) = found.filter(|found| from + found.start() < settled) else {
                break;
            };
            out.extend_from_slice(&held[from..from + found.start()]);
            out.extend_from_slice(self.shown[found.pattern()].as_bytes());
            from += found.end();
        }
        if from < settled {
            out.extend_from_slice(&held[from..settled]);
            from = settled;
        }
        held.drain(..from);
        out
    }
}

/// A value as it is, as JSON writes it, percent-encoded, and in base64.
fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    forms.push(escaped);
    let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    forms.push(encoded);
    for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.push(engine.encode(value));
    }
    forms
}
