//! One request on one connection, up to the head of its response.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::dial::Connection;
use super::error::{GateError, Late};

/// What a program without a name of its own is called.
const USER_AGENT: &str = concat!("floe/", env!("CARGO_PKG_VERSION"));

/// What goes over the connection, secrets included.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Outgoing {
    fn request(&self, to: &Address) -> Result<Request<Full<Bytes>>, GateError> {
        let mut headers = self.headers.clone();
        let host = HeaderValue::from_str(&to.authority())
            .map_err(|_| GateError::invalid("the host cannot stand in a header field"))?;
        headers.insert(header::HOST, host);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let agent = HeaderValue::from_static(USER_AGENT);
        headers.entry(header::USER_AGENT).or_insert(agent);
        let any = HeaderValue::from_static("*/*");
        headers.entry(header::ACCEPT).or_insert(any);
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(to.path_and_query())
            .body(Full::new(self.body.clone()))
            .map_err(|error| GateError::invalid(format!("the request cannot be sent: {error}")))?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// What became of an attempt.
pub(super) enum Attempt {
    /// The head of the response is there.
    Answered(Response<Incoming>),
    /// The connection had ended before anything was sent on it.
    NotSent,
}

/// Sends and waits for the head of the response.
pub(super) async fn exchange(
    connection: &mut Connection,
    outgoing: &Outgoing,
    to: &Address,
    deadline: Instant,
    slow: &Late,
) -> Result<Attempt, GateError> {
    let host = &to.target.host;
    let request = outgoing.request(to)?;
    let sent = async {
        if connection.sender.ready().await.is_err() {
            return Ok(Attempt::NotSent);
        }
        match connection.sender.try_send_request(request).await {
            Ok(response) => Ok(Attempt::Answered(response)),
            Err(mut error) => match error.take_message() {
                Some(_) => Ok(Attempt::NotSent),
                None => Err(error.into_error()),
            },
        }
    };
    match timeout_at(deadline, sent).await {
        Err(_) => Err(slow(&format!("the response of {host}"))),
        Ok(Ok(attempt)) => Ok(attempt),
        // The library has no other sign of it.
        Ok(Err(error)) if error.is_parse() && error.to_string().contains("too large") => {
            Err(GateError::TooLarge(format!(
                "the header of the response of {host} is larger than any that is read"
            )))
        }
        Ok(Err(error)) => Err(GateError::failed(format!(
            "no response from {host}: {error}"
        ))),
    }
}
