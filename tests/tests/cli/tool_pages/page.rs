//! One page: what a tool says of itself, what it takes, and calls of it with what they print.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::examples::Example;
use super::repository;
use super::site::Site;
use crate::support::{Place, ended};

/// Stands at the head of every page.
const GENERATED: &str =
    "<!-- Made from the tool's definition and from calls of it; a test compares. -->\n";

/// The page of a tool, its examples run in fresh copies of the example project.
pub(super) fn page(tool: &Value, examples: &[Example], site: &Site) -> String {
    let name = text(&tool["name"]);
    assert!(!examples.is_empty(), "{name} has no example");
    let mut page = format!(
        "{GENERATED}\n# {name}\n\n{}\n\n",
        prose(text(&tool["description"]))
    );
    facts(&mut page, tool);
    page.push_str("\n## Arguments\n\n");
    let mut rows = Vec::new();
    properties(&tool["parameters"], "", &mut rows);
    if rows.is_empty() {
        page.push_str("None.\n");
    } else {
        page.push_str("| argument | | |\n|---|---|---|\n");
        page.extend(rows);
    }
    let word = if examples.len() == 1 {
        "Example"
    } else {
        "Examples"
    };
    writeln!(page, "\n## {word}").unwrap();
    for example in examples {
        shown(&mut page, name, example, site);
    }
    page
}

/// The page that lists the others.
pub(super) fn index(tools: &[Value]) -> String {
    let mut page = format!(
        "{GENERATED}\n# Tools\n\nEach page has what a tool does, what it takes, and a call of it with its output. The calls run in a copy of the \
         project in `examples/library`:\n\n```console\n$ cp -r examples/library /tmp/library\n$ cd /tmp/library\n```\n\nWhere a call reads the \
         web, the pages in `site/` are served on port 8000, by `python3 -m http.server 8000 --directory site` for instance.\n\n\
         | tool | permission | capabilities |\n|---|---|---|\n"
    );
    for tool in tools {
        let name = text(&tool["name"]);
        let (permission, capabilities) = (permission(tool), capabilities(tool));
        writeln!(
            page,
            "| [{name}]({name}.md) | {permission} | {capabilities} |"
        )
        .unwrap();
    }
    page
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Words for a model as Markdown: outside of code nothing in them is a mark.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => part.replace('*', "\\*").replace('<', "&lt;"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`").replace('|', "\\|")
}

fn permission(tool: &Value) -> String {
    let varies = tool["permission_varies"] == true;
    let more = if varies {
        ", more for some arguments"
    } else {
        ""
    };
    format!("{}{more}", text(&tool["permission"]))
}

fn capabilities(tool: &Value) -> String {
    listed(&tool["capabilities"]).unwrap_or_else(|| "none".to_owned())
}

/// Words as code, none where there are none.
fn listed(words: &Value) -> Option<String> {
    let words: Vec<String> = words
        .as_array()?
        .iter()
        .map(|word| format!("`{}`", text(word)))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn facts(page: &mut String, tool: &Value) {
    let definition = &tool["definition"];
    let limit = |value: &Value, unit: &str| match value.as_i64().unwrap() {
        ..=0 => "none".to_owned(),
        limit => format!("{limit} {unit}"),
    };
    let kept = match text(&definition["truncation"]) {
        "head-tail" => "its beginning and its end are kept",
        _ => "its beginning is kept",
    };
    let length = limit(&definition["maxOutputLength"], "characters");
    let mut rows = vec![
        ("Permission", permission(tool)),
        ("Capabilities", capabilities(tool)),
        ("Time limit", limit(&definition["timeoutMs"], "ms")),
        ("Output", format!("{length}; of a longer one {kept}")),
    ];
    if let Some(aliases) = listed(&definition["aliases"]) {
        rows.push(("Also called", aliases));
    }
    page.push_str("| | |\n|---|---|\n");
    for (what, value) in rows {
        writeln!(page, "| {what} | {value} |").unwrap();
    }
}

/// A row for each argument, those within objects and lists too.
fn properties(schema: &Value, prefix: &str, rows: &mut Vec<String>) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    let required = schema["required"].as_array();
    for (name, schema) in properties {
        let needed = required.is_some_and(|required| required.iter().any(|one| one == name));
        let needed = if needed { ", required" } else { "" };
        let description = prose(schema["description"].as_str().unwrap_or_default());
        let kind = kind(schema);
        rows.push(format!(
            "| `{prefix}{name}` | {kind}{needed} | {description} |\n"
        ));
        properties_below(schema, &format!("{prefix}{name}"), rows);
    }
}

fn properties_below(schema: &Value, path: &str, rows: &mut Vec<String>) {
    properties(schema, &format!("{path}."), rows);
    properties(&schema["items"], &format!("{path}[]."), rows);
}

/// The type of an argument in words.
fn kind(schema: &Value) -> String {
    if let Some(words) = listed(&schema["enum"]) {
        return words;
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => match &schema["items"]["type"] {
            Value::String(item) => format!("array of {item}s"),
            _ => "array".to_owned(),
        },
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

fn shown(page: &mut String, tool: &str, example: &Example, site: &Site) {
    let place = Place::new();
    copy(&repository().join("examples/library"), &place.workspace());
    let mut arguments = vec![
        "call".to_owned(),
        tool.to_owned(),
        example.arguments.to_string(),
    ];
    let quoted = format!("'{}'", arguments[2].replace('\'', "'\\''"));
    let mut line = format!("floe call {tool} {quoted}");
    // On the page the pages are on port 8000; here on another one.
    let config = example.config.replace(Site::SHOWN, &site.address());
    if example.web {
        arguments.extend([
            "--allow-host".to_owned(),
            format!("{}={}", Site::HOST, site.address()),
        ]);
        write!(line, " --allow-host {}={}", Site::HOST, Site::SHOWN).unwrap();
    }
    place.config(&config);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = place.command(&arguments);
    if let Some(model) = example.model {
        command.env("FLOE_MODEL", model);
        line.insert_str(0, &format!("FLOE_MODEL={model} "));
    }
    let ended = ended(command.output().unwrap());
    assert_eq!(
        ended.status, example.status,
        "{line}\n{}\n{}",
        ended.stdout, ended.stderr
    );
    writeln!(page, "\n{}", example.about).unwrap();
    if !example.config.is_empty() {
        writeln!(page, "\n`config.yaml`:\n\n```yaml\n{}```", example.config).unwrap();
    }
    let output = ended.stdout.replace(&site.address(), Site::SHOWN);
    let output = output.trim_end_matches('\n');
    assert!(!output.contains(&*place.workspace().to_string_lossy()));
    // What is fenced itself needs a longer fence.
    let fence = if output.contains("```") {
        "````"
    } else {
        "```"
    };
    writeln!(page, "\n{fence}console\n$ {line}\n{output}\n{fence}").unwrap();
    if ended.status != 0 {
        writeln!(page, "\nIt exits with {}.", ended.status).unwrap();
    }
}

/// A copy whose files all have the same age.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::write(&to, std::fs::read(entry.path()).unwrap()).unwrap();
            let file = std::fs::File::options().write(true).open(&to).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
    }
}
