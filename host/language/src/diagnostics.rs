//! What servers publish about the files that are open, of their own accord: the last word on each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::reply::{self, WireDiagnostic};

/// Diagnostics of one file that are kept.
const MOST_KEPT: usize = 1000;
/// How long a server that has published must be silent until it counts as done: some publish in portions.
const SILENCE: Duration = Duration::from_millis(300);

/// The last word on each file that is open.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    files: Mutex<HashMap<String, File>>,
    count: watch::Sender<u64>,
}

#[derive(Debug)]
struct File {
    /// Which version of it is waited for.
    version: i32,
    said: Option<Said>,
}

#[derive(Clone, Debug)]
struct Said {
    items: Vec<WireDiagnostic>,
    at: Instant,
}

impl Diagnostics {
    pub(crate) fn new() -> Diagnostics {
        Diagnostics {
            files: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }

    /// From now on only what is said of this version counts.
    pub(crate) fn expect(&self, path: &str, version: i32) {
        let file = File {
            version,
            said: None,
        };
        self.files().insert(path.to_owned(), file);
    }

    /// The file is not open any more.
    pub(crate) fn forget(&self, path: &str) {
        self.files().remove(path);
    }

    /// A `textDocument/publishDiagnostics` about this file. What is not open is of no interest, however much is said of it.
    pub(crate) fn publish(&self, path: &str, params: &Value) {
        let mut files = self.files();
        let Some(file) = files.get_mut(path) else {
            return;
        };
        let version = params["version"].as_i64();
        if version.is_some_and(|version| version != i64::from(file.version)) {
            return;
        }
        let mut items = reply::diagnostics(&params["diagnostics"]);
        items.truncate(MOST_KEPT);
        items.iter_mut().for_each(WireDiagnostic::shorten);
        file.said = Some(Said {
            items,
            at: Instant::now(),
        });
        drop(files);
        self.count.send_modify(|count| *count += 1);
    }

    /// Waits until the server has said something of a file and is silent, not beyond `until`.
    pub(crate) async fn settled(&self, path: &str, until: Instant) -> Option<Vec<WireDiagnostic>> {
        let mut count = self.count.subscribe();
        loop {
            count.mark_unchanged();
            let said = self.said(path);
            let now = Instant::now();
            let wait = match &said {
                Some(said) if said.at + SILENCE <= now || now >= until => break,
                Some(said) => (said.at + SILENCE).min(until),
                None => until,
            };
            if timeout_at(wait, count.changed()).await.is_err() && wait == until {
                break;
            }
        }
        self.said(path).map(|said| said.items)
    }

    fn said(&self, path: &str) -> Option<Said> {
        self.files().get(path)?.said.clone()
    }

    fn files(&self) -> std::sync::MutexGuard<'_, HashMap<String, File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(message: &str, version: Option<i32>) -> Value {
        let start = json!({"line": 0, "character": 0});
        let item = json!({"range": {"start": start, "end": start}, "message": message});
        json!({"version": version, "diagnostics": [item]})
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_word_on_the_version_that_is_open_counts() {
        let diagnostics = Diagnostics::new();
        diagnostics.expect("a", 2);
        diagnostics.publish("a", &said("old", Some(1)));
        assert!(diagnostics.said("a").is_none());
        diagnostics.publish("a", &said("first", Some(2)));
        diagnostics.publish("a", &said("last", None));
        let until = Instant::now() + Duration::from_secs(10);
        let items = diagnostics.settled("a", until).await.unwrap();
        assert_eq!(items[0].message, "last");
        assert!(Instant::now() < until);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_falls_silent_is_not_waited_for_beyond_the_limit() {
        let diagnostics = Diagnostics::new();
        diagnostics.expect("a", 1);
        let until = Instant::now() + Duration::from_secs(10);
        let flood = async {
            loop {
                diagnostics.publish("a", &said("again", None));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            items = diagnostics.settled("a", until) => assert!(items.is_some()),
            () = flood => {}
        }
        assert!(Instant::now() <= until + Duration::from_secs(1));
    }

    #[tokio::test]
    async fn of_long_words_no_more_is_kept_than_is_shown() {
        let diagnostics = Diagnostics::new();
        diagnostics.expect("a", 1);
        let mut long = said(&"é".repeat(100_000), None);
        long["diagnostics"][0]["code"] = json!({"deep": vec![0; 10_000]});
        long["diagnostics"][0]["source"] = json!("s".repeat(100_000));
        diagnostics.publish("a", &long);
        let items = diagnostics.said("a").unwrap().items;
        assert!(items[0].message.len() <= 4096 && items[0].message.starts_with('é'));
        assert_eq!(items[0].code, Value::Null);
        assert!(items[0].source.as_ref().unwrap().len() <= 256);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_open_takes_no_memory() {
        let diagnostics = Diagnostics::new();
        for number in 0..10_000 {
            diagnostics.publish(&number.to_string(), &said("x", None));
        }
        assert!(diagnostics.files().is_empty());
        let until = Instant::now() + Duration::from_secs(1);
        assert!(diagnostics.settled("1", until).await.is_none());
    }
}
