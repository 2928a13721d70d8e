//! Confines a native process to one Workspace: a plan made by the host, a helper that turns it into kernel walls, and a
//! doctor that says which walls stand.
//!
//! The host calls [`helper_main`] first in its `main`; [`Sandbox::spawn`] re-executes that binary as the helper. A wall
//! that cannot be built is an error with its cause and remedy: nothing here ever falls back to running a command with
//! less confinement than was asked for.

mod control;
mod doctor;
mod error;
mod launch;
mod layer;
mod policy;

pub use control::{Control, Event, Signal};
pub use doctor::Doctor;
pub use error::{DirectoryFault, LayerFailure, OPT_OUT, SandboxError};
pub use launch::{Child, ConfinedCommand, Program, Sandbox, SandboxOptions, Streams, helper_main};
pub use layer::{Confinement, Layer, LayerName, Tier};
pub use policy::{Limits, Network, Policy, Search, WorkspaceMode};
