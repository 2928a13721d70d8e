use super::*;

fn grants(entries: &[&str]) -> HostGrants {
    HostGrants::parse(entries).unwrap()
}

fn route(entries: &[&str], target: &str) -> Option<Route> {
    grants(entries).route(&Target::parse(target, None).unwrap())
}

#[test]
fn a_grant_is_shown_in_its_one_spelling() {
    for (entry, shown) in [
        ("Example.com", "example.com:443"),
        ("example.com.:80", "example.com:80"),
        ("*.Bücher.example", "*.xn--bcher-kva.example:443"),
        ("8.8.8.8:53", "8.8.8.8:53"),
        ("[2606:4700::1]", "[2606:4700::1]:443"),
        ("a.test=127.0.0.1", "a.test:443=127.0.0.1"),
        ("a.test:80=127.0.0.1:8080", "a.test:80=127.0.0.1:8080"),
        ("a.test=[::1]:8443", "a.test:443=[::1]:8443"),
        ("a.test=::1", "a.test:443=[::1]"),
        ("127.0.0.1:80=127.0.0.1", "127.0.0.1:80=127.0.0.1"),
        ("*.a.test=10.0.0.1", "*.a.test:443=10.0.0.1"),
    ] {
        let grant: HostGrant = entry.parse().unwrap();
        assert_eq!(grant.to_string(), shown);
        assert_eq!(shown.parse::<HostGrant>().unwrap(), grant);
    }
}

#[test]
fn what_is_no_grant_says_what_to_write() {
    for (entry, reason) in [
        (
            "https://example.com",
            "write the host alone, as NAME or NAME:PORT.",
        ),
        (
            "example.com/path",
            "write the host alone, as NAME or NAME:PORT.",
        ),
        ("*", "not every host can be granted; name them."),
        ("*.com", "a whole top-level domain cannot be granted."),
        (
            "*.1.2.3.4",
            "write NAME, *.NAME or an address, each with or without :PORT.",
        ),
        (
            "a.*.com",
            "write NAME, *.NAME or an address, each with or without :PORT.",
        ),
        (
            "",
            "write NAME, *.NAME or an address, each with or without :PORT.",
        ),
        (
            "me@example.com",
            "write NAME, *.NAME or an address, each with or without :PORT.",
        ),
        ("example.com:0", "a port is a number from 1 to 65535."),
        ("example.com:https", "a port is a number from 1 to 65535."),
        (
            "127.0.0.1:80",
            "this address is not a public one; write 127.0.0.1:80=127.0.0.1 to mean it.",
        ),
        (
            "0x7f.1",
            "this address is not a public one; write 127.0.0.1:443=127.0.0.1 to mean it.",
        ),
        (
            "a=b",
            "write an address after `=`, as 127.0.0.1 or 127.0.0.1:8443.",
        ),
        ("a=0.0.0.0", "nothing can be reached at that address."),
        ("a=224.0.0.1:1", "nothing can be reached at that address."),
    ] {
        let error = entry.parse::<HostGrant>().unwrap_err();
        assert_eq!(error.reason, reason, "{entry}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("\"{entry}\" is no granted host: "))
        );
    }
}

#[test]
fn a_target_is_granted_by_name_and_port() {
    assert_eq!(
        route(&["example.com"], "example.com:443"),
        Some(Route::Resolve)
    );
    assert_eq!(
        route(&["example.com"], "EXAMPLE.COM.:443"),
        Some(Route::Resolve)
    );
    for other in [
        "example.com:80",
        "www.example.com:443",
        "notexample.com:443",
        "com:443",
    ] {
        assert_eq!(route(&["example.com"], other), None, "{other}");
    }
    assert_eq!(route(&[], "example.com:443"), None);
}

#[test]
fn a_star_stands_for_every_name_below_but_not_for_the_name_itself() {
    let below = ["*.example.com:80"];
    assert_eq!(route(&below, "a.example.com:80"), Some(Route::Resolve));
    assert_eq!(route(&below, "a.b.example.com:80"), Some(Route::Resolve));
    for other in ["example.com:80", "aexample.com:80", "a.example.com:443"] {
        assert_eq!(route(&below, other), None, "{other}");
    }
}

