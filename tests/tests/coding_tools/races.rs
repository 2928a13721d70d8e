//! A thread lets a folder and a link, or a file and a link, change places ten thousand times and more while a tool works on them. The
//! link leads out of the Workspace: not one byte from there may come through, and none there may change.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use floe_network::HostGrants;
use floe_protocol::StopReason;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::meanwhile::Meanwhile;
use crate::rig::{Answer, Rig};
use crate::site::{Answered, Site};

/// How often the two change places while one tool is tried.
const SWAPS: usize = 10_000;
/// How many rounds of calls are made at least.
const ROUNDS: usize = 30;
/// More rounds are made for so long, where both ways have not been met.
const PATIENCE: Duration = Duration::from_secs(60);

/// In every file outside, and in the name of every one.
const MARKER: &str = "OUTSIDE";
/// In every file inside.
const INSIDE: &str = "inside";

/// A Workspace in which `folder` and `file` are sometimes links that lead out.
struct Stage {
    rig: Rig,
    before: BTreeMap<PathBuf, String>,
}

/// How often a call reached what was inside, and how often one was refused.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    served: usize,
    refused: usize,
}

impl Stage {
    fn new() -> Stage {
        Stage::on(Rig::new())
    }

    fn on(rig: Rig) -> Stage {
        let outside = rig.outside();
        fs::create_dir_all(outside.join("folder/sub")).unwrap();
        for file in [
            "folder/text",
            "folder/sub/text",
            "folder/only-OUTSIDE",
            "text",
        ] {
            fs::write(outside.join(file), format!("{MARKER} {INSIDE}\n")).unwrap();
        }
        fs::write(outside.join("folder/image.png"), png(2)).unwrap();
        fs::write(outside.join("image.png"), png(2)).unwrap();
        rig.write("folder/text", format!("{INSIDE}\n"));
        rig.write("folder/sub/text", format!("{INSIDE}\n"));
        rig.write("folder/image.png", png(1));
        rig.write("file", format!("{INSIDE}\n"));
        rig.write("image.png", png(1));
        symlink("../outside/folder", rig.path("other-folder")).unwrap();
        symlink("../outside/text", rig.path("other-file")).unwrap();
        symlink("../outside/image.png", rig.path("other-image.png")).unwrap();
        let before = snapshot(&outside);
        Stage { rig, before }
    }

    /// What changes places with what.
    fn swapping(&self) -> Meanwhile {
        let pairs = [
            ("folder", "other-folder"),
            ("file", "other-file"),
            ("image.png", "other-image.png"),
        ]
        .map(|(one, other)| (self.rig.path(one), self.rig.path(other)));
        Meanwhile::doing(move || {
            for (one, other) in &pairs {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        })
    }

    /// Makes rounds of calls while the two change places, until each way was met.
    async fn race<'s, F>(&'s self, round: impl Fn(&'s Rig, usize) -> F) -> Met
    where
        F: Future<Output = Vec<Answer>> + 's,
    {
        let begun = Instant::now();
        let swapping = self.swapping();
        let (mut rounds, mut met) = (0, Met::default());
        let is_enough = |rounds, met: Met| {
            let is_tried = rounds >= ROUNDS && swapping.rounds() >= SWAPS;
            is_tried && (met.served > 0 && met.refused > 0 || begun.elapsed() > PATIENCE)
        };
        while !is_enough(rounds, met) {
            for answer in round(&self.rig, rounds).await {
                let text = format!("{} {:?}", answer.text, answer.facts);
                assert!(!text.contains(MARKER), "{answer:?}");
                let seen = png_data(2);
                assert!(answer.images.iter().all(|image| !image.contains(seen)));
                match answer.stop_reason {
                    StopReason::Completed => met.served += 1,
                    _ => met.refused += 1,
                }
            }
            rounds += 1;
        }
        drop(swapping);
        assert_eq!(snapshot(&self.rig.outside()), self.before);
        met
    }
}

/// Everything that can be told of the tree outside.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let contents = match metadata.is_file() {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            let about = (
                metadata.ino(),
                metadata.mode(),
                metadata.mtime_nsec(),
                metadata.nlink(),
            );
            seen.insert(path.clone(), format!("{about:?} {contents:?}"));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    seen
}

/// An image that is told by its last byte.
fn png(mark: u8) -> Vec<u8> {
    let mut data = b"\x89PNG\r\n\x1a\n".to_vec();
    data.extend_from_slice(&[mark; 9]);
    data
}

/// What stands of it in a `data:` URL: twelve characters are nine bytes.
fn png_data(mark: u8) -> &'static str {
    match mark {
        1 => "AQEBAQEB",
        _ => "AgICAgIC",
    }
}

