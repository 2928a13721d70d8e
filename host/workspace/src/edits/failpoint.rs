//! Where tests let the host fail or die. Nothing of it is in the product.

use std::cell::RefCell;
use std::io;

/// What happens at a named point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The system call there fails for want of space.
    Full,
    /// The process is gone, as after a `kill -9`.
    Death,
}

thread_local! {
    static NEXT: RefCell<Option<(usize, Fault)>> = const { RefCell::new(None) };
    static REACHED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Lets the point that is reached `after` others do its harm, once.
pub(super) fn arm(after: usize, fault: Fault) {
    NEXT.set(Some((after, fault)));
    REACHED.take();
}

/// The points that were reached since they were armed or last asked for.
pub(super) fn reached() -> Vec<String> {
    NEXT.set(None);
    REACHED.take()
}

pub(super) fn reach(name: &str) -> io::Result<()> {
    REACHED.with_borrow_mut(|reached| reached.push(name.to_owned()));
    let due = NEXT.with_borrow_mut(|next| match next {
        Some((0, fault)) => {
            let fault = *fault;
            *next = None;
            Some(fault)
        }
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    });
    match due {
        None => Ok(()),
        Some(Fault::Full) => Err(io::Error::from_raw_os_error(
            rustix::io::Errno::NOSPC.raw_os_error(),
        )),
        Some(Fault::Death) => {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            loop {
                std::thread::park();
            }
        }
    }
}
