//! Tables: their cells are gathered and written as lines when the table ends.

use super::{Form, Writer};

/// Columns that the line below the heads names.
const MOST_COLUMNS: usize = 256;

/// A table that is being gathered. What it holds of tables of its own is text of the cell.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    cell: Option<String>,
    /// Tables that are open inside.
    inner: usize,
}

impl Table {
    /// The cell that words go to.
    pub(super) fn cell(&mut self) -> Option<&mut String> {
        self.cell.as_mut()
    }
}

impl Writer {
    pub(super) fn in_cell(&self) -> bool {
        self.table
            .as_ref()
            .is_some_and(|table| table.cell.is_some())
    }

    pub(crate) fn open_table(&mut self) {
        self.block(2);
        match &mut self.table {
            Some(table) => table.inner += 1,
            None if self.code_block.is_none() => self.table = Some(Table::default()),
            None => {}
        }
    }

    pub(crate) fn open_row(&mut self) {
        self.close_cell();
        match &mut self.table {
            Some(table) if table.inner == 0 => table.rows.push(Vec::new()),
            Some(_) => {}
            None => self.block(1),
        }
    }

    pub(crate) fn open_cell(&mut self) {
        self.close_cell();
        match &mut self.table {
            Some(table) if table.inner == 0 => {
                if table.rows.is_empty() {
                    table.rows.push(Vec::new());
                }
                table.cell = Some(String::new());
                self.space = false;
            }
            Some(_) => {}
            None => self.block(1),
        }
    }

    pub(crate) fn close_cell(&mut self) {
        self.interrupt_marks();
        match self.table.as_mut().filter(|table| table.inner == 0) {
            Some(table) => {
                if let (Some(cell), Some(row)) = (table.cell.take(), table.rows.last_mut()) {
                    row.push(cell);
                    self.space = false;
                }
            }
            None => self.space = true,
        }
    }

    /// Writes what there is of a table, and goes on as if there were none: blocks of code do not fit into cells.
    pub(super) fn abandon_table(&mut self) {
        if let Some(table) = &mut self.table {
            table.inner = 0;
            self.close_table();
        }
    }

    pub(crate) fn close_table(&mut self) {
        if let Some(table) = self.table.as_mut().filter(|table| table.inner > 0) {
            table.inner -= 1;
            self.space = true;
            return;
        }
        self.close_cell();
        let Some(table) = self.table.take() else {
            return;
        };
        let has_words = |row: &&Vec<String>| row.iter().any(|cell| !cell.is_empty());
        let rows: Vec<&Vec<String>> = table.rows.iter().filter(has_words).collect();
        let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        self.block(2);
        for (index, row) in rows.into_iter().enumerate() {
            // A table of one column, or of one row, is there to arrange things.
            let is_layout = columns == 1;
            match (self.form, is_layout) {
                (_, true) => self.line(&row.join(" ")),
                (Form::Text, false) => self.line(&row.join(" | ")),
                (Form::Markdown, false) => {
                    let cells: Vec<String> =
                        row.iter().map(|cell| cell.replace('|', "\\|")).collect();
                    self.line(&format!("| {} |", cells.join(" | ")));
                    if index == 0 {
                        self.line(&format!("|{}", " --- |".repeat(columns.min(MOST_COLUMNS))));
                    }
                }
            }
        }
        self.block(2);
    }
}
