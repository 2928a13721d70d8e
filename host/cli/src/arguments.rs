//! The command line as types: what may be written, with its help and its examples. Nothing here acts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use floe_network::HostGrant;
use floe_protocol::{AgentId, ApprovalMode, Mode, Permission};

/// Runs an AI agent's tools in a sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "floe",
    version,
    about = "Runs an AI agent's tools in a sandbox.",
    long_about = "Runs an AI agent's tools in a sandbox. Every tool is a WebAssembly component that holds exactly the \
                  capabilities its work needs, native commands are confined to the Workspace by the operating system, \
                  and every call is approved once and recorded in a Trace that can be verified.",
    after_help = "Examples:
  floe doctor
  floe call list '{\"path\":\".\"}'
  floe run -m 'Fix the failing check' --model script:session.yaml

State lives under FLOE_HOME (default: $XDG_DATA_HOME/floe, else ~/.local/share/floe).
Exit status: 0 done, 1 failed, 2 nothing ran (usage or configuration), 3 denied, 130 interrupted.",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a conversation: the model works with the tools until it is done
    Run(Run),
    /// Call one tool
    Call(Call),
    /// Serve the tools to a client of the Model Context Protocol
    Mcp(Mcp),
    /// List the tools: permission, capabilities, origin
    Tools(Tools),
    /// List, show and verify Traces
    #[command(subcommand)]
    Trace(Trace),
    /// Take back the last edits that tools made
    Undo(Undo),
    /// Show which sandbox layers are active, and what to do where one is not
    Doctor(Doctor),
    /// Print the commented reference configuration, or check the files in use
    Config(Config),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Compile core modules or components ahead of time
    #[command(hide = true)]
    Precompile(Precompile),
}

/// What a Session of any kind can be told.
#[derive(Debug, Default, Args)]
pub(crate) struct SessionArguments {
    /// The folder that the tools may touch [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Who is asked before a tool runs [default: allow-all]
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) approve: Option<Approve>,
    /// The tools to offer
    #[arg(long, value_name = "SET", value_enum)]
    pub(crate) toolset: Option<ToolsetName>,
    /// The strongest permission a call may need: none, read-only, write, execute, dangerous
    #[arg(long, value_name = "LEVEL")]
    pub(crate) max_permission: Option<Permission>,
    /// A host that commands and tools may reach in this run: NAME, NAME:PORT or *.NAME, and NAME:PORT=ADDRESS for an address that is not
    /// public; may be given several times
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<HostGrant>,
    /// A file or folder outside the Workspace that commands may read in this run; may be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_read: Vec<PathBuf>,
    /// A file or folder outside the Workspace that commands may read and change in this run; may be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<PathBuf>,
    /// Run commands without any confinement; every result then says UNCONFINED
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}

/// `floe run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floe run -m 'Why does make check fail? Fix it.' --model openai:gpt-5-mini
  floe run -m 'What is in here?' --workspace ~/project --max-permission read-only
  floe run -m 'Go' --model script:session.yaml --output json
  floe run -m 'Tidy up' --approve always-ask

The model: --model, else FLOE_MODEL, else the agent's, else `model` in config.yaml.
  script:FILE   plays a conversation written in YAML: no key, no network
  openai:NAME   any server that speaks Chat Completions (set openai.base_url in config.yaml)

Exit status: 0 the conversation ended, 1 it failed, 2 nothing ran, 3 stopped by refusals, 130 interrupted.")]
pub(crate) struct Run {
    /// What to do
    #[arg(short, long, value_name = "TEXT", required_unless_present = "resume")]
    pub(crate) message: Option<String>,
    /// The model: script:FILE or openai:NAME
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Plan reads only, build works [default: build]; with --resume, build approves the plan that waits
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) mode: Option<ModeName>,
    /// Goes on with an earlier run, by its name or the beginning of it
    #[arg(long, value_name = "ID", conflicts_with = "agent")]
    pub(crate) resume: Option<String>,
    /// Rejects the plan that waits
    #[arg(long, requires = "resume", conflicts_with_all = ["message", "mode", "revise"])]
    pub(crate) reject: bool,
    /// Sends the plan that waits back to the model with this
    #[arg(long, value_name = "TEXT", requires = "resume", conflicts_with_all = ["message", "mode"])]
    pub(crate) revise: Option<String>,
    /// The agent whose configuration is used
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<AgentId>,
    /// How long, after the last answer, to wait for commands that the model left in the background and is to hear of
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) background_wait: u64,
    /// Text for people, or one JSON message a line
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub(crate) output: OutputForm,
}

