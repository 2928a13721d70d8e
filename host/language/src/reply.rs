//! What servers answer, as far as it is needed. Each item is read by itself: one that is malformed is left out and costs nothing but itself.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::position::WireRange;

/// How deep symbols nest that are looked at.
const DEEPEST: usize = 32;
/// Symbols of one answer that are looked at.
const MOST_SYMBOLS: usize = 20_000;
/// Bytes of the name of a symbol. Whatever lies in it knows it too, so a long one is there many times.
const LONGEST_NAME: usize = 256;

/// A place in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireLocation {
    pub(crate) uri: String,
    pub(crate) range: WireRange,
}

/// Something that is wrong.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct WireDiagnostic {
    pub(crate) range: WireRange,
    #[serde(default)]
    pub(crate) severity: Option<u8>,
    #[serde(default)]
    pub(crate) code: Value,
    #[serde(default)]
    pub(crate) source: Option<String>,
    pub(crate) message: String,
}

impl WireDiagnostic {
    /// Cuts what is longer than anything that is shown, so that little is held of it.
    pub(crate) fn shorten(&mut self) {
        fn shorten(text: &mut String, most: usize) {
            text.truncate(text.floor_char_boundary(most));
            text.shrink_to_fit();
        }
        shorten(&mut self.message, 4096);
        if let Some(source) = &mut self.source {
            shorten(source, 256);
        }
        match &mut self.code {
            Value::String(code) => shorten(code, 256),
            Value::Number(_) => {}
            code => *code = Value::Null,
        }
    }
}

/// Something that has a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireSymbol {
    pub(crate) name: String,
    pub(crate) kind: u64,
    /// What it lies in, outermost first.
    pub(crate) within: Vec<String>,
    /// None in the file that was asked about.
    pub(crate) uri: Option<String>,
    /// Where its name stands, as far as the server says.
    pub(crate) range: WireRange,
}

