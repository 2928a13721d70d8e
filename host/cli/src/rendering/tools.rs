//! The list of tools as a table.

use floe_environment::ToolListing;

use crate::terminal::{Keep, Paint, Style, visible};

/// The table for people.
pub(crate) fn tools(rows: &[ToolListing], paint: Paint) -> String {
    let cells: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let capabilities = if row.capabilities.is_empty() {
                "-".into()
            } else {
                row.capabilities.join(", ")
            };
            let summary = row.description.split('\n').next().unwrap_or_default();
            [
                &row.name,
                row.permission.as_str(),
                &capabilities,
                &row.origin,
                &first_sentence(summary),
            ]
            .map(|cell| visible(cell, Keep::Nothing))
        })
        .collect();
    table(
        ["NAME", "PERMISSION", "CAPABILITIES", "ORIGIN", ""],
        &cells,
        paint,
    )
}

/// Characters of a description that are shown.
const SUMMARY: usize = 72;

/// The text up to its first full stop, and no more of it than fits.
fn first_sentence(text: &str) -> String {
    let sentence = text.split_once(". ").map_or(text, |(first, _)| first);
    let mut characters = sentence.trim_end_matches('.').chars();
    let mut shown: String = characters.by_ref().take(SUMMARY).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Columns that are as wide as their widest cell; the last one is as long as it is.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]], paint: Paint) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([head[column].chars().count()])
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[&str]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut text = format!("{}\n", paint.paint(Style::Quiet, line(&head)));
    for row in rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        text.push_str(&line(&cells));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use floe_protocol::Permission;

    use super::*;

    #[test]
    fn the_table_shows_permission_capabilities_and_origin() {
        let row = |name: &str, permission, capabilities: &[&str], description: &str| ToolListing {
            name: name.into(),
            description: description.into(),
            parameters: serde_json::Value::Null,
            output_schema: None,
            permission,
            permission_varies: false,
            capabilities: capabilities.iter().map(|name| (*name).into()).collect(),
            origin: "built-in".into(),
        };
        let rows = [
            row(
                "exec_command",
                Permission::Execute,
                &["commands"],
                "Runs a command. More about it.",
            ),
            row(
                "list",
                Permission::ReadOnly,
                &["workspace"],
                "Lists a folder\nsecond line",
            ),
            row("evil\u{202e}", Permission::None, &[], "x"),
        ];
        expect![[r#"
            NAME          PERMISSION  CAPABILITIES  ORIGIN
            exec_command  execute     commands      built-in  Runs a command
            list          read-only   workspace     built-in  Lists a folder
            evil\u{202e}  none        -             built-in  x
        "#]]
        .assert_eq(&tools(&rows, Paint::PLAIN));
    }
}
