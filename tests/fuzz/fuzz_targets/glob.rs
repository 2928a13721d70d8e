//! Any pattern is refused with a message or selects files by the rules of paths: a walk never panics, names nothing outside its tree, and a
//! pattern without regard to case finds all that the pattern finds.
#![no_main]

use floe_workspace::{Kind, WalkOptions, Workspace};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

#[path = "../../../plugins/glob/src/pattern.rs"]
mod pattern;

const FILES: [&str; 6] = ["a", "src/b.rs", "src/deep/c.RS", "src/[d]", "é/{f}", "-g*"];

static PLACE: LazyLock<(tempfile::TempDir, Workspace)> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    for file in FILES {
        let path = place.path().join(file);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("folders can be made");
        std::fs::write(path, file).expect("a file can be written");
    }
    let workspace = Workspace::open(place.path()).expect("the Workspace opens");
    (place, workspace)
});

/// The files that a pattern selects, unless it is none.
fn selected(pattern: String) -> Option<Vec<String>> {
    let options = WalkOptions { include: vec![pattern], ..WalkOptions::default() };
    let mut walk = PLACE.1.walk(options).ok()?;
    let mut found = Vec::new();
    loop {
        let entries = walk.next_entries(100).expect("the tree can be walked");
        if entries.is_empty() {
            return Some(found);
        }
        // Folders are walked through whatever the pattern says.
        let files = entries.into_iter().filter(|entry| entry.kind == Kind::File);
        found.extend(files.map(|entry| entry.path));
    }
}

fuzz_target!(|text: &str| {
    let pattern = pattern::below(text, "").to_owned();
    let Some(found) = selected(pattern.clone()) else {
        return;
    };
    assert!(found.iter().all(|path| FILES.contains(&path.as_str())), "{found:?}");
    // What a class leaves out, it leaves out in both cases.
    if pattern.contains("[!") || pattern.contains("[^") {
        return;
    }
    if let Some(more) = selected(pattern::without_case(&pattern)) {
        assert!(found.iter().all(|path| more.contains(path)), "{found:?}, without case {more:?}");
    }
});
