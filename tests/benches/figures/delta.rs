//! What a delta costs on its way from a guest, through the door, to the consumer of the stream. A sample is a call that writes a
//! million of them, divided by a million.

use std::time::{Duration, Instant};

use crate::figures::{Effort, Figures, Goal};
use crate::house::{House, through_the_door};

const DELTAS: u32 = 1_000_000;

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let house = House::new();
    let goal = Goal::Median(Duration::from_micros(2));
    let effort = Effort {
        warm_ups: 1,
        measure: Duration::from_secs(10),
        batches: 10,
    };
    figures.measure("a delta, guest to consumer", goal, effort, |count| {
        let environment = house.environment.clone();
        house.in_a_task(async move {
            let mut samples = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                through_the_door(&environment, "hostile", r#"{"do":"million-deltas"}"#).await;
                samples.push(start.elapsed() / DELTAS);
            }
            samples
        })
    });
}
