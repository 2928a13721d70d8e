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

/// What happens at the point of a name.
type At = (&'static str, Box<dyn FnOnce()>);

thread_local! {
    static BEFORE: RefCell<Option<At>> = const { RefCell::new(None) };
    static DIES_AT: RefCell<Option<&'static str>> = const { RefCell::new(None) };
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

/// Lets something happen where the point of this name is reached next.
pub(super) fn before(name: &'static str, happens: impl FnOnce() + 'static) {
    BEFORE.set(Some((name, Box::new(happens))));
}

/// Lets the process be gone where the point of this name is reached next.
pub(super) fn die_at(name: &'static str) {
    DIES_AT.set(Some(name));
}

pub(super) fn reach(name: &str) -> io::Result<()> {
    let here = BEFORE.with_borrow_mut(|before| before.take_if(|(at, _)| *at == name));
    if let Some((_, happens)) = here {
        happens();
    }
    if DIES_AT.with_borrow(|at| *at == Some(name)) {
        arm(0, Fault::Death);
    }
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
