//! What a tree, a caller or a file's text may hold to harm whoever reads it: each ends in an answer that says what it is.

mod arguments;
mod files;
mod mounts;
mod names;
mod provenance;
