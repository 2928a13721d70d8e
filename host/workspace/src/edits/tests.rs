//! Transactions over Workspaces that the tests make, with faults at every point and hosts that die there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::failpoint::{self, Fault};
use super::{Action, ChangedSince, Editor, EditorOptions, Seen, Transaction, undo};
use crate::fixture::Fixture;
use crate::{Workspace, WorkspaceError};

/// A Workspace with an editor, whose journal lies beside it.
struct Desk {
    fixture: Fixture,
    editor: Editor,
}

impl Desk {
    fn new() -> Desk {
        let fixture = Fixture::new();
        let editor = editor(&fixture.workspace, fixture.outside());
        Desk { fixture, editor }
    }

    fn write(&self, path: &str, contents: &str) {
        self.fixture.write(path, contents);
    }

    fn journals(&self) -> Vec<PathBuf> {
        vec![self.fixture.outside().join("journal")]
    }

    fn undo(&self) -> Result<Option<super::Undone>, WorkspaceError> {
        self.undo_with(ChangedSince::Refuse)
    }

    fn undo_with(
        &self,
        changed_since: ChangedSince,
    ) -> Result<Option<super::Undone>, WorkspaceError> {
        let locks = self.fixture.outside().join("locks");
        undo(
            &self.fixture.workspace,
            &locks,
            &self.journals(),
            changed_since,
        )
    }
}

fn editor(workspace: &Workspace, beside: &Path) -> Editor {
    let options = EditorOptions {
        journal: beside.join("journal"),
        locks: beside.join("locks"),
        protects: Arc::new(|path| path.starts_with(".git/hooks")),
    };
    Editor::new(workspace.clone().with_seen(Seen::default()), options)
}

/// Every file below `root` with its contents and permission bits; folders with none.
fn tree(root: &Path) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                folders.push(path);
                found.insert(name, (Vec::new(), 0));
            } else {
                let contents = match metadata.is_file() {
                    true => fs::read(&path).unwrap(),
                    false => Vec::new(),
                };
                found.insert(name, (contents, metadata.mode() & 0o777));
            }
        }
    }
    found
}

/// A transaction with every kind of step.
fn prepare(root: &Path) {
    for (path, contents) in [
        ("a", "old a"),
        ("d/b", "old b"),
        ("gone", "old gone"),
        ("from", "moved"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o751)).unwrap();
}

fn stage(editor: &Editor) -> Transaction {
    let mut transaction = editor.begin();
    transaction.replace("a", b"new a".to_vec(), None).unwrap();
    transaction
        .replace("./d/../d/b", b"new b".to_vec(), None)
        .unwrap();
    transaction
        .create("new/folder/c", b"new c".to_vec())
        .unwrap();
    transaction.delete("gone", None).unwrap();
    transaction.move_file("from", "new/to", None).unwrap();
    transaction
}

#[test]
fn all_of_a_transaction_is_done_and_told_file_by_file() {
    let desk = Desk::new();
    prepare(desk.fixture.path());
    let changes = stage(&desk.editor).commit().unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.path.as_str(), change.action, change.sha256.is_some()))
        .collect();
    assert_eq!(
        told,
        [
            ("a", Action::Replaced, true),
            ("d/b", Action::Replaced, true),
            ("gone", Action::Deleted, false),
            ("new/folder/c", Action::Created, true),
            ("new/to", Action::Moved, true),
        ]
    );
    let now = tree(desk.fixture.path());
    let files: Vec<_> = now.keys().map(String::as_str).collect();
    assert_eq!(
        files,
        [
            "a",
            "d",
            "d/b",
            "new",
            "new/folder",
            "new/folder/c",
            "new/to"
        ]
    );
    assert_eq!(now["a"], (b"new a".to_vec(), 0o751));
    assert_eq!(now["new/to"].0, b"moved");
}