#[tokio::test]
async fn file_read_under_a_swap_shows_nothing_from_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, _| async move {
            let mut answers = Vec::new();
            for path in [
                "folder/text",
                "folder/sub/text",
                "file",
                "folder/only-OUTSID",
            ] {
                let answer = rig.call("file_read", json!({ "path": path })).await;
                if answer.stop_reason == StopReason::Completed {
                    assert_eq!(answer.text, format!("{INSIDE}\n"));
                }
                answers.push(answer);
            }
            answers
        })
        .await;
    assert!(met.served > 0 && met.refused > 0);
}

#[tokio::test]
async fn grep_under_a_swap_shows_nothing_from_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, _| async move {
            let mut answers = Vec::new();
            for path in [".", "folder", "folder/sub", "file", "folder/text"] {
                let arguments = json!({"pattern": "OUT|inside", "path": path});
                answers.push(rig.call("grep", arguments).await);
            }
            answers
        })
        .await;
    assert!(met.served > 0);
}

#[tokio::test]
async fn glob_under_a_swap_names_nothing_from_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, _| async move {
            let mut answers = Vec::new();
            for (pattern, path) in [
                ("**", "."),
                ("**/*", "folder"),
                ("folder/*", "."),
                ("*", "folder/sub"),
            ] {
                let arguments = json!({"pattern": pattern, "path": path, "include_dirs": true});
                answers.push(rig.call("glob", arguments).await);
            }
            answers
        })
        .await;
    assert!(met.served > 0);
}

#[tokio::test]
async fn list_under_a_swap_names_nothing_from_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, _| async move {
            let mut answers = Vec::new();
            for path in [".", "folder", "folder/sub"] {
                let arguments = json!({"path": path, "depth": 3, "size": true});
                answers.push(rig.call("list", arguments).await);
            }
            answers
        })
        .await;
    assert!(met.served > 0 && met.refused > 0);
}

#[tokio::test]
async fn read_image_under_a_swap_shows_nothing_from_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, _| async move {
            let mut answers = Vec::new();
            for path in ["folder/image.png", "image.png"] {
                let answer = rig.call("read_image", json!({ "source": path })).await;
                assert!(
                    answer
                        .images
                        .iter()
                        .all(|image| image.contains(png_data(1)))
                );
                answers.push(answer);
            }
            answers
        })
        .await;
    assert!(met.served > 0 && met.refused > 0);
}

#[tokio::test]
async fn file_write_under_a_swap_changes_nothing_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, round| async move {
            let content = format!("{INSIDE} {round}\n");
            let mut answers = Vec::new();
            for path in ["folder/text", "file", "folder/new/deep", "folder/sub/new"] {
                let path = format!(
                    "{path}{}",
                    if path.ends_with("new") {
                        round.to_string()
                    } else {
                        String::new()
                    }
                );
                let arguments = json!({"path": path, "content": content});
                answers.push(rig.call("file_write", arguments).await);
            }
            answers
        })
        .await;
    assert!(met.served > 0 && met.refused > 0);
}

#[tokio::test]
async fn edit_under_a_swap_shows_and_changes_nothing_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, round| async move {
            let mut answers = Vec::new();
            for path in ["folder/text", "file", "folder/sub/text"] {
                let arguments = json!({
                    "path": path,
                    "old_string": INSIDE,
                    "new_string": format!("{INSIDE} {round}"),
                });
                answers.push(rig.call("edit", arguments).await);
            }
            answers
        })
        .await;
    assert!(met.served > 0 && met.refused > 0);
}

#[tokio::test]
async fn apply_patch_under_a_swap_shows_and_changes_nothing_outside() {
    let stage = Stage::new();
    let met = stage
        .race(|rig, round| async move {
            let edits = json!({"edits": [
                {"path": "folder/text", "old_string": INSIDE, "new_string": format!("{INSIDE} {round}")},
                {"path": "file", "old_string": INSIDE, "new_string": format!("{INSIDE} {round}")},
            ]});
            let patch = format!(
                "*** Begin Patch\n*** Add File: folder/added-{round}\n+{INSIDE}\n*** Delete File: folder/sub/text\n*** End Patch\n"
            );
            let made = rig.call("apply_patch", edits).await;
            let moved = rig.call("apply_patch", json!({ "patch": patch })).await;
            vec![made, moved]
        })
        .await;
    assert!(met.served > 0 && met.refused > 0);
}

#[tokio::test]
async fn curl_under_a_swap_changes_nothing_outside() {
    let site = Site::new(|_| Answered::new(200, "text/plain", format!("{INSIDE}, fetched\n")));
    let grants = HostGrants::parse(&[site.grant("site.test", 80)]).unwrap();
    let stage = Stage::on(Rig::with(|options| options.gate.grants = grants));
    let met = stage
        .race(|rig, round| async move {
            let mut answers = Vec::new();
            for path in [
                "folder/text".to_owned(),
                format!("folder/{round}/new"),
                "file".to_owned(),
            ] {
                let url = "http://site.test/text";
                let arguments = json!({"url": url, "dest_path": path, "overwrite": true});
                answers.push(rig.call("curl", arguments).await);
            }
            answers
        })
        .await;
    assert!(met.served > 0 && met.refused > 0);
}
