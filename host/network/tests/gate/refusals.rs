//! What is not sent, and what whoever asked is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use floe_network::{
    DomainList, Gate, GateError, GateOptions, GateRequest, HostGrants, Reach, Scope, Why,
};

use crate::fixture::{Names, Server, URL, get, granted, ok, send, served, text};

fn denied(error: &GateError) -> (Why, String) {
    assert_eq!(error.code(), "denied-host", "{error}");
    (error.denial().unwrap().why, error.to_string())
}

async fn refused(options: GateOptions, request: GateRequest) -> (Why, String) {
    denied(&send(&Gate::new(options), request).await.unwrap_err())
}

fn post(url: &str) -> GateRequest {
    GateRequest {
        method: "POST".into(),
        ..get(url)
    }
}

fn domains(entries: &[&str]) -> DomainList {
    DomainList::parse(entries).unwrap()
}

fn scoped(scope: Scope) -> GateOptions {
    GateOptions {
        scope,
        ..granted(&[])
    }
}

#[tokio::test]
async fn a_host_outside_the_allowed_ones_is_refused_before_its_name_is_looked_up() {
    let names = Arc::new(Names::default());
    let options = GateOptions {
        scope: Scope {
            allowed: domains(&["example.com"]),
            ..Scope::default()
        },
        resolver: Arc::clone(&names) as _,
        ..GateOptions::default()
    };
    let gate = Gate::new(options);
    for url in [
        "http://example.org/",
        "http://notexample.com/",
        "http://8.8.8.8/",
    ] {
        let (why, text) = denied(&send(&gate, get(url)).await.unwrap_err());
        assert_eq!(why, Why::NotAllowed, "{url}");
        assert!(
            text.ends_with("is not in network.allowed_domains"),
            "{text}"
        );
    }
    assert_eq!(names.asked.load(Ordering::SeqCst), 0);
    for url in ["http://example.com/", "http://a.b.EXAMPLE.com./"] {
        assert_eq!(
            send(&gate, get(url)).await.unwrap_err().code(),
            "io",
            "{url}"
        );
    }
}

#[tokio::test]
async fn an_empty_list_of_allowed_hosts_refuses_all_of_them() {
    let scope = Scope {
        allowed: DomainList::default(),
        ..Scope::default()
    };
    assert_eq!(
        refused(scoped(scope), get("http://example.com/")).await.0,
        Why::NotAllowed
    );
}

#[tokio::test]
async fn a_blocked_host_is_not_reached_whatever_was_granted() {
    let server = Server::start(|_| ok("x")).await;
    let mut options = granted(&[server.grant("a.fixture.test:80")]);
    options.scope.blocked = domains(&["fixture.test"]);
    let (why, text) = refused(options, get("http://a.fixture.test/")).await;
    assert_eq!(why, Why::Blocked);
    assert_eq!(text, "Host 'a.fixture.test' is in network.blocked_domains");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_write_needs_a_host_that_may_be_written_to_or_a_grant() {
    let scope = Scope {
        write: domains(&["api.example.com"]),
        ..Scope::default()
    };
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let request = |url: &str| GateRequest {
            method: method.into(),
            ..get(url)
        };
        let (why, _) = refused(scoped(scope.clone()), request("http://example.com/")).await;
        assert_eq!(why, Why::ReadOnlyHost, "{method}");
        let gate = Gate::new(scoped(scope.clone()));
        let error = send(&gate, request("http://api.example.com/")).await;
        assert_eq!(error.unwrap_err().code(), "io");
        let reach = Reach {
            hosts: HostGrants::parse_names(&["example.com:80"]).unwrap(),
            ..Reach::default()
        };
        let error = gate.send(request("http://example.com/"), &reach).await;
        assert_eq!(error.unwrap_err().code(), "io");
    }
}

