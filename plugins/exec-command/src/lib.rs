//! The tool `exec_command`: runs a shell command, confined to the Workspace.
//!
//! Output streams as it arrives. A command that outlives its window goes on, and `input_command` reaches it. Everything that a
//! command may touch is decided below the `commands` interface, never here.

use floe_tool::commands::{Command, CommandSession, Widen, spawn_error};
use floe_tool::{
    Context, Definition, Failure, Outcome, Permission, Tool, Truncation, cancellation, output,
};
use std::time::Duration;

const NAME: &str = "exec_command";
const YIELD_DEFAULT_MS: f64 = 60_000.0;
const YIELD_LEAST_MS: f64 = 250.0;
/// What is left of the time of a call for its end.
const RESERVE_MS: f64 = 1_000.0;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The shell command to run, for bash. Pipes, redirections and several lines are fine.
    #[schemars(length(min = 1))]
    cmd: String,
    /// The folder to run it in, relative to the Workspace. Default: the Workspace.
    workdir: Option<String>,
    /// How many milliseconds to wait for the end before leaving the command running. Default 60000, at least 250.
    yield_time_ms: Option<f64>,
    /// Leave it running at once and go on with other work: the result names its process_id, and a message tells when it has ended.
    /// For builds, tests and downloads that take long. Default false.
    run_in_background: Option<bool>,
    /// Run it in a terminal of 80 columns and 24 rows, for programs that insist on one; what is typed is echoed in the output.
    /// Default false.
    tty: Option<bool>,
    /// Asks the person to let this one command reach more than the sandbox gives it. Only for what the task cannot do without.
    #[schemars(with = "Option<Widen>")]
    #[serde(rename = "widen")]
    _widen: Option<serde::de::IgnoredAny>,
}

struct ExecCommand;

impl Tool for ExecCommand {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            NAME,
            "Runs a shell command in the Workspace and returns what it prints, standard output and standard error together. A non-zero exit code is \
             shown after the output. The command is confined: it can write only inside the Workspace and temporary folders, and it has no network \
             beyond its own loopback. When it ends, every process it started ends too, so do not put work in the background with & and leave. What \
             takes long and ends by itself, start with run_in_background: the result names its process_id at once, and a message tells when it has \
             ended. A server or a watcher, start with a short yield_time_ms: what still runs then keeps running and the result names its process_id. \
             With a process_id input_command sends input, polls for output or stops the command. What a command needs beyond that, a path outside the \
             Workspace or a host, can be asked for with widen: the person decides, and a no is final.",
        )
        .permission(Permission::Execute)
        .timeout_ms(120_000)
        .max_output_length(16_000)
        .truncation(Truncation::HeadTail)
    }

    fn run(arguments: Arguments, context: &Context) -> Result<Outcome, Failure> {
        if arguments.cmd.is_empty() {
            return Ok(Outcome::missing_argument("cmd", NAME));
        }
        let one_shot = is_one_shot(context);
        let default_ms = if one_shot {
            f64::INFINITY
        } else {
            YIELD_DEFAULT_MS
        };
        let window = window(
            arguments.yield_time_ms.unwrap_or(default_ms),
            cancellation::remaining(),
        );
        match command(&arguments).spawn() {
            Ok(session) => {
                // Nobody can send input later, so a program that reads to the end of its input is to find it.
                if one_shot && arguments.tty != Some(true) {
                    session.close_stdin()?;
                }
                if arguments.run_in_background == Some(true) {
                    return leave(&session, context);
                }
                follow(&session, window)
            }
            Err(failure) => Ok(Outcome::failed(spawn_error(&failure))),
        }
    }
}

floe_tool::export!(ExecCommand);

fn command(arguments: &Arguments) -> Command {
    let command = Command::shell(&arguments.cmd).terminal(arguments.tty.unwrap_or(false));
    match &arguments.workdir {
        Some(folder) => command.working_directory(folder),
        None => command,
    }
}

/// Leaves a command running without waiting for anything of it.
fn leave(session: &CommandSession, context: &Context) -> Result<Outcome, Failure> {
    session.keep(true)?;
    Ok(Outcome::completed().with_note(background_note(&session.process_id(), context)))
}

fn follow(session: &CommandSession, window: Duration) -> Result<Outcome, Failure> {
    let end = session.stream(window, |text| {
        output::write(text);
    })?;
    match end.outcome() {
        Some(outcome) => Ok(outcome),
        None => {
            session.keep(false)?;
            let note = end.running_note(running_note(&session.process_id()));
            Ok(Outcome::completed().with_note(note))
        }
    }
}

