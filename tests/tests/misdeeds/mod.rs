//! A Session's door with hostile guests behind it. What they do and what each call of one comes to is one table, played once and a
//! hundred times in a row.
#![allow(dead_code, reason = "each suite uses its own part")]

mod stream;
pub(crate) mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use floe_environment::{
    CallOutcome, CallSite, Environment, HostsFactory, Selection, ToolCallOutput,
};
use floe_protocol::{StopReason, ToolCall, Truncation};
use floe_runtime::Hosts;
use floe_runtime::capability::workspace::RecordingWorkspace;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::door::{Door, LONG};
pub(crate) use stream::Streams;
use table::{End, KEPT, Room};
pub(crate) use table::{MISDEEDS, Misdeed};

/// The deadline of those that would never end.
const BRIEF: Duration = Duration::from_millis(150);
/// What the answer may come later than that, or than a cancel.
const LATE: Duration = Duration::from_secs(2);
/// No wait for a cancel.
const NEVER: Option<std::future::Ready<()>> = None;

/// A Session's door with hostile guests behind it, and a Workspace with three files.
pub(crate) struct Yard {
    pub(crate) door: Door,
    pub(crate) streams: Arc<Streams>,
    brief: Environment,
    small: Environment,
    large: Environment,
    endless: Environment,
    calls: AtomicU64,
}

impl Yard {
    pub(crate) async fn new() -> Yard {
        let door = Door::with_guests(&["hostile"], |_, _| {}).await;
        for name in ["a.txt", "b.txt", "c.txt"] {
            std::fs::write(door.workspace.join(name), name).unwrap();
        }
        let streams = Arc::new(Streams::default());
        let environment = |deadline: Duration, mebibytes: usize, kept: usize| {
            door.environment_with(|registry, options| {
                let mut hostile = registry.get("hostile").unwrap().definition.clone();
                hostile.timeout_ms = deadline.as_millis() as i64;
                hostile.max_output_length = kept as i64;
                hostile.truncation = Truncation::Head;
                let list = registry.get("list").unwrap().definition.clone();
                options.selection = Selection::Entries(vec![hostile, list]);
                options.memory_bytes = mebibytes << 20;
                options.sink = streams.clone();
                options.hosts = Arc::new(Apart(Arc::clone(&door.hosts)));
                // What a flood would leave there is tested with the whole outputs.
                options.outputs = None;
            })
        };
        Yard {
            brief: environment(BRIEF, 16, KEPT),
            small: environment(LONG, 16, KEPT),
            large: environment(LONG, 256, KEPT),
            endless: environment(LONG, 16, 0),
            door,
            streams,
            calls: AtomicU64::new(0),
        }
    }

    /// Touches all memory that the pool keeps. It keeps up to 4 MiB of every slot that was in use at once, by design; what grows
    /// after this is something else.
    pub(crate) async fn saturate(&self, guests: usize) {
        let allocate = MISDEEDS
            .iter()
            .find(|misdeed| misdeed.name == "allocate")
            .unwrap();
        let calls = (0..guests).map(|_| self.commit(allocate));
        futures_util::future::join_all(calls).await;
    }

    /// One misdeed with a neighbour beside it, both checked.
    pub(crate) async fn check(&self, misdeed: &Misdeed) {
        tokio::join!(self.commit(misdeed), self.neighbour());
    }

    /// A call of the real `list`, beside all that.
    pub(crate) async fn neighbour(&self) {
        let id = self.id();
        let (output, _) = self.call(&self.small, &id, "list", "{}", NEVER).await;
        assert_eq!(output.output, "file\ta.txt\nfile\tb.txt\nfile\tc.txt\n");
        assert_eq!(output.stop_reason, StopReason::Completed);
        self.streams.check(&id, &output);
    }

    /// Lets `hostile` do one misdeed, and checks what the door makes of it.
    pub(crate) async fn commit(&self, misdeed: &Misdeed) {
        self.commit_for(misdeed, 1000).await;
    }

    /// The same, where its commands sleep for so many seconds.
    pub(crate) async fn commit_for(&self, misdeed: &Misdeed, seconds: u32) {
        let id = self.id();
        let (environment, limit) = match (misdeed.end, misdeed.room) {
            (End::TimedOut, _) => (&self.brief, BRIEF + LATE),
            (_, Room::Small) => (&self.small, LONG),
            (_, Room::Large) => (&self.large, LONG),
        };
        let cancelled = matches!(misdeed.end, End::Interrupted);
        let arguments = json!({"do": misdeed.name, "seconds": seconds}).to_string();
        let cancel = cancelled.then(|| self.streams.until_written(&id));
        let (output, took) = self
            .call(environment, &id, "hostile", &arguments, cancel)
            .await;
        let limit = if cancelled { LATE } else { limit };
        assert!(took < limit, "{} took {took:?}", misdeed.name);
        misdeed.check(&output);
        self.streams.check(&id, &output);
    }

    /// Cancels a misdeed that would go on for a minute, once it runs and, where it waits for a command, that does. The command sleeps
    /// for so many seconds.
    pub(crate) async fn interrupt(&self, name: &str, seconds: u32) {
        let id = self.id();
        let arguments = json!({"do": name, "seconds": seconds}).to_string();
        let cancel = Some(async {
            self.streams.until_started(&id).await;
            while name == "sleep-in-host" && self.door.commands.list().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let (output, took) = self
            .call(&self.small, &id, "hostile", &arguments, cancel)
            .await;
        assert!(took < LATE, "{name} took {took:?}");
        assert_eq!(output.output, "[interrupted: tool aborted by user]");
        assert_eq!(output.stop_reason, StopReason::Aborted);
        assert_eq!(output.end, CallOutcome::Interrupted);
        self.streams.check(&id, &output);
    }

    /// What a misdeed comes to where no output is too long.
    pub(crate) async fn without_limit(&self, misdeed: &Misdeed) -> ToolCallOutput {
        let id = self.id();
        let arguments = json!({"do": misdeed.name}).to_string();
        let (output, _) = self
            .call(&self.endless, &id, "hostile", &arguments, NEVER)
            .await;
        self.streams.check(&id, &output);
        output
    }

    /// One call to its complete output, and how long it took: from its start or, where it is cancelled at the end of a wait, from
    /// there.
    async fn call(
        &self,
        environment: &Environment,
        id: &str,
        tool: &str,
        arguments: &str,
        cancelled: Option<impl Future<Output = ()>>,
    ) -> (ToolCallOutput, Duration) {
        let call = ToolCall {
            name: tool.into(),
            arguments: arguments.into(),
            tool_call_id: id.into(),
        };
        let cancel = CancellationToken::new();
        let mut start = Instant::now();
        let running = environment.execute(call, cancel.clone());
        if let Some(wait) = cancelled {
            wait.await;
            start = Instant::now();
            cancel.cancel();
        }
        let ended = tokio::time::timeout(2 * LONG, running).await;
        let output = ended.expect("the call ends").expect("it is decided");
        (output, start.elapsed())
    }

    fn id(&self) -> String {
        format!("c{}", self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

/// The capabilities of a call: hostile ones get a Workspace of their own that has walks to leak.
struct Apart(Arc<Hosts>);

impl HostsFactory for Apart {
    fn hosts(&self, call: &CallSite) -> Arc<Hosts> {
        if call.tool != "hostile" {
            return Arc::clone(&self.0);
        }
        Arc::new(Hosts {
            workspace: Arc::new(RecordingWorkspace::default()),
            ..Hosts::clone(&self.0)
        })
    }
}