#[tokio::test]
async fn a_get_with_a_body_counts_as_a_write() {
    let request = GateRequest {
        body: Some(b"x".to_vec()),
        ..get("http://example.com/")
    };
    assert_eq!(refused(granted(&[]), request).await.0, Why::ReadOnlyHost);
}

#[tokio::test]
async fn a_call_that_only_reads_writes_nowhere_not_even_to_a_granted_host() {
    let (server, gate) = served(|_| ok("x")).await;
    let reach = Reach {
        reads_only: true,
        ..Reach::default()
    };
    let with_body = GateRequest {
        body: Some(b"x".to_vec()),
        ..get(URL)
    };
    for request in [post(URL), with_body] {
        let error = gate.send(request, &reach).await.unwrap_err();
        assert_eq!(denied(&error).0, Why::ReadOnlyCall);
    }
    for method in ["GET", "HEAD", "OPTIONS"] {
        let request = GateRequest {
            method: method.into(),
            ..get(URL)
        };
        gate.send(request, &reach).await.unwrap();
    }
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn a_port_that_was_not_configured_is_refused() {
    let (why, text) = refused(granted(&[]), get("https://example.com:8443/")).await;
    assert_eq!(why, Why::Port);
    assert_eq!(text, "Port 8443 of 'example.com' is not in network.ports");
    let scope = Scope {
        ports: vec![80, 443, 8443],
        ..Scope::default()
    };
    let error = send(&Gate::new(scoped(scope)), get("https://example.com:8443/")).await;
    assert_eq!(error.unwrap_err().code(), "io");
}

#[tokio::test]
async fn resolver_failure_or_an_empty_answer_sends_nothing() {
    let names = Names {
        known: vec![("empty.example", Vec::new())],
        ..Names::default()
    };
    let options = GateOptions {
        resolver: Arc::new(names),
        ..granted(&[])
    };
    let gate = Gate::new(options);
    for host in ["unknown.example", "empty.example"] {
        let error = send(&gate, get(&format!("http://{host}/")))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "io");
        assert_eq!(
            error.to_string(),
            format!("Host '{host}' cannot be resolved; nothing was sent")
        );
    }
}

