//! What kind of image some bytes are: by their first bytes, and by the name only where those say nothing. Pure.

/// The MIME types that models take.
pub(crate) const SUPPORTED: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The MIME type; a lying extension is not believed.
pub(crate) fn of(data: &[u8], name: &str) -> &'static str {
    by_content(data)
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
        assert_eq!(of(b"\x89PNG\r\n\x1a\nrest", "photo.jpg"), "image/png");
        assert_eq!(of(b"RIFF\x01\x02\x03\x04WEBPVP8 ", "a"), "image/webp");
        assert_eq!(of(b"GIF89a", "a.png"), "image/gif");
        assert_eq!(of(b"\xff\xd8\xff\xe0", "a.png"), "image/jpeg");
        assert_eq!(of(b"BM\x01\x02", "a.png"), "image/bmp");
    }

    #[test]
    fn the_extension_counts_where_the_bytes_say_nothing() {
        assert_eq!(of(b"????", "a.PNG"), "image/png");
        assert_eq!(of(b"????", "dir.png/a"), "application/octet-stream");
        assert_eq!(of(b"????", "a"), "application/octet-stream");
    }

    #[test]
    fn bytes_cut_short_are_no_webp() {
        assert_eq!(of(b"RIFF\0\0", "a"), "application/octet-stream");
    }
}
