//! Web servers of the test's own on the loopback, with files for several hosts, and a Session whose commands may reach them by
//! name: each grant says that the name stands for the server's address. Nothing leaves the machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use floe_command::EnvironmentOptions;
use floe_protocol::{ApprovalMode, Body, EventMsg, Home};
use floe_sandbox::{Network, Policy};
use floe_session::{Session, SessionOptions};
use floe_workspace::Workspace;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_util::sync::CancellationToken;

use crate::doubles::{Kept, registry};

/// The hosts that the servers have files for.
pub(crate) const HOSTS: [&str; 8] = [
    "web.test",
    "git.test",
    "pypi.org",
    "files.pythonhosted.org",
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "xn--bcher-kva.test",
];

/// The servers, and the folder with their files: `HOST/PATH`.
pub(crate) struct Web {
    pub(crate) files: tempfile::TempDir,
    pub(crate) plain: SocketAddr,
    pub(crate) secure: SocketAddr,
    authority: String,
}

impl Web {
    pub(crate) async fn new() -> Web {
        let files = tempfile::tempdir().unwrap();
        let (config, authority) = certificates();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let secure = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Web {
            plain: plain.local_addr().unwrap(),
            secure: secure.local_addr().unwrap(),
            files,
            authority,
        };
        let root = web.files.path().to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = plain.accept().await {
                tokio::spawn(serve(client, root.clone()));
            }
        });
        let root = web.files.path().to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = secure.accept().await {
                let (acceptor, root) = (acceptor.clone(), root.clone());
                tokio::spawn(async move {
                    if let Ok(client) = acceptor.accept(client).await {
                        serve(client, root).await;
                    }
                });
            }
        });
        web
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Grants for all hosts, over HTTPS and HTTP.
    pub(crate) fn grants(&self) -> Vec<String> {
        let of = |host: &&str| {
            [
                format!("{host}={}", self.secure),
                format!("{host}:80={}", self.plain),
            ]
        };
        HOSTS.iter().flat_map(of).collect()
    }

    /// A Session that may reach them.
    pub(crate) fn house(&self) -> House {
        self.house_with(Network::Proxy, self.grants())
    }

    pub(crate) fn house_with(&self, network: Network, allow_hosts: Vec<String>) -> House {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(workspace.join("ca.pem"), &self.authority).unwrap();
        let stream = Arc::new(Kept::default());
        let mut options = SessionOptions::new(
            Home::new(folder.path().join("home")),
            Workspace::open(&workspace).unwrap(),
            registry(),
        );
        options.approval_mode = ApprovalMode::AllowAll;
        options.policy = Policy {
            network,
            allow_hosts,
            ..Policy::default()
        };
        options.observer = Arc::clone(&stream) as _;
        // The environment of the tests themselves; no login shell is asked.
        options.command_environment = EnvironmentOptions {
            person_home: None,
            ..EnvironmentOptions::default()
        };
        House {
            session: Session::open(options).unwrap(),
            workspace,
            stream,
            _folder: folder,
        }
    }
}

/// A Session.
pub(crate) struct House {
    pub(crate) session: Session,
    pub(crate) workspace: PathBuf,
    stream: Arc<Kept>,
    _folder: tempfile::TempDir,
}

/// Programs trust the servers' authority.
const TRUST: &str = "export CURL_CA_BUNDLE=$PWD/ca.pem GIT_SSL_CAINFO=$PWD/ca.pem PIP_CERT=$PWD/ca.pem \
                     CARGO_HTTP_CAINFO=$PWD/ca.pem npm_config_cafile=$PWD/ca.pem PIP_DISABLE_PIP_VERSION_CHECK=1\n";

impl House {
    /// What the model sees of a command.
    pub(crate) async fn run(&self, script: &str) -> String {
        let arguments = serde_json::json!({"cmd": format!("{TRUST}{script}")}).to_string();
        let cancel = CancellationToken::new();
        let call = self.session.call("exec_command", &arguments, &cancel);
        let ended = tokio::time::timeout(Duration::from_secs(240), call).await;
        ended.expect("the command does not end").output
    }

    /// The messages of warnings with this code.
    pub(crate) fn warnings(&self, wanted: &str) -> Vec<String> {
        let messages = self.stream.messages();
        let warning = |message: &floe_protocol::OmniMessage| match &message.body {
            Body::EventMsg(EventMsg::Warning { code, message }) if code == wanted => {
                Some(message.clone())
            }
            _ => None,
        };
        messages.iter().filter_map(warning).collect()
    }
}

/// The servers' identity, and the authority that vouches for it.
fn certificates() -> (ServerConfig, String) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "The authority of a test");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);

    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(HOSTS.map(str::to_owned).to_vec()).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    (config, authority)
}

/// Answers one request with a file: `HOST/PATH`, of a folder its `index.html`.
async fn serve(mut client: impl AsyncRead + AsyncWrite + Unpin, root: PathBuf) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let host = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("host")
            .then(|| value.trim_end_matches('.').to_ascii_lowercase())
    });
    let mut file = root
        .join(host.unwrap_or_default())
        .join(path.trim_start_matches('/'));
    if file.is_dir() {
        file.push("index.html");
    }
    let (status, body) = match std::fs::read(&file) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", b"there is no such file\n".to_vec()),
    };
    let kind = if file
        .extension()
        .is_some_and(|extension| extension == "html")
    {
        "text/html"
    } else {
        "application/octet-stream"
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if head.starts_with("HEAD") {
        &[][..]
    } else {
        &body
    };
    let _ = client.write_all(&[answer.as_bytes(), body].concat()).await;
    let _ = client.shutdown().await;
}

/// Runs a program of the test's own, which makes fixtures.
pub(crate) fn make(folder: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_AUTHOR_NAME", "Ann"),
            ("GIT_AUTHOR_EMAIL", "ann@example.com"),
            ("GIT_COMMITTER_NAME", "Ann"),
            ("GIT_COMMITTER_EMAIL", "ann@example.com"),
        ])
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Whether a program is installed here.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}
