//! Whatever is done to a Trace, `verify` finds it and names what and where.

use std::fs;
use std::path::{Path, PathBuf};

use floe_protocol::{AgentId, EventMsg, Home, ModelMsg, OmniMessage, SessionId};
use floe_trace::{End, Fault, FaultKind, TraceWriter, Verification, VerifyTarget, verify};
use proptest::prelude::*;
use tempfile::TempDir;

struct Trace {
    _folder: TempDir,
    home: Home,
    session: SessionId,
    path: PathBuf,
    /// With their newlines.
    lines: Vec<Vec<u8>>,
    head: String,
}

impl Trace {
    /// A Trace that ended in order, with one record for each text.
    fn of(texts: &[impl AsRef<str>]) -> Trace {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().canonicalize().unwrap());
        let session = SessionId::generate();
        let mut writer = TraceWriter::create(&home, &AgentId::default(), &session);
        for text in texts {
            let message = OmniMessage::model(ModelMsg::user_text(text.as_ref()));
            writer.append(&message).unwrap();
        }
        let head = writer.sync().unwrap().unwrap().hash;
        let path = writer.path().unwrap().to_owned();
        let lines = fs::read(&path)
            .unwrap()
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        Trace {
            _folder: folder,
            home,
            session,
            path,
            lines,
            head,
        }
    }

    fn whole(&self) -> Vec<u8> {
        self.lines.concat()
    }

    fn verify(&self) -> Verification {
        let target = VerifyTarget::Session {
            home: &self.home,
            id: self.session.to_string(),
        };
        verify(&target, None).unwrap()
    }

    /// The faults after the file was replaced.
    fn faults(&self, bytes: &[u8]) -> Vec<Fault> {
        fs::write(&self.path, bytes).unwrap();
        let verification = self.verify();
        assert!(
            verification
                .faults
                .iter()
                .all(|fault| fault.file == self.path)
        );
        verification.faults
    }

    /// The faults as line and kind.
    fn named(&self, lines: &[&[u8]]) -> Vec<(u64, FaultKind)> {
        let faults = self.faults(&lines.concat());
        faults
            .iter()
            .map(|fault| (fault.line, fault.kind))
            .collect()
    }

    fn copied(&self, bytes: &[u8]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.jsonl");
        fs::write(&copy, bytes).unwrap();
        (folder, copy)
    }
}

fn verify_file(path: &Path, head: Option<&str>) -> Verification {
    verify(&VerifyTarget::File(path.to_owned()), head).unwrap()
}

#[test]
fn a_trace_as_it_was_written_is_sound_and_anchored() {
    let trace = Trace::of(&["a", "b", "c"]);
    let verification = trace.verify();
    assert!(verification.is_sound());
    assert_eq!(verification.end, End::Anchored);
    assert_eq!(verification.end.to_string(), "end anchored");
    assert_eq!(verification.records, 3);
    assert_eq!(verification.last_hash.as_deref(), Some(trace.head.as_str()));
    assert!(verify_file(&trace.path, None).is_sound());
    assert_eq!(verify_file(&trace.path, None).end, End::Anchored);
}

#[test]
fn every_flip_of_every_bit_is_found_in_its_line_or_the_next() {
    let trace = Trace::of(&["a", "say \",\"hash\":\" twice", "c"]);
    let whole = trace.whole();
    let mut line = 1;
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            let faults = trace.faults(&bytes);
            assert!(
                faults.iter().any(|fault| fault.line.abs_diff(line) <= 1),
                "byte {place}, bit {bit}: {faults:?}"
            );
        }
        line += u64::from(whole[place] == b'\n');
    }
}

#[test]
fn each_way_of_tampering_has_its_name() {
    use FaultKind::{Changed, CutOff, Missing, NotJson, Reordered};
    let trace = Trace::of(&["a", "b", "c", "d"]);
    let [a, b, c, d] = [0, 1, 2, 3].map(|line| trace.lines[line].as_slice());
    let torn = &d[..d.len() - 1];
    let changed = String::from_utf8(b.to_vec())
        .unwrap()
        .replace("\"b\"", "\"B\"");
    let merged = [&b[..b.len() - 1], c].concat();
    for (what, lines, expected) in [
        ("nothing", vec![a, b, c, d], vec![]),
        (
            "a text changed",
            vec![a, changed.as_bytes(), c, d],
            vec![(2, Changed)],
        ),
        ("the first removed", vec![b, c, d], vec![(1, Missing)]),
        ("one removed", vec![a, c, d], vec![(2, Missing)]),
        ("two removed", vec![a, d], vec![(2, Missing)]),
        ("the last removed", vec![a, b, c], vec![(3, CutOff)]),
        ("all removed", vec![], vec![(1, CutOff)]),
        (
            "the last newline removed",
            vec![a, b, c, torn],
            vec![(4, CutOff)],
        ),
        ("two swapped", vec![a, c, b, d], vec![(3, Reordered)]),
        (
            "the last two swapped",
            vec![a, b, d, c],
            vec![(4, Reordered)],
        ),
        (
            "the first moved to the end",
            vec![b, c, d, a],
            vec![(4, Reordered)],
        ),
        ("one twice", vec![a, b, b, c, d], vec![(3, Reordered)]),
        ("the last twice", vec![a, b, c, d, d], vec![(5, Reordered)]),
        ("an empty line", vec![a, b, b"\n", c, d], vec![(3, NotJson)]),
        (
            "a line of JSON",
            vec![a, b"{}\n", b, c, d],
            vec![(2, Changed)],
        ),
        (
            "two in one line",
            vec![a, &merged, d],
            vec![(2, NotJson), (3, Missing)],
        ),
    ] {
        assert_eq!(trace.named(&lines), expected, "{what}");
    }
}