#[test]
fn edits_of_one_file_follow_each_other_whatever_it_is_called_by() {
    let desk = Desk::new();
    desk.write("d/a.txt", "1");
    symlink("d", desk.fixture.path().join("link")).unwrap();
    let host = format!("{}/d/a.txt", desk.fixture.path().display());
    let mut transaction = desk.editor.begin();
    for (path, contents) in [
        ("d/a.txt", "2"),
        ("./d/a.txt", "3"),
        ("link/a.txt", "4"),
        (&host, "5"),
    ] {
        assert!(transaction.contents(path).unwrap().is_some());
        transaction.replace(path, contents.into(), None).unwrap();
    }
    assert_eq!(transaction.commit().unwrap().len(), 1);
    assert_eq!(fs::read_to_string(&host).unwrap(), "5");
}

#[test]
fn what_may_not_be_changed_is_refused_and_nothing_is_made_outside() {
    let desk = Desk::new();
    desk.write(".git/hooks/pre-commit", "x");
    desk.write("file", "x");
    let root = desk.fixture.path();
    symlink(desk.fixture.outside(), root.join("out")).unwrap();
    symlink("file", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink(".git", root.join("innocent")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let before = tree(desk.fixture.outside());
    let code = |path: &str| {
        let mut transaction = desk.editor.begin();
        transaction.create(path, Vec::new()).unwrap_err().code()
    };
    for (path, expected) in [
        ("../x", "outside-workspace"),
        ("/etc/x", "outside-workspace"),
        ("out/x", "outside-workspace"),
        ("out/new/x", "outside-workspace"),
        ("", "outside-workspace"),
        (".", "is-directory"),
        ("file", "exists"),
        ("link", "denied"),
        ("dangling", "denied"),
        ("dangling/x", "not-directory"),
        ("file/x", "not-directory"),
        ("fifo", "not-a-file"),
        (".git/hooks/post-commit", "denied"),
        ("innocent/hooks/post-commit", "denied"),
        (".floe-1.tmp", "denied"),
    ] {
        assert_eq!(code(path), expected, "{path}");
    }
    let mut transaction = desk.editor.begin();
    for path in ["missing", "link", ".git/hooks/pre-commit"] {
        assert!(transaction.replace(path, Vec::new(), None).is_err());
        assert!(transaction.delete(path, None).is_err());
        assert!(transaction.move_file("file", path, None).is_err() || path == "missing");
    }
    drop(transaction);
    assert_eq!(tree(desk.fixture.outside()), before);
}

#[test]
fn a_file_that_is_not_what_was_expected_or_read_is_refused_with_what_changed() {
    let desk = Desk::new();
    desk.write("a", "one");
    desk.write("b", "two");
    let reader = desk.editor.workspace.clone();
    let mut transaction = desk.editor.begin();
    let wrong = super::contents::digest(b"other");
    let refused = transaction
        .replace("a", b"x".to_vec(), Some(&wrong))
        .unwrap_err();
    assert_eq!(refused.code(), "conflict");
    reader.read_range("a", 0, 10).unwrap();
    desk.write("a", "longer");
    transaction.replace("a", b"mine".to_vec(), None).unwrap();
    transaction.replace("b", b"mine".to_vec(), None).unwrap();
    let faults = transaction.commit().unwrap_err();
    let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["\"a\" has changed since it was read: it had 3 bytes, and now 6."]
    );
    assert_eq!(fs::read(desk.fixture.path().join("b")).unwrap(), b"two");
    // Read again, it may be edited, and again after that.
    for contents in ["mine", "mine too"] {
        if contents == "mine" {
            reader.read_range("a", 0, 10).unwrap();
        }
        let mut transaction = desk.editor.begin();
        transaction.replace("a", contents.into(), None).unwrap();
        transaction.commit().unwrap();
    }
}

#[test]
fn a_file_that_was_made_executable_since_it_was_read_is_not_stale() {
    let desk = Desk::new();
    desk.write("a", "one");
    desk.editor.workspace.read_range("a", 0, 10).unwrap();
    let path = desk.fixture.path().join("a");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"two".to_vec(), None).unwrap();
    transaction.commit().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o755);
}

