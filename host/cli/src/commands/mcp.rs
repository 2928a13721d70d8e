//! `floe mcp`: the tools for a client of the Model Context Protocol, on standard input and output. Standard output carries the
//! protocol and nothing else; whatever a person should know goes to standard error.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use floe_environment::{Question, Surface};
use floe_mcp::Describe;
use floe_protocol::{Body, EventMsg, OmniMessage};
use floe_session::Observer;

use super::{say_ended_commands, say_trace_fault};
use crate::approval::{Standing, render};
use crate::arguments::Mcp;
use crate::config::AgentConfig;
use crate::exit::{Ending, Fault, Status};
use crate::rendering::note_event;
use crate::setup::{Setup, registry};
use crate::terminal::{Paint, Screen};

/// Component instances that one connection may have at once, most of them waiting for a command.
const POOL: u32 = 64;
/// The width of a question. Clients show it in windows of their own.
const COLUMNS: usize = 100;

/// Serves one client.
pub(crate) fn execute(arguments: &Mcp) -> Ending {
    let setup = Setup::new(&arguments.session, |config| config.surfaces.mcp)?;
    let agent = setup.agent(arguments.agent.as_ref())?;
    super::host()?.block_on(serve(arguments, agent, setup))
}

async fn serve(arguments: &Mcp, agent: Option<AgentConfig>, setup: Setup) -> Ending {
    let registry = registry(Some(POOL))?;
    let asked_by = "a client of floe mcp".to_owned();
    let describe = describe(setup.standing(asked_by.clone(), true));
    let mut options = setup.options(registry, Surface::Mcp, asked_by, true);
    options.agent = arguments.agent.clone().unwrap_or_default();
    options.selection = setup.selection(arguments.session.toolset, agent.as_ref());
    options.observer = Arc::new(Aside(Arc::clone(&setup.screen)));
    if io::stdin().is_terminal() {
        setup.screen.aside(
            "floe mcp waits for a client of the Model Context Protocol; usually the client starts it. Ctrl-C ends it.",
        );
    }
    setup.listen()?;
    let interrupted = setup.interrupts.run();
    let pipes = (io::stdin(), io::stdout());
    let served = floe_mcp::serve(options, describe, pipes, interrupted)
        .await
        .map_err(|error| Fault::usage(error.to_string()))?;
    say_ended_commands(&served.closed, &setup.screen);
    say_trace_fault(&served.closed, &setup.screen);
    match served.fault {
        Some(reason) => Err(Fault::failed(format!(
            "The client was not served: {reason}."
        ))),
        None if interrupted.is_cancelled() => Ok(Status::Interrupted),
        None => Ok(Status::Completed),
    }
}

/// Questions as the terminal shows them, without colour.
fn describe(standing: Standing) -> Describe {
    Arc::new(move |question: &Question| {
        render(question, &standing, Paint::PLAIN, COLUMNS)
            .trim()
            .to_owned()
    })
}

/// Says on standard error what concerns the person rather than the client.
struct Aside(Arc<Screen>);

impl Observer for Aside {
    fn message(&self, message: &OmniMessage) {
        if let Body::EventMsg(
            event @ (EventMsg::Warning { .. } | EventMsg::BackgroundTaskDone(_)),
        ) = &message.body
        {
            note_event(event, &self.0);
        }
    }
}
