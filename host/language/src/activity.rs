//! What a server says of its own work: whether it is still reading the project.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Works that are followed at once; who begins more is not waited for.
const MOST: usize = 64;

/// What a server is at.
#[derive(Debug)]
pub(crate) struct Activity {
    works: Mutex<Works>,
    is_busy: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Works {
    /// By their tokens.
    running: HashSet<String>,
    /// What some servers say in one word: whether there is nothing left to do.
    quiescent: Option<bool>,
}

impl Works {
    fn is_busy(&self) -> bool {
        !self.running.is_empty() || self.quiescent == Some(false)
    }
}

impl Activity {
    pub(crate) fn new() -> Activity {
        Activity {
            works: Mutex::default(),
            is_busy: watch::Sender::new(false),
        }
    }

    /// A `$/progress`.
    pub(crate) fn progress(&self, params: &Value) {
        let token = params["token"].to_string();
        self.change(|works| match params["value"]["kind"].as_str() {
            Some("begin") if works.running.len() < MOST && token.len() < 256 => {
                works.running.insert(token);
            }
            Some("end") => {
                works.running.remove(&token);
            }
            _ => {}
        });
    }

    /// An `experimental/serverStatus`, which rust-analyzer sends.
    pub(crate) fn status(&self, params: &Value) {
        if let Some(quiescent) = params["quiescent"].as_bool() {
            self.change(|works| works.quiescent = Some(quiescent));
        }
    }

    fn change(&self, change: impl FnOnce(&mut Works)) {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut works);
        self.is_busy.send_if_modified(|busy| {
            let before = std::mem::replace(busy, works.is_busy());
            before != *busy
        });
    }

    /// Whether the server is at something now.
    pub(crate) fn is_busy(&self) -> bool {
        *self.is_busy.borrow()
    }

    /// Waits until the server begins something, not beyond `until`. Whether it has.
    pub(crate) async fn begun(&self, until: Instant) -> bool {
        let mut busy = self.is_busy.subscribe();
        let begun = timeout_at(until, busy.wait_for(|busy| *busy)).await;
        matches!(begun, Ok(Ok(_)))
    }

    /// Waits until the server is done with what it is at, not beyond `until`. Whether it is.
    pub(crate) async fn settled(&self, until: Instant) -> bool {
        let mut busy = self.is_busy.subscribe();
        let settled = timeout_at(until, busy.wait_for(|busy| !*busy)).await;
        matches!(settled, Ok(Ok(_)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_is_busy_until_all_that_it_began_has_ended() {
        let activity = Activity::new();
        let soon = || Instant::now() + Duration::from_secs(1);
        assert!(activity.settled(soon()).await && !activity.begun(soon()).await);
        for token in [json!("a"), json!(1)] {
            activity.progress(&json!({"token": token, "value": {"kind": "begin"}}));
        }
        activity.progress(&json!({"token": "a", "value": {"kind": "report"}}));
        activity.progress(&json!({"token": "a", "value": {"kind": "end"}}));
        assert!(activity.is_busy() && !activity.settled(soon()).await);
        activity.progress(&json!({"token": 1, "value": {"kind": "end"}}));
        assert!(activity.settled(soon()).await);
        activity.status(&json!({"quiescent": false}));
        assert!(activity.begun(soon()).await);
        activity.status(&json!({"quiescent": true}));
        assert!(activity.settled(soon()).await);
    }

    #[tokio::test]
    async fn a_flood_of_works_is_bounded() {
        let activity = Activity::new();
        for token in 0..100_000 {
            activity.progress(&json!({"token": token, "value": {"kind": "begin"}}));
        }
        assert_eq!(activity.works.lock().unwrap().running.len(), MOST);
    }
}
