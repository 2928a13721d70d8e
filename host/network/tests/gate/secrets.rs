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
