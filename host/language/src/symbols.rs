//! The names of what has a name, and finding it in a file.

use crate::position::Encoding;
use crate::reply::WireSymbol;
use crate::text::Text;

/// Places of a name that are tried.
const MOST_TRIED: usize = 8;

const KINDS: [&str; 26] = [
    "file",
    "module",
    "namespace",
    "package",
    "class",
    "method",
    "property",
    "field",
    "constructor",
    "enum",
    "interface",
    "function",
    "variable",
    "constant",
    "string",
    "number",
    "boolean",
    "array",
    "object",
    "key",
    "null",
    "enum member",
    "struct",
    "event",
    "operator",
    "type parameter",
];

const COMPLETION_KINDS: [&str; 25] = [
    "text",
    "method",
    "function",
    "constructor",
    "field",
    "variable",
    "class",
    "interface",
    "module",
    "property",
    "unit",
    "value",
    "enum",
    "keyword",
    "snippet",
    "color",
    "file",
    "reference",
    "folder",
    "enum member",
    "constant",
    "struct",
    "event",
    "operator",
    "type parameter",
];

fn word(words: &[&'static str], number: u64) -> Option<&'static str> {
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    words.get(at).copied()
}

/// What a symbol is, in words.
pub(crate) fn kind(number: u64) -> &'static str {
    word(&KINDS, number).unwrap_or("symbol")
}

/// What a completion is, in words.
pub(crate) fn completion_kind(number: Option<u64>) -> Option<&'static str> {
    word(&COMPLETION_KINDS, number?)
}

/// The parts of a name such as `Outer.inner` or `outer::Inner`.
fn parts(name: &str) -> Vec<&str> {
    name.split("::")
        .flat_map(|part| part.split('.'))
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// The bytes of a text at which what is called `name` may stand, likeliest first: where it is defined by what the server knows of
/// the file, then where the word is written.
pub(crate) fn candidates(
    name: &str,
    text: &Text,
    known: &[WireSymbol],
    encoding: Encoding,
) -> Vec<usize> {
    let parts = parts(name);
    let Some((last, outer)) = parts.split_last() else {
        return Vec::new();
    };
    let is_meant = |symbol: &&WireSymbol| {
        let own = self::parts(&symbol.name);
        let full: Vec<&str> = symbol
            .within
            .iter()
            .flat_map(|name| self::parts(name))
            .chain(own.iter().copied())
            .collect();
        symbol.name == name || full.ends_with(&parts)
    };
    let mut found: Vec<usize> = known
        .iter()
        .filter(is_meant)
        // Each costs a look through the file.
        .take(MOST_TRIED)
        .map(|symbol| {
            let start = text.offset_of_wire(symbol.range.start, encoding);
            let end = text.offset_of_wire(symbol.range.end, encoding);
            // Some servers give the whole of what is defined, and not its name.
            let mut words = text.words(last);
            words
                .find(|at| (start..end.max(start + 1)).contains(at))
                .unwrap_or(start)
        })
        .collect();
    if outer.is_empty() || found.is_empty() {
        found.extend(text.words(last).take(2 * MOST_TRIED));
    }
    let mut tried = Vec::new();
    for at in found {
        if tried.len() < MOST_TRIED && !tried.contains(&at) {
            tried.push(at);
        }
    }
    tried
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reply;

    #[test]
    fn a_name_is_looked_for_where_it_is_defined_and_then_where_it_is_written() {
        let text =
            Text::new("// area\nclass Circle:\n  def area(self): ...\nuse(area)\n".to_owned());
        let range = |line: u32, from: u32, to: u32| json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}});
        let known = reply::symbols(&json!([
            {"name": "Circle", "kind": 5, "range": range(1, 0, 13),
             "children": [{"name": "area", "kind": 6, "range": range(2, 2, 20)}]},
        ]));
        let lines = |name: &str| {
            let found = candidates(name, &text, &known, Encoding::Utf16);
            let places = found.into_iter().map(|at| text.position_of(at));
            places
                .map(|place| (place.line, place.character))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines("area"), [(3, 7), (1, 4), (4, 5)]);
        assert_eq!(lines("Circle.area"), [(3, 7)]);
        assert_eq!(lines("Circle::area"), [(3, 7)]);
        assert_eq!(lines("use"), [(4, 1)]);
        assert!(lines("missing").is_empty() && lines("").is_empty() && lines(".").is_empty());
    }

    #[test]
    fn kinds_have_words() {
        assert_eq!(
            (kind(12), kind(0), kind(99)),
            ("function", "symbol", "symbol")
        );
        assert_eq!(completion_kind(Some(3)), Some("function"));
        assert_eq!(completion_kind(None), None);
    }
}
