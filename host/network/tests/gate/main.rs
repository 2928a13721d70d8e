//! The network gate against servers on the loopback, which a grant names, as the person's configuration would.

mod fixture;
mod hostile;
mod memory;
mod redirects;
mod refusals;
mod requests;
mod secrets;
mod tls;