/// `floe call`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floe call list '{\"path\":\"src\"}'
  floe call exec_command '{\"cmd\":\"make check\"}' --workspace ~/project
  floe call file_read @arguments.json
  echo '{\"path\":\"README.md\"}' | floe call file_read -

A process that the call leaves running is ended when floe exits.
Exit status: 0 completed, 1 failed, 2 nothing ran, 3 denied, 130 interrupted.")]
pub(crate) struct Call {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// The arguments: JSON, @FILE, or - for standard input [default: {}]
    #[arg(value_name = "JSON|@FILE|-")]
    pub(crate) arguments: Option<String>,
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The agent whose own list of tools is used
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<AgentId>,
    /// Text for people, or one JSON message a line
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub(crate) output: OutputForm,
}

/// `floe mcp`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floe mcp --workspace ~/project
  floe mcp --max-permission read-only
  floe mcp --approve always-ask
  npx @modelcontextprotocol/inspector floe mcp

A client starts it and speaks the Model Context Protocol on its standard input and output. One connection is one Session with one
Trace; commands that a call leaves running end with it. Who is asked is asked by the client, where it can (elicitation).
Exit status: 0 the client ended the connection, 1 it could not be served, 2 nothing ran, 130 interrupted.")]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// The agent whose own list of tools is used
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<AgentId>,
}

/// `floe tools`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floe tools
  floe tools --toolset minimal
  floe tools --max-permission read-only
  floe tools --output json | jq -r '.[].name'")]
pub(crate) struct Tools {
    /// The tools to list
    #[arg(long, value_name = "SET", value_enum)]
    pub(crate) toolset: Option<ToolsetName>,
    /// List what a Session with this cap has: none, read-only, write, execute, dangerous
    #[arg(long, value_name = "LEVEL")]
    pub(crate) max_permission: Option<Permission>,
    /// A table for people, or one JSON array
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub(crate) output: OutputForm,
}

/// `floe trace`
#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// List the Traces, newest first
    #[command(after_help = "Examples:
  floe trace list
  floe trace list --output json")]
    List(TraceList),
    /// Print a Trace for reading
    #[command(after_help = "Examples:
  floe trace show session-2026-11-30-09-00-00-0badcafe
  floe trace show ./copy_001.jsonl --output json")]
    Show(TraceShow),
    /// Check that no record was changed, removed, reordered or cut off
    #[command(after_help = "Examples:
  floe trace verify session-2026-11-30-09-00-00-0badcafe
  floe trace verify ./copy_001.jsonl --head 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef

Exit status: 0 it fits, 1 it does not (with file and line), 2 no such Trace.")]
    Verify(TraceVerify),
}

/// `floe trace list`
#[derive(Debug, Args)]
pub(crate) struct TraceList {
    /// A table for people, or one JSON array
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub(crate) output: OutputForm,
}

/// `floe trace show`
#[derive(Debug, Args)]
pub(crate) struct TraceShow {
    /// A Session, or a Trace file
    #[arg(value_name = "ID|FILE")]
    pub(crate) target: PathBuf,
    /// Text for people, or the records as they are, one JSON object a line
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub(crate) output: OutputForm,
}

/// `floe trace verify`
#[derive(Debug, Args)]
pub(crate) struct TraceVerify {
    /// A Session, or a Trace file
    #[arg(value_name = "ID|FILE")]
    pub(crate) target: PathBuf,
    /// The hash that the last record must have, as `floe run` printed it
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub(crate) head: Option<String>,
}

/// `floe undo`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floe undo
  floe undo 3 --workspace ~/project

Each call of file_write, edit or apply_patch is one edit, whatever it changed. Files that have changed since are not touched: without
--keep-changed nothing is taken back then.
Exit status: 0 taken back, or nothing to take back; 1 a file has changed since; 2 nothing ran.")]
pub(crate) struct Undo {
    /// How many edits
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Keep files that have changed since as they are, and take the rest back
    #[arg(long)]
    pub(crate) keep_changed: bool,
    /// The folder that they were made in [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Text for people, or one JSON object a line
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub(crate) output: OutputForm,
}

/// `floe doctor`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floe doctor
  floe doctor --output json

Exit status: 0 where commands are confined at least as `shell.min_tier` of your configuration says, 1 where they are not.")]
pub(crate) struct Doctor {
    /// A table for people, or one JSON object
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    pub(crate) output: OutputForm,
}

/// `floe config`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  mkdir -p ~/.local/share/floe && floe config > ~/.local/share/floe/config.yaml
  floe config check
  floe config check --workspace ~/project"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
}

/// What to do with the configuration; without one, the reference is printed.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the user's file, the Workspace's and the agents'
    Check(ConfigCheck),
}

