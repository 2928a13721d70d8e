//! What a record costs: a call writes three to five of them inside the door's 100 µs.

use std::time::Instant;

use floe_protocol::{AgentId, Home, ModelMsg, OmniMessage, Role, SessionId, StopReason};
use floe_trace::TraceWriter;

use crate::figures::{Effort, Figures, Goal};

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = Home::new(folder.path());
    let effort = Effort {
        measure: std::time::Duration::from_millis(500),
        ..Effort::SHORT
    };
    for (what, characters) in [
        ("Trace: append a short record", 20),
        ("Trace: append a record of 16,000 characters", 16_000),
    ] {
        let mut writer = TraceWriter::create(&home, &AgentId::default(), &SessionId::generate());
        let message = output(characters);
        figures.measure(what, Goal::None, effort, |count| {
            let mut samples = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                writer.append(&message).expect("the record is written");
                samples.push(start.elapsed());
            }
            samples
        });
    }
}

fn output(characters: usize) -> OmniMessage {
    OmniMessage::model(ModelMsg::ToolCallOutput {
        role: Role::User,
        output: "x".repeat(characters),
        images: None,
        tool_call_id: "c1".into(),
        stop_reason: StopReason::Completed,
        facts: None,
    })
}
