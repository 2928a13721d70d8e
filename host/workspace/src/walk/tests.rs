//! Walks over trees that the tests make.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::WalkOptions;
use crate::fixture::Fixture;
use crate::{FileBatch, Workspace};

fn everything() -> WalkOptions {
    WalkOptions {
        respect_ignore: true,
        hidden: true,
        ..WalkOptions::default()
    }
}

fn paths(workspace: &Workspace, options: WalkOptions) -> Vec<String> {
    let mut walk = workspace.walk(options).unwrap();
    let mut paths = Vec::new();
    loop {
        let entries = walk.next_entries(3).unwrap();
        assert!(entries.len() <= 3);
        if entries.is_empty() {
            return paths;
        }
        paths.extend(entries.into_iter().map(|entry| entry.path));
    }
}

/// Every slice as its path and contents, or its failure's code.
fn contents(workspace: &Workspace, options: WalkOptions, size: usize) -> Vec<(String, String)> {
    let mut walk = workspace.walk(options).unwrap();
    let mut files = Vec::new();
    loop {
        let ready = walk.ready_files();
        let next = ready.unwrap_or_else(|| walk.next_files(size));
        let FileBatch { data, files: batch } = next.unwrap();
        if batch.is_empty() {
            return files;
        }
        files.extend(batch.into_iter().map(|slice| {
            let held = &data[slice.start..slice.start + slice.length];
            let text = String::from_utf8_lossy(held).into_owned();
            let told = slice.failure.map_or(text, |error| error.code().to_owned());
            (slice.path, told)
        }));
    }
}

#[test]
fn nothing_is_ready_before_it_was_asked_for_and_all_of_it_some_time_after() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.write(name, "x".repeat(4096));
    }
    let mut walk = fixture.workspace.walk(everything()).unwrap();
    assert!(walk.ready_files().is_none());
    let first = walk.next_files(4096).unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    let mut ready = || loop {
        if let Some(batch) = walk.ready_files() {
            return batch.unwrap().files.remove(0).path;
        }
        assert!(Instant::now() < limit, "nothing is ready");
        std::thread::yield_now();
    };
    assert_eq!(
        (first.files[0].path.as_str(), ready(), ready()),
        ("a", "b".into(), "c".into())
    );
}

#[test]
fn entries_come_in_the_order_of_their_paths_a_folder_right_before_what_it_holds() {
    let fixture = Fixture::new();
    for file in ["b", "a/z", "a/b/c", "a.b", "é", "A", ".hidden/x"] {
        fixture.write(file, "");
    }
    symlink("a", fixture.path().join("link")).unwrap();
    assert_eq!(
        paths(&fixture.workspace, everything()),
        [
            ".hidden",
            ".hidden/x",
            "A",
            "a",
            "a/b",
            "a/b/c",
            "a/z",
            "a.b",
            "b",
            "link",
            "é"
        ]
    );
    let shown = WalkOptions {
        hidden: false,
        root: "a".into(),
        max_depth: Some(1),
        ..everything()
    };
    assert_eq!(paths(&fixture.workspace, shown), ["a/b", "a/z"]);
}

#[test]
fn a_walk_starts_at_a_folder_a_file_a_link_or_a_mount_and_nowhere_outside() {
    let fixture = Fixture::new();
    fixture.write("a/b/c", "text");
    symlink("a/b", fixture.path().join("link")).unwrap();
    symlink(fixture.outside(), fixture.path().join("out")).unwrap();
    let outputs = fixture.outside().join("outputs");
    fs::create_dir(&outputs).unwrap();
    fs::write(outputs.join("call"), "whole").unwrap();
    let workspace = fixture
        .workspace
        .clone()
        .with_mount("/floe/outputs", &outputs);
    let from = |root: &str| WalkOptions {
        root: root.into(),
        ..everything()
    };
    let text = |path: &str| vec![(path.to_owned(), "text".to_owned())];
    assert_eq!(contents(&workspace, from("a/b"), 1), text("a/b/c"));
    assert_eq!(contents(&workspace, from("/workspace/a"), 1), text("a/b/c"));
    assert_eq!(contents(&workspace, from("a/b/c"), 1), text("a/b/c"));
    assert_eq!(contents(&workspace, from("link"), 1), text("link/c"));
    assert_eq!(paths(&workspace, from("a/b/c")), ["a/b/c"]);
    assert_eq!(
        contents(&workspace, from("/floe/outputs"), 1),
        [("/floe/outputs/call".to_owned(), "whole".to_owned())]
    );
    for (root, code) in [
        ("..", "outside-workspace"),
        ("/etc", "outside-workspace"),
        ("out", "outside-workspace"),
        ("none", "not-found"),
    ] {
        assert_eq!(
            workspace.walk(from(root)).unwrap_err().code(),
            code,
            "{root}"
        );
    }
}

