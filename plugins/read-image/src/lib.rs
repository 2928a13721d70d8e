//! The tool `read_image`: shows an image of the Workspace or of the web to a model that can see. What of the web may be reached is decided by
//! the host's gate.

mod kind;

use floe_tool::http::{Head, Request, Widen};
use floe_tool::workspace::{self, EntryKind};
use floe_tool::{Context, Definition, Failure, ModelClass, Outcome, Permission, Tool};

const NAME: &str = "read_image";
const LARGEST: u64 = 5 * 1024 * 1024;
const MOST_REDIRECTS: u32 = 5;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The path of the image, relative to the Workspace, or its address with http: or https:.
    #[schemars(length(min = 1))]
    source: String,
    /// Asks the person to let this one call reach hosts that are not allowed. Only for what the task cannot do without.
    #[schemars(with = "Option<Widen>")]
    #[serde(rename = "widen")]
    _widen: Option<serde::de::IgnoredAny>,
}

struct ReadImage;

impl Tool for ReadImage {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            NAME,
            "Shows you an image, a file of the Workspace or one of the web: png, jpeg, gif or webp, at most 5 MB.",
        )
        .permission(Permission::ReadOnly)
        .for_model(ModelClass::Vision)
        .timeout_ms(60_000)
        .max_output_length(16_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        if arguments.source.is_empty() {
            return Ok(Outcome::missing_argument("source", NAME));
        }
        Ok(show(&arguments.source).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(ReadImage);

fn show(source: &str) -> Result<Outcome, String> {
    let (data, declared) = if is_web_address(source) {
        download(source)?
    } else {
        (read(source)?, None)
    };
    check_size(source, data.len() as u64)?;
    let kind = kind::of(&data, declared.as_deref(), source);
    if !kind::SUPPORTED.contains(&kind) {
        return Err(format!(
            "Unsupported image type \"{kind}\": only png, jpeg, gif and webp are supported."
        ));
    }
    Ok(Outcome::text(format!("{kind}, {}", human_size(data.len() as u64))).with_image(kind, data))
}

fn read(source: &str) -> Result<Vec<u8>, String> {
    let entry = workspace::stat(source).map_err(|failure| unreadable(source, &failure))?;
    if entry.kind != EntryKind::File {
        return Err(format!(
            "Failed to read image \"{source}\": path is not a file"
        ));
    }
    check_size(source, entry.size)?;
    workspace::read(source, LARGEST).map_err(|failure| unreadable(source, &failure))
}

/// The bytes at an address, and the type that they are declared to have.
fn download(source: &str) -> Result<(Vec<u8>, Option<String>), String> {
    let failed = |failure: Failure| {
        let prefix = format!("Failed to download image \"{source}\"");
        floe_web::explain(&prefix, &failure)
    };
    let response = Request::get(source)
        .header("Accept", kind::SUPPORTED.join(","))
        .max_redirects(MOST_REDIRECTS)
        .send()
        .map_err(failed)?;
    answered(source, &response.head)?;
    let (data, is_longer) = response.body.read(LARGEST as usize).map_err(failed)?;
    // What is left unread is not counted: it is longer by a byte at least.
    check_size(source, data.len() as u64 + u64::from(is_longer))?;
    let declared = response.head.header("content-type").map(str::to_owned);
    Ok((data, declared))
}

/// Refuses by the head of a response what cannot be an image that fits.
fn answered(source: &str, head: &Head) -> Result<(), String> {
    if head.status != 200 {
        return Err(format!(
            "Failed to download image \"{source}\": HTTP {}",
            floe_web::status_line(head.status)
        ));
    }
    let length = head
        .header("content-length")
        .and_then(|length| length.trim().parse().ok());
    match length {
        Some(length) if length > LARGEST => check_size(source, length),
        _ => Ok(()),
    }
}

fn is_web_address(source: &str) -> bool {
    let scheme = source.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn check_size(source: &str, bytes: u64) -> Result<(), String> {
    match bytes {
        0 => Err(format!("Image \"{source}\" is empty.")),
        bytes if bytes > LARGEST => Err(format!(
            "Image too large: {} exceeds the {} limit.",
            human_size(bytes),
            human_size(LARGEST)
        )),
        _ => Ok(()),
    }
}

fn unreadable(source: &str, failure: &Failure) -> String {
    match failure.code.as_str() {
        "outside-workspace" => failure.explanation(),
        _ => format!(
            "Failed to read image \"{source}\": {}",
            failure.explanation()
        ),
    }
}

/// A size for people, in steps of 1024.
fn human_size(bytes: u64) -> String {
    const KILO: f64 = 1024.0;
    let size = bytes as f64;
    if size < KILO {
        format!("{bytes} B")
    } else if size < KILO * KILO {
        format!("{:.1} kB", size / KILO)
    } else {
        format!("{:.1} MB", size / KILO / KILO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_known_by_its_scheme() {
        for source in ["http://x/a.png", "https://x/a.png", "HTTPS://x/a.png"] {
            assert!(is_web_address(source), "{source}");
        }
        assert!(!is_web_address("httpd/a.png"));
    }

    #[test]
    fn a_failure_and_a_declared_length_that_is_too_large_are_refused_by_the_head() {
        let head = |status, length: &str| Head {
            status,
            headers: vec![("Content-Length".into(), length.into())],
            url: "https://a.example/a.png".into(),
        };
        assert_eq!(
            answered("https://a.example/a.png", &head(200, "100")),
            Ok(())
        );
        assert_eq!(
            answered("https://a.example/a.png", &head(404, "100")),
            Err("Failed to download image \"https://a.example/a.png\": HTTP 404 Not Found".into())
        );
        assert_eq!(
            answered("https://a.example/a.png", &head(200, "6291456")),
            Err("Image too large: 6.0 MB exceeds the 5.0 MB limit.".into())
        );
    }

    #[test]
    fn an_empty_and_a_too_large_image_are_refused() {
        assert_eq!(
            check_size("a.png", 0),
            Err("Image \"a.png\" is empty.".into())
        );
        assert_eq!(check_size("a.png", LARGEST), Ok(()));
        assert_eq!(
            check_size("a.png", 6 * 1024 * 1024),
            Err("Image too large: 6.0 MB exceeds the 5.0 MB limit.".into())
        );
    }

    #[test]
    fn sizes_are_in_steps_of_1024_with_one_decimal() {
        assert_eq!(human_size(68), "68 B");
        assert_eq!(human_size(1536), "1.5 kB");
        assert_eq!(human_size(LARGEST), "5.0 MB");
    }

    #[test]
    fn a_failure_of_the_host_names_the_source_and_the_cause() {
        let failure = Failure::new("not-found", "There is no \"a.png\".")
            .with_hint("Did you mean \"b.png\"?");
        assert_eq!(
            unreadable("a.png", &failure),
            "Failed to read image \"a.png\": There is no \"a.png\". Did you mean \"b.png\"?"
        );
    }
}
