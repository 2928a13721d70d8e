//! Serves the pages of the example project over plain HTTP, to whoever asks.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// Runs as long as the test.
pub(super) struct Site(SocketAddr);

impl Site {
    /// The name of the site in the examples.
    pub(super) const HOST: &str = "localhost:8000";
    /// Its address on the pages.
    pub(super) const SHOWN: &str = "127.0.0.1:8000";

    pub(super) fn serve(folder: PathBuf) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                // Who leaves before the end is of no concern.
                let _ = answer(client.unwrap(), &folder);
            }
        });
        Site(address)
    }

    /// Where it is in this test.
    pub(super) fn address(&self) -> String {
        self.0.to_string()
    }
}

fn answer(mut client: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(&client).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let target = request.split(' ').nth(1).unwrap_or("/");
    let name = target
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    };
    let (status, kind, body) = match std::fs::read(folder.join(name)) {
        Ok(body) => ("200 OK", kind, body),
        Err(_) => ("404 Not Found", "text/plain", b"No such page.\n".to_vec()),
    };
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    client.write_all(&body)
}
