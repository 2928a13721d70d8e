//! The built `floe` as a person or a script meets it: exit statuses, messages, shapes of output, questions at a terminal.
//!
//! The binary is `FLOE_BIN`, else the one that `make build` left in the target folder. Each test has a `FLOE_HOME`, a HOME and a Workspace
//! of its own.

mod approval;
mod asking;
mod background;
mod bad_input;
mod calls;
mod conversations;
mod editing;
mod forms;
mod language_servers;
mod limits;
mod mcp;
mod network;
mod secrets;
#[path = "../site/mod.rs"]
mod site;
mod subagents;
mod support;
mod surroundings;
mod terminal;
mod tiers;
mod tool_pages;
mod traces;
mod walls;
mod web;
mod widening;
