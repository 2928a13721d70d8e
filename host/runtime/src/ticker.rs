//! The clock that makes guests yield: a thread that advances the engine's epoch every 2 ms while a guest runs, and is parked
//! otherwise. It holds the engine weakly and ends with it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// How often a running guest yields (spec/runtime.md 2).
const TICK: Duration = Duration::from_millis(2);
/// Ticks without a guest after which the thread parks. Back-to-back calls then do not wake it each time.
const IDLE_TICKS: u32 = 25;

/// The ticking thread, seen from outside.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    parked: AtomicBool,
    stopped: AtomicBool,
}

impl Ticker {
    pub(crate) fn start(engine: &Engine) -> io::Result<Arc<Ticker>> {
        let shared = Arc::new(Shared::default());
        let engine = engine.weak();
        let seen_by_thread = shared.clone();
        let thread = thread::Builder::new()
            .name("floe-ticker".to_owned())
            .stack_size(64 << 10)
            .spawn(move || tick(&seen_by_thread, &engine))?
            .thread()
            .clone();
        Ok(Arc::new(Ticker { shared, thread }))
    }

    /// A guest runs for as long as the returned value lives.
    pub(crate) fn attend(self: &Arc<Self>) -> Presence {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Presence(self.clone())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// One running guest.
pub(crate) struct Presence(Arc<Ticker>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(shared: &Shared, engine: &EngineWeak) {
    let mut idle = 0;
    while !shared.stopped.load(Ordering::SeqCst) {
        thread::sleep(TICK);
        let Some(engine) = engine.upgrade() else {
            return;
        };
        if shared.running.load(Ordering::SeqCst) > 0 {
            idle = 0;
            engine.increment_epoch();
            continue;
        }
        drop(engine);
        idle += 1;
        if idle < IDLE_TICKS {
            continue;
        }
        // Announce first, then look again: a guest that came in between either is seen here or sees the announcement.
        shared.parked.store(true, Ordering::SeqCst);
        while shared.running.load(Ordering::SeqCst) == 0 && !shared.stopped.load(Ordering::SeqCst) {
            thread::park();
        }
        shared.parked.store(false, Ordering::SeqCst);
        idle = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(10), "{what}");
            thread::yield_now();
        }
    }

    #[test]
    fn it_parks_while_no_guest_runs_and_wakes_when_one_does() {
        let ticker = Ticker::start(&Engine::default()).unwrap();
        drop(ticker);

        let engine = Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        let parked = || ticker.shared.parked.load(Ordering::SeqCst);
        wait_until("it parks", parked);
        let guest = ticker.attend();
        wait_until("it wakes", || !parked());
        drop(guest);
        wait_until("it parks again", parked);
    }
}
