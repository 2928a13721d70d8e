//! A table of URLs with what the gate decides about each: every way to write an address, to hide one in another, to make one host look
//! like another, and what is public and let through. Nothing here connects.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use tokio::time::{Duration, Instant};

use super::address::Address;
use super::denial::Why;
use super::error::GateError;
use super::{DomainList, Gate, GateOptions, Reach, Scope};
use crate::grants::HostGrants;
use crate::resolver::Resolve;

/// What is decided about a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// It goes to this host, which is public.
    To(&'static str),
    /// It is no URL that is understood.
    Invalid,
    /// Its host lies inside.
    Local,
    /// Its name leads inside.
    Rebinding,
    /// Its host is blocked.
    Blocked,
    /// Its port is not allowed.
    Port,
    /// Its name leads nowhere.
    Unknown,
}

use Decision::{Blocked, Invalid, Local, Port, Rebinding, To, Unknown};

/// The names that there are in this world.
const NAMES: [(&str, &[&str]); 12] = [
    (
        "example.com",
        &["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
    ),
    ("www.example.com", &["93.184.215.14"]),
    ("xn--bcher-kva.example", &["93.184.215.14"]),
    ("xn--e1aybc.example", &["93.184.215.14"]),
    ("under_score.example", &["93.184.215.14"]),
    ("localhost.example.com", &["93.184.215.14"]),
    ("127.0.0.1.nip.example", &["127.0.0.1"]),
    ("mixed.example", &["93.184.215.14", "10.0.0.1"]),
    (
        "mixed6.example",
        &["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::1"],
    ),
    ("metadata.example", &["169.254.169.254"]),
    ("nat64.example", &["64:ff9b::a9fe:a9fe"]),
    ("empty.example", &[]),
];

const CORPUS: &[(&str, Decision)] = &[
    // Public names, however they are written.
    ("https://example.com", To("example.com:443")),
    ("http://example.com/", To("example.com:80")),
    ("HTTPS://EXAMPLE.COM/Path", To("example.com:443")),
    ("  https://example.com/  ", To("example.com:443")),
    ("https://example.com./", To("example.com:443")),
    (
        "https://www.example.com/?q=http://127.0.0.1/",
        To("www.example.com:443"),
    ),
    ("https://example.com/#@127.0.0.1", To("example.com:443")),
    (
        "https://example.com/http://localhost/",
        To("example.com:443"),
    ),
    ("https://example.com/a@b", To("example.com:443")),
    ("https://example.com?a", To("example.com:443")),
    ("https://example.com:443/", To("example.com:443")),
    ("http://example.com:443/", To("example.com:443")),
    ("https://example.com:80/", To("example.com:80")),
    ("https://example.com:/", To("example.com:443")),
    ("https://example.com:0443/", To("example.com:443")),
    ("https://bücher.example/", To("xn--bcher-kva.example:443")),
    ("https://BÜCHER.example/", To("xn--bcher-kva.example:443")),
    (
        "https://xn--bcher-kva.example/",
        To("xn--bcher-kva.example:443"),
    ),
    ("https://тест.example/", To("xn--e1aybc.example:443")),
    ("https://ｅｘａｍｐｌｅ.com/", To("example.com:443")),
    ("https://example。com/", To("example.com:443")),
    ("https://ex\u{ad}ample.com/", To("example.com:443")),
    ("https://ⓔxample.com/", To("example.com:443")),
    (
        "https://under_score.example/",
        To("under_score.example:443"),
    ),
    (
        "https://localhost.example.com/",
        To("localhost.example.com:443"),
    ),
    ("https:///example.com/", Invalid),
    // Public addresses.
    ("http://8.8.8.8/", To("8.8.8.8:80")),
    ("https://1.1.1.1/", To("1.1.1.1:443")),
    ("http://134744072/", To("8.8.8.8:80")),
    ("http://0x08080808/", To("8.8.8.8:80")),
    ("http://010.010.010.010/", To("8.8.8.8:80")),
    ("http://8.8.8.8./", To("8.8.8.8:80")),
    (
        "http://[2001:4860:4860::8888]/",
        To("[2001:4860:4860::8888]:80"),
    ),
    (
        "http://[2001:4860:4860:0:0:0:0:8888]/",
        To("[2001:4860:4860::8888]:80"),
    ),
    ("http://[::ffff:8.8.8.8]/", To("8.8.8.8:80")),
    ("http://11.0.0.1/", To("11.0.0.1:80")),
    ("http://172.32.0.1/", To("172.32.0.1:80")),
    ("http://100.128.0.1/", To("100.128.0.1:80")),
    ("http://198.20.0.1/", To("198.20.0.1:80")),
    ("http://198.51.101.1/", To("198.51.101.1:80")),
    ("http://203.0.114.1/", To("203.0.114.1:80")),
    ("http://223.255.255.255/", To("223.255.255.255:80")),
    // The loopback in every form of its number.
    ("http://127.0.0.1/", Local),
    ("http://127.0.0.1:80/", Local),
    ("http://127.0.0.1:8080/", Local),
    ("http://127.1/", Local),
    ("http://127.0.1/", Local),
    ("http://127.255.255.254/", Local),
    ("http://127.0.0.1./", Local),
    ("http://2130706433/", Local),
    ("http://2130706433./", Local),
    ("http://0x7f000001/", Local),
    ("http://0X7F000001/", Local),
    ("http://0x7f.0.0.1/", Local),
    ("http://0x7f.1/", Local),
    ("http://0x7f.0x0.0x0.0x1/", Local),
    ("http://0177.0.0.1/", Local),
    ("http://0177.1/", Local),
    ("http://017700000001/", Local),
    ("http://00000177.0.0.1/", Local),
    ("http://127.000.000.001/", Local),
    ("http://127.0.0x1/", Local),
    ("http://１２７.0.0.1/", Local),
    ("http://①②⑦.0.0.1/", Local),
    ("http://127。0。0。1/", Local),
    ("http://127.0.0.1\u{ff0e}/", Local),
    ("http://0/", Local),
    ("http://0.0.0.0/", Local),
    ("http://0x0/", Local),
    ("http://00/", Local),
    ("http://0x/", Local),
    // What only looks like a number, or is one too many.
    ("http://256.0.0.1/", Invalid),
    ("http://127.0.0.256/", Invalid),
    ("http://4294967296/", Invalid),
    ("http://0x100000000/", Invalid),
    ("http://1.2.3.4.5/", Invalid),
    ("http://08.8.8.8/", Invalid),
    ("http://0xg.1/", Invalid),
    ("http://127.0.0.1.0x7f/", Invalid),
    ("http://example.0x1/", Invalid),
    ("http://1..1/", Invalid),
    // The other blocks that are not public.
    ("http://10.0.0.1/", Local),
    ("http://10.255.255.255/", Local),
    ("http://012.1/", Local),
    ("http://167772161/", Local),
    ("http://172.16.0.1/", Local),
    ("http://172.31.255.255/", Local),
    ("http://192.168.0.1/", Local),
    ("http://192.168.257/", Local),
    ("http://0xc0a80001/", Local),
    ("http://100.64.0.1/", Local),
    ("http://100.127.255.255/", Local),
    ("http://169.254.0.1/", Local),
    ("http://192.0.0.1/", Local),
    ("http://192.0.2.1/", Local),
    ("http://198.18.0.1/", Local),
    ("http://198.19.255.255/", Local),
    ("http://198.51.100.1/", Local),
    ("http://203.0.113.1/", Local),
    ("http://192.88.99.1/", Local),
    ("http://224.0.0.1/", Local),
    ("http://239.255.255.255/", Local),
    ("http://240.0.0.1/", Local),
    ("http://255.255.255.255/", Local),
    // IPv6, and IPv4 hidden in it.
    ("http://[::1]/", Local),
    ("http://[::1]:8080/", Local),
    ("http://[0:0:0:0:0:0:0:1]/", Local),
    ("http://[0000:0000:0000:0000:0000:0000:0000:0001]/", Local),
    ("http://[::]/", Local),
    ("http://[::ffff:127.0.0.1]/", Local),
    ("http://[::ffff:7f00:1]/", Local),
    ("http://[::FFFF:7F00:0001]/", Local),
    ("http://[0:0:0:0:0:ffff:127.0.0.1]/", Local),
    ("http://[::ffff:10.0.0.1]/", Local),
    ("http://[::ffff:169.254.169.254]/", Local),
    ("http://[::ffff:0:127.0.0.1]/", Local),
    ("http://[::127.0.0.1]/", Local),
    ("http://[::8.8.8.8]/", Local),
    ("http://[64:ff9b::127.0.0.1]/", Local),
    ("http://[64:ff9b::a9fe:a9fe]/", Local),
    ("http://[64:ff9b:1::7f00:1]/", Local),
    ("http://[2002:7f00:1::]/", Local),
    ("http://[2002:a9fe:a9fe::1]/", Local),
    ("http://[2002:808:808::1]/", Local),
    ("http://[2001::1]/", Local),
    ("http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", Local),
    ("http://[fe80::5efe:127.0.0.1]/", Local),
    ("http://[fe80::200:5efe:10.0.0.1]/", Local),
    ("http://[fe80::1]/", Local),
    ("http://[fec0::1]/", Local),
    ("http://[fc00::1]/", Local),
    ("http://[fd00:ec2::254]/", Local),
    ("http://[ff02::1]/", Local),
    ("http://[2001:db8::1]/", Local),
    ("http://[3fff::1]/", Local),
    ("http://[100::1]/", Local),
    ("http://[5f00::1]/", Local),
    ("http://[fe80::1%25eth0]/", Invalid),
    ("http://[fe80::1%eth0]/", Invalid),
    ("http://[::1/", Invalid),
    ("http://::1/", Invalid),
    ("http://[127.0.0.1]/", Invalid),
    ("http://[::ffff:127.0.0.256]/", Invalid),
    ("http://[]/", Invalid),
    ("http://[v1.a]/", Invalid),
    // Names that lie inside.
    ("http://localhost/", Local),
    ("http://localhost./", Local),
    ("http://LOCALHOST/", Local),
    ("http://localhost:8080/", Local),
    ("http://a.localhost/", Local),
    ("http://ⓛocalhost/", Local),
    ("http://ｌｏｃａｌｈｏｓｔ/", Local),
    ("http://loc\u{ad}alhost/", Local),
    ("http://localhost。/", Local),
    ("http://localhost.localdomain/", Local),
    ("http://printer.local/", Local),
    ("http://router/", Local),
    ("http://router.lan/", Local),
    ("http://wiki.corp/", Local),
    ("http://nas.home.arpa/", Local),
    ("http://db.internal/", Local),
    ("http://kubernetes.default.svc.cluster.local/", Local),
    ("http://host.docker.internal/", Local),
    // Metadata services of clouds.
    ("http://169.254.169.254/latest/meta-data/", Local),
    ("http://2852039166/", Local),
    ("http://0xa9fea9fe/", Local),
    ("http://0251.0376.0251.0376/", Local),
    ("http://169.254.43518/", Local),
    ("http://169.254.170.2/v2/credentials", Local),
    ("http://168.63.129.16/", Local),
    ("http://100.100.100.200/", Local),
    ("http://192.0.0.192/", Local),
    ("http://metadata/", Local),
    ("http://metadata.google.internal/", Local),
    (
        "http://METADATA.google.internal./computeMetadata/v1/",
        Local,
    ),
    ("http://metadata.goog/", Local),
    ("http://instance-data/", Local),
    ("http://instance-data.ec2.internal/", Local),
    ("http://metadata.azure.com/", Local),
    // Names that lead inside, or nowhere.
    ("http://127.0.0.1.nip.example/", Rebinding),
    ("http://mixed.example/", Rebinding),
    ("http://mixed6.example/", Rebinding),
    ("http://metadata.example/", Rebinding),
    ("http://nat64.example/", Rebinding),
    ("http://empty.example/", Unknown),
    ("http://no.such.example/", Unknown),
    // One host made to look like another.
    ("http://user@example.com/", Invalid),
    ("http://user:password@example.com/", Invalid),
    ("http://:@example.com/", Invalid),
    ("http://@example.com/", Invalid),
    ("http://example.com@127.0.0.1/", Invalid),
    ("http://127.0.0.1@example.com/", Invalid),
    ("http://a@b@example.com/", Invalid),
    ("http://example.com:80@127.0.0.1/", Invalid),
    ("http://example.com\\@127.0.0.1/", Invalid),
    ("http:\\\\example.com/", Invalid),
    ("http:/\\example.com/", Invalid),
    ("http:\\\\127.0.0.1/", Invalid),
    ("http:example.com", Invalid),
    ("http:/example.com", Invalid),
    ("http:127.0.0.1", Invalid),
    ("http:////example.com/", Invalid),
    ("http://%65xample.com/", Invalid),
    ("http://%6c%6f%63%61%6c%68%6f%73%74/", Invalid),
    ("http://127%2e0%2e0%2e1/", Invalid),
    ("http://%31%32%37.0.0.1/", Invalid),
    ("http://example.com%2f@127.0.0.1/", Invalid),
    ("http://example.com%00.evil.example/", Invalid),
    ("http://example.com%20/", Invalid),
    ("http://exa mple.com/", Invalid),
    ("http://exam\tple.com/", Invalid),
    ("http://example.com\n/", Invalid),
    ("http://example.com/a b", Invalid),
    ("http://example.com/\r\nHost: evil.example", Invalid),
    ("http://example.com/\0", Invalid),
    ("\u{1}http://example.com/", Invalid),
    ("http://example.com\u{3000}/", Invalid),
    ("http://exa\u{200b}mple.com\u{2028}/", Invalid),
    ("http://a,b/", Invalid),
    ("http://*.example.com/", Invalid),
    ("http://a..b/", Invalid),
    ("http://example.com../", Invalid),
    ("http://.example.com/", Invalid),
    ("http://exa$mple.com/", Invalid),
    ("http://xn--/", Invalid),
    ("http://xn--a/", Invalid),
    // Ports.
    ("http://example.com:8080/", Port),
    ("http://example.com:22/", Port),
    ("http://example.com:6379/", Port),
    ("https://example.com:8443/", Port),
    ("http://8.8.8.8:53/", Port),
    ("http://example.com:0/", Invalid),
    ("http://example.com:65536/", Invalid),
    ("http://example.com:-80/", Invalid),
    ("http://example.com:80:80/", Invalid),
    ("http://example.com:8a/", Invalid),
    // Schemes.
    ("ftp://example.com/", Invalid),
    ("file:///etc/passwd", Invalid),
    ("gopher://127.0.0.1:6379/_x", Invalid),
    ("ws://example.com/", Invalid),
    ("data:text/html,hello", Invalid),
    ("javascript:alert(1)", Invalid),
    ("blob:https://example.com/1", Invalid),
    ("view-source:http://example.com/", Invalid),
    ("jar:http://example.com/!/", Invalid),
    ("unix:/var/run/docker.sock", Invalid),
    ("httpss://example.com/", Invalid),
    // No URL at all.
    ("", Invalid),
    ("   ", Invalid),
    ("example.com", Invalid),
    ("//example.com/", Invalid),
    ("/etc/passwd", Invalid),
    ("http", Invalid),
    ("http:", Invalid),
    ("http://", Invalid),
    ("http:///", Invalid),
    ("://example.com", Invalid),
    // Hosts that the person blocked, whatever leads to them.
    ("http://blocked.example/", Blocked),
    ("http://a.b.BLOCKED.example./", Blocked),
    ("http://9.9.9.9/", Blocked),
    ("http://0x09090909/", Blocked),
];

/// Answers from the table, and counts.
#[derive(Default)]
struct World(AtomicUsize);

impl Resolve for World {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let found = NAMES.iter().find(|(known, _)| *known == name);
        let answer =
            found.map(|(_, addresses)| addresses.iter().map(|a| a.parse().unwrap()).collect());
        Box::pin(std::future::ready(
            answer.ok_or_else(|| io::ErrorKind::NotFound.into()),
        ))
    }
}

