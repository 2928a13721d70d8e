//! The tool `web_fetch`: what is at an address of the web, as Markdown, text or HTML, in pages.
//!
//! What may be reached is decided by the host's gate. Redirects are followed here, one request each, and only within one host: where
//! another one is meant the model is told.

mod html;
mod page;
mod writer;

use std::time::Duration;

use floe_tool::http::{Head, Request, Response, Widen};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use floe_web::{Decoded, PROVENANCE, is_redirect, media_type, status_line};
use writer::Form;

const NAME: &str = "web_fetch";
/// What is read of a body, decompressed (spec/coding-tools.md, appendix A).
const MOST_BYTES: u32 = 1_000_000;
/// Characters of one result.
const PAGE: usize = 24_000;
/// What is shown of the body of a failure, in bytes that are read and in characters.
const EXCERPT_BYTES: usize = 64 * 1024;
const EXCERPT: usize = 2_000;
const MOST_REDIRECTS: usize = 5;
const TIME: Duration = Duration::from_secs(30);
const ACCEPT: &str = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,*/*;q=0.5";
/// Further pages of a document come out of the host's memory.
const CACHE: &str = "max-age=900";

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The address, with http: or https:.
    #[schemars(length(min = 1))]
    url: String,
    /// What a page becomes: markdown (the default), text, or html as it was sent. Other texts come as they are.
    format: Option<Format>,
    /// How many bytes to read at most. Default and limit: 1000000.
    #[schemars(range(min = 0, max = 1_000_000))]
    max_bytes: Option<u32>,
    /// How many characters to skip: the offset that the note of an earlier call names. Default 0.
    offset: Option<u64>,
    /// Asks the person to let this one call reach hosts that are not allowed. Only for what the task cannot do without.
    #[schemars(with = "Option<Widen>")]
    #[serde(rename = "widen")]
    _widen: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Format {
    Markdown,
    Text,
    Html,
}

/// What a program learns of a result.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Fetched {
    /// The address that answered.
    url: String,
    /// The status code.
    status: u16,
    /// The content type as it was sent, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// The charset that was read.
    charset: String,
    /// Characters of the whole text.
    characters: usize,
    /// The offset to go on with, where there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
    /// True where the body is longer than what was read.
    truncated: bool,
}

struct WebFetch;

impl Tool for WebFetch {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            NAME,
            "Reads what is at an address of the web. A page comes as Markdown, with scripts and styles left out and links made absolute; other text comes \
             as it is; what is no text is refused (save it with curl). Up to 24000 characters come at once, and a note says with which offset to go on. \
             A redirect to another host is not followed: the result names where it leads. A status of 400 or more is a failure, with an excerpt of what \
             was sent.",
        )
        .alias("webfetch")
        .permission(Permission::ReadOnly)
        .timeout_ms(45_000)
        .max_output_length(24_000)
        .structured_output::<Fetched>()
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(fetch(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(WebFetch);

fn fetch(arguments: &Arguments) -> Result<Outcome, String> {
    let Response { head, body } = match follow(&arguments.url)? {
        Followed::Answer(response) => response,
        Followed::Elsewhere(head) => return Ok(Outcome::text(elsewhere(&head))),
    };
    let is_failure = head.status >= 400;
    let most = match arguments.max_bytes {
        _ if is_failure => EXCERPT_BYTES,
        None | Some(0) => MOST_BYTES as usize,
        Some(asked) => asked.min(MOST_BYTES) as usize,
    };
    let (bytes, is_cut) = match body.read(most) {
        Ok(read) => read,
        // The status says more than a body that broke off.
        Err(_) if is_failure => (Vec::new(), true),
        Err(failure) => return Err(floe_web::explain("Failed to fetch", &failure)),
    };
    if is_failure {
        return Err(refused(&head, &bytes, is_cut));
    }
    show(&head, &bytes, is_cut, arguments)
}

enum Followed {
    Answer(Response),
    /// A redirect that is not followed.
    Elsewhere(Head),
}

fn follow(url: &str) -> Result<Followed, String> {
    let mut url = url.to_owned();
    for _ in 0..=MOST_REDIRECTS {
        let response = Request::get(&url)
            .header("Accept", ACCEPT)
            .header("Cache-Control", CACHE)
            .timeout(TIME)
            .max_redirects(0)
            .send()
            .map_err(|failure| floe_web::explain("Failed to fetch", &failure))?;
        let location = response.head.header("location").map(str::to_owned);
        let Some(location) = location.filter(|_| is_redirect(response.head.status)) else {
            return Ok(Followed::Answer(response));
        };
        let target = floe_web::resolve(&response.head.url, &location);
        match target.filter(|target| floe_web::leads_to_same_host(&response.head.url, target)) {
            Some(target) => url = target,
            None => return Ok(Followed::Elsewhere(response.head)),
        }
    }
    Err(format!(
        "Too many redirects: {MOST_REDIRECTS} were followed, and the last led to {url}."
    ))
}

/// What is told of a redirect that is not followed.
fn elsewhere(head: &Head) -> String {
    let location = head.header("location").unwrap_or_default();
    let target = floe_web::resolve(&head.url, location).unwrap_or_else(|| location.to_owned());
    let mut line = format!("status={} url={} location=", head.status, head.url);
    floe_tool::output::push_on_one_line(&target, &mut line);
    format!(
        "{line}\nThe redirect leads elsewhere and was not followed. If that is what you want, call {NAME} again with that address."
    )
}

/// What is told of a status of 400 and more.
fn refused(head: &Head, bytes: &[u8], is_cut: bool) -> String {
    let mut told = format!("HTTP {}: {}", status_line(head.status), head.url);
    if let Some(after) = head.header("retry-after") {
        told.push_str("\nRetry-After: ");
        floe_tool::output::push_on_one_line(after, &mut told);
    }
    let decoded = floe_web::decode(bytes, head.header("content-type"), is_cut);
    if !floe_web::is_text(&decoded.text) {
        return told;
    }
    let text = converted(head, &decoded, Format::Markdown);
    let excerpt: String = text.trim().chars().take(EXCERPT).collect();
    if !excerpt.is_empty() {
        let more = if excerpt.len() < text.trim().len() {
            "…"
        } else {
            ""
        };
        told.push_str(&format!("\n{PROVENANCE}\n\n{excerpt}{more}"));
    }
    told
}

fn show(head: &Head, bytes: &[u8], is_cut: bool, arguments: &Arguments) -> Result<Outcome, String> {
    let content_type = head.header("content-type");
    let decoded = floe_web::decode(bytes, content_type, is_cut);
    if !floe_web::is_text(&decoded.text) {
        return Err(binary(head));
    }
    let text = converted(head, &decoded, arguments.format.unwrap_or(Format::Markdown));
    let mut first = format!("status={} url={} content-type=", head.status, head.url);
    let media_type = media_type(content_type.unwrap_or("none"));
    floe_tool::output::push_on_one_line(&media_type, &mut first);
    let first = format!("{first} charset={}\n{PROVENANCE}\n\n", decoded.charset);
    let room = PAGE.saturating_sub(first.chars().count()).max(PAGE / 2);
    let offset = usize::try_from(arguments.offset.unwrap_or(0)).unwrap_or(usize::MAX);
    let page = page::cut(&text, offset, room)?;
    let mut notes: Vec<String> = page.note().into_iter().collect();
    if is_cut {
        notes.push(format!(
            "[truncated at {} bytes; the body is longer]",
            bytes.len()
        ));
    }
    if decoded.is_guess {
        notes.push(format!(
            "[no charset was declared and the body is not UTF-8: it was read as {}]",
            decoded.charset
        ));
    } else if decoded.is_lossy && !is_cut {
        notes.push(format!(
            "[some bytes are not {}: they show as \u{fffd}]",
            decoded.charset
        ));
    }
    let fetched = Fetched {
        url: head.url.clone(),
        status: head.status,
        content_type: content_type.map(str::to_owned),
        charset: decoded.charset,
        characters: page.total,
        next_offset: page.next(),
        truncated: is_cut,
    };
    let body = if page.total == 0 {
        "[empty body]"
    } else {
        page.text
    };
    let outcome = Outcome::text(format!("{first}{body}")).with_structured(&fetched);
    Ok(match notes.is_empty() {
        true => outcome,
        false => outcome.with_note(notes.join("\n")),
    })
}

/// A body in the form that was asked for, where it is a page, and else as it is.
fn converted(head: &Head, decoded: &Decoded, format: Format) -> String {
    let form = match format {
        Format::Html => return decoded.text.clone(),
        Format::Markdown => Form::Markdown,
        Format::Text => Form::Text,
    };
    let declared = media_type(head.header("content-type").unwrap_or_default());
    if is_page(&declared, &decoded.text) {
        html::convert(&decoded.text, &head.url, form)
    } else {
        decoded.text.clone()
    }
}

/// Whether a body is HTML: what says so has to hold a tag at least, and what says nothing has to begin like a page.
fn is_page(media_type: &str, text: &str) -> bool {
    match media_type {
        "text/html" | "application/xhtml+xml" => html::has_tags(text),
        "" | "application/octet-stream" => {
            let beginning: String = text.trim_start().chars().take(14).collect();
            let beginning = beginning.to_ascii_lowercase();
            beginning.starts_with("<!doctype html") || beginning.starts_with("<html")
        }
        _ => false,
    }
}

fn binary(head: &Head) -> String {
    let declared = media_type(head.header("content-type").unwrap_or_default());
    let kind = if declared.is_empty() {
        "of no declared type"
    } else {
        &declared
    };
    let look = if declared.starts_with("image/") {
        ", or look at it with read_image"
    } else {
        ""
    };
    format!(
        "Binary content is not shown ({kind}): {}. Save it to a file with curl{look}.",
        head.url
    )
}

#[cfg(test)]
mod tests;
