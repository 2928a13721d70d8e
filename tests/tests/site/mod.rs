//! A web server of the test's own, on the loopback, that answers as it is told and remembers what it was asked. With or without TLS.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// False for a body that ends with the connection.
    pub(crate) says_length: bool,
}

impl Answered {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Answered {
        Answered {
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.into(),
            says_length: true,
        }
    }

    pub(crate) fn page(body: impl Into<Vec<u8>>) -> Answered {
        Answered::new(200, "text/html; charset=utf-8", body)
    }

    pub(crate) fn redirect(location: &str) -> Answered {
        Answered::new(302, "text/plain", "moved").with("Location", location)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Answered {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without_length(mut self) -> Answered {
        self.says_length = false;
        self
    }
}

/// The server. It serves until the process ends.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Site {
    /// Answers over plain HTTP.
    pub(crate) fn new(answer: impl Fn(&Asked) -> Answered + Send + Sync + 'static) -> Site {
        Site::over(None, answer)
    }

    /// Answers over TLS with this configuration.
    pub(crate) fn secure(
        tls: Arc<rustls::ServerConfig>,
        answer: impl Fn(&Asked) -> Answered + Send + Sync + 'static,
    ) -> Site {
        Site::over(Some(tls), answer)
    }

    fn over(
        tls: Option<Arc<rustls::ServerConfig>>,
        answer: impl Fn(&Asked) -> Answered + Send + Sync + 'static,
    ) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (remembered, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let (tls, remembered, answer) =
                    (tls.clone(), Arc::clone(&remembered), Arc::clone(&answer));
                std::thread::spawn(move || {
                    // A client that goes away is none of the server's concern.
                    let _ = serve(client, tls, &remembered, &*answer);
                });
            }
        });
        Site { address, asked }
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// A grant by which this name and port stand for the server.
    pub(crate) fn grant(&self, name: &str, port: u16) -> String {
        format!("{name}:{port}={}", self.address)
    }
}

fn serve(
    client: TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
    remembered: &Mutex<Vec<Asked>>,
    answer: &dyn Fn(&Asked) -> Answered,
) -> std::io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    match tls {
        None => {
            exchange(&client, &client, remembered, answer)?;
            client.shutdown(std::net::Shutdown::Write)
        }
        Some(tls) => {
            let connection = rustls::ServerConnection::new(tls).map_err(std::io::Error::other)?;
            let mut stream = rustls::StreamOwned::new(connection, client);
            let asked = read(&mut stream)?;
            remembered.lock().unwrap().push(asked.clone());
            write(&mut stream, &asked, &answer(&asked))?;
            stream.conn.send_close_notify();
            stream.flush()
        }
    }
}

fn exchange(
    reader: &TcpStream,
    mut writer: &TcpStream,
    remembered: &Mutex<Vec<Asked>>,
    answer: &dyn Fn(&Asked) -> Answered,
) -> std::io::Result<()> {
    let mut reader = reader;
    let asked = read(&mut reader)?;
    remembered.lock().unwrap().push(asked.clone());
    write(&mut writer, &asked, &answer(&asked))
}

fn read(client: &mut impl Read) -> std::io::Result<Asked> {
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut asked = Asked {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        ..Asked::default()
    };
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            let name = name.trim().to_ascii_lowercase();
            asked.headers.push((name, value.trim().to_owned()));
        }
    }
    let length = asked
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    asked.body = String::from_utf8_lossy(&body).into_owned();
    Ok(asked)
}

fn write(client: &mut impl Write, asked: &Asked, answered: &Answered) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Said\r\nConnection: close\r\n", answered.status);
    for (name, value) in &answered.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if answered.says_length {
        head.push_str(&format!("Content-Length: {}\r\n", answered.body.len()));
    }
    head.push_str("\r\n");
    client.write_all(head.as_bytes())?;
    if asked.method != "HEAD" {
        client.write_all(&answered.body)?;
    }
    client.flush()
}
