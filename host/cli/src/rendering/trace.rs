//! The list of Traces as a table.

use floe_trace::{TraceState, TraceSummary};

use super::tools::table;
use crate::terminal::{Keep, Paint, visible};

/// The table for people.
pub(crate) fn traces(summaries: &[TraceSummary], paint: Paint) -> String {
    let rows: Vec<[String; 5]> = summaries
        .iter()
        .map(|summary| {
            let state = match summary.state {
                TraceState::Running => "running",
                TraceState::Ended => "ended",
                TraceState::Interrupted => "interrupted",
            };
            let model = summary.model.as_deref().unwrap_or("-");
            let workspace = summary.workspace.as_deref().unwrap_or("-");
            [
                summary.session.as_str(),
                state,
                &summary.records.to_string(),
                model,
                workspace,
            ]
            .map(|cell| visible(cell, Keep::Nothing))
        })
        .collect();
    table(
        ["SESSION", "STATE", "RECORDS", "MODEL", "WORKSPACE"],
        &rows,
        paint,
    )
}
