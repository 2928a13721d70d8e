//! A folder and a link that leads out change places all the time: nothing from outside may ever come through.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use floe_workspace::Workspace;
use rustix::fs::{CWD, RenameFlags, renameat_with};

const SWAPS: usize = 10_000;
const ROUNDS: usize = 1_000;

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
    let rounds = AtomicUsize::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut served, mut refused) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                read_all_ways(&workspace, &mut served, &mut refused);
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            assert!(served > 0, "the folder was never seen");
            assert!(refused > 0, "the link was never seen");
        });
        let mut swaps = 0;
        let enough = |swaps| swaps >= SWAPS && rounds.load(Ordering::Relaxed) >= ROUNDS;
        // A reader that failed has ended.
        while !enough(swaps) && !reader.is_finished() {
            renameat_with(
                CWD,
                inside.join("swapped"),
                CWD,
                inside.join("link"),
                RenameFlags::EXCHANGE,
            )
            .unwrap();
            swaps += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
}

fn read_all_ways(workspace: &Workspace, served: &mut usize, refused: &mut usize) {
    for path in ["swapped/file", "through", "link/../through"] {
        match workspace.read_range(path, 0, 100) {
            Ok(range) => {
                assert_eq!(range.data, b"inside");
                *served += 1;
            }
            Err(error) => {
                assert!(!error.to_string().contains("tools"));
                *refused += 1;
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
