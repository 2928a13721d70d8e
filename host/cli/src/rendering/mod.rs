//! Turns what happens into what is read: one file a form. Nothing here decides, waits or asks.

mod call;
mod children;
mod doctor;
mod footer;
mod json_lines;
mod plan;
mod run;
mod tools;
mod trace;

pub(crate) use call::{CallPrinter, note_event};
pub(crate) use doctor::doctor;
pub(crate) use footer::footer;
pub(crate) use json_lines::JsonLines;
pub(crate) use plan::plan_waits;
pub(crate) use run::RunPrinter;
pub(crate) use tools::tools;
pub(crate) use trace::traces;
