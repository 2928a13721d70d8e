//! Hostile guests at the door: whatever one does, its call ends in the words of the close-out and within its time, with one decision
//! and one complete output, and a neighbour's call beside it is answered exactly.

mod door;
mod misdeeds;

use std::sync::Arc;

use door::{Door, gone};
use floe_environment::{RegisteredTool, Registry, Selection};
use floe_protocol::{StopReason, ToolCall, ToolDefinition, Truncation};
use floe_runtime::{Capability, CapabilitySet, ComponentSource};
use floe_tests::components::text;
use misdeeds::table::MILLION_DELTAS;
use misdeeds::{MISDEEDS, Misdeed, Yard};
use tokio_util::sync::CancellationToken;

fn misdeed(name: &str) -> &'static Misdeed {
    MISDEEDS
        .iter()
        .find(|misdeed| misdeed.name == name)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_misdeed_ends_in_the_words_of_the_close_out_and_harms_no_neighbour() {
    let yard = Yard::new().await;
    for misdeed in MISDEEDS {
        yard.check(misdeed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_million_tiny_deltas_each_is_streamed_up_to_the_limit() {
    let yard = Yard::new().await;
    yard.check(&MILLION_DELTAS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_limit_all_of_a_million_tiny_deltas_arrive() {
    let yard = Yard::new().await;
    let output = yard.without_limit(&MILLION_DELTAS).await;
    assert_eq!(output.stop_reason, StopReason::Completed);
    assert!(output.output == "x".repeat(1_000_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_a_guest_leaks_or_waits_for_end_with_its_call() {
    let yard = Yard::new().await;
    yard.commit_for(misdeed("leak-commands"), 3719).await;
    yard.commit_for(misdeed("sleep-in-host"), 3719).await;
    yard.interrupt("sleep-in-host", 3719).await;
    yard.door.until_no_command_is_left().await;
    gone("3719").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spinning_guest_is_interrupted_beside_eight_others_that_spin() {
    let yard = Yard::new().await;
    let crowd = futures_util::future::join_all((0..8).map(|_| yard.commit(misdeed("spin"))));
    tokio::join!(crowd, yard.interrupt("spin", 0), yard.neighbour());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_keeps_its_head_its_tail_and_a_bounded_whole() {
    let door = Door::with_guests(&["hostile"], |registry, options| {
        let mut hostile = registry.get("hostile").unwrap().definition.clone();
        hostile.timeout_ms = 150;
        hostile.truncation = Truncation::HeadTail;
        options.selection = Selection::Entries(vec![hostile]);
    })
    .await;
    let output = door.call("hostile", r#"{"do":"flood"}"#).await;
    assert_eq!(output.stop_reason, StopReason::Failed);
    assert_eq!(door.sink.seen("c1").text(), output.output);
    let line = "all work and no play makes a dull guest\n";
    let (head, rest) = output.output.split_at(8000);
    assert_eq!(head, line.repeat(200));
    let (marker, rest) = rest.split_once(" chars]\n").unwrap();
    assert!(
        marker.starts_with("[output truncated: kept first 8000 and last 8000 of "),
        "{marker}"
    );
    let (whole, tail) = rest.split_once('\n').unwrap();
    assert!(whole.starts_with("[full output: /floe/outputs/"), "{whole}");
    assert_eq!(
        tail,
        format!("{}\n[tool timeout: exceeded 150ms]", line.repeat(200))
    );
    let kept = std::fs::read_dir(&door.outputs).unwrap().next().unwrap();
    assert!(kept.unwrap().metadata().unwrap().len() <= (64 << 20) + 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_breaks_the_rules_of_its_form_fails_in_the_words_of_the_engine_or_of_the_clock()
 {
    let names = ["start-spins", "zero-tables", "wild-pointers"];
    let door = Door::with_guests(&["noop"], |_, _| {}).await;
    let mut registry = Registry::new();
    let mut entries = Vec::new();
    for name in names {
        let source = ComponentSource::Wasm(text(name));
        let component = door.runtime.load(name, source, CapabilitySet::EMPTY);
        let definition = ToolDefinition {
            name: name.into(),
            timeout_ms: 150,
            ..door.registry.get("noop").unwrap().definition.clone()
        };
        entries.push(definition.clone());
        let digest = "00".repeat(32);
        let tool =
            RegisteredTool::component(door.runtime.clone(), component.unwrap(), definition, digest);
        registry.insert(tool).unwrap();
    }
    let environment = door.environment_with(|_, options| {
        options.registry = Arc::new(registry);
        options.selection = Selection::Entries(entries);
    });
    for (name, words) in names.into_iter().zip([
        "[tool timeout: exceeded 150ms]",
        "[tool error] wasm trap: undefined element: out of bounds table access",
        "[tool error] realloc return: beyond end of memory",
    ]) {
        let call = ToolCall {
            name: name.into(),
            arguments: "{}".into(),
            tool_call_id: name.into(),
        };
        let output = environment.execute(call, CancellationToken::new()).await;
        let output = output.unwrap();
        assert_eq!(output.output, words, "{name}");
        assert_eq!(output.stop_reason, StopReason::Failed);
        assert_eq!(door.sink.seen(name).text(), output.output);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_that_was_not_granted_is_denied_in_words() {
    let door = Door::with_guests(&["edits-files"], |_, _| {}).await;
    let environment = door.environment_with(|registry, options| {
        let mut tool = registry.get("edits-files").unwrap().clone();
        tool.granted = CapabilitySet::EMPTY.with(Capability::Workspace);
        let mut registry = Registry::new();
        registry.insert(tool).unwrap();
        options.registry = Arc::new(registry);
    });
    let call = ToolCall {
        name: "edits-files".into(),
        arguments: "{}".into(),
        tool_call_id: "c1".into(),
    };
    let output = environment.execute(call, CancellationToken::new()).await;
    let output = output.unwrap();
    assert!(
        output
            .output
            .starts_with("[tool error] the capability `edits` is not granted"),
        "{output:?}"
    );
    assert_eq!(output.stop_reason, StopReason::Failed);
    assert_eq!(output.facts.unwrap().code.as_deref(), Some("denied"));
    assert!(!door.workspace.join("hello.txt").exists());
}
