//! From what a server says to what a tool reads: places in the counting of Floe's tools, with the lines that stand there, sorted and bounded.

use std::cmp::Reverse;
use std::sync::Arc;

use floe_protocol::{Keep, visible};

use crate::documents;
use crate::place::{Places, one_line};
use crate::position::{Encoding, WireRange};
use crate::query::{Answer, Location, Position};
use crate::reply::{WireCompletion, WireDiagnostic, WireLocation, WireSymbol};
use crate::symbols;
use crate::text::Text;

/// Places of one answer.
pub(crate) const MOST_LOCATIONS: usize = 100;
/// Completions of one answer.
pub(crate) const MOST_COMPLETIONS: usize = 50;
/// Bytes of a hover.
const LONGEST_HOVER: usize = 8 * 1024;
/// Characters that are said about one place.
const LONGEST_WORDS: usize = 500;

/// Reads what a server said. Reads files of the Workspace, so it blocks.
pub(crate) struct Reader {
    places: Arc<Places>,
    encoding: Encoding,
    /// The file that was read last. Places come sorted by their files, so each is read once, and no more than one is held.
    last: Option<(String, Option<Arc<Text>>)>,
}

/// A place before anything was read.
struct Found {
    /// The file of the Workspace, or how one elsewhere is called.
    file: Result<String, String>,
    range: WireRange,
    /// What is said of it, instead of its line.
    words: Option<String>,
}

impl Reader {
    pub(crate) fn new(places: Arc<Places>, encoding: Encoding) -> Reader {
        Reader {
            places,
            encoding,
            last: None,
        }
    }

    /// Places where something is, with their lines.
    pub(crate) fn locations(&mut self, found: Vec<WireLocation>, most: usize) -> Answer {
        let found = found.into_iter().map(|place| Found {
            file: self.file(&place.uri),
            range: place.range,
            words: None,
        });
        let found = found.collect();
        self.answer(found, most, "places")
    }

    /// Symbols; those without a file of their own are of `file`.
    pub(crate) fn symbols(&mut self, found: Vec<WireSymbol>, file: &str, most: usize) -> Answer {
        let found = found.into_iter().map(|symbol| {
            let mut words = format!("{} {}", symbols::kind(symbol.kind), symbol.name);
            if !symbol.within.is_empty() {
                words = format!("{words} in {}", symbol.within.join("."));
            }
            Found {
                file: match &symbol.uri {
                    Some(uri) => self.file(uri),
                    None => Ok(file.to_owned()),
                },
                range: symbol.range,
                words: Some(self.words(&words)),
            }
        });
        let found = found.collect();
        self.answer(found, most, "symbols")
    }

    /// What is wrong with `file`.
    pub(crate) fn diagnostics(
        &mut self,
        found: Vec<WireDiagnostic>,
        file: &str,
        most: usize,
    ) -> Answer {
        let found = found.into_iter().map(|diagnostic| Found {
            file: Ok(file.to_owned()),
            range: diagnostic.range,
            words: Some(self.words(&complaint(&diagnostic))),
        });
        let found = found.collect();
        self.answer(found, most, "diagnostics")
    }

