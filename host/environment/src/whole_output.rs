//! Keeps the whole output of a call that was cut, in the Session's own folder, where the tools can read it under
//! `/floe/outputs/` (decisions, "The whole output of a cut call").
//!
//! There are two kinds of whole outputs. Where what a tool wrote is, byte for byte, the text of one command, the whole is
//! what that command has printed since its start, as it came; everywhere else it is the tool's text. Both are gathered in a
//! [`Spool`] and published as a file of their own, which nothing changes afterwards: at most 64 MiB, above that the beginning
//! and the end; at most 1 GiB a Session, spools on the disk included. Secrets are taken out of what is published. What cannot
//! be kept is a line for the model, never another outcome of the call.

mod recording;
mod region;
mod spool;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe_runtime::capability::commands::{Record, Recording};
use sha2::{Digest, Sha256};

use crate::close_out::{KeepWhole, Kept};
use crate::secrets::Secrets;
use spool::Spool;

/// Where the tools find the files.
const GUEST_FOLDER: &str = "/floe/outputs";
/// Bytes kept of one output.
const OUTPUT_LIMIT: u64 = 64 << 20;
/// Bytes of an output that are held in memory, and gathered before a write.
const BUFFER: usize = 64 << 10;
/// Bytes kept of one Session.
const SESSION_LIMIT: u64 = 1 << 30;

/// The outputs of one Session: its folder, and what may still be written there. It is also who records commands.
#[derive(Debug)]
pub struct Outputs {
    folder: PathBuf,
    secrets: Secrets,
    output_limit: u64,
    /// Bytes that may still be kept.
    left: AtomicU64,
}

impl Outputs {
    /// Outputs in `folder`, which is made when the first one is kept, without `secrets`.
    pub fn new(folder: PathBuf, secrets: Secrets) -> Arc<Outputs> {
        Outputs::with_limits(folder, secrets, OUTPUT_LIMIT, SESSION_LIMIT)
    }

