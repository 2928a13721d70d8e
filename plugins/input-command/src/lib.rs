//! The tool `input_command`: sends input to a command that `exec_command` left running, polls its output, or stops it.
//!
//! It reaches only commands of its own Session, by their id. An interrupted poll leaves the command as it is.

mod action;

use action::Action;
use floe_tool::commands::{CommandSession, Status, WindowEnd};
use floe_tool::{
    Context, Definition, Failure, Outcome, Permission, Tool, Truncation, cancellation, output,
};
use std::time::Duration;

const NAME: &str = "input_command";
/// How long a command has between SIGTERM and SIGKILL, and after that to be gone.
const GRACE: Duration = Duration::from_millis(1_000);

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The process_id that exec_command returned.
    #[schemars(length(min = 1))]
    process_id: String,
    /// Text to write to its standard input, with "\n" at the end of a line. "\u0003" alone interrupts it as Ctrl-C does. Empty or
    /// absent: only poll for output.
    chars: Option<String>,
    /// How many milliseconds to collect output; it returns earlier only when the command ends. Default 250 after input and 5000
    /// without, at least 250.
    yield_time_ms: Option<f64>,
    /// Close its standard input after chars. Default false.
    eof: Option<bool>,
    /// Stop it for good: SIGTERM, and SIGKILL a second later. Default false.
    kill: Option<bool>,
    /// Give its terminal this width in characters, together with rows. Only for a command that was started with tty.
    #[schemars(range(min = 1, max = 1000))]
    columns: Option<u16>,
    /// Give its terminal this height in characters, together with columns.
    #[schemars(range(min = 1, max = 1000))]
    rows: Option<u16>,
}

struct InputCommand;

impl Tool for InputCommand {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            NAME,
            "Reaches a command that exec_command left running, by its process_id: writes chars to its standard input, or polls for new output where \
             chars is empty, and returns what it printed since the last call. \"\\u0003\" alone interrupts it, eof closes its input, kill stops it, columns \
             and rows resize its terminal. When the command has ended the result shows its exit code and the process_id is gone.",
        )
        .permission(Permission::Execute)
        .timeout_ms(130_000)
        .max_output_length(16_000)
        .truncation(Truncation::HeadTail)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        let id = arguments.process_id.as_str();
        if id.is_empty() {
            return Ok(Outcome::missing_argument("process_id", NAME));
        }
        let session = match CommandSession::attach(id) {
            Ok(session) => session,
            Err(failure) => return Ok(Outcome::failed(action::attach_error(id, &failure))),
        };
        if arguments.kill.unwrap_or(false) {
            return kill(&session, id);
        }
        let action = match Action::of(arguments.chars.as_deref().unwrap_or("")) {
            Ok(action) => action,
            Err(message) => return Ok(Outcome::failed(message)),
        };
        if let Some(refusal) = resize(&session, &arguments) {
            return Ok(refusal);
        }
        let blocked = act(&session, &action)?;
        if arguments.eof.unwrap_or(false) {
            session.close_stdin()?;
        }
        let window = action.window(arguments.yield_time_ms, cancellation::remaining());
        let end = stream(&session, window)?;
        let outcome = end.outcome().unwrap_or_else(|| {
            Outcome::completed().with_note(end.running_note(action::running_note(id)))
        });
        Ok(match blocked {
            Some(notice) => action::with_notice(outcome, &notice),
            None => outcome,
        })
    }
}

floe_tool::export!(InputCommand);

/// Does what was asked. Where the program did not take all of its input, returns the words for it.
fn act(session: &CommandSession, action: &Action) -> Result<Option<String>, Failure> {
    match action {
        Action::Poll => Ok(None),
        Action::Interrupt => session.send_signal("SIGINT").map(|()| None),
        Action::Write(chars) => Ok(session
            .write_stdin(chars.as_bytes())
            .err()
            .and_then(|failure| action::write_notice(&failure))),
    }
}

fn stream(session: &CommandSession, window: Duration) -> Result<WindowEnd, Failure> {
    session.stream(window, |text| {
        output::write(text);
    })
}

/// Resizes its terminal where that is asked for; says why it cannot be done.
fn resize(session: &CommandSession, arguments: &Arguments) -> Option<Outcome> {
    let (columns, rows) = match (arguments.columns, arguments.rows) {
        (None, None) => return None,
        (Some(columns), Some(rows)) => (columns, rows),
        (None, Some(_)) => return Some(Outcome::missing_argument("columns", NAME)),
        (Some(_), None) => return Some(Outcome::missing_argument("rows", NAME)),
    };
    let failure = session.resize_terminal(columns, rows).err()?;
    Some(Outcome::failed(action::error(&failure)))
}

/// Drains what is pending, then ends the command, the gentle way first. Its end is no news to anybody.
fn kill(session: &CommandSession, id: &str) -> Result<Outcome, Failure> {
    session.keep(false)?;
    let before = session.status();
    if before == Status::Running {
        let mut end = stream(session, Duration::ZERO)?;
        for signal in ["SIGTERM", "SIGKILL"] {
            if matches!(end, WindowEnd::StillRunning { .. }) {
                session.send_signal(signal)?;
                end = stream(session, GRACE)?;
            }
        }
    } else {
        stream(session, GRACE)?;
    }
    Ok(Outcome::completed().with_note(action::killed_note(id, &before)))
}
