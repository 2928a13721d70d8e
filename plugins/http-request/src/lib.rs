//! The tool `http_request`: one request, and all that came back but what is secret.
//!
//! Its permission depends on the method: what only reads is read-only, everything else is a write. Redirects are shown and not followed.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_tool::http::{Head, Request, Widen};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use floe_web::{PROVENANCE, status_line};

/// What is read of a body, decompressed (spec/coding-tools.md, appendix A).
const MOST_BYTES: usize = 1_000_000;
const TIME: Duration = Duration::from_secs(30);
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
/// Methods that change nothing.
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
const CUT: &str = "\n... [Response truncated due to size limit] ...";

#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The address, with http: or https:.
    #[schemars(length(min = 1))]
    url: String,
    /// GET (the default), HEAD, OPTIONS, POST, PUT, PATCH or DELETE.
    method: Option<String>,
    /// Header fields by name. {{secret:NAME}} in a value is filled in outside this tool, for the hosts that the secret is meant for.
    headers: Option<BTreeMap<String, String>>,
    /// The body, as text.
    body: Option<String>,
    /// A body as JSON, instead of body; content-type becomes application/json unless headers name another.
    json: Option<serde_json::Value>,
    /// Asks the person to let this one call reach hosts that are not allowed. Only for what the task cannot do without.
    #[schemars(with = "Option<Widen>")]
    #[serde(rename = "widen")]
    _widen: Option<serde::de::IgnoredAny>,
}

impl Arguments {
    fn method(&self) -> String {
        self.method.as_deref().map_or_else(
            || "GET".to_owned(),
            |method| method.trim().to_ascii_uppercase(),
        )
    }
}

/// What a program learns of a result.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Answered {
    /// The status code.
    status: u16,
    /// The address that answered.
    url: String,
    /// Names in lower case and values; credentials are left out.
    headers: Vec<(String, String)>,
    /// Bytes of the body that were read.
    bytes: usize,
    /// True where the body is longer than that.
    truncated: bool,
}

struct HttpRequest;

impl Tool for HttpRequest {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "http_request",
            "Sends one HTTP request and returns the status, the response headers and the body, also of failures. Redirects are shown, not followed. \
             GET, HEAD and OPTIONS only read; the other methods need the permission to write, and their host has to be one that the person lets data \
             be sent to. Up to 1000000 bytes of a body are read, of which up to 30000 characters are shown; what is no text is not shown. Headers \
             that belong to the connection (Host, Content-Length, Transfer-Encoding, Proxy-*) cannot be set.",
        )
        .permission(Permission::ReadOnly)
        .permission_varies()
        .timeout_ms(45_000)
        .max_output_length(30_000)
        .structured_output::<Answered>()
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(send(&arguments).unwrap_or_else(Outcome::failed))
    }

    fn permission_for(arguments: &Arguments) -> Permission {
        if READING.contains(&arguments.method().as_str()) {
            Permission::ReadOnly
        } else {
            Permission::Write
        }
    }
}

floe_tool::export!(HttpRequest);

fn send(arguments: &Arguments) -> Result<Outcome, String> {
    let method = checked(arguments)?;
    let mut request = Request::new(&method, &arguments.url)
        .timeout(TIME)
        .max_redirects(0);
    let headers = arguments.headers.iter().flatten();
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(body) = &arguments.body {
        request = request.body(body.as_bytes());
    } else if let Some(json) = &arguments.json {
        if !names_content_type(arguments) {
            request = request.header("Content-Type", "application/json");
        }
        request = request.body(json.to_string());
    }
    let failed = |failure: Failure| floe_web::explain("HTTP request failed", &failure);
    let response = request.send().map_err(failed)?;
    match response.body.read(MOST_BYTES) {
        Ok((bytes, is_cut)) => Ok(show(&response.head, &bytes, is_cut)),
        Err(failure) => Ok(broken_off(&response.head, &failure)),
    }
}

/// The method, where the request can be sent at all.
fn checked(arguments: &Arguments) -> Result<String, String> {
    let method = arguments.method();
    if !METHODS.contains(&method.as_str()) {
        return Err(format!(
            "Unsupported HTTP method: {method}. Use one of {}.",
            METHODS.join(", ")
        ));
    }
    floe_web::check(arguments.headers.as_ref().unwrap_or(&BTreeMap::new()))?;
    if arguments.body.is_some() && arguments.json.is_some() {
        return Err("There is both a body and a json argument. Pass one of them.".into());
    }
    Ok(method)
}

fn names_content_type(arguments: &Arguments) -> bool {
    let mut names = arguments.headers.iter().flatten().map(|(name, _)| name);
    names.any(|name| name.eq_ignore_ascii_case("content-type"))
}

/// What came before the body. That of a failure begins with the word by which failures are known.
fn beginning(head: &Head) -> String {
    let word = if head.status >= 400 {
        "HTTP"
    } else {
        "Status:"
    };
    let mut text = format!("{word} {}\nResponse Headers:\n", status_line(head.status));
    for (name, value) in floe_web::shown(&head.headers) {
        text.push_str(&format!("  {name}: {value}\n"));
    }
    text
}