fn gate(resolver: Arc<dyn Resolve>) -> Gate {
    Gate::new(GateOptions {
        scope: Scope {
            blocked: DomainList::parse(&["blocked.example", "9.9.9.9"]).unwrap(),
            ..Scope::default()
        },
        resolver,
        ..GateOptions::default()
    })
}

/// All that happens before a connection is made.
async fn judge(gate: &Gate, url: &str) -> Result<Vec<std::net::SocketAddr>, GateError> {
    let shared = &gate.0;
    let address = Address::parse(url)?;
    let permit = shared.permit(&address, true, &Reach::default())?;
    let deadline = Instant::now() + Duration::from_secs(60);
    shared.addresses(&address, &permit, deadline).await
}

async fn decide(gate: &Gate, url: &str) -> (Decision, String) {
    let error = match judge(gate, url).await {
        Ok(addresses) => {
            let target = Address::parse(url).unwrap().target;
            assert!(!addresses.is_empty());
            for address in &addresses {
                assert!(crate::address::is_public(address.ip()), "{url}: {address}");
                assert_eq!(address.port(), target.port, "{url}");
            }
            return (To(""), target.to_string());
        }
        Err(error) => error,
    };
    let decision = match (error.denial().map(|denial| denial.why), error.code()) {
        (Some(Why::Local), _) => Local,
        (Some(Why::LeadsInside(_)), _) => Rebinding,
        (Some(Why::Blocked), _) => Blocked,
        (Some(Why::Port), _) => Port,
        (None, "invalid-args") => Invalid,
        (None, "io") => Unknown,
        other => panic!("{url}: {other:?}"),
    };
    (decision, error.to_string())
}

