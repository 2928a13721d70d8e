//! Whether a response leads elsewhere, and what is asked there. What was meant for one host goes to no other.

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};

use super::address::Address;
use super::error::GateError;
use super::request::Checked;

/// What a request takes with it to another host; nothing else of it is known to be no secret.
const TRAVELS: [HeaderName; 7] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::USER_AGENT,
    header::RANGE,
    header::CONTENT_TYPE,
    header::PRAGMA,
];

/// Where the response leads, if it does and that may be followed: not from https to http, which would show to everybody on the way
/// what was meant to be read by one; whoever asked gets that response itself.
pub(super) fn target(
    from: &Address,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Address>, GateError> {
    let follows = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = headers.get(header::LOCATION).filter(|_| follows) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let to = from.join(&location)?;
    Ok((to.is_secure || !from.is_secure).then_some(to))
}

/// The request as it is asked at `to`.
pub(super) fn adapt(request: &mut Checked, status: StatusCode, from: &Address, to: &Address) {
    let becomes_get = match status.as_u16() {
        303 => request.method != Method::HEAD,
        301 | 302 => request.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        request.method = Method::GET;
        request.body.clear();
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::CONTENT_LANGUAGE,
            header::CONTENT_LOCATION,
        ] {
            request.headers.remove(name);
        }
    }
    if !from.is_same_origin(to) {
        let leaves = std::mem::take(&mut request.headers);
        for name in TRAVELS {
            for value in leaves.get_all(&name) {
                request.headers.append(name.clone(), value.clone());
            }
        }
    }
}
