//! What commands do not reach, whatever they try (of the rows E22 and E23 of the matrix, what a whole Session adds).

use floe_protocol::{ApprovalMode, Home};
use floe_sandbox::{Network, Policy};
use floe_session::{Session, SessionError, SessionOptions};
use floe_workspace::Workspace;

use crate::doubles::registry;
use crate::fixture::Web;

pub(crate) async fn what_is_refused_is_told_once_to_the_call_and_to_the_trace() {
    let web = Web::new().await;
    let house = web.house();
    let told = "other.test:443 refused: not among the allowed hosts; ask with widen.hosts";
    let seen = house
        .run("curl -sS https://other.test/ ; curl -sS https://OTHER.test/ ; curl -s http://third.test/")
        .await;
    assert_eq!(
        seen.matches(&format!("[network: {told}]")).count(),
        1,
        "{seen}"
    );
    assert_eq!(
        seen.matches("[network: third.test:80 refused: not among")
            .count(),
        2,
        "in what curl shows, and as a note: {seen}"
    );
    assert_eq!(house.warnings("host_refused").len(), 2);
    assert_eq!(house.warnings("host_refused")[0], told);
    let seen = house.run("echo quiet").await;
    assert_eq!(seen, "quiet\n");
    let seen = house.run("curl -s https://other.test/").await;
    assert!(seen.contains(told), "{seen}");
    house.session.close().await;
}

pub(crate) async fn without_a_network_there_is_no_proxy_and_no_word_of_one() {
    let web = Web::new().await;
    let house = web.house_with(Network::Off, web.grants());
    let seen = house
        .run("env | grep -i proxy; cat /proc/net/tcp | wc -l; curl -sS -m 5 https://web.test/hello 2>&1; echo $?")
        .await;
    assert_eq!(seen, "1\ncurl: (6) Could not resolve host: web.test\n6\n");
    house.session.close().await;
}

pub(crate) async fn e22_a_server_of_the_machine_is_not_reached_past_the_proxy() {
    let web = Web::new().await;
    web.write(&format!("{}/hello", web.plain), "evil");
    let house = web.house();
    let (host, port) = (web.plain, web.plain.port());
    let seen = house
        .run(&format!(
            "curl -s -m 5 http://{host}/hello\ncurl -s -m 5 -x $http_proxy --noproxy '' http://{host}/hello\n\
             curl -s -m 5 --socks5-hostname ${{ALL_PROXY#socks5h://}} --noproxy '' http://localhost:{port}/hello\necho end"
        ))
        .await;
    assert!(!seen.contains("evil"), "{seen}");
    let refused = house.warnings("host_refused");
    assert_eq!(refused.len(), 2, "{refused:?}");
    house.session.close().await;
}

pub(crate) async fn e23_a_flood_of_hosts_is_told_in_part_and_an_empty_list_allows_none() {
    let web = Web::new().await;
    let house = web.house_with(Network::Proxy, Vec::new());
    let seen = house
        .run("for i in $(seq 40); do curl -s -o /dev/null -w '%{http_connect}\\n' https://$i.web.test/; done | sort | uniq -c")
        .await;
    let (answers, notes) = seen.split_once("[network: ").unwrap();
    assert_eq!(answers.trim(), "40 403", "{seen}");
    assert_eq!(
        notes
            .matches(" refused: not among the allowed hosts")
            .count(),
        16,
        "{seen}"
    );
    assert!(
        notes.ends_with("[network: further hosts were refused]"),
        "{notes}"
    );
    assert_eq!(house.warnings("host_refused").len(), 16);
    house.session.close().await;
}

pub(crate) async fn a_host_that_is_none_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let mut options = SessionOptions::new(
        Home::new(folder.path().join("home")),
        Workspace::open(&workspace).unwrap(),
        registry(),
    );
    options.approval_mode = ApprovalMode::AllowAll;
    options.policy = Policy {
        network: Network::Proxy,
        allow_hosts: vec!["https://example.com".into()],
        ..Policy::default()
    };
    let Err(error @ SessionError::Network(_)) = Session::open(options) else {
        panic!("the Session opened")
    };
    assert_eq!(
        error.to_string(),
        "\"https://example.com\" is no granted host: write the host alone, as NAME or NAME:PORT."
    );
}
