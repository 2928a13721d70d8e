//! The head of a request to the proxy: read strictly, and written anew for the host that it goes to.
//!
//! Two readers that differ on what a request says are how something slips by a proxy. So a head that could be read in two
//! ways is refused, and what goes on is not what came but what was understood.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::credentials::{Shown, USER};
use crate::host::Target;

/// The longest head.
pub(crate) const LONGEST_HEAD: usize = 16 * 1024;
/// Headers of one head.
const MOST_HEADERS: usize = 100;
/// The port of plain HTTP.
const HTTP_PORT: u16 = 80;

/// What a client asks of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) request: Request,
    pub(crate) shown: Shown,
}

/// Its two kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// `CONNECT`: bytes to this host and back.
    Tunnel(Target),
    /// One plain request to this host, whose head is sent as it stands here.
    Forward {
        target: Target,
        head: Vec<u8>,
        body: Framing,
    },
}

/// How long the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// Why a head is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// It asks for something that is no host.
    NotAHost(String),
    /// Anything else, in words for the client.
    Request(&'static str),
}

use Malformed::Request as Bad;

/// Reads a whole head, up to and with its empty line.
pub(crate) fn parse(bytes: &[u8]) -> Result<Head, Malformed> {
    refuse_odd_line_ends(bytes)?;
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Bad("too many headers")),
        _ => return Err(Bad("not a request of HTTP/1")),
    }
    let (Some(method), Some(uri), Some(version)) = (request.method, request.path, request.version)
    else {
        return Err(Bad("not a request of HTTP/1"));
    };
    let headers = Headers(request.headers);
    let shown = credentials(headers.only("proxy-authorization")?)?;
    headers.only("host")?;
    let request = if method == "CONNECT" {
        let target = Target::parse(uri, None);
        Request::Tunnel(target.map_err(|_| Malformed::NotAHost(uri.to_owned()))?)
    } else {
        forward(method, uri, version, &headers)?
    };
    Ok(Head { request, shown })
}

/// Every line ends with CR LF, and neither stands anywhere else; a NUL stands nowhere.
fn refuse_odd_line_ends(bytes: &[u8]) -> Result<(), Malformed> {
    let mut before = 0;
    for &byte in bytes {
        if (byte == b'\n') != (before == b'\r') || byte == 0 {
            return Err(Bad("a line of the request does not end with CR LF"));
        }
        before = byte;
    }
    Ok(())
}

struct Headers<'a>(&'a [httparse::Header<'a>]);

impl<'a> Headers<'a> {
    /// The value of a header that may stand there once.
    fn only(&self, name: &str) -> Result<Option<&'a [u8]>, Malformed> {
        let mut values = self
            .0
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name));
        let value = values.next().map(|header| header.value);
        match values.next() {
            None => Ok(value),
            Some(_) => Err(Bad("a header stands there twice that may be there once")),
        }
    }

    /// The names that `Connection` lists.
    fn of_connection(&self) -> Vec<String> {
        self.0
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case("connection"))
            .flat_map(|header| header.value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
            .collect()
    }

    fn framing(&self, version: u8) -> Result<Framing, Malformed> {
        let length = self.only("content-length")?;
        match (self.only("transfer-encoding")?, length) {
            (None, None) => Ok(Framing::Length(0)),
            (None, Some(digits)) => {
                let text = std::str::from_utf8(digits).unwrap_or_default();
                let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let length = text.parse().ok().filter(|_| is_number);
                length
                    .map(Framing::Length)
                    .ok_or(Bad("Content-Length is no number"))
            }
            (Some(coding), None) if version == 1 && coding.eq_ignore_ascii_case(b"chunked") => {
                Ok(Framing::Chunked)
            }
            _ => Err(Bad("the length of the body could be read in two ways")),
        }
    }
}

/// Headers that concern this connection and not the next.
const OF_THIS_CONNECTION: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
];
/// Headers that are written anew.
const WRITTEN_ANEW: [&str; 4] = [
    "host",
    "content-length",
    "transfer-encoding",
    "proxy-authorization",
];

fn forward(
    method: &str,
    uri: &str,
    version: u8,
    headers: &Headers<'_>,
) -> Result<Request, Malformed> {
    let scheme = uri.get(..7).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("http://") {
        return Err(Bad(
            "this is a proxy: it takes CONNECT, and requests whose address begins with http://",
        ));
    }
    let rest = &uri[scheme.len()..];
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if path.contains(['#', '\\']) || !path.is_ascii() {
        return Err(Bad(
            "the address of the request is not written as an address is",
        ));
    }
    let target = Target::parse(authority, Some(HTTP_PORT))
        .map_err(|_| Malformed::NotAHost(authority.to_owned()))?;
    let body = headers.framing(version)?;

    let slash = if path.starts_with('/') { "" } else { "/" };
    let host = match target.port {
        HTTP_PORT => target.host.to_string(),
        _ => target.to_string(),
    };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {host}\r\n").into_bytes();
    let listed = headers.of_connection();
    for header in headers.0 {
        let name = header.name.to_ascii_lowercase();
        let dropped = OF_THIS_CONNECTION.contains(&name.as_str())
            || WRITTEN_ANEW.contains(&name.as_str())
            || listed.contains(&name);
        if !dropped {
            head.extend_from_slice(header.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(header.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    match body {
        Framing::Chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::Length(0) if headers.only("content-length")?.is_none() => {}
        Framing::Length(length) => {
            head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        }
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(Request::Forward { target, head, body })
}

/// What a client shows: `Basic`, with the one user there is.
fn credentials(value: Option<&[u8]>) -> Result<Shown, Malformed> {
    let Some(value) = value else {
        return Ok(Shown::Nothing);
    };
    let text = std::str::from_utf8(value).unwrap_or_default();
    let Some((scheme, encoded)) = text.split_once(' ') else {
        return Err(Bad("Proxy-Authorization is not understood"));
    };
    let decoded = STANDARD.decode(encoded.trim()).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.as_deref().and_then(|text| text.split_once(':')) {
        Some(("", "")) if scheme.eq_ignore_ascii_case("basic") => Ok(Shown::Nothing),
        Some((USER, password)) if scheme.eq_ignore_ascii_case("basic") => {
            Ok(Shown::Token(password.to_owned()))
        }
        _ => Ok(Shown::Other),
    }
}

#[cfg(test)]
mod tests;
