use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

use floe_protocol::{Body, ModelMsg, Phase, Role};
use tempfile::TempDir;

use super::*;
use crate::{End, FaultKind, Record, Verification, VerifyTarget, find, read, verify};

struct Fixture {
    _folder: TempDir,
    home: Home,
    agent: AgentId,
    session: SessionId,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        Fixture {
            home: Home::new(folder.path().join("home")),
            _folder: folder,
            agent: AgentId::default(),
            session: "session-2026-11-30-09-00-00-0123abcd".parse().unwrap(),
        }
    }

    fn create(&self) -> TraceWriter {
        TraceWriter::create(&self.home, &self.agent, &self.session)
    }

    fn resume(&self) -> Result<TraceWriter, TraceError> {
        TraceWriter::resume(&self.home, &self.agent, &self.session)
    }

    fn files(&self) -> Vec<PathBuf> {
        of_session(&self.home, &self.agent, &self.session).unwrap()
    }

    fn records(&self) -> Vec<Record> {
        let files = self.files();
        files
            .iter()
            .flat_map(|file| read(file).unwrap().filter_map(Result::ok))
            .collect()
    }

    fn verified(&self) -> Verification {
        let target = VerifyTarget::Session {
            home: &self.home,
            id: self.session.to_string(),
        };
        verify(&target, None).unwrap()
    }
}

fn text(text: &str) -> OmniMessage {
    OmniMessage::model(ModelMsg::user_text(text))
}

fn kinds(records: &[Record]) -> Vec<String> {
    records
        .iter()
        .map(|record| match &record.message.body {
            Body::ModelMsg(ModelMsg::Text { text, .. }) => text.clone(),
            Body::EventMsg(EventMsg::TraceHealed { bytes }) => format!("healed {bytes}"),
            Body::EventMsg(EventMsg::TraceGap { records, .. }) => format!("gap {records}"),
            Body::EventMsg(EventMsg::Warning { code, .. }) => code.clone(),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_file_is_made_with_the_first_record_in_a_folder_of_the_day_for_this_user_only() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    assert_eq!(writer.path(), None);
    assert_eq!(writer.sync().unwrap(), None);
    assert!(!fixture.home.root().exists());
    writer.append(&text("a")).unwrap();
    let path = writer.path().unwrap().to_owned();
    let today = jiff::ZonedDateTime::now().strftime("%Y-%m-%d").to_string();
    let traces = fixture.home.traces(&fixture.agent);
    // The day may have changed since the file was made.
    assert!(path.parent().unwrap() <= traces.join(today).as_path());
    assert_eq!(
        path.file_name().unwrap().to_str().unwrap(),
        format!("{}_001.jsonl", fixture.session)
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    for folder in [path.parent().unwrap(), &traces, fixture.home.root()] {
        assert_eq!(mode(folder), 0o700);
    }
}

#[test]
fn only_what_is_complete_and_of_this_session_is_kept() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer
        .append(&OmniMessage::model(ModelMsg::PartialText {
            role: Role::Assistant,
            event_type: Phase::Delta,
            text: "a".into(),
            stop_reason: None,
        }))
        .unwrap();
    writer.append(&text("child").with_origin("s")).unwrap();
    assert_eq!(writer.path(), None);
    writer.append(&text("mine")).unwrap();
    assert_eq!(kinds(&fixture.records()), ["mine"]);
}

#[test]
fn a_message_reads_back_as_it_was_appended_whatever_it_holds() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    let hostile = text("\",\"hash\":\"x\"}\n\r\0\u{2028}\u{1b}[2J,\"prev\":");
    let large = text(&"x".repeat(5 << 20));
    writer.append(&hostile).unwrap();
    writer.append(&large).unwrap();
    let records = fixture.records();
    assert_eq!(records[0].message, hostile);
    assert_eq!(records[1].message, large);
    assert!(records.iter().all(|record| record.intact));
    assert!(fixture.verified().is_sound());
    // A buffer that one large record needed is not kept for the small ones.
    writer.append(&text("small")).unwrap();
    assert!(writer.buffer.capacity() <= KEPT_BUFFER);
}

#[test]
fn the_chain_goes_on_in_the_next_file_and_the_one_before_stays() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    writer.rotate().unwrap();
    writer.rotate().unwrap();
    writer.append(&text("b")).unwrap();
    assert!(
        writer
            .path()
            .unwrap()
            .to_str()
            .unwrap()
            .ends_with("_002.jsonl")
    );
    writer.sync().unwrap();
    assert_eq!(fixture.files().len(), 2);
    let verified = fixture.verified();
    assert_eq!((verified.records, verified.end), (2, End::Anchored));
    assert!(verified.faults.is_empty());
    let seqs: Vec<_> = fixture.records().iter().map(|record| record.seq).collect();
    assert_eq!(seqs, [Some(0), Some(1)]);
}