/// `floe config check`
#[derive(Debug, Args)]
pub(crate) struct ConfigCheck {
    /// The folder whose .floe/config.yaml is checked
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
}

/// `floe completions`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  floe completions bash > ~/.local/share/bash-completion/completions/floe
  floe completions zsh > ~/.zfunc/_floe
  floe completions fish > ~/.config/fish/completions/floe.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `floe precompile`: the second step of the build, see the Makefile.
#[derive(Debug, Args)]
pub(crate) struct Precompile {
    /// The folder for NAME.wasm, NAME.cwasm and NAME.json
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Core modules built for wasm32-wasip1, or components
    #[arg(value_name = "WASM", required = true)]
    pub(crate) modules: Vec<PathBuf>,
}

/// A SHA-256 in hex, as `--head` takes it.
fn hash(text: &str) -> Result<String, String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a hash is 64 hexadecimal digits, as `floe run` prints it after `Hash`".into())
    }
}

/// [`ApprovalMode`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Every call runs, confined
    AllowAll,
    /// No call runs
    DenyAll,
    /// Tools that only read run, the rest are asked
    ReadOnly,
    /// Every call is asked
    AlwaysAsk,
}

impl From<Approve> for ApprovalMode {
    fn from(word: Approve) -> ApprovalMode {
        match word {
            Approve::AllowAll => ApprovalMode::AllowAll,
            Approve::DenyAll => ApprovalMode::DenyAll,
            Approve::ReadOnly => ApprovalMode::ReadOnly,
            Approve::AlwaysAsk => ApprovalMode::AlwaysAsk,
        }
    }
}

/// [`Mode`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// Nothing above read-only
    Plan,
    /// Everything that is granted
    Build,
}

impl From<ModeName> for Mode {
    fn from(word: ModeName) -> Mode {
        match word {
            ModeName::Plan => Mode::Plan,
            ModeName::Build => Mode::Build,
        }
    }
}

/// A toolset on the command line and in the configuration.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolsetName {
    /// Commands, subagents and images
    Minimal,
    /// The tools of a coding agent
    Coding,
    /// All, without those that do the same as another
    #[default]
    Default,
    /// All
    All,
}

impl From<ToolsetName> for floe_environment::Toolset {
    fn from(word: ToolsetName) -> floe_environment::Toolset {
        match word {
            ToolsetName::Minimal => floe_environment::Toolset::Minimal,
            ToolsetName::Coding => floe_environment::Toolset::Coding,
            ToolsetName::Default => floe_environment::Toolset::Default,
            ToolsetName::All => floe_environment::Toolset::All,
        }
    }
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputForm {
    /// For people
    Text,
    /// For programs
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("floe").chain(line.iter().copied()))
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_visible_command_shows_examples_in_its_help() {
        fn check(command: &clap::Command) {
            let children: Vec<_> = command
                .get_subcommands()
                .filter(|child| !child.is_hide_set())
                .collect();
            if children.is_empty() || command.get_after_help().is_some() {
                let name = command.get_name();
                if name != "check" {
                    let help = command
                        .get_after_help()
                        .map(ToString::to_string)
                        .unwrap_or_default();
                    assert!(help.contains("floe "), "`{name}` has no examples");
                }
            }
            children.into_iter().for_each(check);
        }
        check(&Arguments::command());
    }

    #[test]
    fn the_message_of_a_run_is_required() {
        assert_eq!(parse(&["run"]).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn an_unknown_approval_mode_names_the_four() {
        let message = parse(&["run", "-m", "x", "--approve", "auto"])
            .unwrap_err()
            .to_string();
        for mode in ApprovalMode::ALL {
            assert!(message.contains(mode.as_str()), "{message}");
        }
    }

    #[test]
    fn short_permission_forms_are_understood() {
        let Command::Call(call) = parse(&["call", "list", "--max-permission", "r"])
            .unwrap()
            .command
        else {
            panic!("not a call")
        };
        assert_eq!(call.session.max_permission, Some(Permission::ReadOnly));
    }

    #[test]
    fn a_lone_dash_stands_for_standard_input() {
        let Command::Call(call) = parse(&["call", "list", "-"]).unwrap().command else {
            panic!("not a call")
        };
        assert_eq!(call.arguments.as_deref(), Some("-"));
    }

    #[test]
    fn a_head_that_is_no_hash_is_a_usage_error() {
        assert_eq!(
            parse(&["trace", "verify", "x", "--head", "abc"])
                .unwrap_err()
                .exit_code(),
            2
        );
        assert!(parse(&["trace", "verify", "x", "--head", &"a".repeat(64)]).is_ok());
    }
}
