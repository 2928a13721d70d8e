//! Confines a native process to one Workspace: a plan made by the host, a helper that turns it into kernel walls, and a
//! doctor that says which walls stand.
//!
//! The host calls [`helper_main`] first in its `main`; [`Sandbox::spawn`] re-executes that binary as the helper. A wall
//! that cannot be built is an error with its cause and remedy: nothing here ever falls back to running a command with
//! less confinement than was asked for.

mod command;
mod control;
mod diagnosis;
mod doctor;
mod error;
mod excess;
mod executable;
mod found;
mod git_config;
mod hard_links;
mod helper;
mod launch;
mod layer;
mod links;
mod newcomers;
mod options;
mod pattern;
mod plan;
mod policy;
mod protected;
mod reaper;
mod removal;
mod secrets;
mod survey;
mod terminal;
mod tier;
mod toolchains;
mod view;
mod widening;
mod worktree;
mod writers;

pub use command::{Child, ConfinedCommand, Program, Streams};
pub use control::{Control, Event, Signal};
pub use doctor::{Doctor, Examined, doctor};
pub use error::{DirectoryFault, LayerFailure, OPT_OUT, SandboxError};
pub use excess::Excess;
pub use found::FoundProtection;
pub use helper::helper_main;
pub use launch::Sandbox;
pub use layer::{Confinement, Layer, LayerName, MinimumTier, Tier};
pub use newcomers::{Appearance, AppearanceKind};
pub use options::SandboxOptions;
pub use policy::{HardLinks, Limits, Network, Policy, Search, WorkspaceMode};
pub use protected::PROTECTED;
pub use removal::remove_folder;
pub use terminal::interrupt_foreground;
pub use view::RESERVED;
pub use widening::{GrantedPath, Widening, WideningFault};