#[test]
fn the_head_is_the_last_record_and_what_follows_it_is_said() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    let head = writer.sync().unwrap().unwrap();
    assert_eq!(
        (head.seq, Some(head.hash.as_str())),
        (0, writer.last_hash())
    );
    assert_eq!(
        Head::load(&fixture.home, &fixture.session).unwrap(),
        Some(head)
    );
    assert_eq!(fixture.verified().end, End::Anchored);
    writer.append(&text("b")).unwrap();
    let verified = fixture.verified();
    assert!(verified.is_sound());
    assert_eq!(verified.end, End::Beyond(1));
}

#[test]
fn a_resumed_session_goes_on_after_its_last_record() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    writer.rotate().unwrap();
    writer.append(&text("b")).unwrap();
    writer.sync().unwrap();
    drop(writer);
    let mut writer = fixture.resume().unwrap();
    assert_eq!(writer.healed(), None);
    writer.append(&text("c")).unwrap();
    writer.sync().unwrap();
    assert_eq!(kinds(&fixture.records()), ["a", "b", "c"]);
    assert_eq!(fixture.files().len(), 2);
    assert_eq!(fixture.verified().end, End::Anchored);
    assert!(fixture.verified().is_sound());
}

#[test]
fn a_session_without_a_trace_is_resumed_at_its_beginning() {
    let fixture = Fixture::new();
    let mut writer = fixture.resume().unwrap();
    writer.append(&text("a")).unwrap();
    assert_eq!(fixture.records()[0].seq, Some(0));
}

#[test]
fn a_last_line_torn_anywhere_is_ended_and_reported_by_the_next_writer() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    writer.sync().unwrap();
    let path = writer.path().unwrap().to_owned();
    let whole = fs::read(&path).unwrap().len();
    writer.append(&text("b")).unwrap();
    drop(writer);
    let bytes = fs::read(&path).unwrap();
    for end in whole + 1..bytes.len() {
        fs::write(&path, &bytes[..end]).unwrap();
        let torn = fixture.verified();
        assert!(
            torn.faults
                .iter()
                .any(|fault| fault.kind == FaultKind::CutOff && fault.line == 2)
        );
        // A record that lacks only its newline is whole.
        let lost = if end + 1 == bytes.len() {
            0
        } else {
            end - whole
        };
        let mut writer = fixture.resume().unwrap();
        assert_eq!(writer.healed(), Some(lost as u64));
        writer.append(&text("c")).unwrap();
        drop(writer);
        let verified = fixture.verified();
        assert!(verified.is_sound(), "{end}: {:?}", verified.faults);
        assert_eq!(verified.healed, u64::from(lost > 0));
        let healed = format!("healed {lost}");
        let expected: &[&str] = if lost == 0 {
            &["a", "b", &healed, "c"]
        } else {
            &["a", &healed, "c"]
        };
        assert_eq!(kinds(&fixture.records()), expected);
    }
}

#[test]
fn a_healing_that_a_crash_ended_anywhere_is_healed_in_its_turn() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    writer.sync().unwrap();
    let path = writer.path().unwrap().to_owned();
    drop(writer);
    append_raw(&path, b"{\"torn");
    let torn = fs::read(&path).unwrap().len();
    // What the healing writes: a newline and its record.
    drop(fixture.resume().unwrap());
    let bytes = fs::read(&path).unwrap();
    for first in torn..bytes.len() {
        for second in if first % 16 == 0 { 0..20 } else { 0..1 } {
            fs::write(&path, &bytes[..first]).unwrap();
            // And the healing of the healing does not come to its end either.
            append_raw(&path, &b"\n{\"timestamp\":\"2026\""[..second]);
            let mut writer = fixture.resume().unwrap();
            writer.append(&text("c")).unwrap();
            drop(writer);
            let verified = fixture.verified();
            assert!(
                verified.is_sound(),
                "{first}, {second}: {:?}",
                verified.faults
            );
        }
    }
}