#[test]
fn ignore_files_rule_as_git_has_it_and_the_start_is_never_left_out() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "*.log\n/only-here\n!kept.log\nout/\n");
    fixture.write("sub/.gitignore", "!again.log\n");
    fixture.write("sub/.ignore", "secret\n");
    fixture.write(".ignore", "!found.log\n");
    fixture.write("nested/.git/info/exclude", "private\n");
    for file in [
        "a.log",
        "kept.log",
        "found.log",
        "only-here",
        "sub/only-here",
        "sub/again.log",
        "sub/b.log",
        "sub/secret",
        "out/x",
        "nested/c.log",
        "nested/private",
        "build/x",
        "sub/node_modules/y",
        "out.txt",
    ] {
        fixture.write(file, "");
    }
    let files = |options| {
        let mut found = contents(&fixture.workspace, options, 1 << 20);
        found.retain(|(path, _)| !path.contains("ignore") && !path.contains(".git"));
        found.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    assert_eq!(
        files(everything()),
        [
            "found.log",
            "kept.log",
            "nested/c.log",
            "out.txt",
            "sub/again.log",
            "sub/only-here"
        ]
    );
    for (root, expected) in [
        ("build", vec!["build/x"]),
        ("out", vec!["out/x"]),
        ("sub", vec!["sub/again.log", "sub/only-here"]),
    ] {
        let root = root.to_owned();
        assert_eq!(
            files(WalkOptions {
                root,
                ..everything()
            }),
            expected
        );
    }
    let all = WalkOptions {
        respect_ignore: false,
        ..everything()
    };
    assert_eq!(files(all).len(), 14);
}

#[test]
fn globs_are_over_whole_paths_below_the_start() {
    let fixture = Fixture::new();
    for file in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.toml", "src/[x]"] {
        fixture.write(file, "");
    }
    let found = |include: &[&str], exclude: &[&str]| {
        let globs = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        let options = WalkOptions {
            include: globs(include),
            exclude: globs(exclude),
            ..everything()
        };
        paths(&fixture.workspace, options)
    };
    assert_eq!(found(&["*.rs"], &[]), ["a.rs"]);
    assert_eq!(found(&["**/*.rs"], &["src/deep"]), ["a.rs", "src/b.rs"]);
    assert_eq!(found(&["src/*.{rs,toml}"], &[]), ["src/b.rs", "src/d.toml"]);
    assert_eq!(found(&["src/[[]x]"], &[]), ["src/[x]"]);
    assert_eq!(found(&["src/?eep"], &[]), ["src/deep"]);
    let error = fixture
        .workspace
        .walk(WalkOptions {
            include: vec!["a[".into()],
            ..everything()
        })
        .unwrap_err();
    assert_eq!(error.code(), "invalid");
    assert!(error.to_string().contains("\"a[\""), "{error}");
}

