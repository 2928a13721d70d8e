//! The proxy at the wire: real sockets on the loopback, and clients that say exactly what a test wants them to say.

mod proxy;
mod refusals;
mod support;
