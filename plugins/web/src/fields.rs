//! Header fields: those that a tool may set, and how those of a response are shown. Pure.

use std::collections::BTreeMap;

/// What stands in the place of a value that is not shown.
const HIDDEN: &str = "***REDACTED***";

/// Fields that belong to the connection and not to the request.
const FORBIDDEN: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Refuses a request's fields that cannot be sent, before anything is.
///
/// # Errors
/// A sentence for the model.
pub fn check(headers: &BTreeMap<String, String>) -> Result<(), String> {
    for (name, value) in headers {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("{name:?} is no name of a header."));
        }
        if value
            .chars()
            .any(|character| character.is_control() && character != '\t')
        {
            return Err(format!(
                "The value of header \"{name}\" holds a line break or another control character."
            ));
        }
        let lower = name.to_ascii_lowercase();
        if FORBIDDEN.contains(&lower.as_str()) || lower.starts_with("proxy-") {
            return Err(format!(
                "Header \"{name}\" cannot be set: it belongs to the connection. Leave it out."
            ));
        }
    }
    Ok(())
}

/// The fields of a response as they are shown: names in lower case, control characters written out, and the values of those that hold
/// credentials replaced. What was received stays as it is.
pub fn shown(headers: &[(String, String)]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            let is_credential = matches!(
                name.as_str(),
                "set-cookie" | "set-cookie2" | "authorization" | "authentication-info"
            ) || name.starts_with("proxy-");
            let mut line = String::new();
            if is_credential {
                line.push_str(HIDDEN);
            } else {
                floe_tool::output::push_on_one_line(value, &mut line);
            }
            (name, line)
        })
        .collect()
}

/// The media type of a `content-type`, in lower case and without its parameters.
pub fn media_type(content_type: &str) -> String {
    let value = content_type.split(';').next().unwrap_or_default();
    value.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str) -> Result<(), String> {
        check(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn fields_of_the_connection_are_refused() {
        for name in [
            "Host",
            "CONTENT-LENGTH",
            "transfer-encoding",
            "Proxy-Authorization",
            "proxy-x",
            "Upgrade",
        ] {
            let refused = one(name, "x").unwrap_err();
            assert!(
                refused.contains(name) && refused.contains("cannot be set"),
                "{refused}"
            );
        }
        for name in ["Authorization", "Accept", "X-Custom", "Cookie"] {
            assert_eq!(one(name, "{{secret:TOKEN}}"), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_line_break_smuggles_no_further_field() {
        for (name, value) in [
            ("X", "a\r\nHost: b"),
            ("X", "a\nb"),
            ("X", "a\0"),
            ("X\r\nY", "a"),
            ("", "a"),
            ("X Y", "a"),
        ] {
            assert!(one(name, value).is_err(), "{name:?}: {value:?}");
        }
    }

    #[test]
    fn values_are_shown_and_credentials_are_not() {
        let received = vec![
            ("Content-Type".to_owned(), "text/html".to_owned()),
            ("Set-Cookie".to_owned(), "session=1".to_owned()),
            ("Proxy-Authenticate".to_owned(), "Basic".to_owned()),
            ("X-Line".to_owned(), "a\u{1b}[31m".to_owned()),
        ];
        let before = received.clone();
        let shown = shown(&received);
        let line = |index: usize| format!("{}: {}", shown[index].0, shown[index].1);
        assert_eq!(line(0), "content-type: text/html");
        assert_eq!(line(1), format!("set-cookie: {HIDDEN}"));
        assert_eq!(line(2), format!("proxy-authenticate: {HIDDEN}"));
        assert_eq!(line(3), "x-line: a\\u{1b}[31m");
        assert_eq!(received, before);
    }

    #[test]
    fn a_media_type_has_no_parameters() {
        assert_eq!(media_type(" Text/HTML ; charset=utf-8"), "text/html");
        assert_eq!(media_type(""), "");
    }
}
