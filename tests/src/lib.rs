//! What the suites share. The suites are in `tests/`, one file per subject; this crate holds nothing of the product.

pub mod components;
mod runtime;

pub use runtime::runtime;
