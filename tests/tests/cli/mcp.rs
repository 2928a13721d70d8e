//! `floe mcp` as a client of the Model Context Protocol meets it, line by line.

mod approval;
mod asking;
mod calls;
mod client;
mod endings;
mod hostile;
