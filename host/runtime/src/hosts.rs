//! The implementations that a call is linked to, one per capability. A field that nobody set answers `denied` or
//! `unsupported`; which of them a call reaches is decided by its capability set and not here.

use std::sync::Arc;

use crate::capability::commands::Commands;
use crate::capability::edits::Edits;
use crate::capability::http::Http;
use crate::capability::interaction::Interaction;
use crate::capability::language_server::LanguageServer;
use crate::capability::log::{Log, TracingLog};
use crate::capability::session_state::SessionState;
use crate::capability::subagents::Subagents;
use crate::capability::vision::Vision;
use crate::capability::web_search::WebSearch;
use crate::capability::workspace::Workspace;
use crate::capability::{Deny, Unsupported};

/// One implementation per capability, shared by the calls of a Session.
#[derive(Clone)]
pub struct Hosts {
    /// Reads the Workspace.
    pub workspace: Arc<dyn Workspace>,
    /// Changes the Workspace.
    pub edits: Arc<dyn Edits>,
    /// Runs native commands.
    pub commands: Arc<dyn Commands>,
    /// Speaks HTTP.
    pub http: Arc<dyn Http>,
    /// Asks a vision model.
    pub vision: Arc<dyn Vision>,
    /// Starts child Sessions.
    pub subagents: Arc<dyn Subagents>,
    /// Asks the person.
    pub interaction: Arc<dyn Interaction>,
    /// The todo list and the plan.
    pub session_state: Arc<dyn SessionState>,
    /// Asks language servers.
    pub language_server: Arc<dyn LanguageServer>,
    /// Searches the web.
    pub web_search: Arc<dyn WebSearch>,
    /// Where log lines go.
    pub log: Arc<dyn Log>,
}

impl Hosts {
    /// Everything is refused with the code `denied`, and log lines are thrown away.
    pub fn deny() -> Hosts {
        Hosts {
            workspace: Arc::new(Deny),
            edits: Arc::new(Deny),
            commands: Arc::new(Deny),
            http: Arc::new(Deny),
            vision: Arc::new(Deny),
            subagents: Arc::new(Deny),
            interaction: Arc::new(Deny),
            session_state: Arc::new(Deny),
            language_server: Arc::new(Deny),
            web_search: Arc::new(Deny),
            log: Arc::new(Deny),
        }
    }

    /// Everything is answered with the code `unsupported`, and log lines go to `tracing`: what a host starts from that then
    /// sets the capabilities it has.
    pub fn unsupported() -> Hosts {
        Hosts {
            workspace: Arc::new(Unsupported),
            edits: Arc::new(Unsupported),
            commands: Arc::new(Unsupported),
            http: Arc::new(Unsupported),
            vision: Arc::new(Unsupported),
            subagents: Arc::new(Unsupported),
            interaction: Arc::new(Unsupported),
            session_state: Arc::new(Unsupported),
            language_server: Arc::new(Unsupported),
            web_search: Arc::new(Unsupported),
            log: Arc::new(TracingLog),
        }
    }
}
