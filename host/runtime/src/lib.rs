//! The component runtime: lets components in, compiles each once, and runs every call in a fresh instance that is linked to what
//! was granted and to nothing else. It knows of no sessions, no messages and no models; what a guest does reaches the world only
//! through the traits in [`capability`].
//!
//! ```text
//! bytes ── load ──▶ Component ── execute(CallRequest) ──▶ Call { end: CallEnd, facts: HostFacts }
//!                                   │ granted ∩ imported
//!                                   ▼
//!                        Hosts: one trait object per capability, or `Deny`
//! ```

mod admission;
mod bindings;
mod call;
pub mod capability;
mod capability_set;
mod component;
mod definition;
pub mod engine;
mod executor;
mod hosts;
mod last_words;
mod linker;
mod memory;
mod outgoing_http;
mod record;
mod result;
mod runtime;
mod state;
mod ticker;

pub use admission::{AdmissionError, CONTRACT_VERSION};
pub use call::{
    Call, CallContext, CallEnd, CallFault, CallLimits, CallRequest, HostFacts, ToolResult,
    WORKSPACE_DIR,
};
pub use capability::output::OutputSink;
pub use capability::{Failure, Image};
pub use capability_set::{Capability, CapabilitySet};
pub use component::{Component, ComponentSource, Form, MAX_COMPONENT_BYTES};
pub use engine::{Allocator, PrecompileError, precompile};
pub use hosts::Hosts;
pub use runtime::{Runtime, RuntimeError, RuntimeOptions};
