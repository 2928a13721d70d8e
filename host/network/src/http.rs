//! HTTP to the proxy: one request a connection, a tunnel or one that is forwarded.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::body::{self, Source};
use crate::connection::{last_word, tunnel};
use crate::dial::Unreachable;
use crate::head::{self, Framing, Head, LONGEST_HEAD, Malformed, Request};
use crate::proxy::Shared;
use crate::refusal::Refusal;
use crate::relay::{Activity, Noted, pump};

/// Serves a client whose first byte was read already.
pub(crate) async fn serve(
    shared: &Shared,
    mut client: TcpStream,
    first: u8,
    deadline: Instant,
) -> io::Result<()> {
    let read = timeout_at(deadline, read_head(&mut client, first)).await?;
    let Some((bytes, rest)) = read? else {
        return answer(
            &mut client,
            "431 Request Header Fields Too Large",
            "the head is too long",
        )
        .await;
    };
    let Head { request, shown } = match head::parse(&bytes) {
        Ok(head) => head,
        Err(Malformed::NotAHost(text)) => {
            let refusal = Refusal::not_a_host(&text);
            shared.refuse(&refusal);
            return answer(&mut client, "400 Bad Request", &refusal.to_string()).await;
        }
        Err(Malformed::Request(reason)) => {
            return answer(&mut client, "400 Bad Request", reason).await;
        }
    };
    let Some(admission) = shared.credentials.admission(&shown) else {
        let reason = "what was granted to this command alone ended with it";
        return answer(&mut client, "407 Proxy Authentication Required", reason).await;
    };
    let ended = admission.ended.clone();
    let served = async {
        let target = match &request {
            Request::Tunnel(target) | Request::Forward { target, .. } => target,
        };
        let mut upstream = match shared.dial(target, &admission).await {
            Ok(upstream) => upstream,
            Err(unreachable) => return answer_unreachable(&mut client, &unreachable).await,
        };
        match request {
            Request::Tunnel(_) => {
                client
                    .write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")
                    .await?;
                tunnel(shared, client, &rest, upstream).await
            }
            Request::Forward { head, body, .. } => {
                forward(shared, &mut client, rest, &head, body, &mut upstream).await
            }
        }
    };
    ended
        .run_until_cancelled(served)
        .await
        .unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))
}

/// The head with its empty line, and what came behind it; none where it is too long.
async fn read_head(client: &mut TcpStream, first: u8) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::with_capacity(1024);
    bytes.push(first);
    let mut looked_at = 0;
    loop {
        let end = bytes[looked_at..]
            .windows(4)
            .position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(looked_at + end + 4);
            return Ok(Some((bytes, rest)));
        }
        looked_at = bytes.len().saturating_sub(3);
        if bytes.len() >= LONGEST_HEAD {
            return Ok(None);
        }
        let mut block = [0; 4096];
        let room = block.len().min(LONGEST_HEAD - bytes.len());
        match client.read(&mut block[..room]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&block[..count]),
        }
    }
}

/// Sends one request and gives back all that is answered to it. The other side closes, because the head asks it to.
async fn forward(
    shared: &Shared,
    client: &mut TcpStream,
    ahead: Vec<u8>,
    head: &[u8],
    body: Framing,
    upstream: &mut TcpStream,
) -> io::Result<()> {
    let activity = Activity::new(shared.limits.idle);
    let (client_reader, client_writer) = client.split();
    let (upstream_reader, upstream_writer) = upstream.split();
    let mut to_upstream = Noted::new(upstream_writer, &activity);
    let mut to_client = Noted::new(client_writer, &activity);
    let up = async {
        to_upstream.write_all(head).await?;
        let mut source = Source::new(ahead, client_reader);
        body::copy(body, &mut source, &mut to_upstream).await?;
        // A client that goes away is noticed; what it still sends goes nowhere.
        if source.has_ended().await {
            activity.ends();
        }
        io::Result::Ok(())
    };
    let down = pump(upstream_reader, &mut to_client);
    let both = async {
        tokio::pin!(down);
        tokio::select! {
            end = &mut down => return end,
            sent = up => match sent {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
                // Where the other side takes no more it may have answered already.
                _ => {}
            },
        }
        down.await
    };
    tokio::select! {
        end = both => end,
        () = activity.idle() => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn answer_unreachable(client: &mut TcpStream, unreachable: &Unreachable) -> io::Result<()> {
    match unreachable {
        // Some programs show nothing of an answer but this line.
        Unreachable::Refused(refusal) => {
            answer(client, "403 Host Not Allowed", &refusal.to_string()).await
        }
        Unreachable::Unknown => answer(client, "502 Unknown Host", "the name is not known").await,
        Unreachable::TooManyNames => {
            let reason = "the commands of this Session have asked for too many names";
            answer(client, "503 Too Many Names", reason).await
        }
        Unreachable::TimedOut => {
            answer(client, "504 Gateway Timeout", "the host does not answer").await
        }
        Unreachable::Failed(error) => {
            let reason = format!("the host cannot be reached: {}", error.kind());
            answer(client, "502 Bad Gateway", &reason).await
        }
    }
}

async fn answer(client: &mut TcpStream, status: &str, reason: &str) -> io::Result<()> {
    let challenge = if status.starts_with("407") {
        "Proxy-Authenticate: Basic realm=\"floe\"\r\n"
    } else {
        ""
    };
    let body = format!("[network: {reason}]\n");
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n{challenge}Connection: close\r\n\r\n{body}"
    );
    last_word(client, response.as_bytes()).await
}
