//! The sentences of spec/environment.md 3.2 and spec/sandbox.md 2b that hold without walls.

mod input;
mod lifecycle;
mod output;
mod registry;
