//! The one door for every tool call.
mod close_out;
mod cut;
mod digest;
mod whole_output;
