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
    let head = parse(b"CONNECT Example.com.:443 HTTP/1.1\r\nHost: other.example\r\n\r\n").unwrap();
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
    assert!(parse(b"POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
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
        let head = format!("CONNECT a.test:443 HTTP/1.1\r\nProxy-Authorization: {value}\r\n\r\n");
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
