//! What the suites share. The suites are in `tests/`, one file per subject; this crate holds nothing of the product.

pub mod components;
pub mod misdeeds;