#[test]
fn what_changes_between_staging_and_commit_is_not_lost() {
    let desk = Desk::new();
    desk.write("a", "one");
    desk.write("b", "two");
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"mine".to_vec(), None).unwrap();
    transaction.delete("b", None).unwrap();
    transaction.create("c", b"mine".to_vec()).unwrap();
    desk.write("a", "theirs");
    fs::remove_file(desk.fixture.path().join("b")).unwrap();
    desk.write("c", "theirs");
    let before = tree(desk.fixture.path());
    let codes: Vec<_> = transaction
        .commit()
        .unwrap_err()
        .iter()
        .map(|fault| fault.code())
        .collect();
    assert_eq!(codes, ["conflict", "conflict", "exists"]);
    assert_eq!(tree(desk.fixture.path()), before);
}

#[test]
fn writers_of_one_file_take_their_turns_and_no_update_is_lost() {
    let desk = Desk::new();
    desk.write("count", "0");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut done = 0;
                while done < 25 {
                    let mut transaction = desk.editor.begin();
                    let text = transaction.contents("count").unwrap().unwrap().to_vec();
                    let next: u32 = String::from_utf8(text).unwrap().parse::<u32>().unwrap() + 1;
                    transaction
                        .replace("count", next.to_string().into(), None)
                        .unwrap();
                    done += u32::from(transaction.commit().is_ok());
                }
            });
        }
    });
    let count = fs::read_to_string(desk.fixture.path().join("count")).unwrap();
    assert_eq!(count, "100");
}

/// How many points a whole transaction passes.
fn points() -> usize {
    let desk = Desk::new();
    prepare(desk.fixture.path());
    failpoint::arm(usize::MAX, Fault::Full);
    stage(&desk.editor).commit().unwrap();
    failpoint::reached().len()
}

#[test]
fn a_fault_at_any_point_leaves_everything_as_it_was_or_as_it_was_to_be() {
    let points = points();
    assert!(points > 15, "{points}");
    for point in 0..points {
        let desk = Desk::new();
        prepare(desk.fixture.path());
        let before = tree(desk.fixture.path());
        let transaction = stage(&desk.editor);
        failpoint::arm(point, Fault::Full);
        let done = transaction.commit();
        let name = failpoint::reached().pop().unwrap();
        if done.is_ok() {
            // Only the last record failed; the next start finishes it.
            assert!(desk.editor.recover(&desk.journals()).unwrap()[0].finished);
            assert_eq!(tree(desk.fixture.path()).len(), 7, "{point} {name}");
        } else {
            assert_eq!(tree(desk.fixture.path()), before, "{point} {name}");
        }
        assert!(desk.editor.recover(&desk.journals()).unwrap().is_empty());
    }
}

/// Set where this program is run again as a host that is to die at this point.
const DIES_AT: &str = "FLOE_TEST_DIES_AT";

#[test]
fn a_host_that_dies_at_any_point_leaves_old_or_new_once_another_has_started() {
    if let Ok(point) = std::env::var(DIES_AT) {
        let beside = PathBuf::from(std::env::var_os("FLOE_TEST_BESIDE").unwrap());
        let workspace = Workspace::open(&beside.join("workspace")).unwrap();
        let transaction = stage(&editor(&workspace, &beside));
        failpoint::arm(point.parse().unwrap(), Fault::Death);
        let _ = transaction.commit();
        return;
    }
    let (mut old, mut new) = (0, 0);
    for point in 0..points() {
        let desk = Desk::new();
        prepare(desk.fixture.path());
        let before = tree(desk.fixture.path());
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["a_host_that_dies_at_any_point", "--test-threads=1"])
            .env(DIES_AT, point.to_string())
            .env("FLOE_TEST_BESIDE", desk.fixture.outside())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9), "{point}");
        desk.editor.recover(&desk.journals()).unwrap();
        let now = tree(desk.fixture.path());
        if now == before {
            old += 1;
        } else {
            assert_eq!(now.len(), 7, "{point}: {:?}", now.keys());
            assert_eq!(
                (now["a"].0.as_slice(), now["new/to"].0.as_slice()),
                (&b"new a"[..], &b"moved"[..])
            );
            new += 1;
        }
        assert!(desk.editor.recover(&desk.journals()).unwrap().is_empty());
    }
    assert!(old > 5 && new > 3, "{old} {new}");
}

