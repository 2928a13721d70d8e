use super::*;

fn head(status: u16, headers: &[(&str, &str)]) -> Head {
    Head {
        status,
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        url: "https://a.example/d/page".into(),
    }
}

fn arguments(format: Option<Format>, offset: Option<u64>) -> Arguments {
    Arguments {
        url: String::new(),
        format,
        max_bytes: None,
        offset,
        _widen: None,
    }
}

fn shown(content_type: &str, bytes: &[u8], format: Option<Format>) -> Outcome {
    let head = head(200, &[("Content-Type", content_type)]);
    show(&head, bytes, false, &arguments(format, None)).unwrap()
}

fn body(outcome: &Outcome) -> &str {
    let text = outcome.last_text().unwrap();
    text.split_once(&format!("{PROVENANCE}\n\n")).unwrap().1
}

#[test]
fn the_first_line_names_status_address_type_and_charset() {
    let outcome = shown("text/html; charset=ISO-8859-1", b"<p>na\xefve", None);
    assert_eq!(
        outcome.last_text().unwrap(),
        "status=200 url=https://a.example/d/page content-type=text/html charset=windows-1252\n\
         [what follows is text from the web, not from the person]\n\nnaïve"
    );
    assert_eq!(outcome.note(), None);
}

#[test]
fn a_page_comes_as_markdown_text_or_as_it_is() {
    let page = b"<h1>A</h1><a href=b>c</a>";
    assert_eq!(
        body(&shown("text/html", page, None)),
        "# A\n\n[c](https://a.example/d/b)"
    );
    assert_eq!(
        body(&shown("text/html", page, Some(Format::Text))),
        "A\n\nc"
    );
    let raw = shown("text/html", page, Some(Format::Html));
    assert_eq!(body(&raw), "<h1>A</h1><a href=b>c</a>");
}

#[test]
fn other_text_comes_as_it_is_and_a_type_is_believed_no_further_than_the_body_bears_out() {
    let json = b"{\"a\": \"<b>\"}";
    assert_eq!(
        body(&shown("application/json", json, None)),
        "{\"a\": \"<b>\"}"
    );
    assert_eq!(
        body(&shown("text/html", b"{\"a\":\n 1}", None)),
        "{\"a\":\n 1}"
    );
    assert_eq!(
        body(&shown(
            "application/octet-stream",
            b"<!DOCTYPE HTML><p>x",
            None
        )),
        "x"
    );
    let head = head(200, &[("content-type", "text/html")]);
    let refused = show(
        &head,
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        false,
        &arguments(None, None),
    );
    assert_eq!(
        refused.unwrap_err(),
        "Binary content is not shown (text/html): https://a.example/d/page. Save it to a file with curl."
    );
}

#[test]
fn binary_content_is_refused_with_what_to_use_instead() {
    let head = head(200, &[("content-type", "image/png")]);
    assert!(binary(&head).ends_with("Save it to a file with curl, or look at it with read_image."));
}

#[test]
fn a_long_text_comes_in_pages_that_fit_the_limit() {
    let text = "word ".repeat(12_000);
    let outcome = shown("text/plain", text.as_bytes(), None);
    assert_eq!(outcome.last_text().unwrap().chars().count(), PAGE);
    let note = outcome.note().unwrap();
    assert!(note.starts_with("[characters 0–23"), "{note}");
    assert!(
        note.contains(" of 60000; continue with offset 23"),
        "{note}"
    );
    let head = head(200, &[("content-type", "text/plain")]);
    let past = show(
        &head,
        text.as_bytes(),
        false,
        &arguments(None, Some(60_000)),
    );
    assert!(
        past.unwrap_err()
            .starts_with("Offset 60000 is past the end")
    );
}

#[test]
fn what_was_cut_guessed_or_lost_is_said() {
    let head = head(200, &[("content-type", "text/plain")]);
    let cut = show(&head, b"abc", true, &arguments(None, None)).unwrap();
    assert_eq!(
        cut.note(),
        Some("[truncated at 3 bytes; the body is longer]")
    );
    let guessed = shown("text/plain", b"na\xefve", None);
    assert!(
        guessed
            .note()
            .unwrap()
            .contains("it was read as windows-1252")
    );
    let lossy = shown(
        "text/plain; charset=utf-8",
        b"a word \xff and more words",
        None,
    );
    assert!(
        lossy
            .note()
            .unwrap()
            .starts_with("[some bytes are not utf-8")
    );
    assert_eq!(body(&shown("text/plain", b"", None)), "[empty body]");
}

#[test]
fn a_failure_shows_its_status_when_to_come_back_and_an_excerpt() {
    let head = head(
        503,
        &[("content-type", "text/html"), ("Retry-After", "120")],
    );
    assert_eq!(
        refused(
            &head,
            b"<h1>Busy</h1><script>x</script><p>Come back.",
            false
        ),
        "HTTP 503 Service Unavailable: https://a.example/d/page\nRetry-After: 120\n\
         [what follows is text from the web, not from the person]\n\n# Busy\n\nCome back."
    );
    let long = refused(&head, "x".repeat(5000).as_bytes(), false);
    assert!(long.ends_with("x…") && long.len() < 2300, "{}", long.len());
    assert!(refused(&head, b"\0\0\0", false).ends_with("Retry-After: 120"));
}

#[test]
fn a_redirect_elsewhere_names_where_it_leads() {
    let head = head(302, &[("Location", "//b.example/x")]);
    assert!(elsewhere(&head).starts_with(
        "status=302 url=https://a.example/d/page location=https://b.example/x\nThe redirect leads elsewhere"
    ));
}
