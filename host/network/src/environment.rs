//! The variables that lead programs through the proxy. Most programs know `HTTP_PROXY` and its kin in one case or the other;
//! the rest have their own.

use crate::credentials::USER;

/// What a command reaches without the proxy: the loopback of its own Session.
const DIRECT: &str = "localhost,127.0.0.1,::1,[::1]";

/// The variables for a proxy on this port of the loopback.
pub(crate) fn variables(port: u16, token: Option<&str>) -> Vec<(String, String)> {
    let user = token.map_or_else(String::new, |token| format!("{USER}:{token}@"));
    let http = format!("http://{user}127.0.0.1:{port}");
    // Names go to the proxy as names: nothing in the sandbox could resolve them.
    let socks = format!("socks5h://{user}127.0.0.1:{port}");
    let both_cases = |name: &str, value: &str| {
        [name.to_owned(), name.to_ascii_lowercase()].map(|name| (name, value.to_owned()))
    };
    let mut variables = Vec::new();
    variables.extend(both_cases("HTTP_PROXY", &http));
    variables.extend(both_cases("HTTPS_PROXY", &http));
    variables.extend(both_cases("ALL_PROXY", &socks));
    variables.extend(both_cases("NO_PROXY", DIRECT));
    // Node looks at the variables above only when it is told to.
    variables.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_the_proxy_under_every_name_they_know() {
        let value = |variables: &[(String, String)], name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.unwrap_or_else(|| panic!("{name}")).1.clone()
        };
        let plain = variables(1234, None);
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
            assert_eq!(value(&plain, name), "http://127.0.0.1:1234");
        }
        for name in ["ALL_PROXY", "all_proxy"] {
            assert_eq!(value(&plain, name), "socks5h://127.0.0.1:1234");
        }
        for name in ["NO_PROXY", "no_proxy"] {
            assert!(value(&plain, name).starts_with("localhost,127.0.0.1,"));
        }
        let own = variables(1234, Some("12"));
        assert_eq!(value(&own, "https_proxy"), "http://floe:12@127.0.0.1:1234");
        assert_eq!(value(&own, "all_proxy"), "socks5h://floe:12@127.0.0.1:1234");
    }
}
