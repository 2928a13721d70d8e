//! Asks the person at the terminal whether a call may run. Where there is no terminal there is nobody to ask, and the
//! Environment denies.

mod answer;
mod card;
mod keyboard;
mod person;

pub(crate) use card::{Standing, render};
pub(crate) use person::Person;
