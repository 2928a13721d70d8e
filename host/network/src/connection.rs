//! One client of the proxy, from its first byte, which says what it speaks.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::proxy::Shared;
use crate::relay::{Activity, Noted, pump};
use crate::{http, socks};

/// Serves a client to its end.
///
/// # Errors
///
/// The client, or whom it talks to, went away or was silent.
pub(crate) async fn serve(shared: &Shared, mut client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    // All of what a client has to say first has to come within one time, however small its pieces.
    let deadline = Instant::now() + shared.limits.request;
    let first = timeout_at(deadline, client.read_u8()).await??;
    match first {
        socks::VERSION => socks::serve(shared, client, deadline).await,
        // The method of a request.
        b'A'..=b'Z' => http::serve(shared, client, first, deadline).await,
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Moves bytes both ways, beginning with those of the client that are here already, until both sides have ended or are silent
/// for too long. A side that ends lets the other finish.
pub(crate) async fn tunnel(
    shared: &Shared,
    mut client: TcpStream,
    early: &[u8],
    mut upstream: TcpStream,
) -> io::Result<()> {
    let activity = Activity::new(shared.limits.idle);
    let (client_reader, client_writer) = client.split();
    let (upstream_reader, upstream_writer) = upstream.split();
    let mut to_upstream = Noted::new(upstream_writer, &activity);
    let mut to_client = Noted::new(client_writer, &activity);
    let up = async {
        to_upstream.write_all(early).await?;
        pump(client_reader, &mut to_upstream).await?;
        activity.ends();
        Ok(())
    };
    let down = async {
        pump(upstream_reader, &mut to_client).await?;
        activity.ends();
        Ok(())
    };
    tokio::select! {
        end = async { tokio::try_join!(up, down) } => end.map(|((), ())| ()),
        () = activity.idle() => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Says a last word. What the client still sends is read for a moment, because a connection that is closed over unread
/// bytes takes the last word with it.
pub(crate) async fn last_word(client: &mut TcpStream, word: &[u8]) -> io::Result<()> {
    const MOMENT: std::time::Duration = std::time::Duration::from_secs(1);
    const MOST_UNREAD: u64 = 256 * 1024;
    let said = async {
        client.write_all(word).await?;
        client.shutdown().await?;
        let mut rest = client.take(MOST_UNREAD);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    timeout(MOMENT, said).await?.map(|_| ())
}
