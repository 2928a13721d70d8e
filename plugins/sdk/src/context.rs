//! Where a call happens.

use crate::bindings::floe::tool::types::ExecutionContext;

/// What the host tells a tool about the call that it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// The model's id for this call.
    pub tool_call_id: String,
    /// The Session that the call belongs to.
    pub session_id: String,
    /// Where the Workspace is for the tool: `/workspace`, never a path of the host.
    pub workspace_dir: String,
    /// What later versions of the host tell, by name.
    pub metadata: Vec<(String, String)>,
}

impl From<ExecutionContext> for Context {
    fn from(context: ExecutionContext) -> Context {
        Context {
            tool_call_id: context.tool_call_id,
            session_id: context.session_id,
            workspace_dir: context.workspace_dir,
            metadata: context.metadata,
        }
    }
}
