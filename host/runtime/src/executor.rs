//! Where guests run: a tokio runtime of their own, so that a guest that spins starves no socket and no timer of the host; a
//! bounded number of seats, so that guests which wait for the host make room for those that run; and the ticker that makes
//! running guests yield.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::Engine;

use crate::ticker::{Presence, Ticker};

/// The guests' runtime. Dropping it stops its guests behind the caller's back, in async code too.
pub(crate) struct Executor {
    runtime: Option<tokio::runtime::Runtime>,
    guests: tokio::runtime::Handle,
    seats: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    ticker: Arc<Ticker>,
}

impl Executor {
    /// `workers` threads; `seats` guests run at once; `slots` guests exist at once.
    pub(crate) fn new(
        engine: &Engine,
        workers: usize,
        seats: usize,
        slots: usize,
    ) -> io::Result<Executor> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("floe-guest")
            .enable_time()
            .build()?;
        Ok(Executor {
            guests: runtime.handle().clone(),
            runtime: Some(runtime),
            seats: Arc::new(Semaphore::new(seats)),
            slots: Arc::new(Semaphore::new(slots)),
            ticker: Ticker::start(engine)?,
        })
    }

    /// Starts a guest's task.
    pub(crate) fn spawn<F>(&self, guest: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.guests.spawn(guest)
    }

    /// The right to exist, which bounds what the pool has to hold, and a seat to start on.
    pub(crate) fn admission(&self) -> Admission {
        Admission {
            seats: self.seats.clone(),
            slots: self.slots.clone(),
            ticker: self.ticker.clone(),
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lets one guest in, when there is room.
pub(crate) struct Admission {
    seats: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    ticker: Arc<Ticker>,
}

/// The right of one guest to exist. Held until its Store is gone.
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Admission {
    /// Waits for a slot, then for a seat.
    pub(crate) async fn enter(self) -> (Slot, Seat) {
        let slot = Slot {
            _permit: self.slots.acquire_owned().await.ok(),
        };
        let mut seat = Seat {
            seats: self.seats,
            ticker: self.ticker,
            taken: None,
        };
        seat.sit_down().await;
        (slot, seat)
    }
}

/// A guest's seat: held while it runs, given up while it waits for the host.
pub(crate) struct Seat {
    seats: Arc<Semaphore>,
    ticker: Arc<Ticker>,
    taken: Option<(OwnedSemaphorePermit, Presence)>,
}

impl Seat {
    async fn sit_down(&mut self) {
        // The semaphore is never closed; were it, the guest would run without a seat rather than not at all.
        if let Ok(permit) = self.seats.clone().acquire_owned().await {
            self.taken = Some((permit, self.ticker.attend()));
        }
    }

    /// Waits for something of the host's with the seat given up meanwhile.
    pub(crate) async fn vacated<T>(&mut self, wait: impl Future<Output = T>) -> T {
        self.taken = None;
        let answer = wait.await;
        self.sit_down().await;
        answer
    }
}
