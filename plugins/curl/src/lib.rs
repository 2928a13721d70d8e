//! The tool `curl`: downloads a file into the Workspace.
//!
//! The file is written in one transaction when all of it has arrived, so that a download which fails, is too large or is not what was
//! expected leaves nothing, and what may not be written by an edit may not be written here.

mod destination;

use std::collections::BTreeMap;
use std::time::Duration;

use floe_tool::edits::Transaction;
use floe_tool::http::{Body, Head, Request, Response, Widen};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use floe_web::{is_redirect, status_line};

/// The largest download (spec/coding-tools.md, appendix A).
const MOST_BYTES: usize = 50 * 1024 * 1024;
const CHUNK: u32 = 1024 * 1024;
const TIME: Duration = Duration::from_secs(120);
const MOST_REDIRECTS: u32 = 5;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The address, with http: or https:.
    #[schemars(length(min = 1))]
    url: String,
    /// Where to save it, relative to the Workspace; with a / at the end it is a folder. Default: downloads/ and the name that the address
    /// suggests.
    dest_path: Option<String>,
    /// Header fields by name. {{secret:NAME}} in a value is filled in outside this tool, for the hosts that the secret is meant for.
    headers: Option<BTreeMap<String, String>>,
    /// Replace a file that is there already. Default false.
    overwrite: Option<bool>,
    /// The SHA-256 digest (hexadecimal) that the file must have; another one is not saved.
    expected_sha256: Option<String>,
    /// Asks the person to let this one call reach hosts that are not allowed. Only for what the task cannot do without.
    #[schemars(with = "Option<Widen>")]
    #[serde(rename = "widen")]
    _widen: Option<serde::de::IgnoredAny>,
}

/// What a program learns of a result.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Saved {
    /// Relative to the Workspace.
    path: String,
    /// How many bytes were written.
    bytes_written: usize,
    /// The content type as it was sent, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// The digest of the file, in hexadecimal.
    sha256: String,
    /// The address that answered.
    url: String,
}

struct Curl;