    /// What could be written, one a line.
    pub(crate) fn completions(
        &self,
        found: &[WireCompletion],
        is_incomplete: bool,
        most: usize,
    ) -> Answer {
        let most = most.min(MOST_COMPLETIONS);
        let mut lines: Vec<String> = Vec::new();
        for item in found {
            if lines.len() == most {
                break;
            }
            let mut words = item.label.trim().to_owned();
            if let Some(kind) = symbols::completion_kind(item.kind) {
                words = format!("{words} ({kind})");
            }
            if let Some(detail) = item.detail.as_deref().filter(|detail| !detail.is_empty()) {
                words = format!("{words} {detail}");
            }
            let line = self.words(&words);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if found.len() > most {
            let all = found.len();
            let further = if is_incomplete { " or more" } else { "" };
            lines.push(format!(
                "[the first {most} of {all}{further}; write more of the word for fewer]"
            ));
        }
        Answer {
            locations: Vec::new(),
            text: (!lines.is_empty()).then(|| lines.join("\n")),
        }
    }

    /// What is known of something.
    pub(crate) fn hover(&self, text: &str) -> Answer {
        let shown = visible(&self.places.shown(text), Keep::LinesAndTabs);
        let text = match shown.len() > LONGEST_HOVER {
            true => {
                let cut = shown.floor_char_boundary(LONGEST_HOVER);
                format!("{}\n[cut: {} of {} bytes]", &shown[..cut], cut, shown.len())
            }
            false => shown,
        };
        Answer {
            locations: Vec::new(),
            text: (!text.is_empty()).then_some(text),
        }
    }

    fn file(&self, uri: &str) -> Result<String, String> {
        self.places
            .relative(uri)
            .ok_or_else(|| Places::outside(uri))
    }

    /// Words of a server on one line, without the host's paths in them.
    fn words(&self, words: &str) -> String {
        let shown = visible(&one_line(&self.places.shown(words)), Keep::Nothing);
        match shown.char_indices().nth(LONGEST_WORDS) {
            Some((cut, _)) => format!("{}…", &shown[..cut]),
            None => shown,
        }
    }

    /// Sorts, leaves out what is there twice, cuts, and reads only the files of what is left.
    fn answer(&mut self, mut found: Vec<Found>, most: usize, what: &str) -> Answer {
        found.sort_by(|left, right| {
            let key = |found: &Found| {
                let start = found.range.start;
                (found.file.is_err(), start.line, start.character)
            };
            let (left_key, right_key) = (key(left), key(right));
            left_key
                .0
                .cmp(&right_key.0)
                .then_with(|| left.file.cmp(&right.file))
                .then_with(|| left_key.cmp(&right_key))
                .then_with(|| left.words.cmp(&right.words))
        });
        found.dedup_by(|second, first| {
            second.file == first.file && second.range == first.range && second.words == first.words
        });
        let (all, most) = (found.len(), most.min(MOST_LOCATIONS));
        found.truncate(most);
        Answer {
            locations: found.into_iter().map(|one| self.location(one)).collect(),
            text: (all > most).then(|| format!("the first {most} of {all} {what}")),
        }
    }

    fn location(&mut self, found: Found) -> Location {
        let text = match &found.file {
            Ok(file) => self.text(file),
            Err(_) => None,
        };
        let (start, end) = match &text {
            Some(text) => text.range(found.range, self.encoding),
            // A file that cannot be read here: the server's own counting, which is ours for most lines.
            None => (counted(found.range.start), counted(found.range.end)),
        };
        let line = text.map(|text| visible(&text.shown_line(start.line), Keep::Nothing));
        Location {
            path: found.file.unwrap_or_else(|name| name),
            start,
            end,
            text: found.words.or(line).filter(|text| !text.is_empty()),
        }
    }

    fn text(&mut self, file: &str) -> Option<Arc<Text>> {
        if let Some((last, text)) = &self.last
            && last == file
        {
            return text.clone();
        }
        // What is held goes before what comes.
        self.last = None;
        let text = documents::read(self.places.workspace(), file).ok();
        self.last = Some((file.to_owned(), text.clone()));
        text
    }
}

fn counted(position: crate::position::WirePosition) -> Position {
    Position {
        line: position.line.saturating_add(1),
        character: position.character.saturating_add(1),
    }
}

/// A diagnostic in words.
fn complaint(diagnostic: &WireDiagnostic) -> String {
    let severity = match diagnostic.severity {
        Some(2) => "warning",
        Some(3) => "information",
        Some(4) => "hint",
        _ => "error",
    };
    let code = match &diagnostic.code {
        serde_json::Value::String(code) => Some(code.clone()),
        serde_json::Value::Number(code) => Some(code.to_string()),
        _ => None,
    };
    let origin: Vec<String> = diagnostic.source.iter().cloned().chain(code).collect();
    let message = &diagnostic.message;
    match origin.is_empty() {
        true => format!("{severity}: {message}"),
        false => format!("{severity}: {message} [{}]", origin.join(" ")),
    }
}

/// Of the symbols of a whole project those that are likeliest meant, and how many there were: a list that is sorted by files would be cut
/// anywhere.
pub(crate) fn likeliest(
    found: Vec<WireSymbol>,
    query: &str,
    most: usize,
) -> (Vec<WireSymbol>, usize) {
    let all = found.len();
    let mut found = found;
    let query = query.to_lowercase();
    found.sort_by_cached_key(|symbol| {
        let name = symbol.name.to_lowercase();
        Reverse((
            name == query,
            name.starts_with(query.as_str()),
            name.contains(query.as_str()),
        ))
    });
    found.truncate(most.min(MOST_LOCATIONS));
    (found, all)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use floe_workspace::Workspace;
    use serde_json::json;

    use super::*;
    use crate::reply;

    struct Stage {
        folder: tempfile::TempDir,
        reader: Reader,
        places: Arc<Places>,
    }

    fn stage() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.c"), "int 😀 = 1;\n  x();\n").unwrap();
        fs::write(folder.path().join(".env"), "SECRET=1\n").unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let workspace = workspace.with_hidden(|path| path.ends_with(".env"));
        let root = workspace.canonical_path().to_owned();
        let places = Arc::new(Places::new(workspace, &root, None));
        Stage {
            folder,
            reader: Reader::new(Arc::clone(&places), Encoding::Utf16),
            places,
        }
    }