#[test]
fn contents_come_in_batches_and_what_is_not_looked_for_is_left_out() {
    let fixture = Fixture::new();
    for number in 0..100 {
        let text = format!("{number:04}").repeat(500);
        fixture.write(&format!("{number:03}"), text);
    }
    let whole = contents(&fixture.workspace, everything(), 1 << 20);
    assert_eq!(whole.len(), 100);
    assert_eq!(contents(&fixture.workspace, everything(), 1), whole);
    let with = |literals: &[&str]| {
        let containing = literals.iter().map(|text| text.as_bytes().to_vec());
        let options = WalkOptions {
            containing: containing.collect(),
            ..everything()
        };
        let found = contents(&fixture.workspace, options, 5000);
        found.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    assert_eq!(with(&["0042", "0077"]), ["042", "077"]);
    assert!(with(&["nowhere"]).is_empty());
}

#[test]
fn what_is_no_file_is_never_opened_and_what_is_too_large_or_hidden_is_told() {
    let fixture = Fixture::new();
    fixture.write("large", "12345");
    fixture.write("a/.env", "KEY=1");
    fixture.write("small", "1234");
    symlink("a/.env", fixture.path().join("link")).unwrap();
    symlink("a", fixture.path().join("folder")).unwrap();
    mknodat(
        CWD,
        fixture.path().join("fifo"),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    let bad = std::ffi::OsStr::from_bytes(b"bad\xff");
    fs::write(fixture.path().join(bad), "x").unwrap();
    fixture.write(".floe-12.tmp", "half");
    let workspace = fixture
        .workspace
        .clone()
        .with_hidden(|path| path.ends_with(".env"));
    let options = |root: &str| WalkOptions {
        root: root.into(),
        max_file_size: Some(4),
        ..everything()
    };
    let told = |path: &str, what: &str| (path.to_owned(), what.to_owned());
    assert_eq!(
        contents(&workspace, options(""), 1 << 20),
        [
            told("a/.env", "denied"),
            told("fifo", "not-a-file"),
            told("large", "too-large"),
            told("small", "1234"),
        ]
    );
    assert_eq!(
        contents(&workspace, options("folder"), 1 << 20),
        [told("folder/.env", "denied")]
    );
}

#[test]
fn a_walk_that_nobody_reads_any_more_ends() {
    let fixture = Fixture::new();
    for number in 0..3000 {
        fixture.write(&format!("{number}"), "x".repeat(5000));
    }
    let mut walk = fixture.workspace.walk(everything()).unwrap();
    assert!(!walk.next_files(4096).unwrap().files.is_empty());
    // Joins its thread.
    drop(walk);
    let mut walk = fixture.workspace.walk(everything()).unwrap();
    walk.next_entries(1).unwrap();
    assert!(walk.next_files(4096).is_err());
}

#[test]
fn a_walk_ends_with_the_one_that_it_goes_on_for_although_a_thread_still_asks() {
    let fixture = Fixture::new();
    fixture.write("a", "");
    let mut walk = fixture.workspace.walk(everything()).unwrap();
    drop(walk.while_held());
    assert!(walk.next_entries(1).is_err());
}

#[test]
fn a_tree_deeper_than_the_folders_that_stay_open_is_walked_whole() {
    let fixture = Fixture::new();
    let deep = vec!["d"; 300].join("/");
    fixture.write(&format!("{deep}/leaf"), "leaf");
    fixture.write("d/z", "z");
    let found = contents(&fixture.workspace, everything(), 1);
    let expected = [(format!("{deep}/leaf"), "leaf"), ("d/z".to_owned(), "z")];
    assert_eq!(found, expected.map(|(path, text)| (path, text.to_owned())));
}

#[test]
fn not_one_byte_from_outside_appears_while_folders_and_links_change_places() {
    let fixture = Fixture::new();
    let outside = fixture.outside().join("outer");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "OUTSIDE").unwrap();
    let folder = fixture.path().join("d");
    fixture.write("d/file", "inside");
    let (link, spare) = (fixture.path().join("link"), fixture.path().join("spare"));
    symlink(&outside, &link).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapping = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) || swaps < 10_000 {
                for (from, to) in [
                    (&folder, &spare),
                    (&link, &folder),
                    (&folder, &link),
                    (&spare, &folder),
                ] {
                    fs::rename(from, to).unwrap();
                }
                swaps += 1;
            }
        })
    };
    for _ in 0..300 {
        for (path, text) in contents(&fixture.workspace, everything(), 1) {
            assert!(!text.contains("OUTSIDE"), "{path}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_walk_names_can_be_opened_by_that_name(
        names in prop::collection::vec("[a-c.]{1,3}(/[ab\\n*\\[ é-]{1,3}){0,3}", 1..12)
    ) {
        let fixture = Fixture::new();
        for name in &names {
            let path = fixture.path().join(name);
            let odd = name.split('/').any(|part| matches!(part, "." | ".."));
            if !odd && fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let _ = fs::write(path, name);
            }
        }
        for (path, text) in contents(&fixture.workspace, everything(), 1) {
            let read = fixture.workspace.read_range(&path, 0, 100).unwrap();
            prop_assert_eq!(String::from_utf8(read.data).unwrap(), text);
        }
    }
}

