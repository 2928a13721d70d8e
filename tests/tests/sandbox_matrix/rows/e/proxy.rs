//! What a command may not reach through the host's proxy, whatever it sends there.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use floe_command::CommandSpec;
use floe_network::{HostGrants, ObserveNetwork, Proxy, ProxyOptions, Refusal, Resolve};
use floe_sandbox::Network;
use futures_util::future::BoxFuture;

use crate::row::Row;
use crate::stage::{Outcome, Session, Stage};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E23",
        "what is allowed is reached, in every spelling, and nothing else is",
        the_allowed_host,
    ),
    Row::new(
        "E23",
        "other hosts, ports, addresses, and names that could be taken for two are refused and told",
        everything_else,
    ),
    Row::new(
        "E23",
        "a name that leads to this machine is refused, and one that led elsewhere keeps its address",
        rebinding,
    ),
    Row::new(
        "E23",
        "the proxy does not relay within the sandbox",
        relaying,
    ),
    Row::new("E23", "an empty list allows nothing", empty_list),
];

/// What the proxy's other side knows and saw.
#[derive(Default)]
struct Outside {
    refused: Mutex<Vec<String>>,
    /// The answers to each question about a name, one after the other; the last one stays.
    names: Mutex<HashMap<&'static str, Vec<&'static str>>>,
}

impl ObserveNetwork for Outside {
    fn refused(&self, refusal: &Refusal) {
        self.refused.lock().unwrap().push(refusal.to_string());
    }
}

impl Resolve for Outside {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut names = self.names.lock().unwrap();
        let answer = names.get_mut(name).map(|answers| match answers.len() {
            1 => answers[0],
            _ => answers.remove(0),
        });
        let addresses = answer.map(|answer| vec![answer.parse().unwrap()]);
        Box::pin(std::future::ready(
            addresses.ok_or(io::ErrorKind::NotFound.into()),
        ))
    }
}

/// A Session with a proxy.
struct House<'s> {
    session: Session<'s>,
    proxy: Arc<Proxy>,
    outside: Arc<Outside>,
}

impl<'s> House<'s> {
    fn new(stage: &'s Stage, allowed: &[String], outside: Outside) -> House<'s> {
        let session = stage.session_with(|setup| {
            setup.sandbox.policy.network = Network::Proxy;
        });
        let outside = Arc::new(outside);
        let proxy = Proxy::new(ProxyOptions {
            grants: HostGrants::parse(allowed).unwrap(),
            resolver: Arc::clone(&outside) as _,
            observer: Arc::clone(&outside) as _,
            ..ProxyOptions::default()
        });
        let listener = session.sandbox.proxy_listener().unwrap().unwrap();
        stage.wait(async { proxy.serve(listener).unwrap() });
        House {
            session,
            proxy,
            outside,
        }
    }

    fn run(&self, program: &str, args: &[&str]) -> Outcome {
        self.session.run_spec(CommandSpec {
            command: program.into(),
            args: Some(args.iter().map(|&arg| arg.to_owned()).collect()),
            environment: self.proxy.environment(None),
            ..CommandSpec::default()
        })
    }

    /// Runs the cases of a Python program that knows how to speak with the proxy; none may go through.
    fn attack(&self, cases: &str, arguments: &[&str]) {
        let program = format!("{SPEAK}{cases}{REPORT}");
        let arguments = [&["-c", &program][..], arguments].concat();
        let outcome = self.run("python3", &arguments);
        assert_eq!(outcome.text, "done\n", "{outcome:?}");
    }

    fn refused(&self, line: &str) -> bool {
        let refused = self.outside.refused.lock().unwrap();
        refused.iter().any(|told| told.starts_with(line))
    }
}

/// A web server of this machine, which no command reaches but by a grant that names its address.
fn web() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            std::thread::spawn(move || {
                let mut block = [0; 4096];
                let _ = client.read(&mut block);
                let _ = client.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nreached\n",
                );
            });
        }
    });
    address
}

fn allowed(web: SocketAddr) -> Vec<String> {
    vec![
        format!("web.test={web}"),
        format!("web.test:80={web}"),
        "localhost".to_owned(),
    ]
}

/// Speaks with the proxy byte for byte. Each `refused_…` is true only where the proxy says no in the words of its protocol.
const SPEAK: &str = r"
import os, socket, sys
port = int(os.environ['http_proxy'].rsplit(':', 1)[1])
def ask(data):
    s = socket.create_connection(('127.0.0.1', port), 30)
    s.sendall(data)
    answer = b''
    while True:
        try: more = s.recv(65536)
        except ConnectionError: break
        if not more: break
        answer += more
        if data[:1] == b'\x05' and len(answer) >= 4 and answer[3]: break
    return answer
