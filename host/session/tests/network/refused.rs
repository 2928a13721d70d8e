//! What commands do not reach, whatever they try (the rows E22 and E23 of the matrix, through the real sandbox).

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
        .run("env | grep -i proxy; cat /proc/net/tcp | wc -l; curl -sS -m 5 https://web.test/hello; echo $?")
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

/// Sends what no honest program sends, straight to the proxy, and prints what is answered.
const ATTACKS: &str = r#"
import os, socket, sys
place = os.environ['http_proxy'].rsplit(':', 1)
port = int(place[1])
def ask(data):
    s = socket.create_connection(('127.0.0.1', port), 30)
    s.settimeout(30)
    s.sendall(data)
    answer = b''
    try:
        while True:
            more = s.recv(65536)
            if not more: break
            answer += more
    except OSError: pass
    return answer
def http(target):
    return ask(b'CONNECT ' + target + b' HTTP/1.1\r\n\r\n').split(b'\r\n')[0][:12] in (b'HTTP/1.1 403', b'HTTP/1.1 400')
def plain(url):
    return ask(b'GET ' + url + b' HTTP/1.1\r\nHost: web.test\r\n\r\n')[:12] in (b'HTTP/1.1 403', b'HTTP/1.1 400')
def socks(name, port=443):
    answer = ask(b'\x05\x01\x00\x05\x01\x00\x03' + bytes([len(name)]) + name + port.to_bytes(2, 'big'))
    return answer[2:4] == b'\x05\x02'
def literal(kind, address, port=443):
    answer = ask(b'\x05\x01\x00\x05\x01\x00' + bytes([kind]) + address + port.to_bytes(2, 'big'))
    return answer[2:4] == b'\x05\x02'
evil = sys.argv[1].encode()
cases = {
    'plain HTTP to an unlisted host': plain(b'http://other.test/'),
    'plain HTTP with the host of another': plain(b'http://other.test:80/'),
    'CONNECT to an unlisted host': http(b'other.test:443'),
    'an IP literal': http(b'93.184.216.34:443') and literal(1, bytes([93, 184, 216, 34])),
    'an IP literal of this machine': http(b'127.0.0.1:' + evil),
    'an IP literal in other spellings': all(http(s + b':' + evil) for s in (b'127.1', b'0x7f.1', b'0177.0.0.1', b'2130706433', b'0x7f000001', b'127.0.0.1.')),
    'an IP literal of version 6': http(b'[::1]:' + evil) and http(b'[::ffff:127.0.0.1]:' + evil) and literal(4, bytes(15) + b'\x01'),
    'a name of SOCKS with a NUL byte': socks(b'other.test\0.web.test') and socks(b'web.test\0.other.test'),
    'a dot at the end of an unlisted host': http(b'other.test.:443') and socks(b'other.test.'),
    'capital letters of an unlisted host': http(b'OTHER.TEST:443') and socks(b'Other.Test'),
    'another port of a listed host': http(b'web.test:22') and socks(b'web.test', 22) and plain(b'http://web.test:8080/'),
    'the link-local metadata service': http(b'169.254.169.254:80') and plain(b'http://169.254.169.254/latest/meta-data/') and http(b'[fd00:ec2::254]:80'),
    'a listed name that leads to this machine': http(b'localhost:443') and socks(b'localhost'),
    'a host before an at sign': http(b'web.test@other.test:443') and plain(b'http://web.test@other.test/'),
    'a name below a listed one': http(b'sub.web.test:443') and http(b'web.test.other.test:443'),
    'the proxy itself': http(b'127.0.0.1:%d' % port) and http(b'localhost:%d' % port) and socks(b'127.0.0.1', port),
}
for name, refused in cases.items():
    if not refused: print('NOT REFUSED:', name)
print(len(cases), 'cases')
"#;

pub(crate) async fn e23_whatever_a_command_tries_it_reaches_the_allowed_hosts_alone() {
    let web = Web::new().await;
    // `localhost` is allowed here, without an address: its name leads to this machine, and so it is refused all the same.
    let allowed = [web.grants(), vec!["localhost".to_owned()]].concat();
    let house = web.house_with(Network::Proxy, allowed);
    std::fs::write(house.workspace.join("attacks.py"), ATTACKS).unwrap();
    let seen = house
        .run(&format!("python3 attacks.py {}", web.plain.port()))
        .await;
    let (cases, notes) = seen.split_once('\n').unwrap();
    assert_eq!(cases, "16 cases", "{seen}");
    assert!(
        notes.lines().all(|line| line.starts_with("[network: ")),
        "{notes}"
    );
    assert!(
        notes.contains("[network: other.test:443 refused: not among the allowed hosts"),
        "{notes}"
    );
    assert!(
        notes.contains("[network: further hosts were refused]"),
        "{notes}"
    );

    // Nothing allowed is nothing allowed.
    let house = web.house_with(Network::Proxy, Vec::new());
    let seen = house
        .run("curl -s -o /dev/null -w '%{http_connect}\\n' https://web.test/")
        .await;
    assert!(seen.starts_with("403\n"), "{seen}");
    assert!(seen.contains("[network: web.test:443 refused"), "{seen}");
}

pub(crate) async fn e23_the_proxy_does_not_relay_within_the_sandbox() {
    let web = Web::new().await;
    let house = web.house();
    let seen = house
        .run(concat!(
            "echo evil > evil; (python3 -m http.server 8123 >/dev/null 2>&1 &)\n",
            "for i in $(seq 200); do curl -sf http://127.0.0.1:8123/evil >/dev/null && break; sleep 0.05; done\n",
            "curl -s --noproxy '' -x $http_proxy http://127.0.0.1:8123/evil\n",
            "curl -s --noproxy '' -p -x $http_proxy http://localhost:8123/evil\n",
            "curl -s --noproxy '' -x $ALL_PROXY http://127.0.0.1:8123/evil\n",
            "echo end"
        ))
        .await;
    assert!(!seen.contains("evil"), "{seen}");
    assert!(
        seen.contains("127.0.0.1:8123 refused: not among the allowed hosts"),
        "{seen}"
    );
    assert!(
        seen.contains("localhost:8123 refused: not among the allowed hosts"),
        "{seen}"
    );
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