fn show(head: &Head, bytes: &[u8], is_cut: bool) -> Outcome {
    let mut text = beginning(head);
    let decoded = floe_web::decode(bytes, head.header("content-type"), is_cut);
    if bytes.is_empty() {
        text.push_str("\n[no body]");
    } else if floe_web::is_text(&decoded.text) {
        text.push_str(&format!("\nResponse Body:\n{PROVENANCE}\n"));
        text.push_str(&decoded.text);
        if is_cut {
            text.push_str(CUT);
        }
    } else {
        let more = if is_cut { "more than " } else { "" };
        text.push_str(&format!(
            "\n[binary body of {more}{} bytes is not shown; save it with curl]",
            bytes.len()
        ));
    }
    let outcome = if head.status >= 400 {
        Outcome::failed(text)
    } else {
        Outcome::text(text)
    };
    outcome.with_structured(&Answered {
        status: head.status,
        url: head.url.clone(),
        headers: floe_web::shown(&head.headers),
        bytes: bytes.len(),
        truncated: is_cut,
    })
}

/// What is known of a response whose body did not arrive.
fn broken_off(head: &Head, failure: &Failure) -> Outcome {
    let reason = floe_web::explain("HTTP request failed", failure);
    Outcome::failed(format!("{reason}\n{}", beginning(head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(method: &str) -> Arguments {
        Arguments {
            url: "https://a.example/".into(),
            method: Some(method.into()),
            ..Arguments::default()
        }
    }

    fn head(status: u16, headers: &[(&str, &str)]) -> Head {
        Head {
            status,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            url: "https://a.example/".into(),
        }
    }

    #[test]
    fn the_methods_are_known_in_any_case_and_others_are_not() {
        for method in ["GET", "post", "Put", "DELETE", "PATCH", "HEAD", "OPTIONS"] {
            assert_eq!(checked(&arguments(method)), Ok(method.to_ascii_uppercase()));
        }
        for method in ["TRACE", "CONNECT", "", "GET /"] {
            let refused = checked(&arguments(method)).unwrap_err();
            assert!(
                refused.starts_with("Unsupported HTTP method: "),
                "{refused}"
            );
        }
    }

    #[test]
    fn what_only_reads_is_read_only_and_everything_else_a_write() {
        for method in ["GET", "head", "OPTIONS"] {
            let permission = HttpRequest::permission_for(&arguments(method));
            assert_eq!(permission, Permission::ReadOnly, "{method}");
        }
        for method in ["POST", "PUT", "PATCH", "DELETE", "nonsense"] {
            let permission = HttpRequest::permission_for(&arguments(method));
            assert_eq!(permission, Permission::Write, "{method}");
        }
        assert_eq!(
            HttpRequest::permission_for(&Arguments::default()),
            Permission::ReadOnly
        );
    }

    #[test]
    fn two_bodies_and_headers_of_the_connection_are_refused_before_anything_is_sent() {
        let both = Arguments {
            body: Some("a".into()),
            json: Some(serde_json::json!({})),
            ..arguments("POST")
        };
        assert!(
            checked(&both)
                .unwrap_err()
                .starts_with("There is both a body and a json")
        );
        let host = Arguments {
            headers: Some(BTreeMap::from([("Host".into(), "b".into())])),
            ..arguments("GET")
        };
        assert!(
            checked(&host)
                .unwrap_err()
                .contains("\"Host\" cannot be set")
        );
    }

    #[test]
    fn header_values_are_shown_and_credentials_are_not() {
        let head = head(
            200,
            &[("Content-Type", "text/plain"), ("Set-Cookie", "a=b")],
        );
        let outcome = show(&head, b"hello", false);
        assert!(outcome.is_completed());
        assert_eq!(
            outcome.last_text().unwrap(),
            "Status: 200 OK\nResponse Headers:\n  content-type: text/plain\n  set-cookie: ***REDACTED***\n\nResponse Body:\n[what follows is text from the web, not from the person]\nhello"
        );
    }

    #[test]
    fn the_body_of_a_failure_and_the_target_of_a_redirect_are_kept() {
        let outcome = show(&head(404, &[("X-Why", "gone")]), b"no such thing", false);
        assert!(!outcome.is_completed());
        assert_eq!(
            outcome.last_text().unwrap(),
            "HTTP 404 Not Found\nResponse Headers:\n  x-why: gone\n\nResponse Body:\n[what follows is text from the web, not from the person]\nno such thing"
        );
        let outcome = show(
            &head(302, &[("Location", "https://b.example/")]),
            b"",
            false,
        );
        assert!(outcome.is_completed());
        assert_eq!(
            outcome.last_text().unwrap(),
            "Status: 302 Found\nResponse Headers:\n  location: https://b.example/\n\n[no body]"
        );
    }

    #[test]
    fn a_body_that_was_cut_says_so_and_one_within_the_limit_does_not() {
        assert!(
            show(&head(200, &[]), b"abc", true)
                .last_text()
                .unwrap()
                .ends_with(CUT)
        );
        assert!(
            show(&head(200, &[]), b"abc", false)
                .last_text()
                .unwrap()
                .ends_with("\nabc")
        );
    }

    #[test]
    fn a_binary_body_is_counted_and_not_shown() {
        let outcome = show(
            &head(200, &[("content-type", "image/png")]),
            b"\x89PNG\0\0",
            false,
        );
        let text = outcome.last_text().unwrap();
        assert!(
            text.ends_with("[binary body of 6 bytes is not shown; save it with curl]"),
            "{text}"
        );
    }
}