#[test]
fn what_others_changed_meanwhile_is_left_where_an_unfinished_transaction_is_taken_back() {
    let desk = Desk::new();
    prepare(desk.fixture.path());
    let transaction = stage(&desk.editor);
    // After the first name was changed nothing works any more, and a host dies of it.
    let reached = {
        failpoint::arm(usize::MAX, Fault::Full);
        points()
    };
    assert!(reached > 0);
    drop(transaction);
    let names = |desk: &Desk| {
        let beside = desk.fixture.outside().to_owned();
        (0..points()).find(|point| {
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["a_host_that_dies_at_any_point", "--test-threads=1"])
                .env(DIES_AT, point.to_string())
                .env("FLOE_TEST_BESIDE", &beside)
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert_eq!(status.signal(), Some(9));
            fs::read(desk.fixture.path().join("a")).unwrap() == b"new a"
        })
    };
    names(&desk).expect("a point behind the first change");
    desk.write("d/b", "theirs");
    let recovered = desk.editor.recover(&desk.journals()).unwrap();
    let undone = recovered.iter().find(|one| !one.finished).unwrap();
    assert_eq!(undone.left, ["d/b"]);
    let now = tree(desk.fixture.path());
    assert_eq!(
        (now["a"].0.as_slice(), now["d/b"].0.as_slice()),
        (&b"old a"[..], &b"theirs"[..])
    );
    assert!(
        now.keys().all(|name| !name.contains(".tmp")),
        "{:?}",
        now.keys()
    );
}

#[test]
fn what_somebody_wrote_at_the_last_moment_is_put_back_though_the_host_died_before_it_looked() {
    if let Ok(step) = std::env::var(DIES_AT) {
        let beside = PathBuf::from(std::env::var_os("FLOE_TEST_BESIDE").unwrap());
        let workspace = Workspace::open(&beside.join("workspace")).unwrap();
        let mut transaction = editor(&workspace, &beside).begin();
        match step.as_str() {
            "replace" => transaction.replace("a", b"mine".to_vec(), None).unwrap(),
            _ => transaction.delete("a", None).unwrap(),
        }
        // Between the last look and the change, then between the change and the next look.
        let name = "look at what was taken away";
        failpoint::before("change a name", move || {
            fs::write(beside.join("workspace/a"), "theirs").unwrap();
        });
        failpoint::die_at(name);
        let _ = transaction.commit();
        return;
    }
    for step in ["replace", "delete"] {
        let desk = Desk::new();
        desk.write("a", "old");
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["what_somebody_wrote_at_the_last_moment", "--test-threads=1"])
            .env(DIES_AT, step)
            .env("FLOE_TEST_BESIDE", desk.fixture.outside())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9));
        let recovered = desk.editor.recover(&desk.journals()).unwrap();
        assert_eq!(
            (recovered[0].finished, &recovered[0].left[..]),
            (false, &["a".to_owned()][..]),
            "{step}"
        );
        let now = tree(desk.fixture.path());
        assert_eq!(now["a"].0, b"theirs", "{step}");
        assert_eq!(now.len(), 1, "{:?}", now.keys());
    }
}

