//! What a tool asks to send, checked before anything is looked up. A request is written by a model and counts as hostile: what it
//! says about the connection itself is the gate's affair and refused.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, header::Entry};
use std::time::Duration;

use super::error::GateError;
use super::limits::{GateLimits, LONGEST_REQUEST_HEAD, MOST_REQUEST_HEADERS};

/// A request as a tool makes it.
#[derive(Debug, Clone, Default)]
pub struct GateRequest {
    /// One of GET, HEAD, OPTIONS, POST, PUT, PATCH and DELETE.
    pub method: String,
    /// Where to.
    pub url: String,
    /// Header fields, with placeholders for secrets.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// For the whole exchange; the gate's own limit holds as well.
    pub timeout: Option<Duration>,
    /// Redirects to follow; what they end with is the response, whatever it is.
    pub max_redirects: Option<u32>,
}

/// Methods that ask and change nothing.
const READING: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];
/// Methods that may change what they are sent to.
const WRITING: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Fields that belong to the connection, which is the gate's; `Accept-Encoding` is too, but is only replaced.
const OF_THE_CONNECTION: [HeaderName; 10] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
];

/// The same, of which the library has no constant.
const OF_THE_CONNECTION_TOO: [&str; 3] = ["keep-alive", "http2-settings", "proxy-connection"];

/// Fields by which a GET says that it means another method, to servers that look at them.
const OTHER_METHOD: [&str; 3] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

/// A request that is well formed. Its headers still have placeholders.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// How old a remembered response may be, where the request says that.
    pub(super) max_age: Option<Duration>,
}

impl Checked {
    pub(super) fn new(request: &GateRequest, limits: &GateLimits) -> Result<Checked, GateError> {
        let known = READING.iter().chain(&WRITING);
        let mut known = known.filter(|method| method.as_str() == request.method);
        let method = known.next().cloned().ok_or_else(|| {
            let shown: String = request.method.chars().take(20).collect();
            GateError::invalid(format!(
                "Unsupported HTTP method: {}. Supported: GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS",
                shown.escape_debug()
            ))
        })?;
        let body = request.body.clone().unwrap_or_default();
        if body.len() as u64 > limits.request_body {
            return Err(GateError::TooLarge(format!(
                "the request's body is over {} bytes",
                limits.request_body
            )));
        }
        let headers = fields(&request.headers)?;
        let max_age = headers.get(header::CACHE_CONTROL).and_then(max_age);
        Ok(Checked {
            method,
            headers,
            body: body.into(),
            max_age,
        })
    }

    /// Whether it changes nothing where it is sent. A body is a message, so a GET with one may do anything, and so may one that asks
    /// to be taken for another method.
    pub(super) fn reads_only(&self) -> bool {
        let is_as_it_says = || {
            !OTHER_METHOD
                .iter()
                .any(|name| self.headers.contains_key(*name))
        };
        READING.contains(&self.method) && self.body.is_empty() && is_as_it_says()
    }
}

fn fields(fields: &[(String, Vec<u8>)]) -> Result<HeaderMap, GateError> {
    if fields.len() > MOST_REQUEST_HEADERS {
        return Err(GateError::invalid(format!(
            "a request has at most {MOST_REQUEST_HEADERS} header fields"
        )));
    }
    let bytes: usize = fields
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    if bytes > LONGEST_REQUEST_HEAD {
        return Err(GateError::invalid(format!(
            "the header fields of a request have at most {LONGEST_REQUEST_HEAD} bytes"
        )));
    }
    let mut headers = HeaderMap::new();
    for (written, value) in fields {
        let shown: String = written.chars().take(60).collect();
        let shown = shown.escape_debug();
        let name = HeaderName::from_bytes(written.as_bytes())
            .map_err(|_| GateError::invalid(format!("\"{shown}\" is no name of a header field")))?;
        if OF_THE_CONNECTION.contains(&name)
            || OF_THE_CONNECTION_TOO.contains(&name.as_str())
            || name.as_str().starts_with("proxy-")
        {
            return Err(GateError::invalid(format!(
                "the header field \"{shown}\" belongs to the connection and cannot be set"
            )));
        }
        let value = HeaderValue::from_bytes(value).map_err(|_| {
            GateError::invalid(format!(
                "the value of the header field \"{shown}\" holds a line break or another control character"
            ))
        })?;
        match headers.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => entry.append(value),
        }
    }
    headers.remove(header::ACCEPT_ENCODING);
    Ok(headers)
}

fn max_age(value: &HeaderValue) -> Option<Duration> {
    let value = value.to_str().ok()?;
    let seconds = value
        .split(',')
        .find_map(|directive| directive.trim().strip_prefix("max-age="))?;
    Some(Duration::from_secs(seconds.parse().ok()?))
}
