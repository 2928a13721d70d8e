//! What it takes to cancel a guest that spins beside eight others: until the answer, and until the guest itself is gone.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use floe_runtime::capability::log::{Field, Level, Log};
use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{
    CallContext, CallEnd, CallLimits, CallRequest, CapabilitySet, Component, Hosts,
};
use tokio_util::sync::CancellationToken;

use crate::figures::{Effort, Figures, Goal};
use crate::house::House;

const CROWD: usize = 8;
/// How long the guest has spun when it is cancelled.
const SPINNING: Duration = Duration::from_millis(20);

/// Part of what a guest is linked to: it is dropped with the guest's Store, and says when.
struct LastBreath(mpsc::Sender<Instant>);

impl Log for LastBreath {
    fn write(&self, _tool_call_id: &str, _level: Level, _message: &str, _fields: &[Field]) {}
}

impl Drop for LastBreath {
    fn drop(&mut self) {
        // Nobody waits for the crowd.
        let _ = self.0.send(Instant::now());
    }
}

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let house = House::new();
    let hostile = house.component("hostile");
    let crowd = CancellationToken::new();
    let (nobody, _) = mpsc::channel();
    for _ in 0..CROWD {
        let (runtime, hostile) = (house.runtime.clone(), hostile.clone());
        let request = spin(nobody.clone(), &crowd);
        house
            .tokio
            .spawn(async move { runtime.execute(&hostile, request).await.end });
    }
    let limit = Duration::from_millis(10);
    let effort = Effort {
        warm_ups: 20,
        measure: Duration::from_secs(10),
        batches: 50,
    };
    let mut stopped = Vec::new();
    figures.measure(
        "cancel of a spinning guest beside eight, until the answer",
        Goal::NinetiethPercentile(limit),
        effort,
        |count| {
            let once = || {
                let (answer, stop) = cancel(&house, &hostile);
                stopped.push(stop);
                answer
            };
            std::iter::repeat_with(once).take(count as usize).collect()
        },
    );
    // The warm-ups came first, and where a filter left the figure out there are none.
    stopped.drain(..stopped.len().min(effort.warm_ups as usize));
    figures.add(
        "the same, until the guest has stopped",
        Goal::NinetiethPercentile(limit),
        stopped,
    );
    crowd.cancel();
}

/// From the cancel to the answer, and to the end of the guest.
fn cancel(house: &House, hostile: &Component) -> (Duration, Duration) {
    let token = CancellationToken::new();
    let (sender, gone) = mpsc::channel();
    let request = spin(sender, &token);
    let (runtime, hostile) = (house.runtime.clone(), hostile.clone());
    let call = house.tokio.spawn(async move {
        let end = runtime.execute(&hostile, request).await.end;
        (end, Instant::now())
    });
    std::thread::sleep(SPINNING);
    let start = Instant::now();
    token.cancel();
    let (end, answered) = house.tokio.block_on(call).expect("the call ends");
    assert!(matches!(end, CallEnd::Cancelled), "{end:?}");
    let stopped = gone.recv().expect("the guest goes");
    (
        answered.saturating_duration_since(start),
        stopped.saturating_duration_since(start),
    )
}

fn spin(gone: mpsc::Sender<Instant>, cancel: &CancellationToken) -> CallRequest {
    CallRequest {
        arguments: r#"{"do":"spin"}"#.to_owned(),
        context: CallContext::default(),
        granted: CapabilitySet::EMPTY,
        hosts: Arc::new(Hosts {
            log: Arc::new(LastBreath(gone)),
            ..Hosts::deny()
        }),
        output: RecordingOutput::new(),
        limits: CallLimits {
            deadline: None,
            ..CallLimits::default()
        },
        cancel: cancel.clone(),
    }
}