#[test]
fn a_fifo_is_no_version_of_an_empty_file() {
    let desk = Desk::new();
    desk.write("a", "");
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"new".to_vec(), None).unwrap();
    transaction.commit().unwrap();
    fs::remove_file(desk.fixture.path().join("a")).unwrap();
    let make = |name: &str| {
        let path = desk.fixture.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
    };
    make("a");
    let target = super::target::Target::open(&desk.fixture.workspace, Path::new("a")).unwrap();
    assert!(super::contents::read_beside(&target, "a").is_err());
    assert!(desk.undo().is_err());
    let mut transaction = desk.editor.begin();
    assert_eq!(
        transaction
            .replace("a", Vec::new(), None)
            .unwrap_err()
            .code(),
        "not-a-file"
    );
}

#[test]
fn what_transactions_hold_together_is_bounded_and_given_back() {
    const MEBIBYTE: usize = 1024 * 1024;
    let desk = Desk::new();
    let most = usize::try_from(super::MAX_HELD).unwrap();
    let size = 16 * MEBIBYTE;
    let mut transactions = vec![desk.editor.begin(), desk.editor.begin()];
    let mut stage =
        |number: usize| transactions[number % 2].create(&format!("{number}"), vec![b'x'; size]);
    let held = (0..most / size)
        .take_while(|number| stage(*number).is_ok())
        .count();
    assert_eq!(held, most / size - 1);
    assert_eq!(stage(99).unwrap_err().code(), "too-large");
    transactions.pop();
    // Other contents of a staged file take the place of those before.
    let transaction = &mut transactions[0];
    for _ in 0..100 {
        transaction.replace("0", vec![b'y'; size], None).unwrap();
        transaction.delete("0", None).unwrap();
        transaction.create("0", vec![b'z'; size]).unwrap();
    }
    // A file without contents counts as well.
    drop(transactions);
    let mut transaction = desk.editor.begin();
    let many = (0..100_000).take_while(|number| {
        transaction
            .create(&format!("n{number}"), Vec::new())
            .is_ok()
    });
    assert_eq!(many.count(), 4096);
    drop(transaction);
    desk.editor.begin().create("n", vec![b'x'; size]).unwrap();
}

#[test]
fn transactions_are_taken_back_one_after_the_other_the_last_first() {
    let desk = Desk::new();
    prepare(desk.fixture.path());
    let first = tree(desk.fixture.path());
    stage(&desk.editor).commit().unwrap();
    let second = tree(desk.fixture.path());
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"newer".to_vec(), None).unwrap();
    transaction.commit().unwrap();
    assert_eq!(desk.undo().unwrap().unwrap().paths, ["a"]);
    assert_eq!(tree(desk.fixture.path()), second);
    assert_eq!(desk.undo().unwrap().unwrap().paths.len(), 6);
    assert_eq!(tree(desk.fixture.path()), first);
    assert_eq!(desk.undo().unwrap(), None);
}

#[test]
fn a_transaction_whose_files_have_changed_since_is_not_taken_back() {
    let desk = Desk::new();
    desk.write("a", "old");
    desk.write("b", "old");
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"new".to_vec(), None).unwrap();
    transaction.replace("b", b"new".to_vec(), None).unwrap();
    transaction.commit().unwrap();
    desk.write("b", "theirs");
    let before = tree(desk.fixture.path());
    assert_eq!(desk.undo().unwrap_err().code(), "conflict");
    assert_eq!(tree(desk.fixture.path()), before);
}