#[test]
fn a_line_of_json_that_is_no_record_is_not_explained_by_a_healing() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    let path = writer.path().unwrap().to_owned();
    drop(writer);
    append_raw(&path, b"garbage\n{\"payload\":1}\n");
    let mut writer = fixture.resume().unwrap();
    assert_eq!(writer.healed(), None);
    writer.append(&text("b")).unwrap();
    let kinds: Vec<_> = fixture
        .verified()
        .faults
        .iter()
        .map(|fault| (fault.line, fault.kind))
        .collect();
    assert_eq!(kinds, [(2, FaultKind::NotJson), (3, FaultKind::Changed)]);
}

#[test]
fn a_file_torn_in_its_first_line_goes_on_after_the_file_before() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    writer.rotate().unwrap();
    writer.append(&text("b")).unwrap();
    let path = writer.path().unwrap().to_owned();
    drop(writer);
    fs::write(&path, "{\"timest").unwrap();
    let mut writer = fixture.resume().unwrap();
    writer.append(&text("c")).unwrap();
    assert!(fixture.verified().is_sound());
    assert_eq!(kinds(&fixture.records()), ["a", "healed 8", "c"]);
}

#[test]
fn an_end_that_was_cut_before_its_head_is_recorded_when_the_session_goes_on() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    let path = writer.path().unwrap().to_owned();
    let bytes = fs::read(&path).unwrap();
    writer.append(&text("b")).unwrap();
    writer.sync().unwrap();
    drop(writer);
    fs::write(&path, bytes).unwrap();
    assert_eq!(fixture.verified().faults[0].kind, FaultKind::CutOff);
    fixture.resume().unwrap();
    assert_eq!(kinds(&fixture.records()), ["a", "trace_cut_off"]);
}

#[test]
fn a_head_that_cannot_be_read_is_recorded_and_written_anew() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    writer.sync().unwrap();
    drop(writer);
    fs::write(fixture.home.head(&fixture.session), "{\"session\":").unwrap();
    let target = VerifyTarget::Session {
        home: &fixture.home,
        id: fixture.session.to_string(),
    };
    let error = verify(&target, None).unwrap_err();
    assert!(
        error.to_string().contains("is not the head of a Trace"),
        "{error}"
    );
    fixture.resume().unwrap().sync().unwrap();
    assert_eq!(kinds(&fixture.records()), ["a", "trace_head_unreadable"]);
    assert_eq!(fixture.verified().end, End::Anchored);
}

#[test]
fn a_second_writer_is_kept_out_while_the_first_one_lives() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    let second = fixture.resume().unwrap_err();
    assert!(
        second
            .to_string()
            .contains("is being written by another process")
    );
    drop(writer);
    fixture.resume().unwrap();
}

#[test]
fn a_second_writer_is_kept_out_between_two_files_too() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    writer.rotate().unwrap();
    assert!(matches!(fixture.resume(), Err(TraceError::InUse { .. })));
    writer.append(&text("b")).unwrap();
    assert!(matches!(fixture.resume(), Err(TraceError::InUse { .. })));
    drop(writer);
    fixture.resume().unwrap();
    assert!(fixture.verified().is_sound());
}

#[test]
fn a_session_of_the_same_name_overwrites_nothing() {
    let fixture = Fixture::new();
    fixture.create().append(&text("first")).unwrap();
    let mut second = fixture.create();
    let error = second.append(&text("second")).unwrap_err();
    assert!(error.to_string().contains("File exists"), "{error}");
    assert_eq!(kinds(&fixture.records()), ["first"]);
    assert!(fixture.verified().is_sound());
}

#[test]
fn files_of_several_days_follow_each_other_by_number_whichever_way_the_clock_went() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    for name in ["a", "b", "c"] {
        writer.append(&text(name)).unwrap();
        writer.rotate().unwrap();
    }
    drop(writer);
    let traces = fixture.home.traces(&fixture.agent);
    for (file, day) in fixture
        .files()
        .iter()
        .zip(["2026-12-02", "2026-11-30", "2026-12-01"])
    {
        fs::create_dir_all(traces.join(day)).unwrap();
        fs::rename(file, traces.join(day).join(file.file_name().unwrap())).unwrap();
    }
    let mut writer = fixture.resume().unwrap();
    writer.append(&text("d")).unwrap();
    assert_eq!(kinds(&fixture.records()), ["a", "b", "c", "d"]);
    assert!(fixture.verified().is_sound());
}

