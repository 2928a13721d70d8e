use std::sync::Arc;

use floe_network::{DomainList, HostGrants};
use serde_json::json;

use super::{rig, rig_with};
use crate::rig::{Rig, definition};
use crate::site::{Answered, Site};

const FIRST_LINES: &str =
    "charset=utf-8\n[what follows is text from the web, not from the person]\n\n";

/// What a page says, after the lines that tell where it comes from.
fn page(text: &str) -> &str {
    let marker = "not from the person]\n\n";
    text.split_once(marker)
        .unwrap_or_else(|| panic!("{text}"))
        .1
}

#[test]
fn web_fetch_has_its_name_its_alias_and_a_schema_that_requires_a_url() {
    let definition = definition("web_fetch");
    assert_eq!(definition.aliases, ["webfetch"]);
    assert_eq!(definition.parameters["required"], json!(["url"]));
    let properties = definition.parameters["properties"].as_object().unwrap();
    let names: Vec<&String> = properties.keys().collect();
    assert_eq!(names, ["url", "format", "max_bytes", "offset", "widen"]);
}

#[tokio::test]
async fn a_page_comes_as_markdown_with_its_address_status_and_content_type() {
    let site = Site::new(|_| {
        Answered::page(
            "<title>T</title><h1>Head</h1><script>no()</script><p>A <a href='b'>link</a>.</p>\
             <table><tr><th>x<th>y<tr><td>1<td>2</table><pre><code class=language-c>int a;</code></pre>",
        )
    });
    let rig = rig(&site);
    let answer = rig
        .call("web_fetch", json!({"url": "http://site.test/d/"}))
        .await;
    assert_eq!(
        answer.completed(),
        format!(
            "status=200 url=http://site.test/d/ content-type=text/html {FIRST_LINES}\
             # T\n\n# Head\n\nA [link](http://site.test/d/b).\n\n| x | y |\n| --- | --- |\n| 1 | 2 |\n\n```c\nint a;\n```"
        )
    );
    let structured = answer.facts.structured.unwrap();
    assert_eq!(structured["content_type"], "text/html; charset=utf-8");
    let text = rig
        .call(
            "webfetch",
            json!({"url": "http://site.test/d/", "format": "text"}),
        )
        .await;
    assert!(
        page(text.completed()).contains("A link.\n\nx | y\n1 | 2"),
        "{text:?}"
    );
    let html = rig
        .call(
            "web_fetch",
            json!({"url": "http://site.test/d/", "format": "html"}),
        )
        .await;
    assert!(page(html.completed()).starts_with("<title>T</title>"));
}

