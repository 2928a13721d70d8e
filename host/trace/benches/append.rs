//! What a record costs: a tool call of the default toolset writes three to five of them inside the door's 100 µs.

use criterion::{Criterion, criterion_group, criterion_main};
use floe_protocol::{AgentId, Home, ModelMsg, OmniMessage, Role, SessionId, StopReason};
use floe_trace::TraceWriter;

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

fn append(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = Home::new(folder.path());
    let mut writer = TraceWriter::create(&home, &AgentId::default(), &SessionId::generate());
    for (name, message) in [
        ("append a short record", output(20)),
        ("append a record of 16,000 characters", output(16_000)),
    ] {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| writer.append(&message).expect("the record is written"));
        });
    }
}

criterion_group!(benches, append);
criterion_main!(benches);
