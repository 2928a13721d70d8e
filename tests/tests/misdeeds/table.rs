//! The table of the misdeeds, and the check of a call against it.

use Words::{Exactly, Starting};
use floe_environment::{CallOutcome, ToolCallOutput};
use floe_protocol::StopReason;

/// Characters of output that are kept.
pub(super) const KEPT: usize = 16_000;
/// Characters of a guest's note or last words, with some room for what the host says.
const LINE: usize = 4096 + 200;

/// One misdeed and what its call comes to.
#[derive(Clone, Copy)]
pub(crate) struct Misdeed {
    /// What the guest `hostile` is told to do.
    pub(crate) name: &'static str,
    /// What it writes again and again, without end.
    writes: &'static str,
    pub(super) end: End,
    pub(super) room: Room,
}

/// How a call ends, and what the close-out says about it.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// Completed.
    Completed(Words),
    /// Failed, because the guest broke off.
    Broken(Words),
    /// Failed with that code.
    Failed(&'static str, Words),
    /// Failed by the deadline.
    TimedOut,
    /// Aborted, because it was cancelled while it ran.
    Interrupted,
}

/// What is said after the body; the prefix of an error not repeated here.
#[derive(Clone, Copy)]
pub(super) enum Words {
    Exactly(&'static str),
    /// What follows names a place in a source file, or is as long as a line may be.
    Starting(&'static str),
}

/// How much memory a call has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Small,
    /// Enough to reach the other limits.
    Large,
}

impl Misdeed {
    const fn small(name: &'static str, end: End) -> Misdeed {
        Misdeed {
            name,
            writes: "",
            end,
            room: Room::Small,
        }
    }

    const fn large(name: &'static str, end: End) -> Misdeed {
        Misdeed {
            room: Room::Large,
            ..Misdeed::small(name, end)
        }
    }

