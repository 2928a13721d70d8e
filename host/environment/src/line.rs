//! Keeps decisions in call order. A place is taken at once, when a call arrives; a call decides when all before it have decided
//! or given up. It says nothing about running: calls that were allowed run at the same time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// The line of a Session.
pub(crate) struct Line {
    order: Mutex<Order>,
    /// The place whose turn it is.
    turn: watch::Sender<u64>,
}

#[derive(Default)]
struct Order {
    next: u64,
    /// Places that left before their turn.
    left: BTreeSet<u64>,
}

/// A place in the line; dropping it lets the next one pass.
pub(crate) struct Place {
    line: Arc<Line>,
    number: u64,
}

impl Line {
    pub(crate) fn new() -> Arc<Line> {
        Arc::new(Line {
            order: Mutex::default(),
            turn: watch::Sender::new(0),
        })
    }

    /// The next place.
    pub(crate) fn join(self: &Arc<Line>) -> Place {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let number = order.next;
        order.next += 1;
        Place {
            line: Arc::clone(self),
            number,
        }
    }
}

impl Place {
    /// Waits until it is this place's turn.
    pub(crate) async fn turn(&self) {
        let mut turn = self.line.turn.subscribe();
        // The sender lives in the line, which this place holds.
        let _ = turn.wait_for(|turn| *turn >= self.number).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut order = self
            .line
            .order
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        order.left.insert(self.number);
        self.line.turn.send_if_modified(|turn| {
            let before = *turn;
            while order.left.remove(turn) {
                *turn += 1;
            }
            *turn != before
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn turns_come_in_the_order_in_which_places_were_taken() {
        let line = Line::new();
        let (first, second) = (line.join(), line.join());
        first.turn().await;
        assert!(second.turn().now_or_never().is_none());
        drop(first);
        second.turn().await;
    }

    #[tokio::test]
    async fn who_leaves_early_lets_nobody_overtake() {
        let line = Line::new();
        let (first, second, third) = (line.join(), line.join(), line.join());
        drop(second);
        assert!(third.turn().now_or_never().is_none());
        drop(first);
        third.turn().await;
    }
}
