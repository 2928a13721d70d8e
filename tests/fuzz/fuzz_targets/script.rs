//! Any text is a script or is refused with line and field.
#![no_main]

use floe_model::Script;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    let _ = Script::parse(text, Path::new("session.yaml"));
});
