//! Well-behaved guests through the runtime: what a call returns, what it may reach, and what the host knows of it.

use std::sync::Arc;
use std::time::Duration;

use floe_protocol::{Permission, StopReason};
use floe_runtime::capability::commands::{CommandStatus, RecordingCommands};
use floe_runtime::capability::edits::RecordingEdits;
use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{
    Call, CallContext, CallEnd, CallLimits, CallRequest, Capability, CapabilitySet, Component,
    ComponentSource, Form, Hosts, Runtime, RuntimeOptions, precompile,
};
use floe_tests::components::guest;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

fn runtime() -> Runtime {
    let mut options = RuntimeOptions::new(Handle::current());
    options.pool = Some(16);
    Runtime::new(options).unwrap()
}

fn load(runtime: &Runtime, name: &str) -> Component {
    let source = ComponentSource::Wasm(guest(name));
    runtime.load(name, source, CapabilitySet::all()).unwrap()
}

fn request(
    arguments: &str,
    granted: CapabilitySet,
    hosts: Hosts,
) -> (CallRequest, Arc<RecordingOutput>) {
    let output = RecordingOutput::new();
    let request = CallRequest {
        arguments: arguments.to_owned(),
        context: CallContext::default(),
        granted,
        hosts: Arc::new(hosts),
        output: output.clone(),
        limits: CallLimits::default(),
        cancel: CancellationToken::new(),
    };
    (request, output)
}

