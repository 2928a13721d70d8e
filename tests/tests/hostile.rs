//! Hostile guests: each ends as the contract says, within its time, and a neighbour's call beside it is answered exactly.

use std::sync::Arc;
use std::time::Duration;

use floe_runtime::capability::edits::RecordingEdits;
use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{
    AdmissionError, CallContext, CallEnd, CallFault, CallLimits, CallRequest, Capability,
    CapabilitySet, Component, ComponentSource, Hosts,
};
use floe_tests::components::{core_text, guest, text};
use floe_tests::misdeeds::{Bench, End, MISDEEDS, Misdeed};
use tokio_util::sync::CancellationToken;

fn request(granted: CapabilitySet, hosts: Hosts) -> (CallRequest, Arc<RecordingOutput>) {
    let output = RecordingOutput::new();
    let request = CallRequest {
        arguments: "{}".to_owned(),
        context: CallContext::default(),
        granted,
        hosts: Arc::new(hosts),
        output: output.clone(),
        limits: CallLimits {
            deadline: Some(Duration::from_millis(150)),
            ..CallLimits::default()
        },
        cancel: CancellationToken::new(),
    };
    (request, output)
}

fn load_text(bench: &Bench, name: &str) -> Component {
    let source = ComponentSource::Wasm(text(name));
    let loaded = bench.runtime.load(name, source, CapabilitySet::EMPTY);
    loaded.unwrap()
}

async fn run(bench: &Bench, component: &Component) -> CallEnd {
    let (request, _) = request(CapabilitySet::EMPTY, Hosts::deny());
    bench.runtime.execute(component, request).await.end
}

#[tokio::test(flavor = "multi_thread")]
async fn every_misdeed_ends_as_the_contract_says_and_harms_no_neighbour() {
    let bench = Bench::new();
    for misdeed in MISDEEDS {
        bench.check(misdeed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_tiny_deltas_all_arrive() {
    let bench = Bench::new();
    let deltas = Misdeed::new("million-deltas", End::Returned);
    assert_eq!(bench.check(&deltas).await.characters, 1_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_a_guest_leaks_or_leaves_running_are_let_go_of() {
    let bench = Bench::new();
    for (name, end, started) in [
        ("leak-commands", End::Returned, 4),
        ("sleep-in-host", End::DeadlineExceeded, 1),
    ] {
        let outcome = bench.check(&Misdeed::new(name, end)).await;
        let count = |word: &str| {
            let lines = outcome.commands.lines();
            lines.iter().filter(|line| line.starts_with(word)).count()
        };
        assert_eq!(count("spawn"), started);
        // The guest dies behind the answer.
        for _ in 0..400 {
            if count("release") == started {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(count("release"), started, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_spinning_guests_do_not_keep_a_ninth_from_being_cancelled() {
    let bench = Bench::new();
    let spin = Misdeed::new("spin", End::DeadlineExceeded);
    let cancelled = Misdeed::new("write-until-cancelled", End::Cancelled);
    let crowd = async {
        let eight = [&spin; 8].map(|one| bench.check(one));
        let [a, b, c, d, e, f, g, h] = eight;
        tokio::join!(a, b, c, d, e, f, g, h);
    };
    tokio::join!(crowd, bench.check(&cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_imported_but_not_declared_is_refused_and_what_is_not_granted_is_denied() {
    let bench = Bench::new();
    let source = ComponentSource::Wasm(guest("edits-files"));
    let declared = CapabilitySet::EMPTY.with(Capability::Workspace);
    let refused = bench
        .runtime
        .load("edits-files", source, declared)
        .unwrap_err();
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

    let component = bench.component("edits-files");
    let edits = RecordingEdits::default();
    let hosts = Hosts {
        edits: Arc::new(edits.clone()),
        ..Hosts::deny()
    };
    let (request, _) = request(declared, hosts);
    let CallEnd::Failed(failure) = bench.runtime.execute(&component, request).await.end else {
        panic!("it was not denied");
    };
    assert_eq!(failure.code, "denied");
    assert!(
        failure
            .message
            .starts_with("the capability `edits` is not granted"),
        "{}",
        failure.message
    );
    assert!(edits.requests.lines().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_misbehaves_while_it_describes_itself_is_a_fault_with_its_name() {
    let bench = Bench::new();
    let definition = async |name| {
        let component = bench.component(name);
        bench.runtime.definition(&component).await.unwrap_err()
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

    let component = bench.component("traps-in-definition");
    let permission = bench.runtime.permission_for(&component, "{}").await;
    let permission = permission.unwrap_err().to_string();
    assert!(permission.contains("no idea"), "{permission}");
    bench.neighbour().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_tables_wild_pointers_and_impossible_answers_are_traps_in_words() {
    let bench = Bench::new();
    let tables = load_text(&bench, "zero-tables");
    let end = run(&bench, &tables).await;
    assert!(
        matches!(&end, CallEnd::Trapped { message } if message.contains("table")),
        "{end:?}"
    );
    let permission = bench.runtime.permission_for(&tables, "{}").await;
    assert!(matches!(permission, Err(CallFault::Trapped { .. })));

    let pointers = load_text(&bench, "wild-pointers");
    let end = run(&bench, &pointers).await;
    assert!(matches!(end, CallEnd::Trapped { .. }), "{end:?}");
    let definition = bench.runtime.definition(&pointers).await;
    assert!(matches!(definition, Err(CallFault::Trapped { .. })));
    bench.neighbour().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_never_finishes_being_instantiated_is_ended_by_the_deadline() {
    let bench = Bench::new();
    let component = load_text(&bench, "start-spins");
    let end = run(&bench, &component).await;
    assert!(matches!(end, CallEnd::DeadlineExceeded), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_contract_other_types_and_what_is_no_component_are_refused_in_words() {
    let bench = Bench::new();
    let refusal = |bytes: Vec<u8>| {
        let source = ComponentSource::Wasm(bytes);
        bench
            .runtime
            .load("x", source, CapabilitySet::EMPTY)
            .unwrap_err()
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
    let component = load_text(&bench, "wrong-types");
    let fault = bench.runtime.definition(&component).await.unwrap_err();
    assert!(
        matches!(
            &fault,
            CallFault::Refused(AdmissionError::WrongShape { .. })
        ),
        "{fault}"
    );
    let CallEnd::Failed(failure) = run(&bench, &component).await else {
        panic!("it ran");
    };
    assert_eq!(failure.code, "component-refused");
}