def refused_http(*targets):
    return all(ask(b'CONNECT ' + t + b' HTTP/1.1\r\n\r\n')[:12] in (b'HTTP/1.1 403', b'HTTP/1.1 400') for t in targets)
def refused_plain(*urls):
    return all(ask(b'GET ' + u + b' HTTP/1.1\r\nHost: web.test\r\n\r\n')[:12] in (b'HTTP/1.1 403', b'HTTP/1.1 400') for u in urls)
def refused_socks(name, port=443, kind=3):
    name = bytes([len(name)]) + name if kind == 3 else name
    return ask(b'\x05\x01\x00\x05\x01\x00' + bytes([kind]) + name + port.to_bytes(2, 'big'))[2:4] == b'\x05\x02'
";

const REPORT: &str = r"
for name, refused in cases.items():
    if not refused(): print('WENT THROUGH', name)
print('done')
";

const CASES: &str = r"
evil = sys.argv[1].encode()
spellings = [b'127.0.0.1', b'127.1', b'0x7f.1', b'0177.0.0.1', b'2130706433', b'0x7f000001', b'127.0.0.1.', b'[::ffff:127.0.0.1]', b'[::ffff:7f00:1]']
cases = {
    'plain HTTP to an unlisted host': lambda: refused_plain(b'http://other.test/', b'HTTP://OTHER.test:80/x?y'),
    'CONNECT to an unlisted host': lambda: refused_http(b'other.test:443', b'com:443', b'test:443'),
    'a host below or above a listed one': lambda: refused_http(b'sub.web.test:443', b'web.test.other.test:443', b'otherweb.test:443'),
    'an address': lambda: refused_http(b'93.184.216.34:443', b'[2606:2800:220:1::1]:443') and refused_socks(bytes([93, 184, 216, 34]), kind=1),
    'an address of this machine': lambda: refused_http(*[s + b':' + evil for s in spellings]) and refused_plain(*[b'http://' + s + b':' + evil + b'/' for s in spellings]),
    'an address of this machine, version 6': lambda: refused_http(b'[::1]:' + evil, b'[0:0::1]:' + evil) and refused_socks(bytes(15) + b'\x01', int(evil), kind=4),
    'an address of this machine, to SOCKS': lambda: refused_socks(bytes([127, 0, 0, 1]), int(evil), kind=1) and refused_socks(b'127.0.0.1', int(evil)) and refused_socks(b'0x7f.1', int(evil)) and refused_socks(bytes(10) + b'\xff\xff\x7f\0\0\x01', int(evil), kind=4),
    'the unspecified address': lambda: refused_http(b'0.0.0.0:' + evil, b'0:' + evil, b'[::]:' + evil),
    'a name with a NUL byte': lambda: refused_socks(b'other.test\0.web.test') and refused_socks(b'web.test\0.other.test') and refused_socks(b'web.test\0'),
    'a name with a NUL byte, to HTTP': lambda: refused_http(b'other.test%00.web.test:443') and refused_plain(b'http://other.test%00.web.test/'),
    'a dot at the end of an unlisted host': lambda: refused_http(b'other.test.:443', b'web.test..:443') and refused_socks(b'other.test.'),
    'capital letters of an unlisted host': lambda: refused_http(b'OTHER.TEST:443') and refused_socks(b'Other.Test'),
    'letters of another script': lambda: refused_socks('w\u0435b.test'.encode()) and refused_socks('web.t\u00e9st'.encode()) and refused_http(b'xn--wb-lmc.test:443'),
    'another port of a listed host': lambda: refused_http(b'web.test:22', b'web.test:8443', b'web.test:' + evil) and refused_socks(b'web.test', 22) and refused_plain(b'http://web.test:8080/'),
    'no port, and none that is one': lambda: refused_http(b'web.test', b'web.test:', b'web.test:0', b'web.test:99999', b'web.test:+443', b'web.test:443:443'),
    'the metadata service': lambda: refused_http(b'169.254.169.254:80', b'[fd00:ec2::254]:80') and refused_plain(b'http://169.254.169.254/latest/meta-data/', b'http://2852039166/'),
    'a listed name that is this machine': lambda: refused_http(b'localhost:443', b'LOCALHOST.:443') and refused_socks(b'localhost'),
    'a host before an at sign': lambda: refused_http(b'web.test@other.test:443', b'web.test:443@other.test:443') and refused_plain(b'http://web.test@other.test/', b'http://web.test:80@other.test/'),
    'a host before another sign': lambda: refused_plain(b'http://other.test#@web.test/', b'http://other.test\\@web.test/', b'http://web.test\\.other.test/'),
    'what is no address of a web page': lambda: refused_plain(b'/', b'https://web.test/', b'file:///etc/passwd', b'gopher://web.test/', b'web.test:80'),
    'a second line in a header': lambda: refused_plain(b'http://web.test/ HTTP/1.1\nHost: other.test\nX:'),
    'the proxy itself': lambda: refused_http(b'127.0.0.1:%d' % port, b'localhost:%d' % port, b'[::1]:%d' % port) and refused_socks(b'127.0.0.1', port),
}
";

