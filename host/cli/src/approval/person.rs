//! The person at the terminal as the one who decides and answers: one question at a time, with everything else kept back meanwhile.

use std::io::{self, IsTerminal as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_trait::async_trait;
use floe_environment::{Answer, Approver, Question};
use floe_protocol::{AskedQuestion, DecidedBy};
use floe_session::{Clarifier, Reply};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::tcgetwinsize;
use tokio::sync::Mutex;

use super::answer::{Offer, ask};
use super::card::{Standing, render};
use super::keyboard::Keyboard;
use super::question::{ask_question, render_question};
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
        let text = render(
            question,
            &self.standing,
            self.screen.aside_paint(),
            columns(),
        );
        let offer = Offer::of(question.widening.is_some(), self.standing.lasting);
        let mut open = match Open::new(&self.interrupts) {
            Ok(open) => open,
            Err(reason) => return Answer::Unavailable(reason),
        };
        let interrupted = self.interrupts.open_question();
        let answered = self.typed(&mut open, move |keyboard, show| {
            ask(&text, offer, keyboard, show)
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

/// Ctrl-C is no answer to a question of a tool, so it is not taken from what it means otherwise: it interrupts, and the call that asks
/// ends with the others.
#[async_trait]
impl Clarifier for Person {
    async fn clarify(&self, question: &AskedQuestion) -> Reply {
        let _turn = self.one_at_a_time.lock().await;
        let asked_by = &self.standing.asked_by;
        let text = render_question(question, asked_by, self.screen.aside_paint(), columns());
        let question = question.clone();
        let mut open = match Open::new(&self.interrupts) {
            Ok(open) => open,
            Err(reason) => return Reply::Unavailable(reason),
        };
        let answered = self.typed(&mut open, move |keyboard, show| {
            ask_question(&text, &question, keyboard, show)
        });
        answered
            .await
            .unwrap_or_else(|| Reply::Unavailable("The terminal cannot be read.".into()))
    }
}

impl Person {
    /// What `ask` finds out at the keyboard while all else is kept back from the screen. None where its thread broke off. The thread
    /// ends by itself when `open` is closed or dropped.
    fn typed<T, F>(&self, open: &mut Open, ask: F) -> impl Future<Output = Option<T>> + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&mut Keyboard, &mut dyn FnMut(&str)) -> T + Send + 'static,
    {
        let screen = Arc::clone(&self.screen);
        let closed = open.closed.take();
        let thread = tokio::task::spawn_blocking(move || {
            let held = screen.hold();
            let mut keyboard = Keyboard::new(closed?);
            Some(ask(&mut keyboard, &mut |text| held.show(text)))
        });
        async { thread.await.ok().flatten() }
    }
}

/// A question that is open. Dropped, it is closed.
struct Open {
    interrupts: Interrupts,
    /// For the keyboard, which reads until the other end is closed.
    closed: Option<OwnedFd>,
    writer: Option<OwnedFd>,
}

impl Open {
    fn new(interrupts: &Interrupts) -> Result<Open, String> {
        let (closed, writer) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| format!("the terminal cannot be read: {error}"))?;
        Ok(Open {
            interrupts: interrupts.clone(),
            closed: Some(closed),
            writer: Some(writer),
        })
    }

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
