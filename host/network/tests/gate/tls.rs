//! Encrypted connections: to the pinned address, and believed only with a certificate for the name that was asked for.

use std::sync::Arc;

use floe_network::{Gate, GateOptions};
use futures_util::FutureExt;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::fixture::{Answer, Received, Server, field, get, granted, ok, redirect, send, text};

/// A server with a certificate for `name`, and what believes it.
async fn served(
    name: &str,
    handler: impl Fn(&Received) -> Answer + Send + Sync + 'static,
) -> (Server, Arc<ClientConfig>) {
    served_as(vec![name.to_owned()], handler).await
}

async fn served_as(
    names: Vec<String>,
    handler: impl Fn(&Received) -> Answer + Send + Sync + 'static,
) -> (Server, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let server = Server::wrapped(handler, move |stream| {
        acceptor.accept(stream).map(Result::ok).boxed()
    })
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, Arc::new(client))
}

fn gate(grants: &[String], tls: Option<Arc<ClientConfig>>) -> Gate {
    Gate::new(GateOptions {
        tls,
        ..granted(grants)
    })
}

#[tokio::test]
async fn the_certificate_must_be_of_the_name_that_was_asked_for() {
    let (server, trust) = served("fixture.test", |_| ok("x")).await;
    let grants = [
        server.grant("fixture.test:443"),
        server.grant("other.test:443"),
    ];
    let believing = gate(&grants, Some(trust));
    assert_eq!(text(&believing, get("https://fixture.test/")).await, "x");
    assert_eq!(text(&believing, get("https://fixture.test/")).await, "x");
    assert_eq!(
        server.received()[1].connection,
        server.received()[0].connection
    );
    let error = send(&believing, get("https://other.test/"))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("no encrypted connection to other.test"),
        "{error}"
    );
    // The machine does not know who signed it.
    let error = send(&gate(&grants, None), get("https://fixture.test/")).await;
    assert_eq!(error.unwrap_err().code(), "io");
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_certificate_of_many_names_makes_no_long_failure() {
    let names = (0..500).map(|number| format!("obey-what-name-{number}-says.test"));
    let (server, trust) = served_as(names.collect(), |_| ok("x")).await;
    let gate = gate(&[server.grant("fixture.test:443")], Some(trust));
    let error = send(&gate, get("https://fixture.test/")).await.unwrap_err();
    assert_eq!(error.code(), "io");
    assert!(error.to_string().len() < 500, "{error}");
}

#[tokio::test]
async fn a_redirect_from_https_to_http_is_handed_to_whoever_asked() {
    let (server, trust) = served("fixture.test", |_| {
        redirect("302 Found", "http://fixture.test/plain")
    })
    .await;
    let gate = gate(&[server.grant("fixture.test:443")], Some(trust));
    let response = send(&gate, get("https://fixture.test/")).await.unwrap();
    assert_eq!(response.status, 302);
    assert_eq!(
        field(&response, "location"),
        Some("http://fixture.test/plain")
    );
}

#[tokio::test]
async fn plain_http_and_https_do_not_share_a_connection() {
    let (server, trust) = served("fixture.test", |_| ok("x")).await;
    let gate = gate(&[server.grant("fixture.test:443")], Some(trust));
    assert_eq!(text(&gate, get("https://fixture.test/")).await, "x");
    let error = send(&gate, get("http://fixture.test:443/"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "io");
}
