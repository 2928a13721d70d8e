//! The tool `read_image`: shows an image of the Workspace to a model that can see.
//!
//! It reads files of the Workspace only; an address on the web is refused in so many words.

mod kind;

use floe_tool::workspace::{self, EntryKind};
use floe_tool::{Context, Definition, Failure, ModelClass, Outcome, Permission, Tool};

const NAME: &str = "read_image";
const LARGEST: u64 = 5 * 1024 * 1024;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The path of the image, relative to the Workspace.
    #[schemars(length(min = 1))]
    source: String,
}

struct ReadImage;

impl Tool for ReadImage {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            NAME,
            "Shows you an image file of the Workspace: png, jpeg, gif or webp, at most 5 MB. Addresses on the web are not fetched.",
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
    if is_web_address(source) {
        return Err(format!(
            "Failed to download image \"{source}\": only images in the Workspace can be read. Save it there first and pass its path."
        ));
    }
    let entry = workspace::stat(source).map_err(|failure| unreadable(source, &failure))?;
    if entry.kind != EntryKind::File {
        return Err(format!(
            "Failed to read image \"{source}\": path is not a file"
        ));
    }
    check_size(source, entry.size)?;
    let data = workspace::read(source, LARGEST).map_err(|failure| unreadable(source, &failure))?;
    check_size(source, data.len() as u64)?;
    let kind = kind::of(&data, source);
    if !kind::SUPPORTED.contains(&kind) {
        return Err(format!(
            "Unsupported image type \"{kind}\": only png, jpeg, gif and webp are supported."
        ));
    }
    Ok(Outcome::text(format!("{kind}, {}", human_size(data.len() as u64))).with_image(kind, data))
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
    fn a_web_address_is_refused_with_what_to_do() {
        for source in ["http://x/a.png", "https://x/a.png", "HTTPS://x/a.png"] {
            let message = show(source).unwrap_err();
            assert!(
                message.starts_with(&format!("Failed to download image \"{source}\": ")),
                "{message}"
            );
        }
        assert!(!is_web_address("httpd/a.png"));
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