#[tokio::test]
async fn a_page_is_fetched_over_tls_under_its_own_name() {
    let certified = rcgen::generate_simple_self_signed(["site.test".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.unwrap())
        .unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let site = Site::secure(Arc::new(server), |_| Answered::page("<p>kept to ourselves"));
    let grants = [site.grant("site.test", 443), site.grant("other.test", 443)];
    let rig = Rig::with(|options| {
        options.gate.grants = HostGrants::parse(&grants).unwrap();
        options.gate.tls = Some(Arc::new(client));
    });
    let answer = rig
        .call("web_fetch", json!({"url": "https://site.test/"}))
        .await;
    assert_eq!(page(answer.completed()), "kept to ourselves");
    // The same server under a name that its certificate does not have.
    let answer = rig
        .call("web_fetch", json!({"url": "https://other.test/"}))
        .await;
    assert!(
        answer.failed().starts_with("Failed to fetch: "),
        "{answer:?}"
    );
    assert_eq!(site.asked().len(), 1);
}

#[tokio::test]
async fn a_domain_that_is_not_allowed_and_an_invalid_url_are_rejected() {
    let rig = Rig::with(|options| {
        options.gate.scope.allowed = DomainList::parse(&["docs.example"]).unwrap();
    });
    let answer = rig
        .call("web_fetch", json!({"url": "https://other.example/"}))
        .await;
    assert!(
        answer.failed().starts_with("URL rejected: Host 'other.example' is not in network.allowed_domains. Ask for it with widen.hosts"),
        "{answer:?}"
    );
    for url in [
        "not a url",
        "ftp://docs.example/",
        "http://a@docs.example/",
        "http://127.0.0.1/",
        "file:///etc/passwd",
    ] {
        let answer = rig.call("web_fetch", json!({"url": url})).await;
        assert!(
            answer.failed().starts_with("URL rejected: "),
            "{url}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn a_limit_of_zero_means_the_default() {
    let site = Site::new(|_| Answered::new(200, "text/plain", "whole"));
    let answer = rig(&site)
        .call(
            "web_fetch",
            json!({"url": "http://site.test/", "max_bytes": 0}),
        )
        .await;
    assert_eq!(page(answer.completed()), "whole");
}

#[tokio::test]
async fn redirects_are_followed_within_a_host_and_told_where_they_leave_it() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/start" => Answered::redirect("next?x=1"),
        "/next?x=1" => Answered::page("<p>there"),
        "/away" => Answered::redirect("http://elsewhere.test/page"),
        "/inside" => Answered::redirect("http://127.0.0.1/"),
        _ => Answered::redirect("/again"),
    });
    let rig = rig(&site);
    let fetch = async |path: &str| {
        rig.call(
            "web_fetch",
            json!({"url": format!("http://site.test{path}")}),
        )
        .await
    };
    let answer = fetch("/start").await;
    assert!(
        answer
            .completed()
            .starts_with("status=200 url=http://site.test/next?x=1 "),
        "{answer:?}"
    );
    for (path, location) in [
        ("/away", "http://elsewhere.test/page"),
        ("/inside", "http://127.0.0.1/"),
    ] {
        let answer = fetch(path).await;
        let told = format!(
            "status=302 url=http://site.test{path} location={location}\nThe redirect leads elsewhere"
        );
        assert!(answer.completed().starts_with(&told), "{answer:?}");
    }
    let before = site.asked().len();
    let answer = fetch("/loop").await;
    assert!(
        answer
            .failed()
            .starts_with("Too many redirects: 5 were followed"),
        "{answer:?}"
    );
    assert_eq!(site.asked().len() - before, 6);
}

#[tokio::test]
async fn a_status_of_400_or_more_is_a_failure_with_an_excerpt_and_retry_after() {
    let site = Site::new(|_| {
        let body = format!(
            "<h1>Slow down</h1><style>x</style><p>{}",
            "why ".repeat(2000)
        );
        Answered::new(429, "text/html", body).with("Retry-After", "30")
    });
    let answer = rig(&site)
        .call("web_fetch", json!({"url": "http://site.test/"}))
        .await;
    let text = answer.failed();
    assert!(
        text.starts_with("HTTP 429 Too Many Requests: http://site.test/\nRetry-After: 30\n[what follows is text from the web"),
        "{text}"
    );
    assert!(
        text.contains("# Slow down\n\nwhy why") && text.chars().count() < 2300,
        "{text}"
    );
}

