//! Requests by `wasi:http`: the way of those of the contract where the capability is granted, and denied everywhere else.

use std::sync::{Arc, Mutex};

use floe_network::{Denial, Gate, GateOptions, HostGrants, Reach};
use floe_runtime::capability::http::{GatedHttp, Http, ObserveDenials, RecordingHttp};
use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{
    CallContext, CallLimits, CallRequest, Capability, CapabilitySet, ComponentSource, Hosts,
    Runtime, RuntimeOptions,
};
use floe_tests::components::guest;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

fn http_alone() -> CapabilitySet {
    CapabilitySet::EMPTY.with(Capability::Http)
}

/// What the guest writes that asks `host`, with `body` where that is not empty.
async fn asked(
    declared: CapabilitySet,
    granted: CapabilitySet,
    http: Arc<dyn Http>,
    (host, body): (&str, &str),
) -> String {
    let options = RuntimeOptions {
        pool: Some(4),
        ..RuntimeOptions::new(Handle::current())
    };
    let runtime = Runtime::new(options).unwrap();
    let source = ComponentSource::Wasm(guest("asks-by-wasi"));
    let component = runtime.load("asks-by-wasi", source, declared).unwrap();
    let output = RecordingOutput::new();
    let request = CallRequest {
        arguments: json!({"host": host, "body": body}).to_string(),
        context: CallContext::default(),
        granted,
        hosts: Arc::new(Hosts {
            http,
            ..Hosts::deny()
        }),
        output: output.clone(),
        limits: CallLimits::default(),
        cancel: CancellationToken::new(),
    };
    let call = runtime.execute(&component, request).await;
    assert!(!output.text().is_empty(), "{:?}", call.end);
    output.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_the_way_of_the_contracts_where_http_is_declared_and_granted() {
    let http = RecordingHttp {
        body: b"hello".to_vec(),
        ..RecordingHttp::default()
    };
    let said = asked(
        http_alone(),
        http_alone(),
        Arc::new(http.clone()),
        ("example.com", ""),
    )
    .await;
    assert_eq!(said, "status 200\n\nhello");
    let lines = http.requests.lines();
    assert_eq!(lines[0], "send GET http://example.com/page?a=b");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_grant_or_the_declaration_every_request_is_denied() {
    for (declared, granted) in [
        (http_alone(), CapabilitySet::EMPTY),
        (CapabilitySet::EMPTY, CapabilitySet::all()),
    ] {
        let http = RecordingHttp::default();
        let said = asked(
            declared,
            granted,
            Arc::new(http.clone()),
            ("example.com", ""),
        )
        .await;
        assert!(
            said.starts_with("refused: ErrorCode::HttpRequestDenied"),
            "{said}"
        );
        assert!(http.requests.lines().is_empty());
    }
}

#[derive(Default)]
struct Denials(Mutex<Vec<String>>);

impl ObserveDenials for Denials {
    fn denied(&self, denial: &Denial) {
        self.0.lock().unwrap().push(denial.to_string());
    }
}

/// Answers every request with one that repeats it.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\n") {
                seen.push(stream.read_u8().await.unwrap());
            }
            // The body, where there is one, is one letter.
            if String::from_utf8_lossy(&seen).contains("content-length: 1") {
                seen.push(stream.read_u8().await.unwrap());
            }
            let head = format!(
                "HTTP/1.1 201 Created\r\nx-kind: echo\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                seen.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &seen].concat()).await;
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_judges_it_like_any_other() {
    let port = echo().await;
    let grants = [format!("fixture.test:80=127.0.0.1:{port}")];
    let gate = Gate::new(GateOptions {
        grants: HostGrants::parse(&grants).unwrap(),
        ..GateOptions::default()
    });
    let denials = Arc::new(Denials::default());
    let http = |reads_only| -> Arc<dyn Http> {
        let reach = Reach {
            reads_only,
            ..Reach::default()
        };
        let observer = Arc::clone(&denials) as _;
        Arc::new(GatedHttp::new(gate.clone(), reach, observer))
    };
    let said = asked(http_alone(), http_alone(), http(true), ("fixture.test", "")).await;
    assert!(
        said.starts_with("status 201\necho\nGET /page?a=b HTTP/1.1\r\n"),
        "{said}"
    );
    assert!(said.contains("\r\nhost: fixture.test\r\n"), "{said}");
    let said = asked(
        http_alone(),
        http_alone(),
        http(false),
        ("fixture.test", "X"),
    )
    .await;
    assert!(
        said.starts_with("status 201\necho\nPOST /page?a=b HTTP/1.1\r\n"),
        "{said}"
    );
    assert!(said.ends_with("\r\n\r\nX"), "{said}");
    for (reads_only, host, body) in [(true, "fixture.test", "X"), (false, "127.0.0.1", "")] {
        let said = asked(http_alone(), http_alone(), http(reads_only), (host, body)).await;
        assert!(
            said.starts_with("refused: ErrorCode::HttpRequestDenied"),
            "{said}"
        );
    }
    assert_eq!(
        *denials.0.lock().unwrap(),
        [
            "This call may only read: it sends GET, HEAD and OPTIONS without a body",
            "Blocked local/private host: 127.0.0.1"
        ]
    );
}
