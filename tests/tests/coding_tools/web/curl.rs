use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use floe_environment::Rate;
use floe_network::DomainList;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{rig, rig_with};
use crate::rig::{Answer, Rig, definition};
use crate::site::{Answered, Site};

const LIMIT: usize = 50 * 1024 * 1024;

fn site() -> Site {
    Site::new(|asked| match asked.path.as_str() {
        "/gone" => Answered::new(404, "text/plain", "nothing"),
        "/moved" => Answered::redirect("/report.pdf"),
        _ => Answered::new(200, "application/pdf", "%PDF-1.7 a report"),
    })
}

async fn download(rig: &Rig, arguments: Value) -> Answer {
    let mut arguments = arguments;
    if arguments.get("url").is_none() {
        arguments["url"] = json!("http://site.test/report.pdf?v=2");
    }
    rig.call("curl", arguments).await
}

/// Everything in the Workspace but folders, by path.
fn files(rig: &Rig) -> Vec<String> {
    let root = rig.workspace();
    let mut found: Vec<String> = ignore::WalkBuilder::new(&root)
        .standard_filters(false)
        .build()
        .map(|entry| entry.unwrap())
        .filter(|entry| !entry.file_type().unwrap().is_dir())
        .map(|entry| {
            entry
                .path()
                .strip_prefix(&root)
                .unwrap()
                .display()
                .to_string()
        })
        .collect();
    found.sort();
    found
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn curl_needs_the_permission_to_write() {
    let definition = definition("curl");
    assert_eq!(definition.permission, floe_protocol::Permission::Write);
    assert_eq!(definition.parameters["required"], json!(["url"]));
}

#[tokio::test]
async fn a_download_tells_its_relative_path_size_type_and_the_right_digest() {
    let site = site();
    let rig = rig(&site);
    let answer = download(&rig, json!({})).await;
    let digest = sha256(b"%PDF-1.7 a report");
    assert_eq!(
        answer.completed(),
        format!(
            "Saved downloads/report.pdf\nbytes: 17\ncontent type: application/pdf\nsha256: {digest}"
        )
    );
    assert_eq!(
        answer.facts.structured.unwrap(),
        json!({"path": "downloads/report.pdf", "bytes_written": 17, "content_type": "application/pdf", "sha256": digest,
            "url": "http://site.test/report.pdf?v=2"})
    );
    assert_eq!(rig.read("downloads/report.pdf"), b"%PDF-1.7 a report");
}

#[tokio::test]
async fn the_name_comes_from_the_last_part_of_the_address_or_is_a_default() {
    let site = site();
    let rig = rig(&site);
    for (url, path) in [
        ("http://site.test/", "downloads/download.bin"),
        ("http://site.test/a/b.txt?name=../../c", "downloads/b.txt"),
        (
            "http://site.test/x/%2e%2e%2f%2e%2e%2fetc",
            "downloads/_.._etc",
        ),
        ("http://site.test/.profile", "downloads/profile"),
    ] {
        let answer = download(&rig, json!({"url": url})).await;
        assert!(
            answer.completed().starts_with(&format!("Saved {path}\n")),
            "{url}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn a_destination_is_relative_may_be_nested_and_is_neither_empty_nor_absolute_nor_climbs() {
    let site = site();
    let rig = rig(&site);
    for (destination, path) in [
        ("a.pdf", "a.pdf"),
        ("deep/er/a.pdf", "deep/er/a.pdf"),
        ("deep/", "deep/report.pdf"),
    ] {
        download(&rig, json!({"dest_path": destination}))
            .await
            .completed();
        assert_eq!(rig.read(path), b"%PDF-1.7 a report");
    }
    let before = files(&rig);
    for (destination, start) in [
        ("", "dest_path cannot be empty"),
        ("/etc/x", "dest_path must be relative — got absolute path"),
        ("../x", "dest_path may not contain '..'"),
        ("a/../../x", "dest_path may not contain '..'"),
    ] {
        let answer = download(&rig, json!({"dest_path": destination})).await;
        assert!(
            answer.failed().starts_with(start),
            "{destination:?}: {answer:?}"
        );
    }
    assert_eq!(files(&rig), before);
    assert_eq!(site.asked().len(), 3);
}

#[tokio::test]
async fn a_file_that_is_there_stays_unless_overwrite_is_set() {
    let site = site();
    let rig = rig(&site);
    rig.write("downloads/report.pdf", "mine");
    let answer = download(&rig, json!({})).await;
    assert_eq!(
        answer.failed(),
        "\"downloads/report.pdf\" is there already. Pass overwrite: true, or another dest_path."
    );
    assert!(site.asked().is_empty());
    download(&rig, json!({"overwrite": true})).await.completed();
    assert_eq!(rig.read("downloads/report.pdf"), b"%PDF-1.7 a report");
}

#[tokio::test]
async fn a_link_on_the_way_leads_nowhere_outside() {
    let site = site();
    let rig = rig(&site);
    let outside = rig.outside();
    fs::write(outside.join("kept"), "kept").unwrap();
    symlink(&outside, rig.path("downloads")).unwrap();
    symlink(outside.join("kept"), rig.path("file")).unwrap();
    download(&rig, json!({})).await.failed();
    for overwrite in [false, true] {
        let arguments = json!({"dest_path": "file", "overwrite": overwrite});
        download(&rig, arguments).await.failed();
    }
    assert_eq!(fs::read(outside.join("kept")).unwrap(), b"kept");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn a_protected_path_is_refused_before_anything_is_fetched() {
    let site = site();
    let rig = rig(&site);
    rig.write(".git/HEAD", "ref: refs/heads/main\n");
    for path in [".git/hooks/pre-commit", ".git/config", ".floe/config.yaml"] {
        let answer = download(&rig, json!({"dest_path": path, "overwrite": true})).await;
        answer.failed();
        assert!(!rig.path(path).exists(), "{path}");
    }
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn what_is_too_large_leaves_no_partial_whether_its_length_was_declared_or_not() {
    let site = Site::new(|asked| {
        let body = vec![b'x'; LIMIT + 1];
        match asked.path.as_str() {
            "/declared" => Answered::new(200, "text/plain", body),
            _ => Answered::new(200, "text/plain", body).without_length(),
        }
    });
    let rig = rig(&site);
    for path in ["declared", "streamed"] {
        let answer = download(&rig, json!({"url": format!("http://site.test/{path}")})).await;
        assert!(
            answer
                .failed()
                .starts_with("Download exceeded max_download_bytes (52428800 bytes)"),
            "{answer:?}"
        );
        assert!(files(&rig).is_empty(), "{:?}", files(&rig));
    }
}

#[tokio::test]
async fn a_download_of_the_largest_size_is_written_whole() {
    let body: Vec<u8> = (0..LIMIT).map(|index| (index % 251) as u8).collect();
    let digest = sha256(&body);
    let sent = body.clone();
    let site = Site::new(move |asked| {
        let answered = Answered::new(200, "application/octet-stream", sent.clone());
        match asked.path.as_str() {
            "/declared" => answered,
            _ => answered.without_length(),
        }
    });
    let rig = rig(&site);
    for path in ["declared", "streamed"] {
        let answer = download(&rig, json!({"url": format!("http://site.test/{path}")})).await;
        assert!(answer.completed().ends_with(&digest), "{answer:?}");
        assert!(rig.read(format!("downloads/{path}")) == body, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_nothing() {
    let site = Site::new(|_| {
        Answered::new(200, "text/plain", "half")
            .with("Content-Length", "1000")
            .without_length()
    });
    let rig = rig(&site);
    let answer = download(&rig, json!({})).await;
    assert!(answer.failed().starts_with("Stream error: "), "{answer:?}");
    assert!(files(&rig).is_empty());
}

#[tokio::test]
async fn a_digest_other_than_the_expected_one_saves_nothing() {
    let site = site();
    let rig = rig(&site);
    let wrong = "0".repeat(64);
    let answer = download(&rig, json!({"expected_sha256": wrong})).await;
    assert!(
        answer
            .failed()
            .starts_with("The digest is not the expected one, so nothing was saved"),
        "{answer:?}"
    );
    assert!(files(&rig).is_empty());
    let right = sha256(b"%PDF-1.7 a report").to_uppercase();
    download(&rig, json!({"expected_sha256": right}))
        .await
        .completed();
    let answer = download(&rig, json!({"expected_sha256": "abc", "overwrite": true})).await;
    assert!(
        answer
            .failed()
            .starts_with("expected_sha256 is no SHA-256 digest"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_status_that_is_no_success_saves_nothing_and_a_redirect_is_followed() {
    let site = site();
    let rig = rig(&site);
    let answer = download(&rig, json!({"url": "http://site.test/gone"})).await;
    assert_eq!(answer.failed(), "HTTP 404 Not Found: http://site.test/gone");
    assert!(files(&rig).is_empty());
    download(&rig, json!({"url": "http://site.test/moved"}))
        .await
        .completed();
    assert_eq!(files(&rig), ["downloads/moved"]);
}

#[tokio::test]
async fn a_host_that_is_not_allowed_is_rejected() {
    let rig = Rig::with(|options| options.gate.scope.allowed = DomainList::default());
    let answer = download(&rig, json!({"url": "https://site.example/a"})).await;
    assert!(answer.failed().starts_with("URL rejected: "), "{answer:?}");
    assert!(files(&rig).is_empty());
}

#[tokio::test]
async fn a_download_over_the_rate_saves_nothing() {
    let site = site();
    let rig = rig_with(&site, |options| {
        options.rate = Some(Rate {
            calls: 0,
            per: Duration::from_secs(3600),
        });
    });
    let answer = download(&rig, json!({})).await;
    assert!(answer.text.contains("Rate limit exceeded"), "{answer:?}");
    assert!(site.asked().is_empty() && files(&rig).is_empty());
}
