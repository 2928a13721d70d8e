//! Gate 10: how many calls in how much time. There is no limit by default. Calls that an earlier gate ended cost nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Gate, Refusal};

/// At most so many calls in any stretch of so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Calls.
    pub calls: u32,
    /// The stretch.
    pub per: Duration,
}

/// The calls of a Session that still count.
#[derive(Debug)]
pub(crate) struct RateGate {
    rate: Option<Rate>,
    recent: Mutex<VecDeque<Instant>>,
}

impl RateGate {
    pub(crate) fn new(rate: Option<Rate>) -> RateGate {
        RateGate {
            rate,
            recent: Mutex::default(),
        }
    }

    /// Counts a call at `now`, or ends it.
    pub(crate) fn check(&self, now: Instant) -> Result<(), Refusal> {
        let Some(Rate { calls, per }) = self.rate else {
            return Ok(());
        };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent
            .front()
            .is_some_and(|earliest| now.duration_since(*earliest) >= per)
        {
            recent.pop_front();
        }
        if recent.len() < calls as usize {
            recent.push_back(now);
            return Ok(());
        }
        let wait = recent.front().map_or(per, |earliest| {
            per.saturating_sub(now.duration_since(*earliest))
        });
        Err(Refusal::failed(
            Gate::Rate,
            "rate-limited",
            format!(
                "Rate limit exceeded: {calls} calls in {} s. Call again in {} s.",
                per.as_secs_f64(),
                wait.as_secs() + 1
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_rate_nothing_is_counted() {
        let gate = RateGate::new(None);
        let now = Instant::now();
        assert!((0..10_000).all(|_| gate.check(now).is_ok()));
    }

    #[test]
    fn the_call_above_the_rate_waits_until_the_earliest_no_longer_counts() {
        let gate = RateGate::new(Some(Rate {
            calls: 2,
            per: Duration::from_secs(60),
        }));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(gate.check(at(0)).is_ok());
        assert!(gate.check(at(10)).is_ok());
        assert_eq!(
            gate.check(at(20)).unwrap_err().text,
            "Rate limit exceeded: 2 calls in 60 s. Call again in 41 s."
        );
        assert!(gate.check(at(60)).is_ok());
        assert!(gate.check(at(61)).is_err());
    }
}
