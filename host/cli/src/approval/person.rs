//! The person at the terminal as the one who decides: one question at a time, with everything else kept back meanwhile.

use std::io::{self, IsTerminal as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_trait::async_trait;
use floe_environment::{Answer, Approver, Question};
use floe_protocol::DecidedBy;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::tcgetwinsize;
use tokio::sync::Mutex;

use super::answer::{Offer, ask};
use super::card::{Standing, render};
use super::keyboard::Keyboard;
use crate::terminal::{Interrupts, Screen};

/// Asks on standard error, reads from standard input; both are terminals.
pub(crate) struct Person {
    screen: Arc<Screen>,
    interrupts: Interrupts,
    standing: Standing,
    one_at_a_time: Mutex<()>,
}

impl Person {
    /// The person, where there is one to ask.
    pub(crate) fn at_the_terminal(
        screen: Arc<Screen>,
        interrupts: Interrupts,
        standing: Standing,
    ) -> Option<Person> {
        let present = io::stdin().is_terminal() && screen.aside_is_terminal();
        present.then(|| Person {
            screen,
            interrupts,
            standing,
            one_at_a_time: Mutex::new(()),
        })
    }
}

#[async_trait]
impl Approver for Person {
    async fn decide(&self, question: &Question) -> Answer {
        let _turn = self.one_at_a_time.lock().await;
        let (reader, writer) = match pipe_with(PipeFlags::CLOEXEC) {
            Ok(ends) => ends,
            Err(error) => {
                return Answer::Unavailable(format!("the terminal cannot be read: {error}"));
            }
        };
        let text = render(
            question,
            &self.standing,
            self.screen.aside_paint(),
            columns(),
        );
        let screen = Arc::clone(&self.screen);
        let offer = Offer::of(question.widening.is_some(), self.standing.lasting);
        // Held outside the thread: dropping this future closes the question, and the thread ends by itself.
        let mut open = Open {
            interrupts: self.interrupts.clone(),
            writer: Some(writer),
        };
        let interrupted = self.interrupts.open_question();
        let answered = tokio::task::spawn_blocking(move || {
            let held = screen.hold();
            ask(&text, offer, &mut Keyboard::new(reader), |text| {
                held.show(text)
            })
        });
        tokio::pin!(answered);
        tokio::select! {
            answer = &mut answered => return answer.unwrap_or(Answer::Deny),
            () = interrupted.cancelled() => open.close(),
        }
        answered.await.unwrap_or(Answer::Deny)
    }

    fn decides_as(&self) -> DecidedBy {
        DecidedBy::Person
    }
}

/// A question that is open. Dropped, it is closed.
struct Open {
    interrupts: Interrupts,
    writer: Option<OwnedFd>,
}

impl Open {
    fn close(&mut self) {
        self.writer = None;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.interrupts.close_question();
    }
}

/// The width of the terminal that questions are shown on.
fn columns() -> usize {
    /// Where the terminal does not know.
    const USUAL: u16 = 80;
    let known = tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    usize::from(if known == 0 { USUAL } else { known })
}
