//! Redirects: each hop is judged like a request of its own, and takes no more with it than it must.

use floe_network::{Gate, GateRequest, HostGrants, Reach, Why};

use crate::fixture::{Server, URL, body, field, get, granted, ok, redirect, send, served, text};

fn with_fields(url: &str) -> GateRequest {
    GateRequest {
        headers: vec![
            ("Authorization".into(), b"Bearer abc".to_vec()),
            ("X-Api-Key".into(), b"abc".to_vec()),
            ("Accept".into(), b"text/plain".to_vec()),
        ],
        ..get(url)
    }
}

#[tokio::test]
async fn a_redirect_is_followed_and_the_response_says_where_it_came_from() {
    let (server, gate) = served(|received| match received.path() {
        "/" => redirect("302 Found", "/next?x#y"),
        _ => ok("there"),
    })
    .await;
    let mut response = send(&gate, with_fields(URL)).await.unwrap();
    assert_eq!(response.final_url, "http://fixture.test/next?x");
    assert_eq!(body(&mut response).await.unwrap(), b"there");
    let second = &server.received()[1];
    assert_eq!(second.field("authorization"), Some("Bearer abc"));
    assert_eq!(second.field("x-api-key"), Some("abc"));
}

#[tokio::test]
async fn what_was_meant_for_one_host_goes_to_no_other() {
    let server = Server::start(|received| match received.field("host") {
        Some("fixture.test") => redirect("307 Temporary Redirect", "http://other.test/"),
        _ => ok("there"),
    })
    .await;
    let gate = Gate::new(granted(&[
        server.grant("fixture.test:80"),
        server.grant("other.test:80"),
    ]));
    assert_eq!(text(&gate, with_fields(URL)).await, "there");
    let second = &server.received()[1];
    assert_eq!(second.field("authorization"), None);
    assert_eq!(second.field("x-api-key"), None);
    assert_eq!(second.field("accept"), Some("text/plain"));
}

#[tokio::test]
async fn a_redirect_to_a_private_address_or_name_is_refused() {
    for target in [
        "http://127.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://2130706433/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "//localhost/",
        "http:\\\\127.0.0.1\\",
    ] {
        let (server, gate) = served(move |_| redirect("301 Moved Permanently", target)).await;
        let error = send(&gate, get(URL)).await.unwrap_err();
        assert_eq!(error.code(), "denied-host", "{target}");
        assert_eq!(error.denial().unwrap().why, Why::Local, "{target}");
        assert_eq!(server.received().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_out_of_the_allowed_hosts_or_ports_is_refused() {
    for (target, why) in [
        ("http://blocked.example/", Why::Blocked),
        ("http://elsewhere.example:8080/", Why::Port),
    ] {
        let server = Server::start(move |_| redirect("302 Found", target)).await;
        let mut options = granted(&[server.grant("fixture.test:80")]);
        options.scope.blocked = floe_network::DomainList::parse(&["blocked.example"]).unwrap();
        let error = send(&Gate::new(options), get(URL)).await.unwrap_err();
        assert_eq!(error.denial().unwrap().why, why);
    }
}

#[tokio::test]
async fn a_redirect_to_another_scheme_or_with_userinfo_fails() {
    for target in [
        "ftp://fixture.test/",
        "file:///etc/passwd",
        "http://a@fixture.test/",
        "http://",
    ] {
        let (_server, gate) = served(move |_| redirect("302 Found", target)).await;
        let error = send(&gate, get(URL)).await.unwrap_err();
        assert!(
            ["invalid-args", "io"].contains(&error.code()),
            "{target}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_loop_of_redirects_ends_with_the_redirect_itself() {
    let (server, gate) = served(|_| redirect("302 Found", "/again")).await;
    let response = send(&gate, get(URL)).await.unwrap();
    assert_eq!(response.status, 302);
    assert_eq!(field(&response, "location"), Some("/again"));
    assert_eq!(server.received().len(), 6);
}

#[tokio::test]
async fn no_redirect_is_followed_where_the_request_says_so_and_never_more_than_ten() {
    for (asked, followed) in [(0, 0), (2, 2), (1000, 10)] {
        let (server, gate) = served(|_| redirect("302 Found", "/again")).await;
        let request = GateRequest {
            max_redirects: Some(asked),
            ..get(URL)
        };
        assert_eq!(send(&gate, request).await.unwrap().status, 302);
        assert_eq!(server.received().len(), followed + 1);
    }
}

#[tokio::test]
async fn a_redirect_that_is_not_followed_is_the_response_wherever_it_leads() {
    for target in [
        "app://signed-in?code=1",
        "http://",
        "http://a@fixture.test/",
    ] {
        let (_server, gate) = served(move |_| redirect("302 Found", target)).await;
        let request = GateRequest {
            max_redirects: Some(0),
            ..get(URL)
        };
        let response = send(&gate, request).await.unwrap();
        assert_eq!(response.status, 302, "{target}");
        assert_eq!(field(&response, "location"), Some(target));
    }
}

#[tokio::test]
async fn a_post_becomes_a_get_where_browsers_make_it_one_and_else_stays_what_it_is() {
    for (status, method) in [
        ("301 Moved Permanently", "GET"),
        ("302 Found", "GET"),
        ("303 See Other", "GET"),
        ("307 Temporary Redirect", "POST"),
        ("308 Permanent Redirect", "POST"),
    ] {
        let (server, gate) = served(move |received| match received.path() {
            "/" => redirect(status, "/next"),
            _ => ok("x"),
        })
        .await;
        let request = GateRequest {
            method: "POST".into(),
            headers: vec![("content-type".into(), b"text/plain".to_vec())],
            body: Some(b"hi".to_vec()),
            ..get(URL)
        };
        text(&gate, request).await;
        let second = &server.received()[1];
        assert_eq!(second.line, format!("{method} /next HTTP/1.1"));
        assert_eq!(second.body.is_empty(), method == "GET", "{status}");
        assert_eq!(second.field("content-type").is_none(), method == "GET");
    }
}

#[tokio::test]
async fn a_write_that_is_led_to_a_host_that_may_only_be_read_is_refused_there() {
    let (_server, gate) =
        served(|_| redirect("307 Temporary Redirect", "http://elsewhere.example/")).await;
    let request = GateRequest {
        method: "PUT".into(),
        ..get(URL)
    };
    let error = send(&gate, request).await.unwrap_err();
    assert_eq!(error.denial().unwrap().why, Why::ReadOnlyHost);
}

#[tokio::test]
async fn what_a_call_was_granted_holds_for_the_hops_too() {
    let (_server, gate) = served(|_| redirect("302 Found", "http://elsewhere.example:8080/")).await;
    let reach = Reach {
        hosts: HostGrants::parse_names(&["elsewhere.example:8080"]).unwrap(),
        ..Reach::default()
    };
    // It passes, and then nobody knows the name.
    let error = gate.send(get(URL), &reach).await.unwrap_err();
    assert_eq!(error.code(), "io", "{error}");
}
