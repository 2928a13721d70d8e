//! The runtime's own costs: a call that does nothing, a delta from guest to host, and the cancel of a spinning guest beside eight
//! others. Each is sampled after a thousand warm-ups and printed beside its goal; criterion keeps the history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use floe_runtime::{
    CallContext, CallEnd, CallLimits, CallRequest, CapabilitySet, Component, Hosts,
};
use floe_tests::misdeeds::{Bench, CountingOutput};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const WARM_UPS: usize = 1_000;
const SAMPLES: usize = 10_000;
const CANCELS: usize = 200;
const DELTAS: u32 = 1_000_000;

fn host() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

fn request(arguments: &str, hosts: &Arc<Hosts>, cancel: &CancellationToken) -> CallRequest {
    CallRequest {
        arguments: arguments.to_owned(),
        context: CallContext::default(),
        granted: CapabilitySet::EMPTY,
        hosts: hosts.clone(),
        output: Arc::new(CountingOutput::default()),
        limits: CallLimits::default(),
        cancel: cancel.clone(),
    }
}

/// One call that must return, and how long it took.
async fn call(
    bench: &Bench,
    component: &Component,
    hosts: &Arc<Hosts>,
    arguments: &str,
) -> Duration {
    let request = request(arguments, hosts, &CancellationToken::new());
    let start = Instant::now();
    let call = bench.runtime.execute(component, request).await;
    let took = start.elapsed();
    assert!(matches!(call.end, CallEnd::Returned(_)), "{:?}", call.end);
    took
}

/// From the cancel of a guest that spins to the answer.
async fn cancel(bench: &Bench, component: &Component, hosts: &Arc<Hosts>) -> Duration {
    let token = CancellationToken::new();
    let request = request("{\"do\":\"spin\"}", hosts, &token);
    let canceller = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let start = Instant::now();
        token.cancel();
        start
    });
    bench.runtime.execute(component, request).await;
    let answered = Instant::now();
    answered - canceller.await.expect("the canceller")
}

/// Prints the quantiles of some samples beside a goal.
fn report(what: &str, goal: &str, mut samples: Vec<Duration>) {
    samples.sort_unstable();
    let quantile = |of: usize| samples[(samples.len() - 1) * of / 100];
    println!(
        "{what}: median {:.1?}, p90 {:.1?}, p99 {:.1?} (goal: {goal})",
        quantile(50),
        quantile(90),
        quantile(99)
    );
}

fn no_op(criterion: &mut Criterion) {
    let host = host();
    let bench = host.block_on(async { Bench::new() });
    let component = bench.component("noop");
    let hosts = Arc::new(Hosts::deny());
    let one = || call(&bench, &component, &hosts, "{}");
    host.block_on(async {
        for _ in 0..WARM_UPS {
            one().await;
        }
        let mut samples = Vec::with_capacity(SAMPLES);
        for _ in 0..SAMPLES {
            samples.push(one().await);
        }
        report("no-op call, the runtime's part", "median <= 60 us", samples);
    });
    criterion.bench_function("runtime/no-op", |bencher| {
        bencher.iter(|| host.block_on(one()));
    });
}

fn delta(criterion: &mut Criterion) {
    let host = host();
    let bench = host.block_on(async { Bench::new() });
    let component = bench.component("hostile");
    let hosts = Arc::new(Hosts::deny());
    let million = || call(&bench, &component, &hosts, "{\"do\":\"million-deltas\"}");
    host.block_on(async {
        let mut samples = Vec::new();
        for _ in 0..10 {
            samples.push(million().await / DELTAS);
        }
        report("a delta from guest to consumer", "<= 2 us", samples);
    });
    let mut group = criterion.benchmark_group("runtime");
    group.sample_size(10);
    group.bench_function("delta-x-1000000", |bencher| {
        bencher.iter(|| host.block_on(million()));
    });
    group.finish();
}

fn cancel_beside_spinners(criterion: &mut Criterion) {
    let host = host();
    let bench = host.block_on(async { Arc::new(Bench::new()) });
    let component = bench.component("hostile");
    let hosts = Arc::new(Hosts::deny());
    let crowd = CancellationToken::new();
    for _ in 0..8 {
        let (bench, component) = (bench.clone(), component.clone());
        let request = request("{\"do\":\"spin\"}", &hosts, &crowd);
        host.spawn(async move { bench.runtime.execute(&component, request).await.end });
    }
    host.block_on(async {
        let mut samples = Vec::with_capacity(CANCELS);
        for _ in 0..CANCELS {
            samples.push(cancel(&bench, &component, &hosts).await);
        }
        report(
            "cancel of a spinning guest beside eight others",
            "p90 <= 10 ms",
            samples,
        );
    });
    let mut group = criterion.benchmark_group("runtime");
    group.sample_size(10);
    group.bench_function("cancel-beside-eight", |bencher| {
        bencher.iter_custom(|times| {
            host.block_on(async {
                let mut total = Duration::ZERO;
                for _ in 0..times {
                    total += cancel(&bench, &component, &hosts).await;
                }
                total
            })
        });
    });
    group.finish();
    crowd.cancel();
}

criterion_group!(benches, no_op, delta, cancel_beside_spinners);
criterion_main!(benches);
