//! The terminal: what it is, what may be shown on it, and what is read from it.

mod interrupt;
mod screen;
mod style;

pub(crate) use floe_protocol::{Keep, visible};
pub(crate) use interrupt::{Interrupts, Pressed};
pub(crate) use screen::{Screen, lost_results};
pub(crate) use style::{Paint, Style};

#[cfg(test)]
pub(crate) use screen::tests::{
    screen as screen_for_tests, shared_screen as shared_screen_for_tests,
};
