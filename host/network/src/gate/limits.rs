//! How much one request may take. Every wait has an end and every buffer a bound, whatever the other side sends.

use std::time::Duration;

/// Bytes of an address.
pub(super) const LONGEST_URL: usize = 8 << 10;
/// Header fields of a request.
pub(super) const MOST_REQUEST_HEADERS: usize = 64;
/// Bytes of all header fields of a request.
pub(super) const LONGEST_REQUEST_HEAD: usize = 32 << 10;
/// Header fields of a response.
pub(super) const MOST_RESPONSE_HEADERS: usize = 128;
/// Bytes of a response's head, and the most that is read ahead of its body.
pub(super) const LONGEST_RESPONSE_HEAD: usize = 64 << 10;

/// The limits of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    /// Until a connection is there, its encryption included.
    pub connect: Duration,
    /// For a whole exchange, redirects and body included, where the request does not say.
    pub total: Duration,
    /// The most that a request may say.
    pub longest_total: Duration,
    /// Without one byte of the response.
    pub idle: Duration,
    /// Redirects that are followed where the request does not say.
    pub redirects: u32,
    /// The most that a request may say.
    pub most_redirects: u32,
    /// Bytes of a request's body.
    pub request_body: u64,
    /// Bytes of a response's body after decompression.
    pub response_body: u64,
    /// Exchanges at once.
    pub at_once: usize,
}

impl Default for GateLimits {
    fn default() -> GateLimits {
        GateLimits {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(30),
            longest_total: Duration::from_secs(150),
            idle: Duration::from_secs(30),
            redirects: 5,
            most_redirects: 10,
            request_body: 8 << 20,
            response_body: 64 << 20,
            at_once: 32,
        }
    }
}
