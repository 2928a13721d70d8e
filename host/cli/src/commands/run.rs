//! `floe run`: one input, and the model works with the tools until it is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_environment::Surface;
use floe_protocol::{AgentId, OmniMessage};
use floe_session::{Observer, RunEnd, Session};
use tokio_util::sync::CancellationToken;

use super::{say_ended_commands, say_trace_fault};
use crate::arguments::{OutputForm, Run};
use crate::config::AgentConfig;
use crate::exit::{Ending, Fault, Status};
use crate::model::{self, Chosen, Sources};
use crate::rendering::{JsonLines, RunPrinter, footer};
use crate::setup::{Setup, registry};
use crate::terminal::{Keep, Screen, Style, visible};

/// Component instances that one conversation may have at once, most of them waiting for a command.
const POOL: u32 = 64;

/// Runs the conversation.
pub(crate) fn execute(arguments: &Run) -> Ending {
    let setup = Setup::new(&arguments.session, |config| config.surfaces.run)?;
    let agent_id = arguments.agent.clone().unwrap_or_default();
    let agent = setup.agent(arguments.agent.as_ref())?;
    let environment = std::env::var("FLOE_MODEL").ok();
    // The driver of a service needs the async runtime for its client.
    let host = super::host()?;
    let model = {
        let _inside = host.enter();
        model::open(&Sources {
            flag: arguments.model.as_deref(),
            environment: environment.as_deref(),
            agent: agent.as_ref(),
            agent_id: &agent_id,
            config: &setup.config,
        })?
    };
    host.block_on(run(arguments, setup, agent_id, agent, model))
}

async fn run(
    arguments: &Run,
    setup: Setup,
    agent_id: AgentId,
    agent: Option<AgentConfig>,
    model: Chosen,
) -> Ending {
    let screen = &setup.screen;
    let registry = registry(Some(POOL))?;
    let asked_by = format!("the model {}", model.specification);
    let mut options = setup.options(registry, Surface::Run, asked_by, true);
    options.agent = agent_id;
    options.model = Some(model.driver);
    options.mode = arguments.mode.into();
    options.selection = setup.selection(arguments.session.toolset, agent.as_ref());
    options.max_turns = setup.config.max_turns;
    if let Some(agent) = agent {
        options.max_turns = fewer(agent.max_turns, options.max_turns);
        options.max_tokens = agent.model.max_tokens;
        options.system_prompt = Some(agent.system_prompt);
        if !agent.without_effect.is_empty() {
            let keys = agent.without_effect.join(", ");
            screen.aside(&format!(
                "{} keys of the agent that have no effect yet: {keys}",
                warning(screen)
            ));
        }
    }
    let shown = Arc::new(Shown {
        printer: Arc::default(),
        screen: Arc::clone(screen),
    });
    options.observer = match arguments.output {
        OutputForm::Text => Arc::clone(&shown) as _,
        OutputForm::Json => Arc::new(JsonLines::counting(
            Arc::clone(screen),
            Arc::clone(&shown.printer),
        )),
    };
    setup.listen()?;
    let session = Session::open(options).map_err(|error| Fault::usage(error.to_string()))?;
    let id = session.id().clone();
    let cancel = setup.interrupts.run();
    let mut end = session.run(&arguments.message, cancel).await;
    let patience = Duration::from_secs(arguments.background_wait);
    while matches!(end, RunEnd::Ended { .. })
        && let Some(next) = run_on(&session, patience, cancel, screen).await
    {
        end = next;
    }
    let closed = session.close().await;
    screen.end_result_line();
    if let RunEnd::PlanProposed { plan } = &end
        && matches!(arguments.output, OutputForm::Text)
    {
        screen.untrusted_result(plan);
        screen.end_result_line();
    }
    say_end(&end, screen);
    if end != RunEnd::Interrupted {
        say_ended_commands(&closed, screen);
    }
    say_trace_fault(&closed, screen);
    let printer = shown.printer();
    screen.aside(&footer(
        printer.turns(),
        printer.calls(),
        id.as_str(),
        &closed,
        screen.aside_paint(),
    ));
    Ok(Status::from_code(end.exit_status()))
}

/// The model has ended its turn, and commands still run of whose end it was promised to hear: waits for the first end, and lets
/// it work on. None where there is no such command, or none has ended in time.
async fn run_on(
    session: &Session,
    patience: Duration,
    cancel: &CancellationToken,
    screen: &Screen,
) -> Option<RunEnd> {
    let awaited = session.awaited_commands();
    if !awaited.is_empty() && !patience.is_zero() {
        let names: Vec<_> = awaited
            .iter()
            .map(|command| format!("`{}`", visible(&command.label, Keep::Nothing)))
            .collect();
        screen.end_result_line();
        screen.aside(&format!(
            "waiting for {} to end, for {} at most; Ctrl-C ends it",
            names.join(", "),
            seconds(patience)
        ));
    }
    tokio::select! {
        biased;
        done = tokio::time::timeout(patience, session.background_task_done()) => match done {
            Ok(true) => session.run_on(cancel).await,
            Ok(false) | Err(_) => None,
        },
        () = cancel.cancelled() => Some(RunEnd::Interrupted),
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        whole if whole % 60 == 0 && whole > 60 => format!("{} minutes", whole / 60),
        whole => format!("{whole} s"),
    }
}

/// The agent's number of turns under the configuration's; 0 or less is without limit.
fn fewer(agent: Option<i64>, limit: i64) -> i64 {
    match agent {
        Some(turns) if turns > 0 && (limit <= 0 || turns < limit) => turns,
        _ => limit,
    }
}

fn say_end(end: &RunEnd, screen: &Screen) {
    let bad = |word: &str| screen.aside_paint().paint(Style::Bad, word);
    match end {
        RunEnd::Ended { .. } => {}
        RunEnd::PlanProposed { .. } => screen.aside(
            "\nThe plan waits for your decision; nothing was changed. To have it carried out, give it to a run in build mode.",
        ),
        RunEnd::Failed { reason } => {
            screen.aside(&format!(
                "\n{} {}",
                bad("The run failed:"),
                visible(reason, Keep::LinesAndTabs)
            ));
        }
        RunEnd::StoppedByRefusals { tool } => {
            let tool = visible(tool, Keep::Nothing);
            screen.aside(&format!(
                "\n{} the model asked again and again for `{tool}`, which was refused.",
                bad("Stopped:")
            ));
        }
        RunEnd::Interrupted => screen.aside(&format!("\n{}", bad("Interrupted."))),
    }
}

fn warning(screen: &Screen) -> String {
    screen.aside_paint().paint(Style::Warning, "warning:")
}

/// Shows the conversation as text.
struct Shown {
    printer: Arc<Mutex<RunPrinter>>,
    screen: Arc<Screen>,
}

impl Shown {
    fn printer(&self) -> MutexGuard<'_, RunPrinter> {
        self.printer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Shown {
    fn message(&self, message: &OmniMessage) {
        self.printer().message(message, &self.screen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_have_fewer_turns_and_never_more() {
        assert_eq!(fewer(Some(5), 100), 5);
        assert_eq!(fewer(Some(500), 100), 100);
        assert_eq!(fewer(Some(-1), 100), 100);
        assert_eq!(fewer(Some(7), -1), 7);
        assert_eq!(fewer(None, 100), 100);
    }
}