    fn at(uri: &str, line: u32, character: u32) -> WireLocation {
        let start = json!({"line": line, "character": character});
        let place = json!({"uri": uri, "range": {"start": start, "end": start}});
        reply::locations(&place).remove(0)
    }

    fn shown(answer: &Answer) -> Vec<String> {
        let lines = answer.locations.iter().map(|one| {
            let Position { line, character } = one.start;
            let text = one.text.as_deref().unwrap_or("-");
            format!("{}:{line}:{character}: {text}", one.path)
        });
        lines.collect()
    }

    #[test]
    fn places_are_counted_as_tools_count_sorted_and_shown_with_their_lines() {
        let mut stage = stage();
        let file = stage.places.uri("a.c");
        let answer = stage.reader.locations(
            vec![
                at("file:///usr/include/stdio.h", 9, 4),
                at(&file, 1, 2),
                at(&file, 0, 7),
                at(&file, 1, 2),
            ],
            100,
        );
        assert_eq!(
            shown(&answer),
            [
                "a.c:1:7: int 😀 = 1;",
                "a.c:2:3: x();",
                "stdio.h (outside the Workspace):10:5: -",
            ]
        );
        assert_eq!(answer.text, None);
    }

    #[test]
    fn of_a_file_that_is_hidden_nothing_is_read() {
        let mut stage = stage();
        let uri = stage.places.uri(".env");
        let answer = stage.reader.locations(vec![at(&uri, 0, 3)], 100);
        assert_eq!(shown(&answer), [".env:1:4: -"]);
    }

    #[test]
    fn a_place_that_is_not_there_is_the_nearest_one() {
        let mut stage = stage();
        let uri = stage.places.uri("a.c");
        let answer = stage.reader.locations(vec![at(&uri, 99, 99)], 100);
        assert_eq!(shown(&answer), ["a.c:3:1: -"]);
    }

    #[test]
    fn more_places_than_fit_are_counted() {
        let mut stage = stage();
        let places = || (0..1000).map(|line| at("file:///x/y", line, 0)).collect();
        let answer = stage.reader.locations(places(), 1000);
        assert_eq!(answer.locations.len(), MOST_LOCATIONS);
        assert_eq!(answer.text.unwrap(), "the first 100 of 1000 places");
        assert_eq!(stage.reader.locations(places(), 2).locations.len(), 2);
    }

    #[test]
    fn diagnostics_say_how_bad_it_is_and_who_says_so() {
        let mut stage = stage();
        let start = json!({"line": 0, "character": 0});
        let range = json!({"start": start, "end": start});
        let root = stage.folder.path().canonicalize().unwrap();
        let message = format!("bad\n in {}/a.c", root.display());
        let found = reply::diagnostics(&json!([
            {"range": range, "severity": 2, "code": 7, "source": "cc", "message": message},
            {"range": range, "message": "worse"},
        ]));
        let answer = stage.reader.diagnostics(found, "a.c", 100);
        assert_eq!(
            shown(&answer),
            [
                "a.c:1:1: error: worse",
                "a.c:1:1: warning: bad in /workspace/a.c [cc 7]"
            ]
        );
    }

    #[test]
    fn completions_and_hovers_are_bounded() {
        let stage = stage();
        let items: Vec<_> = (0..60)
            .map(|n| json!({"label": format!("f{n:02}"), "kind": 3, "detail": "int"}))
            .collect();
        let (found, more) = reply::completions(&json!(items));
        let text = stage.reader.completions(&found, more, 100).text.unwrap();
        assert!(text.starts_with("f00 (function) int\nf01"), "{text}");
        assert_eq!(text.lines().count(), MOST_COMPLETIONS + 1);
        assert!(text.ends_with("[the first 50 of 60; write more of the word for fewer]"));
        let long = stage.reader.hover(&"é".repeat(10_000)).text.unwrap();
        assert!(long.len() < LONGEST_HOVER + 50 && long.ends_with("[cut: 8192 of 20000 bytes]"));
        assert_eq!(stage.reader.hover("").text, None);
    }
}
