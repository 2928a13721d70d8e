//! `floe run`: one input, and the model works with the tools until it is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_environment::Surface;
use floe_protocol::{AgentId, Home, Mode, OmniMessage, SessionId};
use floe_session::{Observer, PlanDecision, RunEnd, Session};
use tokio_util::sync::CancellationToken;

use super::{say_ended_commands, say_trace_fault};
use crate::arguments::{ModeName, OutputForm, Run};
use crate::config::AgentConfig;
use crate::exit::{Ending, Fault, Status};
use crate::model::{self, Chosen, Sources};
use crate::rendering::{JsonLines, RunPrinter, footer, plan_waits};
use crate::setup::{Setup, registry};
use crate::terminal::{Keep, Screen, Style, visible};

/// Component instances that one conversation may have at once, most of them waiting for a command.
const POOL: u32 = 64;

/// Runs the conversation.
pub(crate) fn execute(arguments: &Run) -> Ending {
    let task = Task::of(arguments)?;
    let setup = Setup::new(&arguments.session, |config| config.surfaces.run)?;
    let named = match &arguments.resume {
        Some(id) => earlier_agent(&setup.home, id)?,
        None => arguments.agent.clone(),
    };
    let agent = setup.agent(named.as_ref())?;
    let agent_id = named.unwrap_or_default();
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
        })
    };
    let model = match (model, &task) {
        // A rejection asks no model, so it needs none.
        (Err(_), Task::Decide(PlanDecision::Reject)) => None,
        (model, _) => Some(model?),
    };
    host.block_on(run(arguments, task, setup, agent_id, agent, model))
}

/// What a run does first.
enum Task {
    Input(String),
    Decide(PlanDecision),
}

impl Task {
    fn of(arguments: &Run) -> Result<Task, Fault> {
        if arguments.reject {
            return Ok(Task::Decide(PlanDecision::Reject));
        }
        if let Some(feedback) = &arguments.revise {
            return Ok(Task::Decide(PlanDecision::Revise(feedback.clone())));
        }
        match (&arguments.message, &arguments.mode) {
            (Some(_), Some(_)) if arguments.resume.is_some() => Err(Fault::usage(
                "A Session that goes on keeps its mode. Give either -m, or --mode build to approve the plan that waits.",
            )),
            (Some(message), _) => Ok(Task::Input(message.clone())),
            (None, Some(ModeName::Build)) => Ok(Task::Decide(PlanDecision::Approve)),
            (None, _) => Err(Fault::usage(
                "Say what to do with the Session: -m TEXT goes on; --mode build, --revise TEXT or --reject decide on its plan.",
            )),
        }
    }
}

/// The agent of an earlier Session, where it is not the default one.
fn earlier_agent(home: &Home, id: &str) -> Result<Option<AgentId>, Fault> {
    let found = floe_trace::find(home, id).map_err(|error| Fault::usage(error.to_string()))?;
    Ok(Some(found.agent).filter(|agent| *agent != AgentId::default()))
}

async fn run(
    arguments: &Run,
    task: Task,
    setup: Setup,
    agent_id: AgentId,
    agent: Option<AgentConfig>,
    model: Option<Chosen>,
) -> Ending {
    let screen = &setup.screen;
    let registry = registry(Some(POOL))?;
    let asked_by = match &model {
        Some(model) => format!("the model {}", model.specification),
        None => "no model".to_owned(),
    };
    let mut options = setup.options(registry, Surface::Run, asked_by, true);
    options.agent = agent_id;
    options.model = model.map(|model| model.driver);
    options.mode = arguments.mode.map_or(Mode::Build, Mode::from);
    options.selection = setup.selection(arguments.session.toolset, agent.as_ref());
    options.max_turns = setup.config.max_turns;
    if let Some(agent) = agent {
        options.limit_turns(agent.max_turns);
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
    let session = match &arguments.resume {
        Some(id) => Session::resume(options, id),
        None => Session::open(options),
    };
    let session = session.map_err(|error| Fault::usage(error.to_string()))?;
    let id = session.id().clone();
    let cancel = setup.interrupts.run();
    let rejected = matches!(task, Task::Decide(PlanDecision::Reject));
    let mut end = match task {
        Task::Input(message) => session.run(&message, cancel).await,
        Task::Decide(decision) => match session.decide_plan(decision, cancel).await {
            Some(end) => end,
            None => {
                session.close().await;
                return Err(Fault::usage(format!(
                    "No plan of {id} waits for a decision. Go on with -m TEXT."
                )));
            }
        },
    };
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
    if rejected {
        screen.aside("The plan is rejected, and the Session is still in plan mode. The model learns of it with your next -m TEXT.");
    }
    say_end(&end, &id, arguments, screen);
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

fn say_end(end: &RunEnd, id: &SessionId, arguments: &Run, screen: &Screen) {
    let bad = |word: &str| screen.aside_paint().paint(Style::Bad, word);
    match end {
        RunEnd::Ended { .. } => {}
        RunEnd::PlanProposed { .. } => screen.aside(&plan_waits(id, arguments)),
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