/// Something that could be written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireCompletion {
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) kind: Option<u64>,
    #[serde(default)]
    pub(crate) detail: Option<String>,
    #[serde(default)]
    pub(crate) sort_text: Option<String>,
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// The items of a list; one that is no list is a list of one, null is none.
fn items(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// Places, in either form of the protocol.
pub(crate) fn locations(value: &Value) -> Vec<WireLocation> {
    let place = |item: &Value| {
        let (uri, range) = match item.get("targetUri") {
            Some(uri) => (
                uri,
                item.get("targetSelectionRange")
                    .or(item.get("targetRange"))?,
            ),
            None => (item.get("uri")?, item.get("range")?),
        };
        Some(WireLocation {
            uri: uri.as_str()?.to_owned(),
            range: read(range)?,
        })
    };
    items(value).iter().filter_map(place).collect()
}

/// What a hover says, in any form of the protocol; empty where there is nothing.
pub(crate) fn hover(value: &Value) -> String {
    let text = |part: &Value| match part {
        Value::String(text) => text.clone(),
        part => match (part["language"].as_str(), part["value"].as_str()) {
            (Some(language), Some(value)) => format!("```{language}\n{value}\n```"),
            (None, Some(value)) => value.to_owned(),
            _ => String::new(),
        },
    };
    let parts: Vec<String> = items(&value["contents"])
        .iter()
        .map(text)
        .filter(|part| !part.trim().is_empty())
        .collect();
    parts.join("\n\n").trim().to_owned()
}

/// What could be written, and whether there is more.
pub(crate) fn completions(value: &Value) -> (Vec<WireCompletion>, bool) {
    let list = value.get("items").unwrap_or(value);
    let mut found: Vec<WireCompletion> = items(list).iter().filter_map(read).collect();
    let key = |item: &WireCompletion| {
        let sort = item.sort_text.as_ref().unwrap_or(&item.label);
        (sort.clone(), item.label.clone())
    };
    found.sort_by_cached_key(key);
    (found, value["isIncomplete"].as_bool().unwrap_or(false))
}

/// What is wrong: what was published, or the items of a report.
pub(crate) fn diagnostics(value: &Value) -> Vec<WireDiagnostic> {
    items(value).iter().filter_map(read).collect()
}

/// Symbols, in either form of the protocol, those within others after them.
pub(crate) fn symbols(value: &Value) -> Vec<WireSymbol> {
    let mut found = Vec::new();
    for item in items(value) {
        add_symbol(item, &mut Vec::new(), &mut found);
    }
    found
}

/// The beginning of a name.
fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

fn add_symbol(item: &Value, within: &mut Vec<String>, found: &mut Vec<WireSymbol>) {
    let Some(name) = item["name"].as_str().map(cut) else {
        return;
    };
    if found.len() >= MOST_SYMBOLS || within.len() >= DEEPEST {
        return;
    }
    let location = &item["location"];
    let range = [&item["selectionRange"], &item["range"], &location["range"]];
    let uri = location["uri"].as_str();
    let range = range.into_iter().find_map(read);
    let nowhere = uri.is_some() && location.get("range").is_none();
    if let Some(range) = range.or(nowhere.then(start)) {
        let container = item["containerName"].as_str();
        let outer = container.filter(|name| !name.is_empty());
        found.push(WireSymbol {
            name: name.to_owned(),
            kind: item["kind"].as_u64().unwrap_or(0),
            within: match outer {
                Some(outer) => vec![cut(outer).to_owned()],
                None => within.clone(),
            },
            uri: uri.map(ToOwned::to_owned),
            range,
        });
    }
    within.push(name.to_owned());
    for child in items(&item["children"]) {
        add_symbol(child, within, found);
    }
    within.pop();
}

/// The start of a file, for what has a file and no place in it.
fn start() -> WireRange {
    let start = crate::position::WirePosition {
        line: 0,
        character: 0,
    };
    WireRange { start, end: start }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn range(line: u32) -> Value {
        json!({"start": {"line": line, "character": 1}, "end": {"line": line, "character": 2}})
    }

    #[test]
    fn places_are_read_in_either_form_and_malformed_ones_left_out() {
        let found = locations(&json!([
            {"uri": "a", "range": range(1)},
            {"targetUri": "b", "targetRange": range(9), "targetSelectionRange": range(2)},
            {"uri": "c", "range": {"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 0}}},
            {"uri": 7, "range": range(1)},
            null,
            "x",
        ]));
        let places: Vec<_> = found
            .iter()
            .map(|place| (place.uri.as_str(), place.range.start.line))
            .collect();
        assert_eq!(places, [("a", 1), ("b", 2)]);
        assert_eq!(locations(&json!({"uri": "a", "range": range(1)})).len(), 1);
        assert!(locations(&json!(null)).is_empty());
    }

    #[test]
    fn a_hover_is_read_in_every_form() {
        for (contents, expected) in [
            (json!("text"), "text"),
            (json!({"kind": "markdown", "value": " text "}), "text"),
            (
                json!([{"language": "c", "value": "int x"}, "", "doc"]),
                "```c\nint x\n```\n\ndoc",
            ),
            (json!(7), ""),
        ] {
            assert_eq!(hover(&json!({"contents": contents})), expected);
        }
        assert_eq!(hover(&json!(null)), "");
    }

    #[test]
    fn completions_come_in_the_order_of_the_server() {
        let (found, more) = completions(&json!({"isIncomplete": true, "items": [
            {"label": "b", "sortText": "1"}, {"label": "a", "sortText": "2"}, {"nothing": 1},
        ]}));
        let labels: Vec<_> = found.iter().map(|item| item.label.as_str()).collect();
        assert_eq!(labels, ["b", "a"]);
        assert!(more);
        assert_eq!(completions(&json!([{"label": "x"}])).0.len(), 1);
    }

    #[test]
    fn symbols_within_others_know_them() {
        let found = symbols(&json!([
            {"name": "Outer", "kind": 5, "range": range(0), "selectionRange": range(1),
             "children": [{"name": "inner", "kind": 6, "range": range(2)}]},
            {"name": "flat", "kind": 12, "containerName": "Outer", "location": {"uri": "f", "range": range(3)}},
            {"name": "somewhere", "kind": 12, "location": {"uri": "g"}},
            {"name": "nowhere", "kind": 12},
        ]));
        let shown: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.within.join("."),
                    one.name.as_str(),
                    one.range.start.line,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (String::new(), "Outer", 1),
                ("Outer".to_owned(), "inner", 2),
                ("Outer".to_owned(), "flat", 3),
                (String::new(), "somewhere", 0),
            ]
        );
    }

    #[test]
    fn a_long_name_is_not_held_once_for_each_symbol_within() {
        let children: Vec<Value> = (0..1000)
            .map(|_| json!({"name": "x", "kind": 1, "range": range(0)}))
            .collect();
        let outer = "é".repeat(1 << 20);
        let nested = json!({"name": outer, "kind": 1, "range": range(0), "children": children});
        let contained = json!({"name": "x", "kind": 1, "location": {"uri": "a", "range": range(0)}, "containerName": outer});
        let found = symbols(&json!([nested, contained]));
        assert_eq!(found.len(), 1002);
        let longest = found.iter().flat_map(|one| &one.within).map(String::len);
        assert!(longest.max().unwrap() <= LONGEST_NAME);
        assert!(found[0].name.starts_with('é') && found[0].name.len() <= LONGEST_NAME);
    }

    #[test]
    fn symbols_that_nest_without_end_are_cut() {
        let mut nested = json!({"name": "x", "kind": 1, "range": range(0)});
        for _ in 0..100 {
            nested = json!({"name": "x", "kind": 1, "range": range(0), "children": [nested]});
        }
        assert_eq!(symbols(&json!([nested])).len(), DEEPEST);
    }
}
