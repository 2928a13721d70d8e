//! Asks the person at the terminal whether a call may run, and what a tool wants to know. Where there is no terminal there is nobody to
//! ask: the Environment denies, and the tool is told so.

mod answer;
mod card;
mod keyboard;
mod person;
mod question;

pub(crate) use card::{Standing, render};
pub(crate) use person::Person;
