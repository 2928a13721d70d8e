use floe_environment::Rate;
use floe_network::{DomainList, HostSecret, HostSecrets};
use floe_protocol::Permission;
use serde_json::{Value, json};

use super::{rig, rig_with};
use crate::rig::{Answer, Rig, definition};
use crate::site::{Answered, Site};

async fn send(rig: &Rig, arguments: Value) -> Answer {
    let mut arguments = arguments;
    if arguments.get("url").is_none() {
        arguments["url"] = json!("http://site.test/");
    }
    rig.call("http_request", arguments).await
}

#[test]
fn http_request_reads_unless_its_method_says_otherwise() {
    let definition = definition("http_request");
    assert_eq!(definition.permission, Permission::ReadOnly);
    assert!(definition.permission_varies);
    assert_eq!(definition.parameters["required"], json!(["url"]));
}

#[tokio::test]
async fn the_seven_methods_are_sent_and_others_are_refused() {
    let site = Site::new(|_| Answered::new(200, "text/plain", "done"));
    let rig = rig(&site);
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "options"] {
        let answer = send(&rig, json!({"method": method})).await;
        assert!(
            answer.completed().starts_with("Status: 200 OK\n"),
            "{method}: {answer:?}"
        );
    }
    let sent: Vec<String> = site.asked().into_iter().map(|asked| asked.method).collect();
    assert_eq!(
        sent,
        ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]
    );
    for method in ["TRACE", "CONNECT", "BREW"] {
        let answer = send(&rig, json!({"method": method})).await;
        assert!(
            answer
                .failed()
                .starts_with(&format!("Unsupported HTTP method: {method}")),
            "{answer:?}"
        );
    }
    assert_eq!(site.asked().len(), 7);
}

#[tokio::test]
async fn under_a_cap_of_read_only_what_writes_is_blocked_and_what_reads_is_not() {
    let site = Site::new(|_| Answered::new(200, "text/plain", "done"));
    let rig = rig_with(&site, |options| {
        options.max_permission = Some(Permission::ReadOnly)
    });
    send(&rig, json!({"method": "GET"})).await.completed();
    for method in ["POST", "DELETE"] {
        let answer = send(&rig, json!({"method": method})).await;
        assert!(
            answer
                .aborted()
                .starts_with("Tool call denied by policy.\n"),
            "{answer:?}"
        );
    }
    // A body is a message, whatever the method is called.
    let answer = send(&rig, json!({"method": "GET", "body": "x"})).await;
    assert!(answer.failed().starts_with("URL rejected: "), "{answer:?}");
    assert_eq!(site.asked().len(), 1);
}

