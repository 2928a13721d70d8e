//! Takes the values of secrets out of what comes back, wherever the pieces of a body part them: a service that repeats the header
//! fields of a request must not hand a tool what the tool may not have.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

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
            // A name of a host or of a field comes back in lower case, and hexadecimal digits in either.
            .ascii_case_insensitive(true)
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

    /// The same of text.
    pub(super) fn text(&self, text: &str) -> String {
        self.searcher.replace_all(text, &self.shown)
    }

    /// Whether there is a secret in it.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        self.searcher.is_match(bytes)
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

/// A value as it is, as JSON and HTML write it, percent-encoded, and in base64, alone or within a longer text.
fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let json = value.replace('\\', "\\\\").replace('"', "\\\"");
    // Some write a slash so, and some what HTML would take for something else.
    forms.push(json.replace('/', "\\/"));
    forms.push(as_code_points(&json, "<>&"));
    forms.push(as_code_points(&json, "<>&='"));
    forms.push(as_code_points(&json, "<>&='/+"));
    forms.push(json);
    for quotes in [
        ["&quot;", "&#39;"],
        ["&#34;", "&#39;"],
        ["&quot;", "&#x27;"],
        ["\"", "'"],
    ] {
        let html = value.replace('&', "&amp;").replace('<', "&lt;");
        let html = html.replace('>', "&gt;").replace('"', quotes[0]);
        forms.push(html.replace('\'', quotes[1]));
    }
    for kept in ["*-._", "-._~", "-._~!*'()"] {
        forms.push(percent_encoded(value, kept));
    }
    // The way of forms, which is the first but for this.
    forms.push(percent_encoded(value, "*-._").replace("%20", "+"));
    for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
        forms.push(engine.encode(value));
    }
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.extend((0..3).map(|before| within_base64(&engine, value, before)));
    }
    forms
}

/// JSON with these characters as their code points.
fn as_code_points(json: &str, characters: &str) -> String {
    let mut written = String::new();
    for character in json.chars() {
        match characters.contains(character) {
            true => written.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => written.push(character),
        }
    }
    written
}

fn percent_encoded(value: &str, kept: &str) -> String {
    let mut written = String::new();
    for byte in value.bytes() {
        let character = char::from(byte);
        match byte.is_ascii_alphanumeric() || kept.contains(character) {
            true => written.push(character),
            false => written.push_str(&format!("%{byte:02X}")),
        }
    }
    written
}

/// What of the base64 of a longer text is the value's alone, where it stands `before` bytes behind a multiple of three.
fn within_base64(engine: &impl Engine, value: &str, before: usize) -> String {
    let whole = engine.encode([&[0; 2][..before], value.as_bytes()].concat());
    // Six bits each; those at the ends are shared with what stands there.
    let first = (before * 8).div_ceil(6);
    let end = (before + value.len()) * 8 / 6;
    whole[first..end].to_owned()
}
