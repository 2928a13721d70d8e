//! A real component with bytes changed or its end missing: it is refused with words, or it runs within its bounds. The host neither
//! panics nor hangs, whatever the bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{
    CallContext, CallEnd, CallLimits, CallRequest, CapabilitySet, Component, ComponentSource,
    Hosts, Runtime,
};
use floe_tests::components::guest;
use floe_tests::runtime;
use tokio_util::sync::CancellationToken;

/// Changed components that are let in or refused; `FLOE_MUTATIONS` asks for more.
const MUTATIONS: usize = 150;
/// How many of those that are let in are compiled and called, which takes far longer.
const CALLED: usize = 12;

/// A generator of its own, so that a failure can be played again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

fn mutations() -> usize {
    let asked = std::env::var("FLOE_MUTATIONS").ok();
    asked.map_or(MUTATIONS, |number| number.parse().unwrap())
}

fn load(runtime: &Runtime, bytes: Vec<u8>) -> Option<Component> {
    let source = ComponentSource::Wasm(bytes);
    match runtime.load("changed", source, CapabilitySet::all()) {
        Ok(component) => Some(component),
        Err(refusal) => {
            let words = refusal.to_string();
            assert!(!words.is_empty() && words.len() < 4096, "{words}");
            None
        }
    }
}

async fn call(runtime: &Runtime, component: &Component) -> CallEnd {
    let request = CallRequest {
        arguments: "{}".to_owned(),
        context: CallContext::default(),
        granted: CapabilitySet::EMPTY,
        hosts: Arc::new(Hosts::deny()),
        output: RecordingOutput::new(),
        limits: CallLimits {
            deadline: Some(Duration::from_millis(500)),
            ..CallLimits::default()
        },
        cancel: CancellationToken::new(),
    };
    runtime.execute(component, request).await.end
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_with_changed_bytes_is_refused_or_runs_within_its_bounds() {
    let runtime = runtime();
    let original = guest("echo");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut called = 0;
    for _ in 0..mutations() {
        let mut bytes = original.clone();
        for _ in 0..=random.below(3) {
            let position = random.below(bytes.len());
            bytes[position] ^= 1 << random.below(8);
        }
        let started = Instant::now();
        let Some(component) = load(&runtime, bytes) else {
            assert!(started.elapsed() < Duration::from_secs(10));
            continue;
        };
        if called < CALLED.max(mutations() / 20) {
            called += 1;
            let ended = tokio::time::timeout(Duration::from_secs(60), call(&runtime, &component));
            ended.await.expect("the call ends");
        }
    }
    assert!(called > 0, "some changes hit nothing that validation sees");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_cut_at_any_hundredth_is_refused() {
    let runtime = runtime();
    let original = guest("echo");
    for hundredth in 0..100 {
        let cut = original.len() * hundredth / 100;
        assert!(load(&runtime, original[..cut].to_vec()).is_none(), "{cut}");
    }
}
