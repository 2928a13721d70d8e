//! `floe call`: one call of one tool, as a Session of its own.

use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};

use floe_environment::{Selection, Surface, Toolset};
use floe_protocol::{OmniMessage, Source};
use floe_session::{Observer, Session};

use super::{say_ended_commands, say_trace_fault};
use crate::arguments::{Call, OutputForm};
use crate::config::AgentConfig;
use crate::exit::{Ending, Fault, Status};
use crate::rendering::{CallPrinter, JsonLines};
use crate::setup::{Setup, registry};
use crate::terminal::Screen;

/// More than any gate lets through; what is longer is not even read.
const MAX_ARGUMENT_BYTES: u64 = 64 << 20;

/// Calls the tool.
pub(crate) fn execute(arguments: &Call) -> Ending {
    let setup = Setup::new(&arguments.session, |config| config.surfaces.call)?;
    let agent = match &arguments.agent {
        Some(named) => setup.agent(Some(named))?,
        None => None,
    };
    let tool_arguments = read_arguments(arguments.arguments.as_deref())?;
    super::host()?.block_on(call(arguments, &tool_arguments, agent, setup))
}

async fn call(
    arguments: &Call,
    tool_arguments: &str,
    agent: Option<AgentConfig>,
    setup: Setup,
) -> Ending {
    // One call needs no pool: reserving one takes longer than what it saves.
    let registry = registry(None)?;
    let mut options = setup.options(registry, Surface::Call, "you, with floe call".into(), false);
    options.source = Some(Source::Call);
    options.agent = arguments.agent.clone().unwrap_or_default();
    let entries = agent.as_ref().and_then(AgentConfig::builtin);
    options.selection = match (arguments.session.toolset, entries) {
        (Some(toolset), _) => Selection::Toolset(toolset.into()),
        (None, Some(entries)) => Selection::Entries(entries.to_vec()),
        (None, None) => Selection::Toolset(Toolset::All),
    };
    options.observer = match arguments.output {
        OutputForm::Text => Arc::new(Shown {
            printer: Mutex::default(),
            screen: Arc::clone(&setup.screen),
        }),
        OutputForm::Json => Arc::new(JsonLines::new(Arc::clone(&setup.screen))),
    };
    setup.listen()?;
    let session = Session::open(options).map_err(|error| Fault::usage(error.to_string()))?;
    let output = session
        .call(&arguments.tool, tool_arguments, setup.interrupts.run())
        .await;
    let closed = session.close().await;
    setup.screen.end_result_line();
    let status = Status::from_code(output.exit_status());
    if status != Status::Interrupted {
        say_ended_commands(&closed, &setup.screen);
    }
    say_trace_fault(&closed, &setup.screen);
    Ok(status)
}

/// Shows the call as text.
struct Shown {
    printer: Mutex<CallPrinter>,
    screen: Arc<Screen>,
}

impl Observer for Shown {
    fn message(&self, message: &OmniMessage) {
        self.printer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .message(message, &self.screen);
    }
}

/// The arguments: as they stand, from a file, from standard input, or none.
fn read_arguments(given: Option<&str>) -> Result<String, Fault> {
    let (place, read) = match given {
        None => return Ok("{}".to_owned()),
        Some("-") => (
            "standard input".to_owned(),
            read_limited(std::io::stdin().lock()),
        ),
        Some(text) => match text.strip_prefix('@') {
            Some(file) => (
                file.to_owned(),
                std::fs::File::open(file).and_then(read_limited),
            ),
            None => return Ok(text.to_owned()),
        },
    };
    let bytes = read.map_err(|error| {
        Fault::usage(format!(
            "The arguments cannot be read from {place}: {error}. Name a file of JSON after the @."
        ))
    })?;
    String::from_utf8(bytes).map_err(|_| {
        Fault::usage(format!(
            "The arguments in {place} are not UTF-8. JSON is; save them as UTF-8."
        ))
    })
}

fn read_limited(source: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_ARGUMENT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
