//! What a Session may reach over the network: hosts that were granted, names that the host resolves once, and the proxy
//! that its commands go through.
//!
//! The client of the proxy is a confined command and counts as hostile: everything it sends is bounded and parsed
//! strictly, a name is what a browser would take it for, and what was not granted is refused and told. Nothing here ever
//! connects to an address that is not a public one, unless a grant names that very address.

mod address;
mod body;
mod connection;
mod credentials;
mod dial;
mod environment;
mod gate;
mod grants;
mod head;
mod host;
mod http;
mod proxy;
mod refusal;
mod relay;
mod resolver;
mod socks;

pub use address::is_public;
pub use gate::{
    Denial, DomainList, DomainPattern, Gate, GateBody, GateError, GateLimits, GateOptions,
    GateRequest, GateResponse, HostSecret, HostSecrets, Reach, Scope, Standing, Why,
};
pub use grants::{GrantError, HostGrant, HostGrants};
pub use host::{Host, NotAHost};
pub use proxy::{Proxy, ProxyLimits, ProxyOptions, Token};
pub use refusal::{ObserveNetwork, Reason, Refusal, Unobserved};
pub use resolver::{Resolve, SystemResolver};
