//! Ctrl-C: once interrupts what runs, twice ends the program. While a question is open, Ctrl-C answers it with no.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Status;

/// What one press does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// The open question is answered with no.
    DeniesQuestion,
    /// What runs is interrupted.
    Interrupts,
    /// The program ends at once.
    Ends,
}

/// Turns presses into what they mean at that moment. Clones share one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts {
    run: CancellationToken,
    question: Arc<Mutex<Option<CancellationToken>>>,
}

impl Interrupts {
    /// Listens to the keyboard and to requests to end, from now on. `announce` is told of each press that does not end
    /// the program.
    ///
    /// Neither listening nor ending waits for anything else of the program: both have threads of their own, because those of
    /// the host may all be writing to somebody who does not read.
    pub(crate) fn listen(
        &self,
        announce: impl Fn(Pressed) + Send + 'static,
    ) -> std::io::Result<()> {
        let (tell, told) = mpsc::channel();
        std::thread::Builder::new()
            .name("announce".into())
            .spawn(move || told.into_iter().for_each(announce))?;
        let own = Builder::new_current_thread().enable_io().build()?;
        let inside = own.enter();
        let mut keyboard = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        drop(inside);
        let interrupts = self.clone();
        let listen = async move {
            loop {
                let pressed = tokio::select! {
                    _ = keyboard.recv() => interrupts.press(),
                    _ = terminate.recv() => interrupts.press_beyond_question(),
                    _ = hangup.recv() => interrupts.press_beyond_question(),
                };
                if pressed == Pressed::Ends {
                    // The sandbox ends its processes when the program that holds them is gone.
                    std::process::exit(Status::Interrupted.code().into());
                }
                // Nobody to tell is nothing to end for.
                let _ = tell.send(pressed);
            }
        };
        std::thread::Builder::new()
            .name("interrupts".into())
            .spawn(move || own.block_on(listen))?;
        Ok(())
    }

    /// One press.
    pub(crate) fn press(&self) -> Pressed {
        let question = self
            .question
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(question) = question {
            question.cancel();
            return Pressed::DeniesQuestion;
        }
        if self.run.is_cancelled() {
            return Pressed::Ends;
        }
        self.run.cancel();
        Pressed::Interrupts
    }

    /// A request to end: an open question is denied, and what runs is interrupted.
    fn press_beyond_question(&self) -> Pressed {
        match self.press() {
            Pressed::DeniesQuestion => self.press(),
            pressed => pressed,
        }
    }

    /// Cancelled by the first press outside a question.
    pub(crate) fn run(&self) -> &CancellationToken {
        &self.run
    }

    /// Opens a question: the next press cancels the token that comes back.
    pub(crate) fn open_question(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.question.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        token
    }

    /// Closes the open question, if there still is one.
    pub(crate) fn close_question(&self) {
        self.question
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_press_interrupts_and_the_second_ends() {
        let interrupts = Interrupts::default();
        assert_eq!(interrupts.press(), Pressed::Interrupts);
        assert!(interrupts.run().is_cancelled());
        assert_eq!(interrupts.press(), Pressed::Ends);
    }

    #[test]
    fn a_press_at_a_question_denies_it_and_nothing_else() {
        let interrupts = Interrupts::default();
        let question = interrupts.open_question();
        assert_eq!(interrupts.press(), Pressed::DeniesQuestion);
        assert!(question.is_cancelled());
        assert!(!interrupts.run().is_cancelled());
        assert_eq!(interrupts.press(), Pressed::Interrupts);
    }

    #[test]
    fn a_request_to_end_denies_the_question_and_interrupts() {
        let interrupts = Interrupts::default();
        let question = interrupts.open_question();
        assert_eq!(interrupts.press_beyond_question(), Pressed::Interrupts);
        assert!(question.is_cancelled() && interrupts.run().is_cancelled());
    }

    #[test]
    fn a_press_after_an_answered_question_interrupts() {
        let interrupts = Interrupts::default();
        let question = interrupts.open_question();
        interrupts.close_question();
        assert_eq!(interrupts.press(), Pressed::Interrupts);
        assert!(!question.is_cancelled());
    }
}
