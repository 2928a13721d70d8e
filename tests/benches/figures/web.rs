//! `web_fetch` of a page over the loopback, whole door: through the gate, on a connection that is kept, and made Markdown.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use floe_network::HostGrants;
use serde_json::json;

use crate::figures::{Effort, Figures, Goal};
use crate::house::House;

/// Bytes of the page, about.
const LENGTH: usize = 50_000;

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let server = serve(page());
    let grant = format!("site.test:80={server}");
    let grants = HostGrants::parse(&[grant]).expect("a grant");
    let house = House::of_the_web("web_fetch", grants);
    let mut number = 0;
    let what = "`web_fetch` of a page of 50 KB over the loopback, as Markdown";
    figures.measure(what, Goal::None, Effort::LONG, |count| {
        (0..count)
            .map(|_| {
                // Another address each time, since the gate remembers for a while what it has fetched.
                number += 1;
                let url = format!("http://site.test/page?number={number}");
                let arguments = json!({"url": url, "max_bytes": 2 * LENGTH}).to_string();
                let (took, output) = house.call("web_fetch", &arguments);
                assert!(output.contains("## Part 2"), "{output}");
                took
            })
            .collect()
    });
}

/// Headings, paragraphs with links, tables and code, as pages of documentation have them.
fn page() -> Vec<u8> {
    let mut page = String::from("<!doctype html><html><head><title>A page</title></head><body>");
    let mut part = 0;
    while page.len() < LENGTH {
        part += 1;
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "<h2 id=\"part-{part}\">Part {part}</h2>\n<p>What <em>part</em> {part} says is &quot;as long&quot; as paragraphs often \
             are, and it leads to <a href=\"/other/{part}\">another page</a> and to <code>name_{part}</code>.</p>\n<ul><li>one</li>\
             <li>two, <strong>strong</strong></li></ul>\n<table><tr><th>name</th><th>value</th></tr><tr><td>first</td><td>{part}</td>\
             </tr></table>\n<pre><code>let part = {part};\nprint(part);</code></pre>\n"
        );
    }
    page.push_str("</body></html>");
    page.into_bytes()
}

/// A server of plain HTTP that gives the page to whoever asks and keeps connections. It serves until the process ends.
fn serve(page: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        page.len()
    );
    let response = Arc::new([head.into_bytes(), page].concat());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let response = Arc::clone(&response);
            // A client that goes away is none of the server's concern.
            std::thread::spawn(move || answer(&client, &response));
        }
    });
    address
}

fn answer(mut client: &TcpStream, response: &[u8]) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    for line in BufReader::new(client).lines() {
        // The head of a request ends with an empty line, and a GET has no body.
        if line?.is_empty() {
            client.write_all(response)?;
        }
    }
    Ok(())
}