#[test]
fn walks_under_way_are_few_and_what_they_hold_ahead_is_little() {
    let fixture = Fixture::new();
    for number in 0..40 {
        fixture.write(&format!("{number:02}"), "x".repeat(1024 * 1024));
    }
    let mut walks = Vec::new();
    let error = loop {
        let mut walk = fixture.workspace.walk(everything()).unwrap();
        // Only a walk that was asked for something is under way.
        match walk.next_files(1024 * 1024) {
            Ok(batch) => assert_eq!(batch.files.len(), 1),
            Err(error) => break error,
        }
        walks.push(walk);
        assert!(walks.len() < 100);
    };
    assert_eq!((error.code(), error.is_retryable()), ("too-many", true));
    // One that is given up makes room, and so does one that is over.
    let mut last = walks.pop().unwrap();
    let rest: usize = std::iter::from_fn(|| {
        let batch = last.next_files(1).unwrap();
        (!batch.files.is_empty()).then_some(batch.data.len())
    })
    .sum();
    assert_eq!(rest, 39 * 1024 * 1024);
    let options = everything();
    let mut another = fixture.workspace.walk(options.clone()).unwrap();
    assert!(another.next_entries(1).is_ok());
    assert!(
        fixture
            .workspace
            .walk(options.clone())
            .unwrap()
            .next_entries(1)
            .is_err()
    );
    drop(walks);
    assert!(
        fixture
            .workspace
            .walk(options)
            .unwrap()
            .next_entries(1)
            .is_ok()
    );
}

#[test]
fn ignore_files_rule_together_only_so_much_and_never_by_half_a_line() {
    let fixture = Fixture::new();
    // Every folder of a way brings a file of its own, and the last line of the first is cut behind its star.
    let rules = |last: &str| {
        let mut text = "#2345678\n".repeat(1024 * 1024 / 9);
        text.truncate(1024 * 1024 - 2);
        text.truncate(text.rfind('\n').unwrap() + 1);
        let gap = 1024 * 1024 - 1 - text.len();
        text + &"x".repeat(gap - 1) + "\n" + last
    };
    fixture.write(".gitignore", rules("*.o\n"));
    fixture.write("a/.gitignore", "bcd\n");
    fixture.write("a/bcd", "");
    fixture.write("a/c.o", "");
    let below = |root: &str| {
        let options = WalkOptions {
            root: root.into(),
            ..everything()
        };
        paths(&fixture.workspace, options)
    };
    // The rules of `a` come behind a whole mebibyte of those above.
    assert_eq!(below("a"), ["a/.gitignore", "a/bcd", "a/c.o"]);
    fixture.write(".gitignore", "*.o\n");
    assert_eq!(below("a"), ["a/.gitignore"]);
}

#[test]
fn globs_and_literals_that_would_cost_too_much_to_compile_are_refused() {
    let fixture = Fixture::new();
    fixture.write("a", "x");
    let most = |include: Vec<String>, containing: Vec<Vec<u8>>| WalkOptions {
        include,
        containing,
        ..everything()
    };
    for options in [
        most(vec!["x".repeat(65); 1024], Vec::new()),
        most(Vec::new(), vec![vec![b'x'; 17]; 1024]),
    ] {
        let error = fixture.workspace.walk(options).err().unwrap();
        assert_eq!(error.code(), "invalid");
        assert!(error.to_string().len() < 200, "{error}");
    }
    let options = most(Vec::new(), vec![vec![b'x'; 16 * 1024]]);
    assert!(fixture.workspace.walk(options).is_ok());
    let glob = most(vec![format!("{{{}", "a".repeat(1000))], Vec::new());
    let error = fixture.workspace.walk(glob).err().unwrap();
    assert!(error.to_string().len() < 300, "{error}");
}
