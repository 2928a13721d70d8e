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
mod tests {
    use super::*;

    fn forwarded(head: &str) -> (String, String, Framing) {
        match parse(head.as_bytes()).unwrap().request {
            Request::Forward { target, head, body } => {
                (target.to_string(), String::from_utf8(head).unwrap(), body)
            }
            other => panic!("{other:?}"),
        }
    }

    fn refused(head: &str) -> Malformed {
        parse(head.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_tunnel_is_asked_for_by_host_and_port() {
        let head =
            parse(b"CONNECT Example.com.:443 HTTP/1.1\r\nHost: other.example\r\n\r\n").unwrap();
        assert_eq!(head.shown, Shown::Nothing);
        let Request::Tunnel(target) = head.request else {
            panic!("no tunnel")
        };
        assert_eq!(target.to_string(), "example.com:443");
        for uri in [
            "example.com",
            "http://example.com:443/",
            "user@example.com:443",
            "/",
            "a%00b:443",
            "*",
        ] {
            assert_eq!(
                refused(&format!("CONNECT {uri} HTTP/1.1\r\n\r\n")),
                Malformed::NotAHost(uri.to_owned())
            );
        }
    }

    #[test]
    fn a_forwarded_request_is_written_anew_for_the_host_that_was_checked() {
        let (target, head, body) = forwarded(concat!(
            "GET HTTP://Example.COM./a?b=c HTTP/1.1\r\nHost: inside.example\r\nAccept: */*\r\n",
            "Proxy-Authorization: Basic Zmxv\r\nConnection: close, X-Own\r\nx-own: 1\r\nKeep-Alive: 5\r\n",
            "Upgrade: h2c\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\r\n"
        ));
        assert_eq!(target, "example.com:80");
        assert_eq!(
            head,
            "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(body, Framing::Length(0));
    }

    #[test]
    fn the_host_of_another_port_keeps_it_and_an_address_without_a_path_gets_one() {
        let (target, head, _) = forwarded("GET http://a.test:8080 HTTP/1.0\r\n\r\n");
        assert_eq!(target, "a.test:8080");
        assert!(
            head.starts_with("GET / HTTP/1.0\r\nHost: a.test:8080\r\n"),
            "{head}"
        );
        let (_, head, _) = forwarded("GET http://a.test?q HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("GET /?q HTTP/1.1\r\n"), "{head}");
    }

    #[test]
    fn the_length_of_a_body_is_read_in_one_way_only() {
        let framing = |headers: &str| {
            parse(format!("POST http://a.test/ HTTP/1.1\r\n{headers}\r\n").as_bytes()).map(|head| {
                match head.request {
                    Request::Forward { body, head, .. } => (body, String::from_utf8(head).unwrap()),
                    other => panic!("{other:?}"),
                }
            })
        };
        let (body, head) = framing("Content-Length: 5\r\n").unwrap();
        assert_eq!(body, Framing::Length(5));
        assert!(head.contains("\r\nContent-Length: 5\r\n"));
        let (body, head) = framing("Transfer-Encoding: Chunked\r\n").unwrap();
        assert_eq!(body, Framing::Chunked);
        assert!(head.contains("\r\nTransfer-Encoding: chunked\r\n"));
        let (_, head) = framing("Connection: content-length\r\nContent-Length: 5\r\n").unwrap();
        assert!(
            head.contains("\r\nContent-Length: 5\r\n"),
            "it cannot be talked away"
        );
        for headers in [
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length:\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "Host: a.test\r\nHost: b.test\r\n",
        ] {
            assert!(matches!(framing(headers), Err(Bad(_))), "{headers}");
        }
        assert!(
            parse(b"POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").is_err()
        );
    }

    #[test]
    fn a_head_that_could_be_read_in_two_ways_is_refused() {
        for head in [
            "GET http://a.test/ HTTP/1.1\n\n",
            "GET http://a.test/ HTTP/1.1\r\nA: b\nHost: c\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nA: b\rHost: c\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nA: b\0c\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nA : b\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            "GET http://a.test/ HTTP/2.0\r\n\r\n",
            "GET http://a.test/ x HTTP/1.1\r\n\r\n",
            "GET http://a.test/#f HTTP/1.1\r\n\r\n",
            "GET http://a.test\\@b.test/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET https://a.test/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.test/ HTTP/1.1\r\n\r\n",
            "nonsense\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(matches!(refused(head), Bad(_)), "{head:?}");
        }
        for authority in [
            "a.test@b.test",
            "a.test:80@b.test",
            "",
            ":80",
            "a.test:",
            "b.test%00.a.test",
        ] {
            assert_eq!(
                refused(&format!("GET http://{authority}/ HTTP/1.1\r\n\r\n")),
                Malformed::NotAHost(authority.to_owned())
            );
        }
        let many = "A: b\r\n".repeat(MOST_HEADERS + 1);
        assert_eq!(
            refused(&format!("GET http://a.test/ HTTP/1.1\r\n{many}\r\n")),
            Bad("too many headers")
        );
    }

    #[test]
    fn a_token_is_the_password_of_the_one_user() {
        let shown = |value: &str| {
            let head =
                format!("CONNECT a.test:443 HTTP/1.1\r\nProxy-Authorization: {value}\r\n\r\n");
            parse(head.as_bytes()).map(|head| head.shown)
        };
        let basic = |text: &str| format!("basic {}", STANDARD.encode(text));
        assert_eq!(shown(&basic("floe:t:1")), Ok(Shown::Token("t:1".into())));
        assert_eq!(shown(&basic(":")), Ok(Shown::Nothing));
        assert_eq!(shown(&basic("root:t")), Ok(Shown::Other));
        assert_eq!(shown("Bearer abc"), Ok(Shown::Other));
        assert_eq!(shown("Basic !!"), Ok(Shown::Other));
        assert!(shown("Basic").is_err());
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_refused_or_goes_on_to_the_host_that_was_read(
            method in "[A-Z]{1,8}", authority in "\\PC{0,20}|[a-z0-9.:@\\[\\]]{0,20}", path in "\\PC{0,20}",
            name in "[A-Za-z-]{1,12}|Host|Connection|Content-Length", value in "\\PC{0,20}|[0-9]{1,3}",
        ) {
            let text = format!("{method} http://{authority}/{path} HTTP/1.1\r\n{name}: {value}\r\n\r\n");
            if let Ok(Head { request: Request::Forward { target, head, .. }, .. }) = parse(text.as_bytes()) {
                let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
                let mut again = httparse::Request::new(&mut headers);
                let complete = again.parse(&head).unwrap();
                proptest::prop_assert_eq!(complete, httparse::Status::Complete(head.len()));
                let hosts: Vec<_> = again.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host")).collect();
                proptest::prop_assert_eq!(hosts.len(), 1);
                let written = std::str::from_utf8(hosts[0].value).unwrap();
                proptest::prop_assert_eq!(Target::parse(written, Some(HTTP_PORT)).unwrap(), target);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
