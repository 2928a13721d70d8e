//! What a child Session does, as the person sees it who watches its parent: what it calls while it works, and what they should
//! know. Its words are for its parent to read.

use floe_protocol::{
    Body, EventMsg, ModelMsg, OmniMessage, StopReason, SubagentState, subagent_name,
};

use super::call::note_event;
use crate::terminal::{Keep, Screen, visible};

/// Shows a message that came through a child.
pub(crate) fn child_message(message: &OmniMessage, screen: &Screen) {
    let Some(child) = message.origin.first() else {
        return;
    };
    match &message.body {
        Body::ModelMsg(ModelMsg::ToolCall {
            name,
            arguments,
            stop_reason: StopReason::Completed,
            ..
        }) => {
            let line = format!("{}: {name} {arguments}", subagent_name(child));
            screen.progress(&visible(&line, Keep::Nothing));
        }
        Body::EventMsg(event @ (EventMsg::Warning { .. } | EventMsg::ApprovalDecision(_))) => {
            note_event(event, screen);
        }
        _ => {}
    }
}

/// Shows what a parent tells of its child.
pub(super) fn subagent(
    session_id: &str,
    description: Option<&str>,
    state: SubagentState,
    screen: &Screen,
) {
    if state != SubagentState::Running {
        return;
    }
    let task = description.map_or_else(String::new, |task| format!(": {task}"));
    let line = format!("{} works{task}", subagent_name(session_id));
    screen.progress(&visible(&line, Keep::Nothing));
}
