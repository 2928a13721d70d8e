//! The coding tools, as a model meets them: every call goes through a real Session to a built component and back. One file per
//! subject; a test's name is the behaviour that it proves.

mod arguments;
mod commands;
mod conversation;
mod editing;
mod hazards;
mod language;
mod limits;
mod meanwhile;
mod named;
mod patch_texts;
mod patching;
mod paths;
mod races;
mod reading;
mod rig;
mod searching;
#[path = "../site/mod.rs"]
mod site;
mod small_disk;
mod subagents;
mod table;
mod web;