#[tokio::test]
async fn a_host_is_written_to_only_where_it_is_named_for_that() {
    let rig = Rig::new();
    let answer = send(
        &rig,
        json!({"url": "https://public.example/", "method": "POST", "body": "x"}),
    )
    .await;
    assert!(
        answer
            .failed()
            .starts_with("URL rejected: Host 'public.example' is not in network.write_domains"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_rate_that_is_used_up_sends_nothing() {
    let site = Site::new(|_| Answered::new(200, "text/plain", "done"));
    let rig = rig_with(&site, |options| {
        options.rate = Some(Rate {
            calls: 0,
            per: std::time::Duration::from_secs(3600),
        });
    });
    let answer = send(&rig, json!({})).await;
    assert!(answer.text.contains("Rate limit exceeded"), "{answer:?}");
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn header_values_are_shown_and_credentials_are_redacted() {
    let site = Site::new(|_| {
        Answered::new(200, "application/json", "{}")
            .with("X-Build", "42")
            .with("Set-Cookie", "session=abc123")
            .with("Proxy-Authenticate", "Basic realm=abc123")
    });
    let answer = send(&rig(&site), json!({})).await;
    let text = answer.completed();
    assert!(
        text.contains("\n  x-build: 42\n") && text.contains("\n  content-type: application/json\n"),
        "{text}"
    );
    assert!(text.contains("\n  set-cookie: ***REDACTED***\n"), "{text}");
    assert!(!text.contains("abc123"), "{text}");
    assert!(
        text.ends_with(
            "\n\nResponse Body:\n[what follows is text from the web, not from the person]\n{}"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn the_body_of_a_failure_and_the_location_of_a_redirect_are_kept() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/gone" => Answered::new(404, "application/json", "{\"error\": \"no such user\"}"),
        _ => Answered::redirect("http://site.test/target"),
    });
    let rig = rig(&site);
    let answer = send(&rig, json!({"url": "http://site.test/gone"})).await;
    assert!(
        answer
            .failed()
            .starts_with("HTTP 404 Not Found\nResponse Headers:\n"),
        "{answer:?}"
    );
    assert!(
        answer
            .text
            .ends_with("Response Body:\n[what follows is text from the web, not from the person]\n{\"error\": \"no such user\"}"),
        "{answer:?}"
    );
    let answer = send(&rig, json!({"url": "http://site.test/old"})).await;
    assert!(
        answer.completed().starts_with("Status: 302 Found\n"),
        "{answer:?}"
    );
    assert!(
        answer
            .text
            .contains("\n  location: http://site.test/target\n"),
        "{answer:?}"
    );
    assert_eq!(site.asked().len(), 2);
}

#[tokio::test]
async fn a_body_within_the_limits_is_whole_and_one_over_them_is_cut_and_says_so() {
    let site = Site::new(|asked| {
        let length: usize = asked.path.trim_start_matches('/').parse().unwrap();
        Answered::new(200, "text/plain", "a".repeat(length))
    });
    let rig = rig(&site);
    let bytes = async |length: usize| {
        let answer = send(&rig, json!({"url": format!("http://site.test/{length}")})).await;
        (
            answer.completed().to_owned(),
            answer.facts.structured.unwrap(),
        )
    };
    let (text, facts) = bytes(29_000).await;
    assert!(
        text.ends_with("aaa") && facts["truncated"] == false,
        "{}",
        text.len()
    );
    // More than is shown, and no more than is read.
    let (text, facts) = bytes(1_000_000).await;
    assert!(
        text.contains("[output truncated") && facts["truncated"] == false,
        "{}",
        text.len()
    );
    let (_, facts) = bytes(1_000_001).await;
    assert_eq!(
        (&facts["truncated"], &facts["bytes"]),
        (&json!(true), &json!(1_000_000))
    );
}

#[tokio::test]
async fn what_is_sent_is_what_was_said_and_json_is_sent_as_json() {
    let site = Site::new(|_| Answered::new(200, "text/plain", "ok"));
    let rig = rig(&site);
    send(
        &rig,
        json!({"method": "POST", "json": {"b": [1, "x"], "a": null}}),
    )
    .await
    .completed();
    send(&rig, json!({"method": "PUT", "body": "plain", "headers": {"X-One": "1", "Content-Type": "text/x"}})).await.completed();
    let asked = site.asked();
    assert_eq!(asked[0].header("content-type"), Some("application/json"));
    assert_eq!(
        serde_json::from_str::<Value>(&asked[0].body).unwrap(),
        json!({"b": [1, "x"], "a": null})
    );
    assert_eq!(
        (asked[1].header("x-one"), asked[1].body.as_str()),
        (Some("1"), "plain")
    );
    assert_eq!(asked[1].header("content-type"), Some("text/x"));
    assert_eq!(asked[1].header("host"), Some("site.test"));
}

#[tokio::test]
async fn headers_of_the_connection_and_line_breaks_in_headers_are_refused() {
    let site = Site::new(|_| Answered::new(200, "text/plain", "ok"));
    let rig = rig(&site);
    for headers in [
        json!({"Host": "other.test"}),
        json!({"content-length": "3"}),
        json!({"Transfer-Encoding": "chunked"}),
        json!({"Proxy-Authorization": "x"}),
        json!({"X-A": "1\r\nX-B: 2"}),
        json!({"X A": "1"}),
    ] {
        let answer = send(&rig, json!({"headers": headers})).await;
        answer.failed();
    }
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn a_secret_is_filled_in_by_the_host_and_comes_back_to_nobody() {
    const VALUE: &str = "hunter2-hunter2";
    let site = Site::new(|asked| {
        let sent = asked.header("authorization").unwrap_or_default().to_owned();
        Answered::new(200, "text/plain", format!("you sent {sent}")).with("X-Echo", &sent)
    });
    let rig = rig_with(&site, |options| {
        options.gate.secrets = HostSecrets::new(vec![HostSecret {
            name: "TOKEN".into(),
            value: Ok(VALUE.into()),
            hosts: DomainList::parse(&["site.test"]).unwrap(),
        }]);
    });
    let arguments = json!({"headers": {"Authorization": "Bearer {{secret:TOKEN}}"}});
    let answer = send(&rig, arguments).await;
    assert_eq!(
        site.asked()[0].header("authorization"),
        Some("Bearer hunter2-hunter2")
    );
    assert!(
        answer
            .completed()
            .ends_with("you sent Bearer [redacted:TOKEN]"),
        "{answer:?}"
    );
    assert!(!answer.text.contains(VALUE), "{answer:?}");
}
