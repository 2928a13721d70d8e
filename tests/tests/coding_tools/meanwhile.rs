//! What goes on beside a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Something that is done over and over on a thread of its own, until this is dropped.
pub(crate) struct Meanwhile {
    done: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Meanwhile {
    /// Begins.
    pub(crate) fn doing(mut work: impl FnMut() + Send + 'static) -> Meanwhile {
        let done = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicUsize::new(0));
        let thread = std::thread::spawn({
            let (done, rounds) = (Arc::clone(&done), Arc::clone(&rounds));
            move || {
                while !done.load(Ordering::Relaxed) {
                    work();
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Meanwhile {
            done,
            rounds,
            thread: Some(thread),
        }
    }

    /// How often it was done so far.
    pub(crate) fn rounds(&self) -> usize {
        let thread = self.thread.as_ref();
        assert!(
            thread.is_some_and(|thread| !thread.is_finished()),
            "it has failed"
        );
        self.rounds.load(Ordering::Relaxed)
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "it has failed");
        }
    }
}