/// True where nobody could reach the command after this call, so that leaving it running would be to lose it.
fn is_one_shot(context: &Context) -> bool {
    says(context, "one-shot")
}

/// What the host says of this call beside the ids.
fn says(context: &Context, name: &str) -> bool {
    context
        .metadata
        .iter()
        .any(|(known, value)| known == name && value == "true")
}

/// The time to wait: what was asked for, but at least 250 ms, and otherwise at most what the call has left less a second.
fn window(asked_ms: f64, remaining: Option<Duration>) -> Duration {
    let most = remaining.map_or(f64::from(u32::MAX), |remaining| {
        remaining.as_secs_f64() * 1000.0 - RESERVE_MS
    });
    Duration::from_millis(asked_ms.min(most).max(YIELD_LEAST_MS) as u64)
}

fn running_note(process_id: &str) -> String {
    format!(
        "[process running with process_id {process_id}; use input_command to send input or poll for output]"
    )
}

/// What is promised of the end of a command depends on who could be told of it.
fn background_note(process_id: &str, context: &Context) -> String {
    let promise = if is_one_shot(context) {
        "it ends with this call, after which nobody could reach it"
    } else if says(context, "reports-ends") {
        "its completion will arrive as a user message; use input_command to poll for output, send input or kill it"
    } else {
        "its completion is not announced here; use input_command to poll for output, send input or kill it"
    };
    format!("[command running in background with process_id {process_id}; {promise}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(asked: f64, remaining: Option<u64>) -> u128 {
        window(asked, remaining.map(Duration::from_millis)).as_millis()
    }

    #[test]
    fn a_window_is_at_least_250_ms() {
        assert_eq!(milliseconds(0.0, Some(120_000)), 250);
        assert_eq!(milliseconds(-3.0, None), 250);
        assert_eq!(milliseconds(YIELD_DEFAULT_MS, Some(200)), 250);
    }

    #[test]
    fn a_window_ends_a_second_before_the_call_does() {
        assert_eq!(milliseconds(YIELD_DEFAULT_MS, Some(120_000)), 60_000);
        assert_eq!(milliseconds(500_000.0, Some(120_000)), 119_000);
        assert_eq!(milliseconds(500_000.0, None), 500_000);
        assert_eq!(milliseconds(f64::INFINITY, None), u128::from(u32::MAX));
    }

    #[test]
    fn only_the_host_says_that_a_call_is_the_only_one() {
        let mut context = Context {
            tool_call_id: "c1".into(),
            session_id: "s1".into(),
            workspace_dir: "/workspace".into(),
            metadata: vec![],
        };
        assert!(!is_one_shot(&context));
        context.metadata.push(("one-shot".into(), "true".into()));
        assert!(is_one_shot(&context));
    }

    #[test]
    fn the_note_of_a_background_command_promises_a_message_only_where_the_host_sends_one() {
        let note = |metadata: &[(&str, &str)]| {
            let metadata = metadata
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()));
            let context = Context {
                tool_call_id: "c1".into(),
                session_id: "s1".into(),
                workspace_dir: "/workspace".into(),
                metadata: metadata.collect(),
            };
            background_note("proc-0a1b2c3d", &context)
        };
        assert_eq!(
            note(&[("reports-ends", "true")]),
            "[command running in background with process_id proc-0a1b2c3d; its completion will arrive as a user message; use \
             input_command to poll for output, send input or kill it]"
        );
        assert!(note(&[]).contains("; its completion is not announced here; "));
        assert!(
            note(&[("one-shot", "true")])
                .ends_with("; it ends with this call, after which nobody could reach it]")
        );
    }

    #[test]
    fn a_spawn_error_is_framed_and_followed_by_its_remedy() {
        let failure = Failure::new("disposed", "command session manager disposed");
        assert_eq!(
            spawn_error(&failure),
            "[spawn error: command session manager disposed]"
        );
        assert_eq!(
            spawn_error(&failure.with_hint("Start a new Session.")),
            "[spawn error: command session manager disposed]\nStart a new Session."
        );
    }

    #[test]
    fn the_note_of_a_running_command_names_its_process_id() {
        assert_eq!(
            running_note("proc-0a1b2c3d"),
            "[process running with process_id proc-0a1b2c3d; use input_command to send input or poll for output]"
        );
    }
}
