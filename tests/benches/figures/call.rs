//! What a call costs that does nothing: the runtime's part (a fresh instance, entered and left) and the whole door around it (schema,
//! one decision, close-out, Trace).

use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{CallContext, CallEnd, CallLimits, CallRequest, CapabilitySet, Hosts};
use tokio_util::sync::CancellationToken;

use crate::figures::{Effort, Figures, Goal};
use crate::house::{House, through_the_door};

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let house = House::new();
    runtime(figures, &house);
    door(figures, &house);
}

fn runtime(figures: &mut Figures<'_>, house: &House) {
    let goal = Goal::Median(Duration::from_micros(60));
    let noop = house.component("noop");
    let hosts = Arc::new(Hosts::deny());
    figures.measure("no-op call, runtime's part", goal, Effort::SHORT, |count| {
        let (runtime, noop, hosts) = (house.runtime.clone(), noop.clone(), hosts.clone());
        house.in_a_task(async move {
            let mut samples = Vec::new();
            for _ in 0..count {
                let request = CallRequest {
                    arguments: "{}".into(),
                    context: CallContext::default(),
                    granted: CapabilitySet::EMPTY,
                    hosts: hosts.clone(),
                    output: RecordingOutput::new(),
                    limits: CallLimits::default(),
                    cancel: CancellationToken::new(),
                };
                let start = Instant::now();
                let call = runtime.execute(&noop, request).await;
                samples.push(start.elapsed());
                assert!(matches!(call.end, CallEnd::Returned(_)), "{:?}", call.end);
            }
            samples
        })
    });
}

fn door(figures: &mut Figures<'_>, house: &House) {
    let goal = Goal::Median(Duration::from_micros(100));
    figures.measure("no-op call, whole door", goal, Effort::SHORT, |count| {
        let environment = house.environment.clone();
        house.in_a_task(async move {
            let arguments = r#"{"cmd":"true","workdir":".","yield_time_ms":250}"#;
            let mut samples = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                through_the_door(&environment, "noop", arguments).await;
                samples.push(start.elapsed());
            }
            samples
        })
    });
}