#[test]
fn a_record_that_was_written_anew_with_a_right_hash_is_found_by_the_next() {
    let trace = Trace::of(&["a", "b", "c"]);
    let other = Trace::of(&["a", "B", "c"]);
    let [a, _, c] = [0, 1, 2].map(|line| trace.lines[line].as_slice());
    let b = other.lines[1].as_slice();
    // The forged record has the right number and a right hash; its `prev` is of another chain.
    assert_eq!(
        trace.named(&[a, b, c]),
        [(1, FaultKind::Changed), (2, FaultKind::Changed)]
    );
    // A whole other chain fits in itself, and differs from the head.
    let others: Vec<&[u8]> = other.lines.iter().map(Vec::as_slice).collect();
    assert_eq!(trace.named(&others), [(3, FaultKind::Changed)]);
}

#[test]
fn a_garbled_line_is_not_excused_by_a_healing_that_was_written_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().canonicalize().unwrap());
    let session = SessionId::generate();
    let mut writer = TraceWriter::create(&home, &AgentId::default(), &session);
    for event in [
        EventMsg::RequestBegin {},
        EventMsg::TraceHealed { bytes: 5 },
        EventMsg::RequestBegin {},
    ] {
        writer.append(&OmniMessage::event(event)).unwrap();
    }
    let path = writer.path().unwrap().to_owned();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let faults = |text: String| -> Vec<(u64, FaultKind)> {
        fs::write(&path, text).unwrap();
        let verification = verify_file(&path, None);
        let faults = verification.faults.iter();
        faults.map(|fault| (fault.line, fault.kind)).collect()
    };
    assert_eq!(
        faults([lines[0], "torn!\n", lines[1], lines[2]].concat()),
        []
    );
    for garbage in ["torn\n", "torn!!\n", "torn!\ntorn!\n"] {
        let found = faults([lines[0], garbage, lines[1], lines[2]].concat());
        assert_eq!(found[0], (2, FaultKind::NotJson), "{garbage:?}");
    }
    // The record before the healing may not become the torn line.
    let found = faults(["torn!\n", lines[1], lines[2]].concat());
    assert_eq!(found, [(1, FaultKind::NotJson)]);
}

#[test]
fn a_copy_without_a_head_is_sound_and_says_that_its_end_is_not_anchored() {
    let trace = Trace::of(&["a", "b", "c"]);
    let (_folder, copy) = trace.copied(&trace.whole());
    let verification = verify_file(&copy, None);
    assert!(verification.is_sound());
    assert_eq!(verification.end, End::NotAnchored);
    assert_eq!(verification.end.to_string(), "end not anchored");
    let (_folder, cut) = trace.copied(&trace.lines[..2].concat());
    assert!(verify_file(&cut, None).is_sound());
}

#[test]
fn a_given_head_has_to_be_the_last_record() {
    let trace = Trace::of(&["a", "b", "c"]);
    let (_folder, copy) = trace.copied(&trace.whole());
    let verification = verify_file(&copy, Some(&trace.head));
    assert!(verification.is_sound());
    assert_eq!(verification.end, End::Anchored);
    let (_folder, cut) = trace.copied(&trace.lines[..2].concat());
    let faults = verify_file(&cut, Some(&trace.head)).faults;
    assert_eq!((faults[0].line, faults[0].kind), (2, FaultKind::CutOff));
    let before = verify_file(&cut, None).last_hash.unwrap();
    let faults = verify_file(&copy, Some(&before)).faults;
    assert_eq!((faults[0].line, faults[0].kind), (3, FaultKind::Changed));
    let error = verify(&VerifyTarget::File(copy), Some("abc")).unwrap_err();
    assert!(error.to_string().contains("64 hexadecimal digits"));
}

#[test]
fn a_session_whose_files_are_all_gone_is_missing_where_its_head_is_there() {
    let trace = Trace::of(&["a", "b"]);
    fs::remove_file(&trace.path).unwrap();
    let faults = trace.verify().faults;
    assert_eq!(faults[0].kind, FaultKind::Missing);
    assert_eq!(faults[0].file, trace.home.head(&trace.session));
}

