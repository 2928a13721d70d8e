//! How a run ended.

/// How a run ended; the messages of it have been streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The model answered without calling a tool.
    Ended {
        /// The text of its last answer.
        text: String,
    },
    /// A plan was handed in and waits for its decision ([`Session::decide_plan`](crate::Session::decide_plan)).
    PlanProposed {
        /// The plan, as the model wrote it.
        plan: String,
    },
    /// The run itself failed: the model, the limit of turns, an expectation of a script, the Trace.
    Failed {
        /// For the person.
        reason: String,
    },
    /// The model asked three times for what was refused.
    StoppedByRefusals {
        /// The tool that it called.
        tool: String,
    },
    /// The person interrupted it.
    Interrupted,
}

impl RunEnd {
    /// The exit status of `floe run` (decisions.md "Surfaces").
    pub fn exit_status(&self) -> u8 {
        match self {
            RunEnd::Ended { .. } | RunEnd::PlanProposed { .. } => 0,
            RunEnd::Failed { .. } => 1,
            RunEnd::StoppedByRefusals { .. } => 3,
            RunEnd::Interrupted => 130,
        }
    }
}
