//! Sees to it that no ended helper stays behind as a zombie, without anybody having to wait for it.
//!
//! A helper ends by itself once its command has ended or the host's end of the control socket is closed. Whoever drops
//! the hold on a command must not block until then, so one thread of the process, started with the first command,
//! collects the helpers.

use std::process::Child;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long a helper may take to end by itself, once nobody holds its command.
const GRACE: Duration = Duration::from_secs(5);

/// How often helpers that are about to end are looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// A started helper, which is collected when this is dropped.
#[derive(Debug)]
pub(crate) struct Helper(Option<Child>);

impl Helper {
    pub(crate) fn new(child: Child) -> Helper {
        Helper(Some(child))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    /// How it ended, for an error message; kills it if it has not.
    pub(crate) fn post_mortem(mut self) -> String {
        let Some(mut child) = self.0.take() else {
            return "it is gone".to_owned();
        };
        let started = Instant::now();
        while started.elapsed() < INTERVAL * 20 {
            match child.try_wait() {
                Ok(Some(status)) => return format!("it ended with {status}"),
                Ok(None) => std::thread::sleep(INTERVAL),
                Err(error) => return error.to_string(),
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        "it did not answer".to_owned()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else {
            return;
        };
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Err(unsent) = reaper().send(child) {
            let mut child = unsent.0;
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn reaper() -> &'static Sender<Child> {
    static REAPER: OnceLock<Sender<Child>> = OnceLock::new();
    REAPER.get_or_init(|| {
        let (sender, receiver) = channel();
        // Without the thread the receiver is dropped, and the senders collect their helpers themselves.
        let _ = std::thread::Builder::new()
            .name("floe-reaper".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || collect(&receiver));
        sender
    })
}

fn collect(receiver: &Receiver<Child>) {
    let mut ending: Vec<(Child, Instant)> = Vec::new();
    loop {
        let arrived = if ending.is_empty() {
            receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            receiver.recv_timeout(INTERVAL)
        };
        match arrived {
            Ok(child) => ending.push((child, Instant::now() + GRACE)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        ending.retain_mut(|(child, deadline)| {
            if Instant::now() >= *deadline {
                let _ = child.kill();
            }
            matches!(child.try_wait(), Ok(None))
        });
    }
}