fn the_allowed_host(stage: &Stage) {
    let house = House::new(stage, &allowed(web()), Outside::default());
    let outcome = house.run(
        "bash",
        &[
            "-c",
            "curl -sS http://web.test/ http://WEB.test./\ncurl -sS -p -x $http_proxy http://web.test/\n\
             curl -sS -x $ALL_PROXY http://web.test/\ncurl -sS -x $ALL_PROXY http://Web.TEST./",
        ],
    );
    assert_eq!(outcome.text, "reached\n".repeat(5), "{outcome:?}");
    assert!(house.outside.refused.lock().unwrap().is_empty());
}

fn everything_else(stage: &Stage) {
    let web = web();
    let outside = Outside::default();
    outside
        .names
        .lock()
        .unwrap()
        .insert("localhost", vec!["127.0.0.1"]);
    let house = House::new(stage, &allowed(web), outside);
    house.attack(CASES, &[&web.port().to_string()]);
    for told in [
        "other.test:443 refused: not among the allowed hosts",
        "web.test:22 refused: not among the allowed hosts",
        "169.254.169.254:80 refused: not among the allowed hosts",
        "localhost:443 refused: it leads to 127.0.0.1, which is not a public address",
        "\"other.test\\u{0}.web.test\" refused: no host name and no address",
    ] {
        assert!(house.refused(told), "{told}");
    }
    // Past the proxy there is nothing either.
    house
        .session
        .refused(&format!("exec 3<>/dev/tcp/127.0.0.1/{}", web.port()));
}

fn rebinding(stage: &Stage) {
    let outside = Outside::default();
    outside.names.lock().unwrap().extend([
        ("inside.test", vec!["127.0.0.1"]),
        ("clothed.test", vec!["::ffff:127.0.0.1"]),
        ("private.test", vec!["10.0.0.1"]),
        ("metadata.test", vec!["169.254.169.254"]),
        // It never leads to a public address, so that nothing leaves this machine.
        ("changing.test", vec!["192.168.0.1", "127.0.0.1"]),
    ]);
    let port = web().port();
    let allowed = ["inside", "clothed", "private", "metadata", "changing"]
        .map(|name| format!("{name}.test:{port}"));
    let house = House::new(stage, &allowed, outside);
    house.attack(
        r"
port_of_web = sys.argv[1].encode()
names = [b'inside.test', b'clothed.test', b'private.test', b'metadata.test', b'changing.test', b'changing.test']
cases = {
    'CONNECT': lambda: refused_http(*[name + b':' + port_of_web for name in names]),
    'a plain request': lambda: refused_plain(*[b'http://' + name + b':' + port_of_web + b'/' for name in names]),
    'SOCKS': lambda: all(refused_socks(name, int(port_of_web)) for name in names),
}
",
        &[&port.to_string()],
    );
    assert!(house.refused(&format!(
        "inside.test:{port} refused: it leads to 127.0.0.1"
    )));
}

fn relaying(stage: &Stage) {
    let house = House::new(stage, &allowed(web()), Outside::default());
    house.attack(
        r"
import threading
inner = socket.socket(); inner.bind(('127.0.0.1', 0)); inner.listen()
reached = []
def serve():
    while True: reached.append(inner.accept())
threading.Thread(target=serve, daemon=True).start()
own = b'%d' % inner.getsockname()[1]
cases = {
    'CONNECT': lambda: refused_http(b'127.0.0.1:' + own, b'localhost:' + own, b'[::1]:' + own),
    'a plain request': lambda: refused_plain(b'http://127.0.0.1:' + own + b'/', b'http://localhost:' + own + b'/'),
    'SOCKS': lambda: refused_socks(b'127.0.0.1', int(own)) and refused_socks(b'localhost', int(own)),
    'nobody came': lambda: not reached,
}
",
        &[],
    );
}

fn empty_list(stage: &Stage) {
    let house = House::new(stage, &[], Outside::default());
    house.attack(
        r"
cases = {
    'CONNECT': lambda: refused_http(b'web.test:443', b'localhost:443', b'example.com:443'),
    'a plain request': lambda: refused_plain(b'http://web.test/', b'http://example.com/'),
    'SOCKS': lambda: refused_socks(b'web.test') and refused_socks(b'example.com', 80),
}
",
        &[],
    );
    assert!(house.refused("example.com:443 refused"));
}