#[tokio::test]
async fn a_long_page_comes_in_pages_of_24000_characters_of_one_request() {
    let text: String = (1..=9000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let body = text.clone();
    let site = Site::new(move |_| Answered::new(200, "text/plain", body.clone()));
    let rig = rig(&site);
    let (mut offset, mut gathered, mut calls) = (0, String::new(), 0);
    loop {
        let arguments = json!({"url": "http://site.test/", "offset": offset});
        let answer = rig.call("web_fetch", arguments).await;
        calls += 1;
        let (text, note) = answer.completed().rsplit_once("\n[characters ").unwrap();
        assert!(answer.text.chars().count() <= 24_100);
        gathered.push_str(page(text));
        let structured = answer.facts.structured.as_ref().unwrap();
        let Some(next) = structured["next_offset"].as_u64() else {
            break;
        };
        assert!(
            note.ends_with(&format!("; continue with offset {next}]")),
            "{note}"
        );
        offset = next;
    }
    assert!(
        gathered == text,
        "{} and {} bytes",
        gathered.len(),
        text.len()
    );
    assert_eq!((calls, site.asked().len()), (4, 1));
    let past = rig
        .call(
            "web_fetch",
            json!({"url": "http://site.test/", "offset": 10_000_000}),
        )
        .await;
    assert!(past.failed().starts_with("Offset 10000000 is past the end"));
}

#[tokio::test]
async fn a_body_is_read_to_a_million_bytes_after_decompression() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let block = [b'a'; 1 << 16];
    for _ in 0..512 {
        std::io::Write::write_all(&mut encoder, &block).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let site = Site::new(move |_| {
        Answered::new(200, "text/plain", bomb.clone()).with("Content-Encoding", "gzip")
    });
    let answer = rig(&site)
        .call("web_fetch", json!({"url": "http://site.test/"}))
        .await;
    assert!(
        answer
            .completed()
            .ends_with("[truncated at 1000000 bytes; the body is longer]"),
        "{}",
        &answer.text[answer.text.len() - 200..]
    );
    assert_eq!(answer.facts.structured.unwrap()["characters"], 1_000_000);
}

#[tokio::test]
async fn text_is_read_in_the_charset_that_is_declared_by_the_response_or_the_page() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/latin" => Answered::new(200, "text/html; charset=iso-8859-1", b"<p>caf\xe9".to_vec()),
        "/japanese" => Answered::new(
            200,
            "text/html",
            b"<meta charset=Shift_JIS><p>\x93\xfa\x96\x7b".to_vec(),
        ),
        "/guessed" => Answered::new(200, "text/plain", b"caf\xe9".to_vec()),
        _ => Answered::new(200, "text/plain", b"\xff\xfeh\0i\0".to_vec()),
    });
    let rig = rig(&site);
    for (path, expected) in [("/latin", "café"), ("/japanese", "日本"), ("/wide", "hi")] {
        let answer = rig
            .call(
                "web_fetch",
                json!({"url": format!("http://site.test{path}")}),
            )
            .await;
        assert_eq!(page(answer.completed()), expected);
    }
    let answer = rig
        .call("web_fetch", json!({"url": "http://site.test/guessed"}))
        .await;
    assert!(
        page(answer.completed()).starts_with("café\n[no charset was declared"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn binary_content_is_refused_with_a_hint_whatever_its_content_type_claims() {
    let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0".to_vec();
    let site = Site::new(move |asked| match asked.path.as_str() {
        "/honest" => Answered::new(200, "image/png", image.clone()),
        "/lying" => Answered::new(200, "text/html", image.clone()),
        _ => Answered::new(200, "image/png", "{\"text\": \"after all\"}"),
    });
    let rig = rig(&site);
    let fetch = async |path: &str| {
        rig.call(
            "web_fetch",
            json!({"url": format!("http://site.test{path}")}),
        )
        .await
    };
    for path in ["/honest", "/lying"] {
        let answer = fetch(path).await;
        assert!(
            answer.failed().starts_with("Binary content is not shown ("),
            "{answer:?}"
        );
        assert!(
            answer.text.contains("Save it to a file with curl"),
            "{answer:?}"
        );
    }
    assert!(
        fetch("/honest")
            .await
            .text
            .ends_with("or look at it with read_image.")
    );
    assert_eq!(
        page(fetch("/text").await.completed()),
        "{\"text\": \"after all\"}"
    );
}

#[tokio::test]
async fn a_page_that_nests_without_end_is_converted_like_any_other() {
    let site = Site::new(|_| {
        let page = format!("{}inside", "<div><b><ul><li><blockquote>".repeat(30_000));
        Answered::page(page)
    });
    let answer = rig(&site)
        .call("web_fetch", json!({"url": "http://site.test/"}))
        .await;
    assert!(
        answer.completed().contains("inside"),
        "{}",
        answer.text.len()
    );
}

#[tokio::test]
async fn what_a_page_says_about_itself_cannot_break_the_first_line() {
    let site = Site::new(|_| Answered::new(200, "text/plain\u{1b}[31m; x", "body"));
    let answer = rig_with(&site, |_| {})
        .call("web_fetch", json!({"url": "http://site.test/"}))
        .await;
    assert!(!answer.text.contains('\u{1b}'), "{answer:?}");
}