    fn with_limits(
        folder: PathBuf,
        secrets: Secrets,
        output_limit: u64,
        session_limit: u64,
    ) -> Arc<Outputs> {
        let used: u64 = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.metadata().ok())
            .map(|metadata| metadata.len())
            .sum();
        Arc::new(Outputs {
            folder,
            secrets,
            output_limit,
            left: AtomicU64::new(session_limit.saturating_sub(used)),
        })
    }

    /// A keeper for one call. Touches nothing until the output is to be kept.
    pub(crate) fn keeper(
        self: &Arc<Outputs>,
        tool: &str,
        tool_call_id: &str,
    ) -> Box<dyn KeepWhole> {
        Box::new(WholeOutput {
            name: file_name(tool, tool_call_id),
            source: Source::Text(Spool::new(Arc::clone(self))),
        })
    }

    fn buffer(&self) -> usize {
        usize::try_from(self.output_limit).map_or(BUFFER, |limit| limit.min(BUFFER))
    }

    /// Takes `wanted` bytes of what is left, or nothing.
    fn reserve(&self, wanted: u64) -> bool {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(wanted)
            })
            .is_ok()
    }

    /// Gives back what was reserved.
    fn release(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// An [`Outputs`] as the commands of its Session see it.
#[derive(Debug, Clone)]
pub struct OutputRecorder(pub Arc<Outputs>);

impl Record for OutputRecorder {
    fn begin(&self) -> Arc<dyn Recording> {
        Arc::new(recording::CommandOutput::new(Arc::clone(&self.0)))
    }
}

/// A name that says the tool and differs for every call.
fn file_name(tool: &str, tool_call_id: &str) -> String {
    let tool: String = tool
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(48)
        .collect();
    let digest = crate::digest::hex(&Sha256::digest(tool_call_id.as_bytes())[..8]);
    format!("{tool}-{digest}.txt")
}

/// The whole output of one call.
struct WholeOutput {
    name: String,
    source: Source,
}

enum Source {
    /// What the tool writes.
    Text(Spool),
    /// What a command prints.
    Command(Arc<dyn Recording>),
}

impl KeepWhole for WholeOutput {
    fn record(&mut self, recording: Arc<dyn Recording>) {
        self.source = Source::Command(recording);
    }

    fn append(&mut self, text: &str) {
        if let Source::Text(spool) = &mut self.source {
            spool.push(text.as_bytes());
        }
    }

    fn finish(&mut self) -> Kept {
        let published = match &mut self.source {
            Source::Text(spool) => spool.publish(&self.name),
            Source::Command(recording) => recording.publish(&self.name),
        };
        match published {
            Ok(path) => Kept::At(path),
            Err(reason) => Kept::Not(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn outputs(folder: PathBuf) -> Arc<Outputs> {
        Outputs::new(folder, Secrets::default())
    }

    fn limited(folder: PathBuf, output: u64, session: u64) -> Arc<Outputs> {
        Outputs::with_limits(folder, Secrets::default(), output, session)
    }

    /// Output that is in a file from its first byte on.
    fn spill(recording: &dyn Recording, bytes: &[u8]) {
        for piece in bytes.chunks(7) {
            recording.bytes(piece);
        }
    }

    fn keep(outputs: &Arc<Outputs>, id: &str, pieces: &[&str]) -> Kept {
        let mut keeper = outputs.keeper("exec_command", id);
        for piece in pieces {
            keeper.append(piece);
        }
        keeper.finish()
    }

    fn only_file(folder: &Path) -> PathBuf {
        let files: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    #[test]
    fn an_output_is_kept_whole_with_the_modes_of_a_private_file() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("outputs");
        let kept = keep(&outputs(folder.clone()), "c1", &["ab", "cd"]);
        let file = only_file(&folder);
        assert_eq!(fs::read_to_string(&file).unwrap(), "abcd");
        let name = file.file_name().unwrap().to_str().unwrap();
        assert_eq!(kept, Kept::At(format!("/floe/outputs/{name}")));
        assert!(name.starts_with("exec_command-") && name.ends_with(".txt"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    }

    #[test]
    fn nothing_is_made_where_nothing_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("outputs");
        drop(outputs(folder.clone()).keeper("list", "c1"));
        assert!(!folder.exists());
    }

    #[test]
    fn above_the_limit_of_a_call_the_beginning_and_the_end_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let outputs = limited(root.path().join("o"), 20, 1000);
        let mut keeper = outputs.keeper("t", "c1");
        for piece in ["0123456789", "abcdefghij", "klm"] {
            keeper.append(piece);
        }
        keeper.finish();
        let text = fs::read_to_string(only_file(&outputs.folder)).unwrap();
        assert_eq!(
            text,
            "0123456789\n[3 bytes in the middle are not kept]\ndefghijklm"
        );
    }

    #[test]
    fn the_cut_in_the_middle_splits_no_character() {
        for text in [
            "ä".repeat(40),
            format!("x{}", "€".repeat(30)),
            "😀".repeat(20),
        ] {
            for limit in 16..24 {
                let root = tempfile::tempdir().unwrap();
                let outputs = limited(root.path().join("o"), limit, 1000);
                keep(&outputs, "c1", &[&text]);
                let kept = fs::read(only_file(&outputs.folder)).unwrap();
                assert!(String::from_utf8(kept).is_ok(), "limit {limit}");
            }
        }
    }

    #[test]
    fn above_the_limit_of_a_session_nothing_is_kept_and_the_reason_is_told() {
        let root = tempfile::tempdir().unwrap();
        let outputs = limited(root.path().join("o"), 100, 10);
        assert!(matches!(keep(&outputs, "c1", &["01234567"]), Kept::At(_)));
        let kept = keep(&outputs, "c2", &["01234567"]);
        assert_eq!(
            kept,
            Kept::Not("the outputs of this Session have used up their 1 GiB".into())
        );
        only_file(&outputs.folder);
    }

    #[test]
    fn what_an_earlier_run_of_the_session_kept_counts() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("o");
        keep(&limited(folder.clone(), 100, 10), "c1", &["01234567"]);
        let again = limited(folder, 100, 10);
        assert!(matches!(keep(&again, "c2", &["01234567"]), Kept::Not(_)));
    }

    #[test]
    fn a_second_output_of_the_same_call_is_refused_without_touching_the_first() {
        let root = tempfile::tempdir().unwrap();
        let outputs = outputs(root.path().join("o"));
        keep(&outputs, "c1", &["first"]);
        assert!(matches!(keep(&outputs, "c1", &["second"]), Kept::Not(_)));
        assert_eq!(
            fs::read_to_string(only_file(&outputs.folder)).unwrap(),
            "first"
        );
    }

    #[test]
    fn what_a_command_prints_is_kept_as_it_came_and_a_file_of_it_no_longer_changes() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("o");
        let recording = OutputRecorder(outputs(folder.clone())).begin();
        recording.bytes(b"\x1b[31mred\xff\r\0\n");
        assert!(!folder.exists(), "nothing is made before it is wanted");
        let first = recording.publish("first.txt");
        recording.bytes(b"more");
        assert_eq!(first, Ok("/floe/outputs/first.txt".into()));
        assert_eq!(
            recording.publish("second.txt").unwrap(),
            "/floe/outputs/second.txt"
        );
        let read = |name: &str| fs::read(folder.join(name)).unwrap();
        assert_eq!(read("first.txt"), b"\x1b[31mred\xff\r\0\n");
        assert_eq!(read("second.txt"), b"\x1b[31mred\xff\r\0\nmore");
    }

    #[test]
    fn a_recording_is_invisible_before_it_is_published_and_gives_its_room_back() {
        let root = tempfile::tempdir().unwrap();
        let outputs = limited(root.path().join("o"), 20, 50);
        let recording = OutputRecorder(Arc::clone(&outputs)).begin();
        spill(&*recording, &[b'x'; 1000]);
        assert_eq!(fs::read_dir(&outputs.folder).unwrap().count(), 0);
        assert_eq!(outputs.left.load(Ordering::Relaxed), 30);
        recording.publish("cut.txt").unwrap();
        assert_eq!(outputs.left.load(Ordering::Relaxed), 10);
        drop(recording);
        assert_eq!(outputs.left.load(Ordering::Relaxed), 30);
        let kept = fs::read_to_string(only_file(&outputs.folder)).unwrap();
        assert_eq!(
            kept,
            "xxxxxxxxxx\n[980 bytes in the middle are not kept]\nxxxxxxxxxx"
        );
    }

    #[test]
    fn a_recording_that_the_session_has_no_room_for_says_so_when_it_is_wanted() {
        let root = tempfile::tempdir().unwrap();
        let outputs = limited(root.path().join("o"), 20, 10);
        let recording = OutputRecorder(Arc::clone(&outputs)).begin();
        spill(&*recording, &[b'x'; 1000]);
        let reason = recording.publish("cut.txt").unwrap_err();
        assert!(reason.contains("have used up their 1 GiB"), "{reason}");
    }

    #[test]
    fn secrets_are_taken_out_of_what_is_published_wherever_reads_part_them() {
        let mut secrets = Secrets::default();
        secrets.insert("KEY", "sk-0123456789");
        secrets.insert("LONG", "sk-0123456789-and-more");
        for limit in [64, 1 << 20] {
            let root = tempfile::tempdir().unwrap();
            let outputs =
                Outputs::with_limits(root.path().join("o"), secrets.clone(), limit, 1 << 20);
            let recording = OutputRecorder(Arc::clone(&outputs)).begin();
            spill(
                &*recording,
                b"\xffa sk-0123456789-and-more b sk-0123456789 c sk-01",
            );
            recording.publish("kept.txt").unwrap();
            assert_eq!(
                fs::read(only_file(&outputs.folder)).unwrap(),
                b"\xffa [redacted:LONG] b [redacted:KEY] c sk-01"
            );
        }
    }
}