#[tokio::test]
async fn any_private_address_in_an_answer_blocks_all_of_it() {
    for addresses in [
        vec!["8.8.8.8", "10.0.0.1"],
        vec!["::1", "2001:4860:4860::8888"],
        vec!["8.8.8.8", "64:ff9b::7f00:1"],
        vec!["169.254.169.254"],
        vec!["::ffff:192.168.0.1"],
        vec!["2002:7f00:1::1"],
    ] {
        let names = Names {
            known: vec![("rebinding.example", addresses)],
            ..Names::default()
        };
        let options = GateOptions {
            resolver: Arc::new(names),
            ..granted(&[])
        };
        let (why, text) = refused(options, get("http://rebinding.example/")).await;
        assert!(matches!(why, Why::LeadsInside(_)));
        assert!(
            text.starts_with("DNS rebinding blocked: 'rebinding.example' leads to "),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_granted_name_without_an_address_of_its_own_is_held_to_public_ones_too() {
    let names = Names {
        known: vec![("a.example", vec!["127.0.0.1"])],
        ..Names::default()
    };
    let options = GateOptions {
        resolver: Arc::new(names),
        ..granted(&["a.example:80".into(), "localhost:80".into()])
    };
    let gate = Gate::new(options);
    let error = send(&gate, get("http://a.example/")).await.unwrap_err();
    assert!(matches!(denied(&error).0, Why::LeadsInside(_)));
    let error = send(&gate, get("http://localhost/")).await.unwrap_err();
    assert_eq!(denied(&error).0, Why::Local);
}

#[tokio::test]
async fn a_grant_with_an_address_is_the_one_way_to_the_loopback_and_for_its_port_only() {
    let server = Server::start(|_| ok("x")).await;
    let gate = Gate::new(granted(&[server.grant("localhost:80")]));
    assert_eq!(text(&gate, get("http://localhost/")).await, "x");
    assert_eq!(text(&gate, post("http://LOCALHOST./")).await, "x");
    let port = server.port;
    for url in [
        format!("http://localhost:{port}/"),
        format!("http://127.0.0.1:{port}/"),
        "http://127.0.0.1/".into(),
        "https://localhost/".into(),
        "http://a.localhost/".into(),
    ] {
        let error = send(&gate, get(&url)).await.unwrap_err();
        assert_eq!(denied(&error).0, Why::Local, "{url}");
    }
}

#[tokio::test]
async fn a_request_that_is_not_well_formed_is_sent_nowhere() {
    let (server, gate) = served(|_| ok("x")).await;
    let field = |name: &str, value: &[u8]| GateRequest {
        headers: vec![(name.into(), value.to_vec())],
        ..get(URL)
    };
    let mut bad = vec![
        field("Host", b"evil.example"),
        field("content-length", b"0"),
        field("Transfer-Encoding", b"chunked"),
        field("Connection", b"close"),
        field("Proxy-Authorization", b"x"),
        field("proxy-anything", b"x"),
        field("Upgrade", b"websocket"),
        field("TE", b"trailers"),
        field("Trailer", b"x"),
        field("Expect", b"100-continue"),
        field("Keep-Alive", b"x"),
        field("X", b"a\r\nHost: evil.example"),
        field("X", b"a\nb"),
        field("X", b"a\rb"),
        field("X", b"a\0b"),
        field("X\r\nY", b"a"),
        field("X Y", b"a"),
        field("X:", b"a"),
        field("", b"a"),
        field(":authority", b"a"),
        field("X", &vec![b'a'; 40_000]),
        GateRequest {
            headers: (0..65).map(|n| (format!("x-{n}"), b"1".to_vec())).collect(),
            ..get(URL)
        },
    ];
    for method in ["", "get", "TRACE", "CONNECT", "GET /", "FOO\r\n"] {
        bad.push(GateRequest {
            method: method.into(),
            ..get(URL)
        });
    }
    for request in bad {
        let shown = format!("{request:?}");
        let error = send(&gate, request).await.unwrap_err();
        assert_eq!(error.code(), "invalid-args", "{shown}");
        assert!(!error.to_string().contains(['\r', '\n']), "{error}");
    }
    assert!(server.received().is_empty());
    let request = GateRequest {
        body: Some(vec![0; (8 << 20) + 1]),
        ..post(URL)
    };
    assert_eq!(send(&gate, request).await.unwrap_err().code(), "too-large");
}

#[tokio::test]
async fn a_blocked_address_is_not_reached_by_a_name_that_leads_there() {
    let mut options = scoped(Scope {
        blocked: domains(&["93.184.215.14"]),
        ..Scope::default()
    });
    options.resolver = Arc::new(Names {
        known: vec![("a.example", vec!["93.184.215.15", "93.184.215.14"])],
        ..Names::default()
    });
    let (why, _) = refused(options, get("http://a.example/")).await;
    assert_eq!(why, Why::Blocked);
}

#[tokio::test]
async fn a_get_that_asks_to_be_taken_for_another_method_counts_as_a_write() {
    for name in [
        "X-HTTP-Method-Override",
        "x-http-method",
        "X-METHOD-OVERRIDE",
    ] {
        let request = || GateRequest {
            headers: vec![(name.into(), b"DELETE".to_vec())],
            ..get("http://a.example/")
        };
        let (why, _) = refused(GateOptions::default(), request()).await;
        assert_eq!(why, Why::ReadOnlyHost, "{name}");
        let reads = Reach {
            reads_only: true,
            ..Reach::default()
        };
        let gate = Gate::new(GateOptions::default());
        let error = gate.send(request(), &reads).await.unwrap_err();
        assert_eq!(error.denial().unwrap().why, Why::ReadOnlyCall, "{name}");
    }
}
