//! The rows, and the check that none is missing.

mod e;
mod s;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::row::Row;

/// How many cases each table has.
const TABLES: [(&str, usize); 2] = [("E", 35), ("S", 48)];

/// The cases that no row can play, each with its reason.
const CANNOT_RUN: &[(&str, &str)] = &[];

/// Every row.
pub(crate) fn all() -> &'static [Row] {
    static ALL: LazyLock<Vec<Row>> = LazyLock::new(|| [e::rows(), s::rows()].concat());
    &ALL
}

/// Every case of the tables has a row or a reason why not, never both.
pub(crate) fn check_complete() -> Result<(), String> {
    let played: BTreeSet<&str> = all().iter().map(|row| row.id).collect();
    let excused: BTreeSet<&str> = CANNOT_RUN.iter().map(|(id, _)| *id).collect();
    let wanted: BTreeSet<String> = TABLES
        .iter()
        .flat_map(|(table, count)| (1..=*count).map(move |number| format!("{table}{number}")))
        .collect();
    let mut faults = Vec::new();
    for id in &wanted {
        match (played.contains(id.as_str()), excused.contains(id.as_str())) {
            (false, false) => faults.push(format!("{id} has neither a row nor a reason")),
            (true, true) => faults.push(format!("{id} has a row and a reason why it has none")),
            _ => {}
        }
    }
    let unknown = played.union(&excused).filter(|id| !wanted.contains(**id));
    faults.extend(unknown.map(|id| format!("{id} is in no table")));
    if faults.is_empty() {
        return Ok(());
    }
    Err(faults.join("\n"))
}
