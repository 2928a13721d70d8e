//! A folder and a link that leads out change places all the time: nothing from outside may ever come through.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use floe_workspace::Workspace;
use rustix::fs::{CWD, RenameFlags, renameat_with};

const SWAPS: usize = 10_000;

#[test]
fn not_one_byte_from_outside_appears_while_a_folder_and_a_link_out_are_swapped() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("workspace");
    let outside = folder.path().join("outside");
    fs::create_dir_all(inside.join("swapped")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(inside.join("swapped/file"), "inside").unwrap();
    fs::write(outside.join("file"), "not for tools").unwrap();
    fs::write(outside.join("only-outside"), "not for tools").unwrap();
    symlink("../outside", inside.join("link")).unwrap();
    symlink("swapped/file", inside.join("through")).unwrap();
    let workspace = Workspace::open(&inside).unwrap();

    let done = AtomicBool::new(false);
    let (mut served, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..SWAPS {
                renameat_with(
                    CWD,
                    inside.join("swapped"),
                    CWD,
                    inside.join("link"),
                    RenameFlags::EXCHANGE,
                )
                .unwrap();
                // On one processor the other thread would hardly run between two swaps.
                thread::yield_now();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            for path in ["swapped/file", "through", "link/../through"] {
                match workspace.read_range(path, 0, 100) {
                    Ok(range) => {
                        assert_eq!(range.data, b"inside");
                        served += 1;
                    }
                    Err(error) => {
                        assert!(!error.to_string().contains("tools"));
                        refused += 1;
                    }
                }
            }
            if let Ok(entry) = workspace.stat("swapped/file") {
                assert_eq!(entry.size, 6);
            }
            if let Ok(listing) = workspace.list_directory("swapped", 10) {
                assert_eq!(listing.total, 1);
                assert_eq!(listing.entries[0].size, 6);
            }
            assert_eq!(workspace.stat("swapped/only-outside").ok(), None);
            assert!(workspace.near_names("swapped/only-outsid").is_empty());
        }
    });
    assert!(served > 0, "the folder was never seen");
    assert!(refused > 0, "the link was never seen");
}
