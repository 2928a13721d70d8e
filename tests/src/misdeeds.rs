//! What hostile guests do and how the runtime ends each: one table, used once with every detail checked and a hundred times in a row
//! to see that nothing is left behind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use floe_runtime::capability::Recorder;
use floe_runtime::capability::commands::{CommandStatus, RecordingCommands};
use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::capability::workspace::{OpenedWorkspace, RecordingWorkspace};
use floe_runtime::{
    CallContext, CallEnd, CallLimits, CallRequest, Capability, CapabilitySet, Component,
    ComponentSource, Hosts, OutputSink, Runtime, RuntimeOptions,
};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::components;

/// A limit that no case needs, for those that end by themselves: ten times what the slowest took, and more.
const LONG: Duration = Duration::from_secs(60);
/// The deadline of those that would never end.
const SHORT: Duration = Duration::from_millis(150);
/// What the answer may come later than that.
const LATE: Duration = Duration::from_secs(2);

/// One misdeed and its end.
#[derive(Clone, Copy)]
pub struct Misdeed {
    /// Its name, and for the guest `hostile` what it is told to do.
    pub name: &'static str,
    /// How it ends.
    pub end: End,
    /// How much memory it has, in MiB.
    pub mebibytes: usize,
}

impl Misdeed {
    /// A misdeed with 16 MiB.
    pub const fn new(name: &'static str, end: End) -> Misdeed {
        Misdeed {
            name,
            end,
            mebibytes: 16,
        }
    }

    /// One with enough memory to reach the other limits.
    const fn roomy(name: &'static str, end: End) -> Misdeed {
        Misdeed {
            name,
            end,
            mebibytes: 256,
        }
    }
}

/// How a misdeed ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// With a result.
    Returned,
    /// With a failure of that code.
    Failed(&'static str),
    /// With a trap whose message holds each of these.
    Trapped(&'static [&'static str]),
    /// By the deadline.
    DeadlineExceeded,
    /// By the token.
    Cancelled,
}

/// All misdeeds of the guest `hostile`, with what each comes to.
pub const MISDEEDS: &[Misdeed] = &[
    Misdeed::new("spin", End::DeadlineExceeded),
    Misdeed::new("sleep-in-host", End::DeadlineExceeded),
    Misdeed::new("flood", End::DeadlineExceeded),
    Misdeed::new("write-until-cancelled", End::Cancelled),
    Misdeed::new(
        "allocate",
        End::Trapped(&["memory allocation of", "memory limit of 16 MiB"]),
    ),
    Misdeed::new("recurse", End::Trapped(&["(probably stack overflow)"])),
    Misdeed::new(
        "recurse-without-memory",
        End::Trapped(&["used up its stack"]),
    ),
    Misdeed::new(
        "panic",
        End::Trapped(&["boom at the end (panicked at examples/hostile.rs:"]),
    ),
    Misdeed::new("index", End::Trapped(&["the len is 3 but the index is 7"])),
    Misdeed::new("trap", End::Trapped(&["unreachable"])),
    Misdeed::new(
        "exit",
        End::Trapped(&["the tool ended itself with exit status"]),
    ),
    Misdeed::new("garbage-structured", End::Failed("invalid-result")),
    Misdeed::new("huge-structured", End::Failed("invalid-result")),
    Misdeed::roomy("huge-note", End::Returned),
    Misdeed::roomy("huge-failure", End::Failed("failed")),
    Misdeed::roomy("huge-images", End::Trapped(&["fuel"])),
    Misdeed::roomy("huge-string", End::Trapped(&["fuel"])),
    Misdeed::roomy("huge-list", End::Trapped(&["fuel"])),
    Misdeed::roomy("huge-log", End::Returned),
    Misdeed::new("leak", End::Failed("too-many")),
    Misdeed::new("leak-commands", End::Returned),
    Misdeed::new("flood-stderr", End::Trapped(&["drowned"])),
    Misdeed::roomy("random", End::Trapped(&["exceeds limit 1048576"])),
];

/// A runtime with hostile and harmless guests, and a Workspace with three files.
pub struct Bench {
    /// The runtime.
    pub runtime: Runtime,
    components: Mutex<HashMap<&'static str, Component>>,
    workspace: OpenedWorkspace,
    _folder: TempDir,
}

/// How one call came out.
pub struct Outcome {
    /// The end.
    pub end: CallEnd,
    /// From the call to the answer.
    pub took: Duration,
    /// How much was written.
    pub characters: u64,
    /// What commands were asked for.
    pub commands: Recorder,
}

impl Bench {
    /// A bench with room for 32 guests. Call it on the runtime that does the I/O.
    pub fn new() -> Bench {
        Bench::with_room_for(32)
    }