#[test]
fn an_address_is_granted_only_as_an_address() {
    let expected = Route::Literal("8.8.8.8:443".parse().unwrap());
    assert_eq!(route(&["8.8.8.8"], "8.8.8.8:443"), Some(expected));
    assert_eq!(route(&["8.8.8.8"], "0x08080808:443"), Some(expected));
    assert_eq!(route(&["dns.google"], "8.8.8.8:443"), None);
}

#[test]
fn a_grant_that_names_the_address_comes_first() {
    let expected = Route::Pinned("127.0.0.1:8443".parse().unwrap());
    for entries in [
        ["a.test", "a.test=127.0.0.1:8443"],
        ["a.test=127.0.0.1:8443", "a.test"],
    ] {
        assert_eq!(route(&entries, "a.test:443"), Some(expected));
    }
    let same_port = Route::Pinned("127.0.0.1:443".parse().unwrap());
    assert_eq!(route(&["a.test=127.0.0.1"], "a.test:443"), Some(same_port));
}

#[test]
fn a_list_is_narrowed_to_what_both_grant() {
    let person = grants(&[
        "*.example.com",
        "crates.io",
        "a.test=127.0.0.1:1",
        "b.test:80",
    ]);
    let narrowed = |entries: &[&str]| {
        let both = person.intersect(&grants(entries));
        both.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(narrowed(&["api.example.com"]), "api.example.com:443");
    assert_eq!(
        narrowed(
            &["*.io", "*.crates.io"]
                .map(|e| e.replace("*.io", "*.eu.example.com"))
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
        ),
        "*.eu.example.com:443"
    );
    assert_eq!(narrowed(&["crates.io", "pypi.org"]), "crates.io:443");
    assert_eq!(narrowed(&["crates.io=127.0.0.1"]), "");
    assert_eq!(narrowed(&["a.test"]), "a.test:443=127.0.0.1:1");
    assert_eq!(narrowed(&["a.test=127.0.0.1:2"]), "");
    assert_eq!(narrowed(&["b.test"]), "");
    assert_eq!(narrowed(&[]), "");
}

#[test]
fn what_a_call_asks_for_cannot_say_what_address_a_name_stands_for() {
    let error = HostGrants::parse_names(&["a.test", "b.test=127.0.0.1"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"b.test=127.0.0.1\" is no granted host: only the person's own configuration says what address a name stands for."
    );
    assert!(HostGrants::parse_names(&["a.test", "*.b.test:80"]).is_ok());
    // Whoever could write addresses that are not public would need no name.
    assert!(HostGrants::parse_names(&["127.0.0.1"]).is_err());
}

fn entry() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::strategy::Strategy;
    (
        proptest::sample::select(&["", "*."][..]),
        proptest::sample::select(&["a.b.test", "b.test", "c.test", "a.c.test"][..]),
        proptest::sample::select(&["", ":80"][..]),
        proptest::sample::select(&["", "=127.0.0.1", "=10.0.0.1:7"][..]),
    )
        .prop_map(|(star, name, port, pin)| format!("{star}{name}{port}{pin}"))
}

proptest::proptest! {
    #[test]
    fn narrowing_never_grants_what_the_wider_list_does_not(
        wider in proptest::collection::vec(entry(), 0..4),
        narrower in proptest::collection::vec(entry(), 0..4),
        name in proptest::sample::select(&["a.b.test", "b.test", "x.a.b.test", "c.test", "a.c.test"][..]),
        port in proptest::sample::select(&[80_u16, 443][..]),
    ) {
        let (wider, narrower) = (HostGrants::parse(&wider).unwrap(), HostGrants::parse(&narrower).unwrap());
        let both = wider.intersect(&narrower);
        let target = Target { host: Host::Name(name.to_owned()), port };
        if let Some(route) = both.route(&target) {
            proptest::prop_assert!(narrower.route(&target).is_some());
            let of_wider: Vec<_> = wider.iter().filter_map(|grant| grant.route(&target)).collect();
            proptest::prop_assert!(of_wider.contains(&route), "{route:?} is not among {of_wider:?}");
        }
        proptest::prop_assert!(wider.covers(&both));
    }

    #[test]
    fn anything_can_be_read_and_what_is_a_grant_keeps_its_meaning(entry in "\\PC{0,30}|[*a-z0-9.:=\\[\\]]{0,30}") {
        if let Ok(grant) = entry.parse::<HostGrant>() {
            proptest::prop_assert_eq!(grant.to_string().parse::<HostGrant>(), Ok(grant));
        }
    }
}
