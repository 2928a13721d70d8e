//! Hostile components before any call: what is not let in is refused in words, and what misbehaves while it describes itself is a
//! fault with its name. What their calls come to is in `hostile_door.rs`.

use std::sync::Arc;

use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{
    AdmissionError, CallContext, CallEnd, CallFault, CallLimits, CallRequest, Capability,
    CapabilitySet, Component, ComponentSource, Hosts, Runtime,
};
use floe_tests::components::{core_text, guest, text};
use floe_tests::runtime;
use tokio_util::sync::CancellationToken;

fn load(runtime: &Runtime, name: &str, wasm: Vec<u8>) -> Component {
    let source = ComponentSource::Wasm(wasm);
    runtime.load(name, source, CapabilitySet::EMPTY).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_imported_but_not_declared_is_refused() {
    let source = ComponentSource::Wasm(guest("edits-files"));
    let declared = CapabilitySet::EMPTY.with(Capability::Workspace);
    let refused = runtime().load("edits-files", source, declared).unwrap_err();
    assert!(
        matches!(
            &refused,
            AdmissionError::Undeclared {
                capability: Capability::Edits,
                ..
            }
        ),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_misbehaves_while_it_describes_itself_is_a_fault_with_its_name() {
    let runtime = runtime();
    let definition = async |name| {
        let component = load(&runtime, name, guest(name));
        runtime.definition(&component).await.unwrap_err()
    };
    let bad = definition("bad-definition").await;
    assert!(
        matches!(
            &bad,
            CallFault::BadDefinition {
                field: "parameters",
                ..
            }
        ),
        "{bad}"
    );
    let trapped = definition("traps-in-definition").await.to_string();
    assert!(trapped.contains("no words for myself"), "{trapped}");
    let late = definition("spins-in-definition").await;
    assert!(matches!(late, CallFault::TimedOut { .. }), "{late}");
    // Afterwards a well-behaved one is still understood.
    let noop = load(&runtime, "noop", guest("noop"));
    assert_eq!(runtime.definition(&noop).await.unwrap().name, "noop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_traps_when_it_is_asked_for_its_permission_is_a_fault_in_its_words() {
    let runtime = runtime();
    let component = load(
        &runtime,
        "traps-in-definition",
        guest("traps-in-definition"),
    );
    let fault = runtime.permission_for(&component, "{}").await.unwrap_err();
    assert!(fault.to_string().contains("no idea"), "{fault}");
    let tables = load(&runtime, "zero-tables", text("zero-tables"));
    let fault = runtime.permission_for(&tables, "{}").await.unwrap_err();
    assert!(matches!(fault, CallFault::Trapped { .. }), "{fault}");
    let pointers = load(&runtime, "wild-pointers", text("wild-pointers"));
    let fault = runtime.definition(&pointers).await.unwrap_err();
    assert!(matches!(fault, CallFault::Trapped { .. }), "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_contract_other_types_and_what_is_no_component_are_refused_in_words() {
    let runtime = runtime();
    let refusal = |bytes: Vec<u8>| {
        let source = ComponentSource::Wasm(bytes);
        runtime.load("x", source, CapabilitySet::EMPTY).unwrap_err()
    };
    let later = refusal(text("later-contract"));
    assert!(
        matches!(&later, AdmissionError::ContractVersion { found, .. } if found == "0.2.0"),
        "{later}"
    );
    assert!(later.to_string().contains("Rebuild"), "{later}");
    let core = refusal(core_text("core-module"));
    assert!(matches!(core, AdmissionError::CoreModule { .. }), "{core}");
    let mut cut = guest("noop");
    cut.truncate(cut.len() / 2);
    let cut = refusal(cut);
    assert!(matches!(cut, AdmissionError::Truncated { .. }), "{cut}");

    // The names are right, so what is wrong shows when it is linked.
    let component = load(&runtime, "wrong-types", text("wrong-types"));
    let fault = runtime.definition(&component).await.unwrap_err();
    assert!(
        matches!(
            &fault,
            CallFault::Refused(AdmissionError::WrongShape { .. })
        ),
        "{fault}"
    );
    let request = CallRequest {
        arguments: "{}".to_owned(),
        context: CallContext::default(),
        granted: CapabilitySet::EMPTY,
        hosts: Arc::new(Hosts::deny()),
        output: RecordingOutput::new(),
        limits: CallLimits::default(),
        cancel: CancellationToken::new(),
    };
    let CallEnd::Failed(failure) = runtime.execute(&component, request).await.end else {
        panic!("it ran");
    };
    assert_eq!(failure.code, "component-refused");
}