async fn call(runtime: &Runtime, name: &str, arguments: &str) -> (Call, Arc<RecordingOutput>) {
    let component = load(runtime, name);
    let (request, output) = request(arguments, CapabilitySet::EMPTY, Hosts::deny());
    (runtime.execute(&component, request).await, output)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_writes_what_it_was_asked_to_and_completes() {
    let runtime = runtime();
    let (call, output) = call(&runtime, "echo", r#"{"text":"héllo"}"#).await;
    assert!(matches!(call.end, CallEnd::Returned(_)), "{:?}", call.end);
    assert_eq!(output.text(), "héllo");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_describes_itself() {
    let runtime = runtime();
    let component = load(&runtime, "edits-files");
    let definition = runtime.definition(&component).await.unwrap();
    assert_eq!(definition.name, "edits-files");
    assert_eq!(definition.permission, Permission::Write);
    let permission = runtime.permission_for(&component, "{}").await.unwrap();
    assert_eq!(permission, Permission::Write);
    assert_eq!(component.capabilities().names(), ["edits"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_leaves_execute_as_it_is_and_what_was_written_stays() {
    let runtime = runtime();
    let (call, output) = call(&runtime, "yields-ab-then-boom", "{}").await;
    let CallEnd::Failed(failure) = call.end else {
        panic!("{:?}", call.end);
    };
    assert_eq!(failure.message, "boom");
    assert_eq!(output.text(), "ab");
}

#[tokio::test(flavor = "multi_thread")]
async fn images_and_the_self_reported_stop_reason_come_back() {
    let runtime = runtime();
    let (call, output) = call(&runtime, "images-failed", "{}").await;
    let CallEnd::Returned(result) = call.end else {
        panic!("{:?}", call.end);
    };
    assert_eq!(result.stop_reason, Some(StopReason::Failed));
    assert_eq!(result.images.len(), 1);
    assert_eq!(result.images[0].mime_type, "image/png");
    assert_eq!(output.text(), "text");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_capability_answers_denied_where_nothing_was_granted() {
    let runtime = runtime();
    let component = load(&runtime, "asks-everything");
    assert_eq!(component.capabilities(), CapabilitySet::all());
    // The hosts are there, and the set alone keeps the guest from them.
    let edits = RecordingEdits::default();
    let hosts = Hosts {
        edits: Arc::new(edits.clone()),
        ..Hosts::unsupported()
    };
    let (request, output) = request("{}", CapabilitySet::EMPTY, hosts);
    runtime.execute(&component, request).await;
    let lines: Vec<String> = Capability::ALL
        .into_iter()
        .map(|one| format!("{one} denied\n"))
        .collect();
    assert_eq!(output.text(), lines.concat());
    assert!(edits.requests.lines().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_host_does_not_have_answers_unsupported() {
    let runtime = runtime();
    let component = load(&runtime, "asks-everything");
    let (request, output) = request("{}", CapabilitySet::all(), Hosts::unsupported());
    runtime.execute(&component, request).await;
    assert_eq!(
        output.text().matches(" unsupported\n").count(),
        10,
        "{}",
        output.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_capability_reaches_its_host_and_only_that_one() {
    let runtime = runtime();
    let component = load(&runtime, "edits-files");
    let edits = RecordingEdits::default();
    let hosts = Hosts {
        edits: Arc::new(edits.clone()),
        ..Hosts::deny()
    };
    let granted = CapabilitySet::EMPTY.with(Capability::Edits);
    let (request, output) = request("{}", granted, hosts);
    let call = runtime.execute(&component, request).await;
    assert!(matches!(call.end, CallEnd::Returned(_)), "{:?}", call.end);
    assert_eq!(output.text(), "0 changes");
    assert_eq!(
        edits.requests.lines(),
        ["begin", "stage-create hello.txt 5", "commit"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_handle_that_goes_away_is_released_once() {
    let runtime = runtime();
    let component = load(&runtime, "asks-everything");
    let commands = RecordingCommands::default();
    let hosts = Hosts {
        commands: Arc::new(commands.clone()),
        ..Hosts::unsupported()
    };
    let (request, _) = request("{}", CapabilitySet::all(), hosts);
    let call = runtime.execute(&component, request).await;
    assert_eq!(commands.requests.lines(), ["spawn true", "release"]);
    assert_eq!(call.facts.confinement.as_deref(), Some("native"));
    assert_eq!(call.facts.exit_code, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_writes_down_how_a_command_ended_that_the_guest_watched() {
    let runtime = runtime();
    let component = load(&runtime, "hostile");
    let commands = RecordingCommands {
        status: CommandStatus::Signaled("SIGKILL".to_owned()),
        ..RecordingCommands::default()
    };
    let hosts = Hosts {
        commands: Arc::new(commands),
        ..Hosts::deny()
    };
    let granted = CapabilitySet::EMPTY.with(Capability::Commands);
    let (request, _) = request(r#"{"do":"sleep-in-host"}"#, granted, hosts);
    let call = runtime.execute(&component, request).await;
    assert_eq!(call.facts.signal.as_deref(), Some("SIGKILL"));
    assert_eq!(call.facts.exit_code, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_compiled_beforehand_runs_and_one_that_is_refused_is_compiled_instead() {
    let runtime = runtime();
    let wasm: &'static [u8] = guest("echo").leak();
    let cwasm: &'static [u8] = precompile(wasm).unwrap().leak();
    for (cwasm, expected) in [(cwasm, true), (&cwasm[..64], false)] {
        let source = ComponentSource::Precompiled { cwasm, wasm };
        let component = runtime.load("echo", source, CapabilitySet::EMPTY).unwrap();
        assert_eq!(component.form(), None);
        let (request, output) = request(r#"{"text":"a"}"#, CapabilitySet::EMPTY, Hosts::deny());
        runtime.execute(&component, request).await;
        assert_eq!(output.text(), "a");
        match component.form().unwrap() {
            Form::Precompiled => assert!(expected),
            Form::CompiledInstead { reason } => assert!(!expected && !reason.is_empty()),
            Form::Compiled => panic!("nobody asked for that"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_future_is_dropped_writes_nothing_more() {
    let runtime = runtime();
    let component = load(&runtime, "hostile");
    let (request, output) = request(
        r#"{"do":"write-until-cancelled"}"#,
        CapabilitySet::EMPTY,
        Hosts::deny(),
    );
    let call = runtime.execute(&component, request);
    assert!(
        tokio::time::timeout(Duration::from_millis(200), call)
            .await
            .is_err()
    );
    let written = output.deltas().len();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(output.deltas().len(), written);
}
