//! `grep`, `glob` and `list`: what is found, in which order, and what is said of what was left out.

mod glob;
mod grep;
mod list;
