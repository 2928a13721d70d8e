//! Reading a large file and changing many places at once, whole door.

use std::fmt::Write as _;
use std::fs;

use serde_json::json;

use crate::figures::{Effort, Figures, Goal};
use crate::house::House;

const MIB: usize = 1 << 20;
/// As many as one call of `apply_patch` takes.
const EDITS: usize = 50;
/// Files that these edits are spread over.
const FILES: usize = 10;
const LINES: usize = 2000;

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let house = House::of_tools(folder.path(), &["file_read", "apply_patch"]);
    let write = |name: &str, lines: usize| {
        let mut text = String::new();
        for line in 0..lines {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "line {line:06} of {name}, as long as lines of source text often are"
            );
        }
        fs::write(folder.path().join(name), &text).expect("a file");
        text.len()
    };
    let length = write("large.txt", 154_200);
    assert!((9 * MIB..10 * MIB).contains(&length), "{length}");
    let effort = |warm_ups| Effort {
        warm_ups,
        ..Effort::LONG
    };
    let page = json!({"path": "large.txt"}).to_string();
    let last = json!({"path": "large.txt", "offset": 154_000}).to_string();
    for (what, arguments) in [
        ("`file_read`, the first page of a file of 10 MiB", page),
        ("`file_read`, its last page", last),
    ] {
        figures.measure(what, Goal::None, effort(5), |count| {
            (0..count)
                .map(|_| house.call("file_read", &arguments).0)
                .collect()
        });
    }

    for number in 0..FILES {
        write(&format!("source-{number}.txt"), LINES);
    }
    let patch = |from: &str, to: &str| {
        let edits: Vec<_> = (0..EDITS)
            .map(|edit| {
                let name = format!("source-{}.txt", edit % FILES);
                let line = format!(" {:06} of {name}", edit * LINES / EDITS);
                json!({
                    "path": name,
                    "old_string": format!("{from}{line}"),
                    "new_string": format!("{to}{line}"),
                })
            })
            .collect();
        json!({"edits": edits}).to_string()
    };
    // There and back, so that each finds what it replaces.
    let (there, back) = (patch("line", "changed"), patch("changed", "line"));
    let mut turns = [&there, &back].into_iter().cycle();
    let what = "`apply_patch`, 50 edits in 10 files of 2,000 lines";
    figures.measure(what, Goal::None, effort(2), |count| {
        (0..count)
            .map(|_| {
                house
                    .call("apply_patch", turns.next().expect("it never ends"))
                    .0
            })
            .collect()
    });
}
