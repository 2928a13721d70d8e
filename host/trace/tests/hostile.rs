//! Whatever stands where a Trace should be: it is named or left out, nothing waits, nothing overflows, and the Traces beside it stay in reach.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use floe_protocol::{AgentId, Home, ModelMsg, OmniMessage, SessionId};
use floe_trace::{FaultKind, TraceState, TraceWriter, VerifyTarget, find, list, read, verify};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const GOOD: &str = "session-2026-11-30-09-00-00-00000001";
const BAD: &str = "session-2026-11-30-09-00-00-00000002";

struct Fixture {
    _folder: TempDir,
    home: Home,
    /// The folder of the day.
    day: PathBuf,
}

impl Fixture {
    /// A home with one good Trace.
    fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().canonicalize().unwrap());
        let mut writer = TraceWriter::create(&home, &AgentId::default(), &GOOD.parse().unwrap());
        let text = OmniMessage::model(ModelMsg::user_text("good"));
        writer.append(&text).unwrap();
        writer.sync().unwrap();
        Fixture {
            day: writer.path().unwrap().parent().unwrap().to_owned(),
            home,
            _folder: folder,
        }
    }

    /// Where the bad Trace lies.
    fn bad(&self) -> PathBuf {
        self.day.join(format!("{BAD}_001.jsonl"))
    }

    /// The good Trace is in the list and is found; the bad one is in the list with a fault.
    fn assert_that_only_the_bad_one_is_at_fault(&self, what: &str) {
        let listed = list(&self.home).unwrap();
        let fault = |session: &str| {
            let trace = listed
                .iter()
                .find(|trace| trace.session.as_str() == session);
            trace
                .unwrap_or_else(|| panic!("{what}: {session}"))
                .fault
                .clone()
        };
        assert_eq!(fault(GOOD), None, "{what}");
        assert!(fault(BAD).is_some(), "{what}");
        assert!(find(&self.home, GOOD).is_ok(), "{what}");
        let target = |id: &str| VerifyTarget::Session {
            home: &self.home,
            id: id.to_owned(),
        };
        assert!(verify(&target(GOOD), None).unwrap().is_sound(), "{what}");
        assert!(verify(&target(BAD), None).is_err(), "{what}");
        assert!(read(&self.bad()).is_err(), "{what}");
        let resumed = TraceWriter::resume(&self.home, &AgentId::default(), &BAD.parse().unwrap());
        assert!(resumed.is_err(), "{what}");
    }
}

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn verify_bytes(bytes: &[u8]) -> Vec<(u64, FaultKind)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.jsonl");
    fs::write(&path, bytes).unwrap();
    // Reading ends too, whatever it finds.
    read(&path).unwrap().for_each(drop);
    let faults = verify(&VerifyTarget::File(path), None).unwrap().faults;
    faults
        .iter()
        .map(|fault| (fault.line, fault.kind))
        .collect()
}

