use serde_json::json;

use super::rig;
use crate::rig::Rig;
use crate::site::{Answered, Site};

/// The beginning of a PNG, which is what counts.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

#[tokio::test]
async fn an_image_of_the_web_is_shown_like_one_of_the_workspace() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/moved" => Answered::redirect("/image"),
        _ => Answered::new(200, "image/jpeg", IMAGE),
    });
    let rig = rig(&site);
    for path in ["image", "moved"] {
        let answer = rig
            .call(
                "read_image",
                json!({"source": format!("http://site.test/{path}")}),
            )
            .await;
        assert_eq!(answer.completed(), "image/png, 16 B");
        assert!(
            answer.images[0].starts_with("data:image/png;base64,"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn what_is_no_image_of_a_size_that_fits_is_refused() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/gone" => Answered::new(404, "image/png", IMAGE),
        "/page" => Answered::page("<p>no image"),
        "/empty" => Answered::new(200, "image/png", ""),
        "/large" => Answered::new(200, "image/png", vec![0; 6 << 20]),
        _ => Answered::new(200, "image/png", vec![0; 6 << 20]).without_length(),
    });
    let rig = rig(&site);
    for (path, expected) in [
        (
            "gone",
            "Failed to download image \"http://site.test/gone\": HTTP 404 Not Found",
        ),
        (
            "page",
            "Unsupported image type \"application/octet-stream\": only png, jpeg, gif and webp are supported.",
        ),
        ("empty", "Image \"http://site.test/empty\" is empty."),
        ("large", "Image too large: 6.0 MB exceeds the 5.0 MB limit."),
        (
            "streamed",
            "Image too large: 5.0 MB exceeds the 5.0 MB limit.",
        ),
    ] {
        let answer = rig
            .call(
                "read_image",
                json!({"source": format!("http://site.test/{path}")}),
            )
            .await;
        assert_eq!(answer.failed(), expected);
    }
}

#[tokio::test]
async fn an_image_at_an_address_that_is_not_public_is_rejected() {
    let answer = Rig::new()
        .call("read_image", json!({"source": "http://127.0.0.1/a.png"}))
        .await;
    assert!(answer.failed().starts_with("URL rejected: "), "{answer:?}");
}
