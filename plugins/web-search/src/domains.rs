//! Which results are shown, by the domain of their address. Pure. This sorts results and protects nothing.

/// Domains that results must be of, where there are any, and domains that they must not be of.
#[derive(Debug, Default)]
pub(crate) struct Domains {
    allowed: Vec<String>,
    blocked: Vec<String>,
}

impl Domains {
    pub(crate) fn new(allowed: Option<Vec<String>>, blocked: Option<Vec<String>>) -> Domains {
        let normal = |list: Option<Vec<String>>| {
            let hosts = list.into_iter().flatten().map(|domain| host(&domain));
            hosts.filter(|host| !host.is_empty()).collect()
        };
        Domains {
            allowed: normal(allowed),
            blocked: normal(blocked),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.allowed.is_empty() && self.blocked.is_empty()
    }

    /// Whether a result with this address is shown.
    pub(crate) fn admit(&self, url: &str) -> bool {
        let host = host(url);
        let is_below = |domain: &String| {
            let above = host.strip_suffix(domain.as_str());
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        (self.allowed.is_empty() || self.allowed.iter().any(is_below))
            && !self.blocked.iter().any(is_below)
    }
}

/// The host of an address or of a domain as people write it: without scheme, path, port and a leading `*.`.
fn host(text: &str) -> String {
    let text = text.trim();
    let after = text.split_once("://").map_or(text, |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    let named = authority.rsplit('@').next().unwrap_or_default();
    let host = named.split(':').next().unwrap_or_default();
    let host = host.strip_prefix("*.").unwrap_or(host);
    host.trim_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(allowed: &[&str], blocked: &[&str]) -> Domains {
        let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        Domains::new(list(allowed), list(blocked))
    }

    #[test]
    fn a_domain_stands_for_itself_and_what_is_below_it() {
        let docs = domains(&["https://Docs.Example/path", "*.rust-lang.org"], &[]);
        for (url, is_shown) in [
            ("https://docs.example/x", true),
            ("http://a.docs.example:8080", true),
            ("https://doc.rust-lang.org/std", true),
            ("https://mydocs.example/", false),
            ("https://docs.example.evil.test/", false),
            ("https://evil.test/docs.example", false),
        ] {
            assert_eq!(docs.admit(url), is_shown, "{url}");
        }
    }

    #[test]
    fn what_is_blocked_is_left_out_and_an_empty_list_says_nothing() {
        let both = domains(&["example.com"], &["bad.example.com"]);
        assert!(both.admit("https://good.example.com/") && !both.admit("https://bad.example.com/"));
        let none = domains(&["", " "], &[]);
        assert!(none.is_empty() && none.admit("https://any.example/"));
    }
}