#[test]
fn of_several_files_one_that_is_gone_and_an_end_that_is_cut_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().canonicalize().unwrap());
    let session = SessionId::generate();
    let mut writer = TraceWriter::create(&home, &AgentId::default(), &session);
    let mut paths = Vec::new();
    for _ in 0..3 {
        let event = OmniMessage::event(EventMsg::RequestBegin {});
        writer.append(&event).unwrap();
        writer.append(&event).unwrap();
        paths.push(writer.path().unwrap().to_owned());
        writer.rotate().unwrap();
    }
    writer.sync().unwrap();
    let found = || {
        let target = VerifyTarget::Session {
            home: &home,
            id: session.to_string(),
        };
        let faults = verify(&target, None).unwrap().faults;
        faults
            .into_iter()
            .map(|fault| (fault.file, fault.line, fault.kind))
            .collect::<Vec<_>>()
    };
    let contents: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let copy = folder.path().join("x_002.jsonl");
    fs::write(&copy, &contents[1]).unwrap();
    assert!(
        verify_file(&copy, None).is_sound(),
        "a copy of a later file"
    );
    assert_eq!(found(), []);
    fs::remove_file(&paths[1]).unwrap();
    assert_eq!(found(), [(paths[2].clone(), 1, FaultKind::Missing)]);
    fs::write(&paths[1], &contents[1]).unwrap();
    fs::remove_file(&paths[2]).unwrap();
    assert_eq!(found(), [(paths[1].clone(), 2, FaultKind::CutOff)]);
    fs::write(&paths[2], &contents[1]).unwrap();
    fs::write(&paths[1], &contents[2]).unwrap();
    let kinds: Vec<_> = found().into_iter().map(|(_, _, kind)| kind).collect();
    assert_eq!(kinds, [FaultKind::Reordered, FaultKind::Reordered]);
}

#[test]
fn a_hundred_thousand_bad_lines_are_read_in_linear_time_and_the_first_thousand_named() {
    let trace = Trace::of(&["a", "b"]);
    let bytes = [
        trace.lines[0].clone(),
        b"garbage\n".repeat(100_000),
        trace.lines[1].clone(),
    ]
    .concat();
    let start = std::time::Instant::now();
    let faults = trace.faults(&bytes);
    assert_eq!(faults.len(), 1001);
    assert_eq!((faults[999].line, faults[1000].line), (1001, 1002));
    assert_eq!(
        faults[1000].detail,
        "99000 more from here on, not named one by one"
    );
    let read = floe_trace::read(&trace.path).unwrap();
    assert_eq!(read.filter(Result::is_ok).count(), 2);
    assert!(start.elapsed().as_secs() < 30);
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let hostile = prop_oneof![
        3 => "\\PC{0,30}",
        1 => "(?s).{0,30}",
        1 => Just("\",\"hash\":\"0\"}\n{\"seq\":0,\"prev\":\"".to_owned()),
    ];
    prop::collection::vec(hostile, 2..8)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_tampering_with_any_trace_is_found(
        texts in texts(),
        place in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        mask in 1..=255u8,
        how in 0..7,
    ) {
        let trace = Trace::of(&texts);
        prop_assert!(trace.verify().is_sound());
        let whole = trace.whole();
        let mut lines = trace.lines.clone();
        let (line, second) = (place.index(lines.len()), other.index(lines.len()));
        let (bytes, expected) = match how {
            0 => {
                let mut bytes = whole.clone();
                bytes[place.index(whole.len())] ^= mask;
                (bytes, None)
            }
            1 => {
                lines.remove(line);
                let cut = line == lines.len();
                (lines.concat(), Some(if cut { FaultKind::CutOff } else { FaultKind::Missing }))
            }
            2 => (whole[..place.index(whole.len())].to_vec(), Some(FaultKind::CutOff)),
            3 => {
                prop_assume!(line != second);
                lines.swap(line, second);
                (lines.concat(), Some(FaultKind::Reordered))
            }
            4 => {
                lines.insert(second, lines[line].clone());
                (lines.concat(), Some(FaultKind::Reordered))
            }
            5 => {
                let newline = lines[line].pop();
                prop_assert_eq!(newline, Some(b'\n'));
                (lines.concat(), None)
            }
            _ => {
                let mut bytes = whole.clone();
                bytes.insert(place.index(whole.len() + 1), mask);
                (bytes, None)
            }
        };
        let faults = trace.faults(&bytes);
        prop_assert!(!faults.is_empty());
        if let Some(kind) = expected {
            prop_assert!(faults.iter().any(|fault| fault.kind == kind), "{:?}", faults);
        }
        prop_assert!(faults.iter().all(|fault| fault.line >= 1 && !fault.detail.is_empty()));
    }
}