impl Tool for Curl {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "curl",
            "Downloads a file of the web into the Workspace: at most 50 MiB, in at most two minutes. The result names the path, the size, the content \
             type and the SHA-256 digest. A file that is there already stays unless overwrite is set, and a download that fails or is too large leaves \
             nothing. It sends GET only, and is no command line: for other requests use http_request, to read a page web_fetch.",
        )
        .permission(Permission::Write)
        .timeout_ms(150_000)
        .max_output_length(16_000)
        .carries_mib(50)
        .structured_output::<Saved>()
    }

    fn run(arguments: Arguments, context: &Context) -> Result<Outcome, Failure> {
        Ok(download(&arguments, &context.workspace_dir).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(Curl);

fn download(arguments: &Arguments, workspace: &str) -> Result<Outcome, String> {
    let path = destination::of(arguments.dest_path.as_deref(), &arguments.url, workspace)?;
    let headers = arguments.headers.clone().unwrap_or_default();
    floe_web::check(&headers)?;
    let expected = arguments
        .expected_sha256
        .as_deref()
        .map(digest)
        .transpose()?;
    let overwrite = arguments.overwrite.unwrap_or(false);
    // What cannot be written is not fetched.
    let replaces = stage(&path, &[], overwrite)?.replaces;
    let mut request = Request::get(&arguments.url)
        .timeout(TIME)
        .max_redirects(MOST_REDIRECTS);
    for (name, value) in &headers {
        request = request.header(name, value);
    }
    let failed = |failure: Failure| floe_web::explain("Download failed", &failure);
    let Response { head, body } = request.send().map_err(failed)?;
    answered(&head)?;
    let bytes = read(&body, declared(&head))?;
    drop(body);
    let sha256 = floe_editing::digest(&bytes);
    if let Some(expected) = expected.filter(|expected| *expected != sha256) {
        return Err(format!(
            "The digest is not the expected one, so nothing was saved: expected {expected}, got {sha256} ({} bytes).",
            bytes.len()
        ));
    }
    let staged = stage(&path, &bytes, replaces)?;
    floe_editing::commit(&staged.transaction)?;
    Ok(told(Saved {
        path,
        bytes_written: bytes.len(),
        content_type: head.header("content-type").map(str::to_owned),
        sha256,
        url: head.url,
    }))
}

struct Staged {
    transaction: Transaction,
    /// True where a file was there.
    replaces: bool,
}

/// Stages the file, or says why it cannot be written.
fn stage(path: &str, bytes: &[u8], overwrite: bool) -> Result<Staged, String> {
    let transaction = Transaction::begin().map_err(|failure| failure.explanation())?;
    let mut replaces = false;
    match transaction.create(path, bytes) {
        Err(failure) if failure.code == "exists" && overwrite => {
            transaction
                .replace(path, bytes, None)
                .map_err(|failure| failure.explanation())?;
            replaces = true;
        }
        Err(failure) if failure.code == "exists" => {
            return Err(format!(
                "\"{path}\" is there already. Pass overwrite: true, or another dest_path."
            ));
        }
        staged => staged.map_err(|failure| failure.explanation())?,
    }
    Ok(Staged {
        transaction,
        replaces,
    })
}

/// Refuses what is no file, by the head of the response.
fn answered(head: &Head) -> Result<(), String> {
    if is_redirect(head.status) {
        let mut target = String::new();
        let location = head.header("location").unwrap_or_default();
        floe_tool::output::push_on_one_line(location, &mut target);
        return Err(format!(
            "HTTP {}: {} leads to {target}, and was not followed. Call curl again with that address if it is the one you want.",
            status_line(head.status),
            head.url
        ));
    }
    if !(200..300).contains(&head.status) {
        return Err(format!("HTTP {}: {}", status_line(head.status), head.url));
    }
    match declared(head) {
        Some(length) if length > MOST_BYTES as u64 => Err(too_large()),
        _ => Ok(()),
    }
}

/// How long the body says it is, where it comes as it is sent.
fn declared(head: &Head) -> Option<u64> {
    match head.header("content-encoding") {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => None,
        _ => head.header("content-length")?.trim().parse().ok(),
    }
}

fn read(body: &Body, declared: Option<u64>) -> Result<Vec<u8>, String> {
    let room = declared.map_or(0, |length| length.min(MOST_BYTES as u64));
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    loop {
        let chunk = match body.read_chunk(CHUNK) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(bytes),
            Err(failure) if failure.code == "too-large" => return Err(too_large()),
            Err(failure) => return Err(floe_web::explain("Stream error", &failure)),
        };
        let length = bytes.len() + chunk.len();
        if length > MOST_BYTES {
            return Err(too_large());
        }
        if length > bytes.capacity() {
            // Doubling would not fit beside what is there.
            bytes.reserve_exact((length / 2 + length).min(MOST_BYTES) - bytes.len());
        }
        bytes.extend_from_slice(&chunk);
    }
}

fn too_large() -> String {
    format!(
        "Download exceeded max_download_bytes ({MOST_BYTES} bytes), so nothing was saved. Larger files need a command, such as curl in the shell, on a host that the person allows."
    )
}

/// A digest as it is compared.
fn digest(text: &str) -> Result<String, String> {
    let digest = text.trim().to_ascii_lowercase();
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then_some(digest).ok_or_else(|| {
        format!("expected_sha256 is no SHA-256 digest of 64 hexadecimal digits: {text:?}.")
    })
}

fn told(saved: Saved) -> Outcome {
    let mut kind = String::new();
    let declared = saved.content_type.as_deref().unwrap_or("none declared");
    floe_tool::output::push_on_one_line(declared, &mut kind);
    let text = format!(
        "Saved {}\nbytes: {}\ncontent type: {kind}\nsha256: {}",
        saved.path, saved.bytes_written, saved.sha256
    );
    Outcome::text(text).with_structured(&saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, headers: &[(&str, &str)]) -> Head {
        Head {
            status,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            url: "https://a.example/f".into(),
        }
    }

    #[test]
    fn only_a_success_of_a_size_that_fits_is_a_file() {
        assert_eq!(
            answered(&head(200, &[("Content-Length", "52428800")])),
            Ok(())
        );
        assert_eq!(
            answered(&head(404, &[])),
            Err("HTTP 404 Not Found: https://a.example/f".into())
        );
        let redirected = answered(&head(302, &[("Location", "https://b.example/")]));
        assert!(
            redirected
                .unwrap_err()
                .contains("leads to https://b.example/")
        );
        let large = answered(&head(200, &[("Content-Length", "52428801")]));
        assert!(
            large
                .unwrap_err()
                .starts_with("Download exceeded max_download_bytes (52428800 bytes)")
        );
    }

    #[test]
    fn a_length_counts_only_where_nothing_was_compressed() {
        assert_eq!(declared(&head(200, &[("Content-Length", "7")])), Some(7));
        let compressed = head(
            200,
            &[("Content-Length", "7"), ("Content-Encoding", "gzip")],
        );
        assert_eq!(declared(&compressed), None);
        assert_eq!(declared(&head(200, &[("Content-Length", "many")])), None);
    }

    #[test]
    fn a_digest_is_compared_in_lower_case_and_nothing_else_is_one() {
        assert_eq!(
            digest(&format!(" {} ", "AB".repeat(32))),
            Ok("ab".repeat(32))
        );
        for wrong in ["", "abc", &"g".repeat(64)] {
            assert!(digest(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_result_names_path_size_type_and_digest() {
        let outcome = told(Saved {
            path: "downloads/f".into(),
            bytes_written: 3,
            content_type: Some("text/plain".into()),
            sha256: "ab".into(),
            url: "https://a.example/f".into(),
        });
        assert_eq!(
            outcome.last_text(),
            Some("Saved downloads/f\nbytes: 3\ncontent type: text/plain\nsha256: ab")
        );
    }
}
