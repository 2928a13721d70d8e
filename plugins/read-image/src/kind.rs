//! What kind of image some bytes are: by their first bytes, and only where those say nothing by what was declared and by the name. Pure.

/// The MIME types that models take.
pub(crate) const SUPPORTED: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The MIME type; a lying extension or content type is not believed.
pub(crate) fn of(data: &[u8], declared: Option<&str>, name: &str) -> &'static str {
    by_content(data)
        .or_else(|| by_declaration(declared?))
        .or_else(|| by_extension(name))
        .unwrap_or("application/octet-stream")
}

fn by_content(data: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 10] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"BM", "image/bmp"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (b"\0\0\x01\0", "image/x-icon"),
        (b"%PDF-", "application/pdf"),
        (b"<svg", "image/svg+xml"),
    ];
    if data.len() >= 12 && data.starts_with(b"RIFF") && &data[8..12] == b"WEBP" {
        return Some("image/webp");
    }
    known
        .iter()
        .find(|(magic, _)| data.starts_with(magic))
        .map(|(_, kind)| *kind)
}

fn by_declaration(content_type: &str) -> Option<&'static str> {
    let named = content_type.split(';').next()?.trim();
    SUPPORTED
        .into_iter()
        .find(|kind| kind.eq_ignore_ascii_case(named))
}

fn by_extension(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "svg" => "image/svg+xml",
        "tif" | "tiff" => "image/tiff",
        "avif" => "image/avif",
        "heic" => "image/heic",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_beat_the_extension() {
        assert_eq!(of(b"\x89PNG\r\n\x1a\nrest", None, "photo.jpg"), "image/png");
        assert_eq!(of(b"RIFF\x01\x02\x03\x04WEBPVP8 ", None, "a"), "image/webp");
        assert_eq!(of(b"GIF89a", None, "a.png"), "image/gif");
        assert_eq!(of(b"\xff\xd8\xff\xe0", None, "a.png"), "image/jpeg");
        assert_eq!(of(b"BM\x01\x02", None, "a.png"), "image/bmp");
    }

    #[test]
    fn the_extension_counts_where_the_bytes_say_nothing() {
        assert_eq!(of(b"????", None, "a.PNG"), "image/png");
        assert_eq!(of(b"????", None, "dir.png/a"), "application/octet-stream");
        assert_eq!(of(b"????", None, "a"), "application/octet-stream");
    }

    #[test]
    fn a_declared_type_counts_before_the_extension_and_after_the_bytes() {
        assert_eq!(of(b"????", Some("Image/PNG; x=y"), "a.gif"), "image/png");
        assert_eq!(of(b"GIF89a", Some("image/png"), "a"), "image/gif");
        assert_eq!(of(b"????", Some("text/html"), "a.gif"), "image/gif");
    }

    #[test]
    fn bytes_cut_short_are_no_webp() {
        assert_eq!(of(b"RIFF\0\0", None, "a"), "application/octet-stream");
    }
}