    const fn writing(self, writes: &'static str) -> Misdeed {
        Misdeed { writes, ..self }
    }
}

/// What comes of handing over too much in one call of the host.
const TOO_MUCH: Words = Exactly(
    "too much data is being copied between the host and the guest: fuel allocated for hostcalls has been exhausted",
);
const SILENCE: Words = Exactly("[no output]");

/// All misdeeds of the guest `hostile`.
pub(crate) const MISDEEDS: &[Misdeed] = &[
    Misdeed::small("spin", End::TimedOut),
    Misdeed::small("sleep-in-host", End::TimedOut),
    Misdeed::small("flood", End::TimedOut).writing("all work and no play makes a dull guest\n"),
    Misdeed::small("write-until-cancelled", End::Interrupted).writing("before "),
    Misdeed::small(
        "allocate",
        End::Broken(Exactly(
            "memory allocation of 1048576 bytes failed\nthe tool reached its memory limit of 16 MiB",
        )),
    ),
    Misdeed::small(
        "recurse",
        End::Broken(Exactly(
            "wasm trap: out of bounds memory access (probably stack overflow)",
        )),
    ),
    Misdeed::small(
        "recurse-without-memory",
        End::Broken(Exactly(
            "the tool used up its stack (probably endless recursion)",
        )),
    ),
    Misdeed::small(
        "panic",
        End::Broken(Starting(
            "boom at the end (panicked at examples/hostile.rs:",
        )),
    ),
    Misdeed::small(
        "index",
        End::Broken(Starting(
            "index out of bounds: the len is 3 but the index is 7 (panicked at ",
        )),
    ),
    Misdeed::small(
        "trap",
        End::Broken(Exactly(
            "wasm trap: wasm `unreachable` instruction executed",
        )),
    ),
    Misdeed::small(
        "exit",
        End::Broken(Exactly("the tool ended itself with exit status 1")),
    ),
    Misdeed::small(
        "garbage-structured",
        End::Failed(
            "invalid-result",
            Exactly(
                "the tool returned structured data that is not JSON (expected ident at line 1 column 8)",
            ),
        ),
    ),
    Misdeed::small(
        "huge-structured",
        End::Failed(
            "invalid-result",
            Exactly("the tool returned structured data that has 2097152 bytes (limit 1048576)"),
        ),
    ),
    Misdeed::large("huge-note", End::Completed(Starting("nnnnnnnn"))),
    Misdeed::large("huge-failure", End::Failed("failed", Starting("ffffffff"))),
    Misdeed::large("huge-images", End::Broken(TOO_MUCH)),
    Misdeed::large("huge-string", End::Broken(TOO_MUCH)),
    Misdeed::large("huge-list", End::Broken(TOO_MUCH)),
    Misdeed::large("huge-log", End::Completed(SILENCE)),
    Misdeed::small(
        "leak",
        End::Failed("too-many", Starting("the tool holds more than ")),
    ),
    Misdeed::small("leak-commands", End::Completed(SILENCE)),
    Misdeed::small(
        "flood-stderr",
        End::Broken(Starting("drowned (panicked at examples/hostile.rs:")),
    ),
    Misdeed::large(
        "random",
        End::Broken(Exactly("requested len 33554432 exceeds limit 1048576")),
    ),
];

/// Harmless but for its size: every tiny delta is a message of its own until the limit is reached.
pub(crate) const MILLION_DELTAS: Misdeed =
    Misdeed::small("million-deltas", End::Completed(Exactly(""))).writing("x");

impl Misdeed {
    /// Checks what a call of it came to.
    pub(super) fn check(&self, output: &ToolCallOutput) {
        let name = self.name;
        let (stop_reason, outcome, code, prefix, words) = match self.end {
            End::Completed(words) => (StopReason::Completed, CallOutcome::Ran, None, "", words),
            End::Broken(words) => (
                StopReason::Failed,
                CallOutcome::Ran,
                None,
                "[tool error] ",
                words,
            ),
            End::Failed(code, words) => (
                StopReason::Failed,
                CallOutcome::Ran,
                Some(code),
                "[tool error] ",
                words,
            ),
            End::TimedOut => (
                StopReason::Failed,
                CallOutcome::Ran,
                None,
                "",
                Exactly("[tool timeout: exceeded 150ms]"),
            ),
            End::Interrupted => (
                StopReason::Aborted,
                CallOutcome::Interrupted,
                None,
                "",
                Exactly("[interrupted: tool aborted by user]"),
            ),
        };
        assert_eq!(output.stop_reason, stop_reason, "{name}: {output:.600?}");
        assert_eq!(output.end, outcome, "{name}");
        let told = output
            .facts
            .as_ref()
            .and_then(|facts| facts.code.as_deref());
        assert_eq!(told, code, "{name}");
        let said = self.after_the_body(output);
        let said = said
            .strip_prefix(prefix)
            .unwrap_or_else(|| panic!("{name} says {said:.600}"));
        match words {
            Exactly(words) => assert_eq!(said, words, "{name}"),
            Starting(words) => {
                assert!(said.starts_with(words), "{name} says {said:.600}");
                assert!(said.chars().count() <= LINE, "{name} says too much");
            }
        }
    }

    /// Checks the body and the marker of the cut, and returns what stands after them.
    fn after_the_body<'output>(&self, output: &'output ToolCallOutput) -> &'output str {
        let text = &output.output;
        if self.writes.is_empty() {
            return text;
        }
        let body: String = self.writes.chars().cycle().take(KEPT).collect();
        if let Some(rest) = text.strip_prefix(&body) {
            let rest = rest.strip_prefix("\n[output truncated: exceeded 16000 chars]");
            let rest = rest.unwrap_or_else(|| panic!("{} is not cut", self.name));
            return rest.strip_prefix('\n').unwrap_or(rest);
        }
        // It was ended before it had written so much.
        let (written, rest) = text.rsplit_once('\n').unwrap();
        assert!(body.starts_with(written), "{}: {text:.600}", self.name);
        rest
    }
}
