//! One search: file after file, until enough is found or enough was looked at. Pure.

use floe_tool::output::push_on_one_line;
use floe_tool::workspace::FileBatch;

use crate::Mode;
use crate::render;
use crate::search::{Match, Pattern};
use crate::tally::Tally;

/// A NUL within so many bytes makes a file a binary one.
const PROBE: usize = 8 * 1024;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) mode: Mode,
    /// Matches to pass over first; files in the other modes.
    pub(crate) skip: u64,
    /// Matches to show; files in the other modes.
    pub(crate) most: u64,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Whether there is more to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

/// A search under way.
#[derive(Debug)]
pub(crate) struct Search<'p> {
    pattern: &'p Pattern,
    wanted: Wanted,
    /// Found so far, what was passed over and the one that is too many included.
    found: u64,
    files: u64,
    bytes: u64,
    skipped: Tally,
    text: String,
    has_shown: bool,
    /// Which limit ended it.
    limit: Option<String>,
}

impl<'p> Search<'p> {
    pub(crate) fn new(pattern: &'p Pattern, wanted: Wanted) -> Search<'p> {
        Search {
            pattern,
            wanted,
            found: 0,
            files: 0,
            bytes: 0,
            skipped: Tally::default(),
            text: String::new(),
            has_shown: false,
            limit: None,
        }
    }

    /// Searches the files of a batch.
    ///
    /// # Errors
    /// The words of the regex library.
    pub(crate) fn add(&mut self, batch: &FileBatch) -> Result<Progress, String> {
        for slice in &batch.files {
            if let Some(failure) = &slice.failure {
                self.skipped.add_failure(&failure.code);
                continue;
            }
            if self.files == self.wanted.files {
                self.limit = Some(format!("[stopped after {} files]", self.files));
                return Ok(Progress::Done);
            }
            let start = slice.start as usize;
            let data = &batch.data[start..start + slice.length as usize];
            if self.bytes > 0 && self.bytes + data.len() as u64 > self.wanted.bytes {
                self.limit = Some(format!("[stopped after {} bytes]", self.bytes));
                return Ok(Progress::Done);
            }
            self.files += 1;
            self.bytes += data.len() as u64;
            if memchr::memchr(0, &data[..data.len().min(PROBE)]).is_some() {
                match data {
                    // UTF-16, by its mark.
                    [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => self.skipped.not_text += 1,
                    _ => self.skipped.binary += 1,
                }
                continue;
            }
            self.file(&slice.path, data)?;
            if self.is_enough() {
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::More)
    }

    /// What has been found since it was last asked.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Says why it is not carried on.
    pub(crate) fn stop(&mut self, why: String) {
        self.limit = Some(why);
    }

    /// What was cut or passed over; none where nothing was.
    pub(crate) fn note(&self) -> Option<String> {
        let Wanted {
            mode, skip, most, ..
        } = self.wanted;
        let what = match mode {
            Mode::Content => "matches",
            Mode::Files | Mode::Count => "files",
        };
        let page = if self.is_enough() {
            let last = skip + most;
            Some(format!(
                "[{what} {}–{last}; there are more, continue with offset {last}]",
                skip + 1
            ))
        } else if skip > 0 && self.found <= skip {
            Some(format!(
                "[offset {skip} is past the end: there are {} {what}]",
                self.found
            ))
        } else {
            None
        };
        let lines: Vec<String> = [page, self.limit.clone(), self.skipped.note()]
            .into_iter()
            .flatten()
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// One more was found than is shown.
    fn is_enough(&self) -> bool {
        self.found > self.wanted.skip.saturating_add(self.wanted.most)
    }

    fn file(&mut self, path: &str, data: &[u8]) -> Result<(), String> {
        let Wanted {
            mode, skip, most, ..
        } = self.wanted;
        let mut matches: Vec<Match> = Vec::new();
        let mut count = 0_u64;
        // One beyond what is shown tells that there is more.
        let room = skip.saturating_add(most).saturating_add(1) - self.found;
        self.pattern.search(data, |found| {
            count += 1;
            match mode {
                Mode::Content => {
                    matches.push(found);
                    count < room
                }
                Mode::Files => false,
                Mode::Count => true,
            }
        })?;
        if count == 0 {
            return Ok(());
        }
        let Ok(text) = std::str::from_utf8(data) else {
            self.skipped.not_text += 1;
            return Ok(());
        };
        let before = self.found;
        self.found += if mode == Mode::Content { count } else { 1 };
        let first = usize::try_from(skip.saturating_sub(before)).unwrap_or(usize::MAX);
        let last = usize::try_from((skip + most).saturating_sub(before)).unwrap_or(usize::MAX);
        match mode {
            Mode::Content => {
                let shown = matches.len().min(last);
                if first < shown {
                    let around = (self.wanted.before, self.wanted.after);
                    let is_first = !std::mem::replace(&mut self.has_shown, true);
                    let matches = &matches[first..shown];
                    render::content(path, text, matches, around, is_first, &mut self.text);
                }
            }
            Mode::Files | Mode::Count if first == 0 && last > 0 => {
                push_on_one_line(path, &mut self.text);
                if mode == Mode::Count {
                    self.text.push_str(&format!(":{count}"));
                }
                self.text.push('\n');
            }
            Mode::Files | Mode::Count => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Syntax;
    use floe_tool::Failure;
    use floe_tool::workspace::FileSlice;

    fn batch(files: &[(&str, &[u8])]) -> FileBatch {
        let mut batch = FileBatch {
            data: Vec::new(),
            files: Vec::new(),
        };
        for (path, data) in files {
            batch.files.push(FileSlice {
                path: (*path).to_owned(),
                start: batch.data.len() as u32,
                length: data.len() as u32,
                total_size: data.len() as u64,
                failure: None,
            });
            batch.data.extend_from_slice(data);
        }
        batch
    }

    fn wanted() -> Wanted {
        Wanted {
            mode: Mode::Content,
            skip: 0,
            most: 200,
            before: 0,
            after: 0,
            files: 100,
            bytes: 1000,
        }
    }

    fn searched(wanted: Wanted, files: &[(&str, &[u8])]) -> (String, Option<String>) {
        let pattern = Pattern::new("a", Syntax::default()).unwrap();
        let mut search = Search::new(&pattern, wanted);
        search.add(&batch(files)).unwrap();
        (search.take_text(), search.note())
    }

    #[test]
    fn as_many_matches_as_asked_for_are_not_called_cut_and_one_more_is() {
        let files: [(&str, &[u8]); 2] = [("one", b"a\na\n"), ("two", b"a\n")];
        let exactly = searched(
            Wanted {
                most: 3,
                ..wanted()
            },
            &files,
        );
        assert_eq!(exactly, ("one:1:a\none:2:a\ntwo:1:a\n".into(), None));
        let (text, note) = searched(
            Wanted {
                most: 2,
                ..wanted()
            },
            &files,
        );
        assert_eq!(text, "one:1:a\none:2:a\n");
        assert_eq!(
            note.unwrap(),
            "[matches 1–2; there are more, continue with offset 2]"
        );
    }

    #[test]
    fn an_offset_goes_on_where_the_call_before_stopped() {
        let files: [(&str, &[u8]); 2] = [("one", b"a\na\n"), ("two", b"a\n")];
        for (skip, expected) in [(1, "one:2:a\ntwo:1:a\n"), (2, "two:1:a\n")] {
            assert_eq!(searched(Wanted { skip, ..wanted() }, &files).0, expected);
        }
        let (text, note) = searched(
            Wanted {
                skip: 3,
                ..wanted()
            },
            &files,
        );
        assert!(text.is_empty());
        assert_eq!(
            note.unwrap(),
            "[offset 3 is past the end: there are 3 matches]"
        );
    }

    #[test]
    fn files_and_counts_are_of_files() {
        let files: [(&str, &[u8]); 3] = [("one", b"a\na\n"), ("none", b"b"), ("two", b"a\n")];
        let mode = |mode| searched(Wanted { mode, ..wanted() }, &files);
        assert_eq!(mode(Mode::Files), ("one\ntwo\n".into(), None));
        assert_eq!(mode(Mode::Count), ("one:2\ntwo:1\n".into(), None));
        let one = Wanted {
            mode: Mode::Count,
            most: 1,
            ..wanted()
        };
        let (text, note) = searched(one, &files);
        assert_eq!(text, "one:2\n");
        assert!(note.unwrap().starts_with("[files 1–1; there are more"));
    }

    #[test]
    fn what_is_no_text_is_counted_and_not_shown() {
        let files: [(&str, &[u8]); 4] = [
            ("bin", b"a\0"),
            ("latin", b"a\xe9"),
            ("ok", b"a"),
            ("wide", b"\xff\xfea\0"),
        ];
        assert_eq!(
            searched(wanted(), &files),
            (
                "ok:1:a\n".into(),
                Some("[skipped: 1 binary, 2 not UTF-8]".into())
            )
        );
        let mut failed = batch(&[]);
        failed.files.push(FileSlice {
            path: "big".into(),
            start: 0,
            length: 0,
            total_size: 9,
            failure: Some(Failure::new("too-large", "x")),
        });
        let pattern = Pattern::new("a", Syntax::default()).unwrap();
        let mut search = Search::new(&pattern, wanted());
        search.add(&failed).unwrap();
        assert_eq!(search.note().unwrap(), "[skipped: 1 larger than 5 MiB]");
    }

    #[test]
    fn the_limits_of_files_and_bytes_say_that_they_ended_it() {
        let files: [(&str, &[u8]); 2] = [("one", b"a"), ("two", b"a")];
        let (text, note) = searched(
            Wanted {
                files: 1,
                ..wanted()
            },
            &files,
        );
        assert_eq!(
            (text.as_str(), note.unwrap().as_str()),
            ("one:1:a\n", "[stopped after 1 files]")
        );
        let (_, note) = searched(
            Wanted {
                bytes: 1,
                ..wanted()
            },
            &files,
        );
        assert_eq!(note.unwrap(), "[stopped after 1 bytes]");
        assert_eq!(
            searched(
                Wanted {
                    bytes: 2,
                    ..wanted()
                },
                &files
            )
            .1,
            None
        );
    }
}