#[test]
fn files_that_have_changed_since_can_be_kept_while_the_others_are_taken_back() {
    let desk = Desk::new();
    desk.write("a", "old");
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"first".to_vec(), None).unwrap();
    transaction.commit().unwrap();
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"new".to_vec(), None).unwrap();
    transaction.create("d/b", b"new".to_vec()).unwrap();
    transaction.create("e/c", b"new".to_vec()).unwrap();
    transaction.commit().unwrap();
    desk.write("d/b", "theirs");
    fs::remove_file(desk.fixture.path().join("e/c")).unwrap();
    assert_eq!(desk.undo().unwrap_err().path(), "d/b");
    let undone = desk.undo_with(ChangedSince::Keep).unwrap().unwrap();
    assert_eq!(
        (undone.paths, undone.kept),
        (vec!["a".into(), "e/c".into()], vec!["d/b".into()])
    );
    let now = tree(desk.fixture.path());
    let names: Vec<&str> = now.keys().map(String::as_str).collect();
    // The folder that held nothing else is gone as well.
    assert_eq!(names, ["a", "d", "d/b"]);
    assert_eq!(
        (now["a"].0.as_slice(), now["d/b"].0.as_slice()),
        (&b"first"[..], &b"theirs"[..])
    );
    // And the way to the one before is free.
    assert_eq!(desk.undo().unwrap().unwrap().paths, ["a"]);
    assert_eq!(fs::read(desk.fixture.path().join("a")).unwrap(), b"old");
}

#[test]
fn a_transaction_all_of_whose_files_have_changed_since_is_passed_over_where_they_are_kept() {
    let desk = Desk::new();
    for contents in ["one", "two"] {
        desk.write("a", contents);
        desk.editor.workspace.read_range("a", 0, 10).unwrap();
        let mut transaction = desk.editor.begin();
        transaction.replace("a", b"mine".to_vec(), None).unwrap();
        transaction.commit().unwrap();
    }
    desk.write("a", "theirs");
    let undone = desk.undo_with(ChangedSince::Keep).unwrap().unwrap();
    assert_eq!((undone.paths.len(), undone.kept), (0, vec!["a".into()]));
    desk.write("a", "mine");
    assert_eq!(desk.undo().unwrap().unwrap().paths, ["a"]);
    assert_eq!(fs::read(desk.fixture.path().join("a")).unwrap(), b"one");
}

#[test]
fn what_somebody_has_taken_back_already_stands_in_no_way() {
    let desk = Desk::new();
    desk.write("a", "old");
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"new".to_vec(), None).unwrap();
    transaction.create("b", b"new".to_vec()).unwrap();
    transaction.commit().unwrap();
    desk.write("a", "old");
    assert_eq!(desk.undo().unwrap().unwrap().paths, ["a", "b"]);
    assert_eq!(tree(desk.fixture.path()).len(), 1);
}

#[test]
fn a_file_as_deep_as_paths_lead_is_made_and_taken_back_with_its_folders_and_none_deeper() {
    let desk = Desk::new();
    let root = desk.fixture.workspace.canonical_path().as_os_str().len();
    let path = vec!["folders"; (4095 - root) / 8].join("/");
    let mut transaction = desk.editor.begin();
    transaction.create(&path, b"deep".to_vec()).unwrap();
    let deeper = transaction.create(&format!("folders/{path}"), Vec::new());
    assert_eq!(deeper.unwrap_err().code(), "too-deep");
    transaction.commit().unwrap();
    desk.undo().unwrap().unwrap();
    assert!(tree(desk.fixture.path()).is_empty());
}

#[test]
fn a_preview_is_a_diff_of_what_is_staged_and_changes_nothing() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    let before = tree(desk.fixture.outside());
    let mut transaction = desk.editor.begin();
    transaction.replace("a", b"two\n".to_vec(), None).unwrap();
    transaction.create("b", b"new\n".to_vec()).unwrap();
    assert_eq!(
        transaction.preview(),
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n"
    );
    drop(transaction);
    assert_eq!(tree(desk.fixture.outside()), before);
}

#[test]
fn temporary_files_are_hidden_from_listings_and_walks() {
    let desk = Desk::new();
    desk.write(".floe-1-0.tmp", "half");
    desk.write("a", "x");
    let listing = desk.fixture.workspace.list_directory(".", 9).unwrap();
    assert_eq!((listing.entries.len(), listing.total), (1, 1));
}