    /// A bench with room for that many guests at once; further ones wait.
    ///
    /// # Panics
    ///
    /// Where there is no runtime or no temporary folder.
    pub fn with_room_for(guests: u32) -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["a.txt", "b.txt", "c.txt"] {
            std::fs::write(folder.path().join(name), name).expect("a file in it");
        }
        let workspace = floe_workspace::Workspace::open(folder.path()).expect("a Workspace");
        let mut options = RuntimeOptions::new(Handle::current());
        options.pool = Some(guests);
        options.describe_deadline = SHORT;
        Bench {
            runtime: Runtime::new(options).expect("a runtime"),
            components: Mutex::default(),
            workspace: OpenedWorkspace::new(workspace),
            _folder: folder,
        }
    }

    /// A guest of `tests/guests`, loaded once.
    ///
    /// # Panics
    ///
    /// Where it was not built, or is refused.
    pub fn component(&self, name: &'static str) -> Component {
        let mut components = self
            .components
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let load = || {
            let source = ComponentSource::Wasm(components::guest(name));
            let component = self.runtime.load(name, source, CapabilitySet::all());
            component.expect("a guest that is let in")
        };
        components.entry(name).or_insert_with(load).clone()
    }

    /// Touches all memory that the pool keeps. It keeps up to 4 MiB of every slot that was in use at once, by design; what grows
    /// after this is something else.
    pub async fn saturate(&self, guests: usize) {
        let allocate = Misdeed::new("allocate", End::Trapped(&[]));
        let calls = (0..guests).map(|_| self.commit(&allocate));
        futures_util::future::join_all(calls).await;
    }

    /// Lets `hostile` do one misdeed.
    pub async fn commit(&self, misdeed: &Misdeed) -> Outcome {
        let commands = RecordingCommands {
            status: CommandStatus::Running,
            ..RecordingCommands::default()
        };
        let recorder = commands.requests.clone();
        let hosts = Hosts {
            workspace: Arc::new(RecordingWorkspace::default()),
            commands: Arc::new(commands),
            ..Hosts::deny()
        };
        let output = Arc::new(CountingOutput::default());
        let cancel = CancellationToken::new();
        let deadline = match misdeed.end {
            End::DeadlineExceeded => SHORT,
            _ => LONG,
        };
        let call = CallRequest {
            arguments: format!("{{\"do\":\"{}\"}}", misdeed.name),
            context: CallContext::default(),
            granted: [Capability::Workspace, Capability::Commands]
                .into_iter()
                .collect(),
            hosts: Arc::new(hosts),
            output: output.clone(),
            limits: CallLimits {
                memory_bytes: misdeed.mebibytes << 20,
                deadline: Some(deadline),
                ..CallLimits::default()
            },
            cancel: cancel.clone(),
        };
        if matches!(misdeed.end, End::Cancelled) {
            tokio::spawn(async move {
                tokio::time::sleep(SHORT).await;
                cancel.cancel();
            });
        }
        let component = self.component("hostile");
        let start = Instant::now();
        let end = self.runtime.execute(&component, call).await.end;
        Outcome {
            end,
            took: start.elapsed(),
            characters: output.0.load(Ordering::Relaxed),
            commands: recorder,
        }
    }

    /// A call that lists the Workspace, as a neighbour would make it beside all that.
    ///
    /// # Panics
    ///
    /// Where it is answered wrongly.
    pub async fn neighbour(&self) {
        let output = RecordingOutput::new();
        let hosts = Hosts {
            workspace: Arc::new(self.workspace.clone()),
            ..Hosts::deny()
        };
        let call = CallRequest {
            arguments: "{}".to_owned(),
            context: CallContext::default(),
            granted: CapabilitySet::EMPTY.with(Capability::Workspace),
            hosts: Arc::new(hosts),
            output: output.clone(),
            limits: CallLimits::default(),
            cancel: CancellationToken::new(),
        };
        let component = self.component("lists");
        let call = self.runtime.execute(&component, call).await;
        assert!(
            matches!(call.end, CallEnd::Returned(_)),
            "the neighbour ended with {:?}",
            call.end
        );
        assert_eq!(output.text(), "a.txt\nb.txt\nc.txt\n");
    }

    /// One misdeed with a neighbour beside it, checked.
    ///
    /// # Panics
    ///
    /// Where either ends otherwise than it should.
    pub async fn check(&self, misdeed: &Misdeed) -> Outcome {
        let (outcome, ()) = tokio::join!(self.commit(misdeed), self.neighbour());
        outcome.check(misdeed);
        outcome
    }
}

impl Default for Bench {
    fn default() -> Self {
        Bench::new()
    }
}

impl Outcome {
    fn check(&self, misdeed: &Misdeed) {
        let name = misdeed.name;
        match (&self.end, misdeed.end) {
            (CallEnd::Returned(_), End::Returned) => {}
            (CallEnd::Failed(failure), End::Failed(code)) if failure.code == code => {}
            (CallEnd::Trapped { message }, End::Trapped(parts))
                if parts.iter().all(|part| message.contains(part)) => {}
            (CallEnd::DeadlineExceeded, End::DeadlineExceeded)
            | (CallEnd::Cancelled, End::Cancelled) => {
                assert!(self.took < SHORT + LATE, "{name} took {:?}", self.took);
            }
            (end, expected) => panic!("{name} ended with {end:.300?} instead of {expected:?}"),
        }
    }
}

/// Counts characters and keeps none.
#[derive(Debug, Default)]
pub struct CountingOutput(AtomicU64);

impl OutputSink for CountingOutput {
    fn write(&self, delta: &str) -> u32 {
        let characters = delta.chars().count() as u64;
        self.0.fetch_add(characters, Ordering::Relaxed);
        0
    }

    fn dropped(&self, _characters: u64) {}
}