#[tokio::test]
async fn every_url_of_the_corpus_is_decided_as_it_says() {
    assert!(CORPUS.len() >= 150, "{}", CORPUS.len());
    let gate = gate(Arc::<World>::default());
    let mut wrong = Vec::new();
    for (url, expected) in CORPUS {
        let (decision, text) = decide(&gate, url).await;
        let is_right = match (decision, expected) {
            (To(_), To(target)) => text == *target,
            (decision, expected) => decision == *expected,
        };
        if !is_right {
            wrong.push(format!("{url:?}: {decision:?} ({text}), not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn no_name_is_looked_up_that_can_be_refused_by_itself_and_none_twice() {
    let world = Arc::new(World::default());
    let gate = gate(Arc::clone(&world) as _);
    for (url, decision) in CORPUS {
        if matches!(decision, Invalid | Local | Blocked | Port) {
            decide(&gate, url).await;
        }
    }
    assert_eq!(world.0.load(Ordering::SeqCst), 0);
    for _ in 0..3 {
        decide(&gate, "http://example.com/").await;
    }
    assert_eq!(world.0.load(Ordering::SeqCst), 1);
}

/// A name whose second answer is another.
struct Flips(AtomicUsize);

impl Resolve for Flips {
    fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        let address: IpAddr = match first {
            true => [93, 184, 215, 14].into(),
            false => [127, 0, 0, 1].into(),
        };
        Box::pin(std::future::ready(Ok(vec![address])))
    }
}

#[tokio::test]
async fn a_name_that_changes_its_mind_between_judging_and_connecting_is_connected_to_where_it_was_judged()
 {
    let gate = gate(Arc::new(Flips(AtomicUsize::new(0))));
    let first = judge(&gate, "http://flips.example/").await.unwrap();
    for _ in 0..3 {
        assert_eq!(judge(&gate, "http://flips.example/").await.unwrap(), first);
    }
    assert_eq!(first, ["93.184.215.14:80".parse().unwrap()]);
}

#[test]
fn the_whole_wildcard_still_blocks_what_is_private() {
    let gate = gate(Arc::<World>::default());
    for url in [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[fd00::1]/",
    ] {
        let address = Address::parse(url).unwrap();
        let error = gate.0.permit(&address, true, &Reach::default()).err();
        assert_eq!(error.unwrap().denial().unwrap().why, Why::Local);
    }
}

#[test]
fn a_list_with_an_entry_that_is_none_stays_closed() {
    for entry in [
        "https://example.com",
        "example.com/",
        "a b",
        "",
        "*.",
        "**",
        "127.0.0.1",
        "[::1]",
        "*.8.8.8.8",
        "user@example.com",
        "example.com:443",
    ] {
        assert!(
            DomainList::parse(&["example.com", entry]).is_err(),
            "{entry:?}"
        );
    }
    let written =
        DomainList::parse(&["Example.COM.", "example.com", "*.Example.org", "1.1.1.1"]).unwrap();
    let texts: Vec<String> = written.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["example.com", "*.example.org", "1.1.1.1"]);
}

proptest::proptest! {
    /// Whatever is written, what is let through is one public host, and reading it again changes nothing.
    #[test]
    fn what_is_let_through_reads_the_same_again(text in "(http|https|HTTP)(:|:/|://|:\\\\\\\\)[a-z0-9.@:\\[\\]%\\\\/#?xⓛ。-]{0,30}") {
        if let Ok(address) = Address::parse(&text) {
            let again = Address::parse(address.url.as_str()).unwrap();
            proptest::prop_assert_eq!(&again.target, &address.target);
            proptest::prop_assert_eq!(address.url.username(), "");
            let host = crate::host::Host::parse(address.url.host_str().unwrap()).unwrap();
            proptest::prop_assert_eq!(host, address.target.host);
        }
    }

    /// An intersection never holds more than either side.
    #[test]
    fn what_both_lists_hold_is_held_by_each(
        left in proptest::collection::vec(0..6_usize, 0..4),
        right in proptest::collection::vec(0..6_usize, 0..4),
    ) {
        const ENTRIES: [&str; 6] = ["*", "example.com", "*.example.com", "a.example.com", "*.a.example.com", "8.8.8.8"];
        let list = |chosen: &[usize]| {
            let entries: Vec<&str> = chosen.iter().map(|index| ENTRIES[*index]).collect();
            DomainList::parse(&entries).unwrap()
        };
        let (left, right) = (list(&left), list(&right));
        let both = left.intersect(&right);
        proptest::prop_assert!(left.covers(&both) && right.covers(&both));
        for host in ["example.com", "a.example.com", "b.a.example.com", "8.8.8.8", "example.org"] {
            let host = crate::host::Host::parse(host).unwrap();
            proptest::prop_assert_eq!(both.holds(&host), left.holds(&host) && right.holds(&host));
        }
    }
}

#[test]
fn a_grant_with_an_address_leads_where_nothing_else_does() {
    let gate = Gate::new(GateOptions {
        grants: HostGrants::parse(&["localhost:8080=127.0.0.1:9", "db.internal:443=10.0.0.1"])
            .unwrap(),
        ..GateOptions::default()
    });
    for (url, leads) in [
        ("http://localhost:8080/", true),
        ("https://db.internal/", true),
        ("http://db.internal/", false),
        ("http://localhost/", false),
        ("http://127.0.0.1:9/", false),
    ] {
        let address = Address::parse(url).unwrap();
        let permit = gate.0.permit(&address, true, &Reach::default());
        assert_eq!(permit.is_ok(), leads, "{url}");
    }
}

#[test]
fn a_page_of_the_web_leads_nobody_to_an_address_that_the_person_named() {
    let gate = Gate::new(GateOptions {
        grants: HostGrants::parse(&["a.internal:80=10.0.0.1", "b.internal:80=10.0.0.2"]).unwrap(),
        ..GateOptions::default()
    });
    for (from, to, follows) in [
        ("http://example.com/", "http://a.internal/", false),
        ("http://example.com/", "https://www.example.com/", true),
        ("http://a.internal/", "http://b.internal/", true),
        ("http://a.internal/", "http://example.com/", true),
    ] {
        let [from, to] = [from, to].map(|url| Address::parse(url).unwrap());
        let led = gate.0.may_lead(&from, &to, &Reach::default());
        assert_eq!(led, follows, "{from:?} to {to:?}");
    }
}