#[test]
fn a_failed_write_fails_its_caller_only_and_the_gap_is_recorded_afterwards() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    // A file where a folder has to be.
    let traces = fixture.home.traces(&fixture.agent);
    fs::create_dir_all(traces.parent().unwrap()).unwrap();
    fs::write(&traces, "").unwrap();
    for lost in ["a", "b"] {
        let error = writer.append(&text(lost)).unwrap_err();
        assert!(error.to_string().starts_with("cannot create "), "{error}");
    }
    fs::remove_file(&traces).unwrap();
    writer.append(&text("c")).unwrap();
    writer.append(&text("d")).unwrap();
    assert_eq!(kinds(&fixture.records()), ["gap 2", "c", "d"]);
    assert!(fixture.verified().is_sound());
}

#[test]
fn a_full_disk_fails_the_record_and_the_next_sync_records_the_gap() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let file = std::mem::replace(&mut writer.current.as_mut().unwrap().file, full);
    let error = writer.append(&text("b")).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(writer.sync().is_err());
    writer.current.as_mut().unwrap().file = file;
    writer.sync().unwrap();
    assert_eq!(kinds(&fixture.records()), ["a", "gap 1"]);
    assert_eq!(fixture.verified().end, End::Anchored);
}

/// A write that ends in the middle: into a pipe that fills up, from which the bytes then go to the file as a disk would have kept them.
#[test]
fn a_record_that_was_written_in_part_is_healed_before_the_next() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    let path = writer.path().unwrap().to_owned();
    let (mut out, pipe) = std::io::pipe().unwrap();
    let pipe = OwnedFd::from(pipe);
    rustix::io::ioctl_fionbio(&pipe, true).unwrap();
    let current = writer.current.as_mut().unwrap();
    let file = std::mem::replace(&mut current.file, File::from(pipe));
    writer.append(&text(&"b".repeat(1 << 20))).unwrap_err();
    writer.current.as_mut().unwrap().file = file;
    let mut kept = Vec::new();
    out.read_to_end(&mut kept).unwrap();
    append_raw(&path, &kept);
    writer.append(&text("c")).unwrap();
    let healed = format!("healed {}", kept.len());
    assert_eq!(kinds(&fixture.records()), ["a", &healed, "gap 1", "c"]);
    let verified = fixture.verified();
    assert!(verified.is_sound(), "{:?}", verified.faults);
    assert_eq!(verified.healed, 1);
}

#[test]
fn lines_torn_one_after_the_other_are_healed_together() {
    let fixture = Fixture::new();
    let mut writer = fixture.create();
    writer.append(&text("a")).unwrap();
    append_raw(writer.path().unwrap(), b"{\"x\n{\"yz");
    writer.torn = Some(Torn {
        bytes: 7,
        open: true,
    });
    writer.append(&text("b")).unwrap();
    let verified = fixture.verified();
    assert!(verified.is_sound(), "{:?}", verified.faults);
    assert_eq!(verified.healed, 2);
    assert_eq!(kinds(&fixture.records()), ["a", "healed 7", "b"]);
}

fn append_raw(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_session_is_found_by_its_name_or_the_beginning_of_it() {
    let fixture = Fixture::new();
    let ids = [
        "session-2026-11-30-09-00-00-0123abcd",
        "session-2026-12-01-09-00-00-0123abcd",
    ];
    for id in ids {
        let session = id.parse().unwrap();
        let mut writer = TraceWriter::create(&fixture.home, &fixture.agent, &session);
        writer.append(&text("a")).unwrap();
    }
    let found = |id: &str| find(&fixture.home, id).map(|trace| trace.session.to_string());
    assert_eq!(found(ids[0]).unwrap(), ids[0]);
    assert_eq!(found("session-2026-12").unwrap(), ids[1]);
    assert!(matches!(
        found("session-2026"),
        Err(TraceError::Ambiguous { .. })
    ));
    let missing = found("session-2027").unwrap_err().to_string();
    assert_eq!(
        missing,
        format!(
            "no Trace of a Session `session-2027`; the newest are {}, {}; `floe trace list` shows all",
            ids[1], ids[0]
        )
    );
    assert!(matches!(found(""), Err(TraceError::NotFound { .. })));
    let none = find(&Home::new("/nonexistent"), "x")
        .unwrap_err()
        .to_string();
    assert_eq!(none, "no Trace of a Session `x`; there are none yet");
}
