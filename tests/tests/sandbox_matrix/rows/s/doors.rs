//! A Session's tools as a model has them: through the Environment, with every call allowed.

use floe_environment::{EnvironmentOptions, Registry, Selection, ToolCallOutput};
use floe_workspace::Workspace;
use serde_json::{Value, json};

use crate::door::{Door, Ground};
use crate::stage::{Session, Stage};
use crate::trial::TOOLS;

/// All tools of this build.
pub(super) async fn open(stage: &Stage, session: &Session<'_>) -> Door {
    open_with(stage, session, |_, _| {}).await
}

/// With other options.
pub(super) async fn open_with(
    stage: &Stage,
    session: &Session<'_>,
    change: impl FnOnce(&Registry, &mut EnvironmentOptions),
) -> Door {
    let tools = stage.helper.with_file_name(TOOLS);
    let waits = std::fs::read(tools.join("waits.wasm")).unwrap();
    let ground = Ground {
        workspace: Workspace::open(&stage.workspace).unwrap(),
        outputs: session.folder.join("outputs"),
        commands: session.commands.clone(),
        components: tools,
        guests: vec![("waits", waits)],
    };
    Door::on(ground, change).await
}

/// Only `tool`, with so much time for a call.
pub(super) async fn open_timed(
    stage: &Stage,
    session: &Session<'_>,
    tool: &str,
    timeout_ms: i64,
) -> Door {
    open_with(stage, session, |registry, options| {
        let mut definition = registry.get(tool).unwrap().definition.clone();
        definition.timeout_ms = timeout_ms;
        options.selection = Selection::Entries(vec![definition]);
    })
    .await
}

/// What the tools of this suite are called with.
pub(super) trait Calls {
    /// Runs a script for at most `yield_ms` before it is left running.
    async fn exec_for(&self, script: &str, yield_ms: u64) -> ToolCallOutput;
    /// Calls `input_command` with these further arguments.
    async fn input(&self, process: &str, more: Value) -> ToolCallOutput;
}

impl Calls for Door {
    async fn exec_for(&self, script: &str, yield_ms: u64) -> ToolCallOutput {
        let arguments = json!({"cmd": script, "yield_time_ms": yield_ms}).to_string();
        self.call("exec_command", &arguments).await
    }

    async fn input(&self, process: &str, more: Value) -> ToolCallOutput {
        let mut arguments = json!({"process_id": process});
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        self.call("input_command", &arguments.to_string()).await
    }
}

/// The id that a call named for a process which it left running.
pub(super) fn process_id(output: &ToolCallOutput) -> String {
    let at = output.output.find("proc-");
    let at = at.unwrap_or_else(|| panic!("no process_id: {output:?}"));
    output.output[at..at + 13].to_owned()
}
