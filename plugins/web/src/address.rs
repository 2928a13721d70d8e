//! Addresses as text: where a reference on a page leads, and which file name an address suggests. Pure. The host's gate parses every
//! address anew before anything is reached; where this module is in doubt it says no.

/// What every address is made of, as RFC 3986 takes it apart.
struct Parts<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

/// The parts of an `http:` or `https:` address, without its fragment.
fn parts(url: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        return None;
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (before, query) = match rest.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = before.split_at(before.find('/').unwrap_or(before.len()));
    let is_plain = !authority.is_empty() && !authority.contains(['@', '\\', '%']);
    is_plain.then_some(Parts {
        scheme,
        authority,
        path,
        query,
    })
}

/// Where `reference`, on the page at `base`, leads (RFC 3986, section 5.2). None where that is no address of the web.
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    let reference: String = reference
        .trim_matches(|character: char| character.is_control() || character == ' ')
        .chars()
        .filter(|character| !matches!(character, '\t' | '\n' | '\r'))
        .collect();
    if let Some(scheme) = scheme(&reference) {
        let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        return (is_web && parts(&reference).is_some()).then_some(reference);
    }
    let base = parts(base)?;
    if reference.starts_with("//") {
        return Some(format!("{}:{reference}", base.scheme));
    }
    let (before, fragment) = match reference.find('#') {
        Some(start) => reference.split_at(start),
        None => (reference.as_str(), ""),
    };
    let (path, query) = match before.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (before, None),
    };
    let (path, query) = if path.is_empty() {
        (base.path.to_owned(), query.or(base.query))
    } else if path.starts_with('/') {
        (without_dots(path), query)
    } else {
        let folder = base.path.rfind('/').map_or("/", |end| &base.path[..=end]);
        (without_dots(&format!("{folder}{path}")), query)
    };
    let path = if path.is_empty() { "/" } else { &path };
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Some(format!(
        "{}://{}{path}{query}{fragment}",
        base.scheme, base.authority
    ))
}

/// The scheme of an address that has one.
fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let mut letters = scheme.bytes();
    let is_scheme = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some(scheme)
}

/// A path with its `.` and `..` taken out.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let ends_as_folder = matches!(segments.last(), Some(&("." | ".." | "")));
    for segment in segments {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    if ends_as_folder && kept.last() != Some(&"") {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
}

/// Whether a redirect from `from` stays with the same host and port, and does not give up encryption. A step from `http:` to `https:` at
/// their own ports is such a redirect.
pub fn leads_to_same_host(from: &str, to: &str) -> bool {
    let (Some(from), Some(to)) = (parts(from), parts(to)) else {
        return false;
    };
    let endpoint = |parts: &Parts<'_>| {
        let authority = parts.authority.to_ascii_lowercase();
        let is_encrypted = parts.scheme.eq_ignore_ascii_case("https");
        let default = if is_encrypted { "443" } else { "80" };
        match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host.to_owned(), port.to_owned(), is_encrypted)
            }
            _ => (authority, default.to_owned(), is_encrypted),
        }
    };
    let (from_host, from_port, was_encrypted) = endpoint(&from);
    let (to_host, to_port, is_encrypted) = endpoint(&to);
    from_host == to_host
        && match (was_encrypted, is_encrypted) {
            (true, false) => false,
            (false, true) => (from_port.as_str(), to_port.as_str()) == ("80", "443"),
            _ => from_port == to_port,
        }
}

/// The longest file name that is made of an address, in bytes.
const LONGEST_NAME: usize = 100;

