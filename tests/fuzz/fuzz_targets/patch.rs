//! Any text is a patch or is refused with a line of it. A patch that fits a file changes nothing but what it says: every line of the result
//! is one of the file's or one that it adds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

#[path = "../../../plugins/apply-patch/src/hunks.rs"]
mod hunks;
#[path = "../../../plugins/apply-patch/src/patch.rs"]
mod patch;

use patch::{Action, Change};

fuzz_target!(|input: (&str, &str)| {
    let (text, file) = input;
    let Ok(sections) = patch::parse(text) else {
        return;
    };
    for section in sections {
        let Action::Update { hunks, .. } = section.action else {
            continue;
        };
        let Ok(applied) = hunks::apply(&section.path, file, &hunks) else {
            continue;
        };
        let added = hunks.iter().flat_map(|hunk| &hunk.lines).filter_map(|change| match change {
            Change::Add(line) => Some(line.as_str()),
            _ => None,
        });
        let known: HashSet<&str> = file.lines().chain(added.flat_map(str::lines)).collect();
        for line in applied.text.lines() {
            assert!(known.contains(line) || line.is_empty(), "{line:?} is from nowhere");
        }
    }
});