/// A record as somebody could forge it, with a right hash.
fn forged(json: &str, seq: u64) -> Vec<u8> {
    let body = json.strip_suffix('}').unwrap();
    let covered = format!("{body},\"seq\":{seq},\"prev\":\"{}\"", "0".repeat(64));
    let hash: String = Sha256::digest(covered.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{covered},\"hash\":\"{hash}\"}}\n").into_bytes()
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting_and_hides_nothing_else() {
    let fixture = Fixture::new();
    let bad = fixture.bad();
    make_fifo(&bad);
    fixture.assert_that_only_the_bad_one_is_at_fault("a FIFO");
    fs::remove_file(&bad).unwrap();
    fs::create_dir(&bad).unwrap();
    fixture.assert_that_only_the_bad_one_is_at_fault("a folder");
    fs::remove_dir(&bad).unwrap();
    for target in ["/dev/zero", "/nonexistent", bad.to_str().unwrap()] {
        symlink(target, &bad).unwrap();
        fixture.assert_that_only_the_bad_one_is_at_fault(target);
        fs::remove_file(&bad).unwrap();
    }
}

#[test]
fn a_head_that_is_no_regular_file_is_an_error_and_not_waited_for() {
    let fixture = Fixture::new();
    let head = fixture.home.head(&GOOD.parse().unwrap());
    let target = VerifyTarget::Session {
        home: &fixture.home,
        id: GOOD.to_owned(),
    };
    fs::remove_file(&head).unwrap();
    make_fifo(&head);
    assert!(verify(&target, None).is_err());
    assert_eq!(
        list(&fixture.home).unwrap()[0].state,
        TraceState::Interrupted
    );
    fs::remove_file(&head).unwrap();
    // A head of any size is read only as far as a head can reach.
    let file = fs::File::create(&head).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = verify(&target, None).unwrap_err().to_string();
    assert!(error.contains("is not the head of a Trace"), "{error}");
}

#[test]
fn a_file_or_a_folder_without_permissions_is_an_error_that_names_it() {
    let fixture = Fixture::new();
    let bad = fixture.bad();
    fs::write(&bad, "").unwrap();
    let close = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    close(&bad, 0o000).unwrap();
    without_privileges(|| fixture.assert_that_only_the_bad_one_is_at_fault("a closed file"));
    // Of another agent, whose folder is closed, nobody can tell what he has; what is found elsewhere stays found.
    let other = fixture.home.traces(&"other".parse().unwrap());
    for mode in [0o000, 0o444] {
        fs::create_dir_all(other.join("2026-11-30")).unwrap();
        close(&other, mode).unwrap();
        without_privileges(|| {
            let error = list(&fixture.home).unwrap_err().to_string();
            assert!(error.contains("other"), "{error}");
            assert!(find(&fixture.home, GOOD).is_ok());
            let error = find(&fixture.home, "session-2027").unwrap_err().to_string();
            assert!(error.contains("other"), "{error}");
        });
        close(&other, 0o700).unwrap();
    }
    // A file in its place never passes for a copy, which would stand without its head.
    let closed = fixture.day.parent().unwrap().join("2026-11-29");
    fs::create_dir(&closed).unwrap();
    close(&closed, 0o000).unwrap();
    let good = find(&fixture.home, GOOD).unwrap().files.remove(0);
    without_privileges(|| assert!(verify(&VerifyTarget::File(good), None).is_err()));
    close(&closed, 0o700).unwrap();
}

#[test]
fn traces_that_come_and_go_meanwhile_break_neither_the_list_nor_the_search() {
    let fixture = Fixture::new();
    let agents = fixture.home.agents();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let session = SessionId::generate();
                let agent: AgentId = "brief".parse().unwrap();
                let mut writer = TraceWriter::create(&fixture.home, &agent, &session);
                let text = OmniMessage::model(ModelMsg::user_text("brief"));
                writer.append(&text).unwrap();
                fs::remove_file(writer.path().unwrap()).unwrap();
                drop(writer);
                fs::remove_dir_all(agents.join("brief")).unwrap();
            }
        });
        for _ in 0..500 {
            let listed = list(&fixture.home).unwrap();
            assert!(listed.iter().any(|trace| trace.session.as_str() == GOOD));
            find(&fixture.home, GOOD).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_huge_file_is_listed_without_being_read_whole() {
    let fixture = Fixture::new();
    let file = fs::File::create(fixture.bad()).unwrap();
    file.set_len(1 << 40).unwrap();
    let listed = list(&fixture.home).unwrap();
    let bad = listed.iter().find(|trace| trace.session.as_str() == BAD);
    let bad = bad.unwrap();
    assert_eq!((bad.records, &bad.started), (0, &None));
    assert_eq!(bad.state, TraceState::Interrupted);
}

#[test]
fn numbers_that_nobody_can_reach_are_no_records() {
    for seq in [u64::MAX, u64::MAX - 1] {
        let bytes = [forged("{\"a\":1}", seq), forged("{\"a\":1}", 0)].concat();
        assert_eq!(verify_bytes(&bytes), [(1, FaultKind::Changed)]);
    }
    let largest = forged("{\"a\":1}", u64::MAX / 2);
    assert_eq!(verify_bytes(&largest), [(1, FaultKind::Missing)]);
}

#[test]
fn lines_that_are_deep_or_not_text_are_named_and_reading_goes_on() {
    let deep = format!("{{\"a\":{}{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    for (line, kind) in [
        (deep.as_bytes(), FaultKind::Changed),
        (b"{\"a\":\"\xff\xfe\"}\n", FaultKind::NotJson),
        (b"\0\0\0\0\n", FaultKind::NotJson),
        (b"{\"a\":\"\0\"}\n", FaultKind::NotJson),
    ] {
        let bytes = [line, &forged("{\"a\":1}", 0)].concat();
        let shown = String::from_utf8_lossy(&line[..line.len().min(20)]);
        assert_eq!(verify_bytes(&bytes)[0], (1, kind), "{shown}");
    }
}

#[test]
fn a_fault_repeats_nothing_that_a_terminal_obeys_and_not_much() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("\u{1b}[2J.jsonl");
    let kind = format!("\\u001b[2J{}", "x".repeat(100_000));
    let line = format!("{{\"timestamp\":\"\",\"type\":\"{kind}\",\"payload\":{{}}}}\n");
    fs::write(&path, line).unwrap();
    let fault = read(&path)
        .unwrap()
        .next()
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(fault.len() < 1000 && !fault.contains('\u{1b}'), "{fault}");
    let faults = verify(&VerifyTarget::File(path), None).unwrap().faults;
    assert!(!faults[0].to_string().contains('\u{1b}'));
    let missing = VerifyTarget::File(folder.path().join("\u{1b}"));
    let error = verify(&missing, None).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'));
}

/// Runs in a thread of its own that has put away what lets root read everything.
fn without_privileges(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).unwrap();
            run();
        });
        thread.join().unwrap();
    });
}