/// A file name for what is at an address: its last segment without what a file name should not hold; `download.bin` where that leaves
/// nothing.
pub fn file_name(url: &str) -> String {
    let path = parts(url).map_or("", |parts| parts.path);
    let last = path.rsplit('/').next().unwrap_or_default();
    let safe: String = percent_decoded(last)
        .chars()
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' | '+' => character,
            other if other.is_alphanumeric() => other,
            _ => '_',
        })
        .collect();
    let name = safe.trim_start_matches(['.', '-']).trim_end_matches('.');
    let mut name = &name[..name.floor_char_boundary(LONGEST_NAME)];
    if name
        .chars()
        .all(|character| matches!(character, '_' | '.' | '-'))
    {
        name = "download.bin";
    }
    name.to_owned()
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = bytes.get(index + 1..index + 3);
        let value = (bytes[index] == b'%')
            .then_some(hex)
            .flatten()
            .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(value.unwrap_or(bytes[index]));
        index += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_resolved_as_a_browser_does() {
        let base = "https://a.example:8443/b/c/d?q#f";
        for (reference, expected) in [
            ("g", "https://a.example:8443/b/c/g"),
            ("./g/", "https://a.example:8443/b/c/g/"),
            ("/g", "https://a.example:8443/g"),
            ("//o.example/g", "https://o.example/g"),
            ("?y", "https://a.example:8443/b/c/d?y"),
            ("g?y#s", "https://a.example:8443/b/c/g?y#s"),
            ("#s", "https://a.example:8443/b/c/d?q#s"),
            ("", "https://a.example:8443/b/c/d?q"),
            (".", "https://a.example:8443/b/c/"),
            ("..", "https://a.example:8443/b/"),
            ("../g", "https://a.example:8443/b/g"),
            ("../../../g", "https://a.example:8443/g"),
            ("/./a/../b", "https://a.example:8443/b"),
            ("a:b/c", "none"),
            ("HTTP://x.example", "HTTP://x.example"),
            (" \n/g\n", "https://a.example:8443/g"),
            ("javascript:alert(1)", "none"),
            ("mailto:a@b.example", "none"),
            ("data:text/html,x", "none"),
            ("http://", "none"),
        ] {
            let resolved = resolve(base, reference);
            assert_eq!(
                resolved.as_deref().unwrap_or("none"),
                expected,
                "{reference}"
            );
        }
        assert_eq!(
            resolve("http://a.example", "b").as_deref(),
            Some("http://a.example/b")
        );
    }

    #[test]
    fn a_redirect_stays_only_where_host_and_port_do_and_encryption_is_kept() {
        for (from, to, stays) in [
            ("http://a.example/", "http://A.example/x", true),
            ("http://a.example/", "https://a.example/", true),
            ("http://a.example:80/", "http://a.example/", true),
            ("https://a.example/", "http://a.example/", false),
            ("http://a.example:8080/", "https://a.example/", false),
            ("http://a.example:8080/", "http://a.example:8080/x", true),
            ("http://a.example/", "http://www.a.example/", false),
            ("http://a.example/", "http://a.example@b.example/", false),
            ("http://a.example/", "http://a.example\\@b.example/", false),
            ("http://[2001:db8::1]/", "http://[2001:db8::1]:80/", true),
            ("http://a.example/", "ftp://a.example/", false),
        ] {
            assert_eq!(leads_to_same_host(from, to), stays, "{from} -> {to}");
        }
    }

    #[test]
    fn a_file_name_is_the_last_segment_made_harmless() {
        for (url, expected) in [
            ("https://a.example/x/report.pdf", "report.pdf"),
            ("https://a.example/x/report.pdf?v=2#top", "report.pdf"),
            ("https://a.example/", "download.bin"),
            ("https://a.example", "download.bin"),
            ("https://a.example/..", "download.bin"),
            ("https://a.example/.bashrc", "bashrc"),
            ("https://a.example/-rf", "rf"),
            ("https://a.example/a%2f..%2Fb", "a_.._b"),
            ("https://a.example/na%C3%AFve%20name.txt", "naïve_name.txt"),
            ("https://a.example/%00%0a", "download.bin"),
            ("nonsense", "download.bin"),
        ] {
            assert_eq!(file_name(url), expected, "{url}");
        }
        let long = format!("https://a.example/{}", "é".repeat(200));
        assert!(file_name(&long).len() <= LONGEST_NAME);
    }
}
