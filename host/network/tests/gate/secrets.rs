//! Secrets: put in on the way out, for their hosts only, and taken out of all that comes back.

use floe_network::{DomainList, Gate, GateRequest, HostSecret, HostSecrets};

use crate::fixture::{
    Answer, Received, Server, URL, body, field, get, granted, ok, redirect, response, send,
};

const VALUE: &str = "s3cr3t/value+42";

fn secret(name: &str, value: Result<&str, &str>, hosts: &[&str]) -> HostSecret {
    HostSecret {
        name: name.into(),
        value: value.map(Into::into).map_err(Into::into),
        hosts: DomainList::parse(hosts).unwrap(),
    }
}

async fn served(handler: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> (Server, Gate) {
    let server = Server::start(handler).await;
    let mut options = granted(&[
        server.grant("fixture.test:80"),
        server.grant("other.test:80"),
    ]);
    options.secrets = HostSecrets::new(vec![
        secret("KEY", Ok(VALUE), &["fixture.test"]),
        secret("GONE", Err("is not there"), &["fixture.test"]),
        secret("SHORT", Ok("s3cr3t7"), &["fixture.test"]),
    ]);
    (server, Gate::new(options))
}

fn with(value: &str, url: &str) -> GateRequest {
    GateRequest {
        headers: vec![("Authorization".into(), value.as_bytes().to_vec())],
        ..get(url)
    }
}

#[tokio::test]
async fn a_placeholder_becomes_the_secret_on_the_way_out() {
    let (server, gate) = served(|_| ok("x")).await;
    let value = "Bearer {{secret:KEY}}, {{secret:KEY}}!";
    send(&gate, with(value, URL)).await.unwrap();
    assert_eq!(
        server.received()[0].field("authorization").unwrap(),
        format!("Bearer {VALUE}, {VALUE}!")
    );
}

#[tokio::test]
async fn a_secret_that_a_service_repeats_is_taken_out_wherever_its_pieces_are_parted() {
    use base64::Engine;
    let encoded = base64::engine::general_purpose::STANDARD.encode(VALUE);
    for cut in 0..=VALUE.len() {
        let encoded = encoded.clone();
        let (_server, gate) = served(move |_| {
            let (first, second) = VALUE.split_at(cut);
            let chunk = |text: &str| match text.is_empty() {
                true => String::new(),
                false => format!("{:x}\r\n{text}\r\n", text.len()),
            };
            let body = [
                chunk("you sent "),
                chunk(first),
                chunk(second),
                chunk(&format!(" and {encoded}; s3cr3t/value")),
            ]
            .concat();
            let head = format!(
                "HTTP/1.1 200 OK\r\nx-echo: <{VALUE}>\r\ntransfer-encoding: chunked\r\n\r\n"
            );
            Answer::Bytes(format!("{head}{body}0\r\n\r\n").into_bytes())
        })
        .await;
        let mut response = send(&gate, get(URL)).await.unwrap();
        assert_eq!(field(&response, "x-echo"), Some("<[redacted:KEY]>"));
        let text = String::from_utf8(body(&mut response).await.unwrap()).unwrap();
        assert_eq!(
            text,
            "you sent [redacted:KEY] and [redacted:KEY]; s3cr3t/value"
        );
    }
}

#[tokio::test]
async fn a_redirect_takes_no_secret_to_another_host_and_hides_it_in_its_own_url() {
    let (server, gate) = served(|received| match received.path() {
        "/" => redirect("302 Found", "http://other.test/x"),
        "/echo" => redirect("302 Found", &format!("/echoed?key={VALUE}")),
        _ => ok("x"),
    })
    .await;
    send(&gate, with("{{secret:KEY}}", URL)).await.unwrap();
    assert_eq!(server.received()[1].field("authorization"), None);
    let echo = with("{{secret:KEY}}", "http://fixture.test/echo");
    let response = send(&gate, echo).await.unwrap();
    assert_eq!(
        response.final_url,
        "http://fixture.test/echoed?key=[redacted:KEY]"
    );
}

#[tokio::test]
async fn a_secret_is_for_its_hosts_and_over_https_only() {
    let (server, gate) = served(|_| ok("x")).await;
    for (value, url, reason) in [
        (
            "{{secret:KEY}}",
            "http://other.test/",
            "there is no secret \"KEY\" for other.test",
        ),
        (
            "{{secret:OTHER}}",
            URL,
            "there is no secret \"OTHER\" for fixture.test",
        ),
        ("{{secret:GONE}}", URL, "the secret \"GONE\" is not there"),
        (
            "{{secret:SHORT}}",
            URL,
            "the secret \"SHORT\" has less than 8 characters",
        ),
        (
            "{{secret:KEY",
            URL,
            "a placeholder is written {{secret:NAME}}",
        ),
        (
            "{{secret:KEY}}",
            "http://example.com/",
            "a secret is sent over https only",
        ),
    ] {
        let error = send(&gate, with(value, url)).await.unwrap_err();
        assert_eq!(error.code(), "invalid-args");
        assert!(error.to_string().starts_with(reason), "{error}");
        assert!(!error.to_string().contains(VALUE));
    }
    let error = send(&gate, get("http://fixture.test/?k={{secret:KEY}}"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "invalid-args");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn what_was_asked_with_a_secret_is_not_kept() {
    let (server, gate) = served(|_| response("200 OK", &[], b"mine")).await;
    for _ in 0..2 {
        let mut request = with("{{secret:KEY}}", URL);
        request
            .headers
            .push(("Cache-Control".into(), b"max-age=60".to_vec()));
        let mut response = send(&gate, request).await.unwrap();
        body(&mut response).await.unwrap();
    }
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_secret_is_taken_out_however_common_writers_of_text_write_it() {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    let value = "Ab/+<&>=\"\\'x y9";
    let within = |before: &str| STANDARD.encode(format!("{before}{value}:after"));
    for (written, left) in [
        (value.to_uppercase(), 0),
        (value.to_lowercase(), 0),
        (r#"Ab/+<&>=\"\\'x y9"#.to_owned(), 0),
        (r#"Ab\/+<&>=\"\\'x y9"#.to_owned(), 0),
        (r#"Ab/+\u003c\u0026\u003e=\"\\'x y9"#.to_owned(), 0),
        (
            r#"Ab/+\u003C\u0026\u003E\u003D\"\\\u0027x y9"#.to_owned(),
            0,
        ),
        ("Ab/+&lt;&amp;&gt;=&quot;\\&#39;x y9".to_owned(), 0),
        ("Ab/+&lt;&amp;&gt;=&#34;\\&#39;x y9".to_owned(), 0),
        ("Ab%2F%2B%3C%26%3E%3D%22%5C%27x%20y9".to_owned(), 0),
        ("Ab%2f%2b%3c%26%3e%3d%22%5c'x%20y9".to_owned(), 0),
        ("Ab%2F%2B%3C%26%3E%3D%22%5C%27x+y9".to_owned(), 0),
        (URL_SAFE.encode(value), 0),
        (within(""), 14),
        (within("u"), 16),
        (within("us"), 16),
        (within("user"), 18),
    ] {
        let echo = format!("<{written}>");
        let server = Server::start(move |_| ok(&echo)).await;
        let mut options = granted(&[server.grant("fixture.test:80")]);
        options.secrets = HostSecrets::new(vec![secret("KEY", Ok(value), &["fixture.test"])]);
        let mut response = send(&Gate::new(options), get(URL)).await.unwrap();
        let text = String::from_utf8(body(&mut response).await.unwrap()).unwrap();
        let (before, after) = text.split_once("[redacted:KEY]").unwrap_or_else(|| {
            panic!("{written}: {text}");
        });
        // Of base64 what is not the secret's stays.
        assert!(before.len() + after.len() <= left + 2, "{written}: {text}");
    }
}

#[tokio::test]
async fn a_secret_comes_back_in_no_name_of_a_field_and_in_no_failure() {
    let token = "Tok3nWithCapitals";
    let server = Server::start(move |received| match received.path() {
        "/field" => response("200 OK", &[(token, "x"), ("x-kept", "y")], b"x"),
        "/local" => redirect("302 Found", &format!("http://{token}.local/")),
        "/unknown" => redirect("302 Found", &format!("http://{token}.example/")),
        _ => redirect("302 Found", &format!("http://u:{token}@fixture.test/")),
    })
    .await;
    let mut options = granted(&[server.grant("fixture.test:80")]);
    options.secrets = HostSecrets::new(vec![secret("KEY", Ok(token), &["fixture.test"])]);
    let gate = Gate::new(options);
    let lower = token.to_lowercase();
    let response = send(&gate, get("http://fixture.test/field")).await.unwrap();
    assert_eq!(field(&response, "x-kept"), Some("y"));
    assert!(!format!("{:?}", response.headers).contains(&lower));
    for path in ["local", "unknown", "userinfo"] {
        let error = send(&gate, with("{{secret:KEY}}", &format!("{URL}{path}")))
            .await
            .unwrap_err();
        let told = format!("{error} {error:?}").to_lowercase();
        assert!(!told.contains(&lower), "{told}");
    }
}

#[tokio::test]
async fn what_a_host_that_knows_a_secret_says_in_an_unknown_compression_is_not_handed_on() {
    for coding in ["br", "deflate", "gzip, gzip"] {
        let (_server, gate) =
            served(move |_| response("200 OK", &[("content-encoding", coding)], b"x")).await;
        let error = send(&gate, get(URL)).await.unwrap_err();
        assert_eq!(error.code(), "io", "{coding}");
        let other = send(&gate, get("http://other.test/")).await;
        assert!(other.is_ok(), "{coding}");
    }
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n";
    let (_server, gate) =
        served(move |_| Answer::Bytes(format!("{head}1\r\nx\r\n0\r\n\r\n").into_bytes())).await;
    assert_eq!(send(&gate, get(URL)).await.unwrap_err().code(), "io");
}

#[tokio::test]
async fn a_kept_response_hides_a_secret_in_its_url_as_it_did_at_first() {
    let (_server, gate) = served(|received| match received.path() {
        "/" => redirect("302 Found", &format!("/x?key={VALUE}")),
        _ => ok("x"),
    })
    .await;
    for _ in 0..2 {
        let mut request = get(URL);
        request
            .headers
            .push(("Cache-Control".into(), b"max-age=60".to_vec()));
        let mut response = send(&gate, request).await.unwrap();
        assert_eq!(
            response.final_url,
            "http://fixture.test/x?key=[redacted:KEY]"
        );
        body(&mut response).await.unwrap();
    }
}
