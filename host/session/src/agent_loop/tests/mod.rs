//! The loop with a model and tools that do what a test says.

mod background;
mod interrupts;
mod ordering;
mod resuming;
mod retries;
mod stage;
mod stops;
