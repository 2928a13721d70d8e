//! SOCKS5 to the proxy: connections to hosts by name or address, and nothing else that the protocol has.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::connection::{last_word, tunnel};
use crate::credentials::{Admission, Shown, USER};
use crate::dial::Unreachable;
use crate::host::{Host, Target};
use crate::proxy::Shared;
use crate::refusal::Refusal;

/// The first byte of every message.
pub(crate) const VERSION: u8 = 5;
/// Ways to say who one is: not at all, and with a password.
const NOBODY: u8 = 0;
const PASSWORD: u8 = 2;
const NO_WAY: u8 = 0xff;
/// The version of the message with the password.
const PASSWORD_VERSION: u8 = 1;
/// The one thing that can be asked for.
const CONNECT: u8 = 1;

/// Answers, by their numbers in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Connected = 0,
    NotAllowed = 2,
    Unreachable = 4,
    Refused = 5,
    TimedOut = 6,
    Command = 7,
    AddressType = 8,
}

impl Reply {
    /// The whole message. Clients do not need the address that the connection comes from, and it is the host's own.
    fn message(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// Serves a client whose first byte was read already.
pub(crate) async fn serve(
    shared: &Shared,
    mut client: TcpStream,
    deadline: Instant,
) -> io::Result<()> {
    let greeted = timeout_at(deadline, greet(shared, &mut client)).await??;
    let Some(admission) = greeted else {
        return Ok(());
    };
    let asked = timeout_at(deadline, read_target(&mut client)).await??;
    let target = match asked {
        Ok(target) => target,
        Err(Refused::NotAHost(text)) => {
            shared.refuse(&Refusal::not_a_host(&text));
            return last_word(&mut client, &Reply::NotAllowed.message()).await;
        }
        Err(Refused::Request(reply)) => return last_word(&mut client, &reply.message()).await,
    };
    let ended = admission.ended.clone();
    let served = async {
        match shared.dial(&target, &admission).await {
            Ok(upstream) => {
                client.write_all(&Reply::Connected.message()).await?;
                tunnel(shared, client, &[], upstream).await
            }
            Err(unreachable) => last_word(&mut client, &reply(&unreachable).message()).await,
        }
    };
    ended
        .run_until_cancelled(served)
        .await
        .unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))
}

fn reply(unreachable: &Unreachable) -> Reply {
    match unreachable {
        Unreachable::Refused(_) => Reply::NotAllowed,
        Unreachable::Unknown | Unreachable::TooManyNames => Reply::Unreachable,
        Unreachable::TimedOut => Reply::TimedOut,
        Unreachable::Failed(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Reply::Refused
        }
        Unreachable::Failed(_) => Reply::Unreachable,
    }
}

/// Finds out who the client is; none where it was told that it is nobody that is known.
async fn greet(shared: &Shared, client: &mut TcpStream) -> io::Result<Option<Admission>> {
    let methods = read_short(client).await?;
    // A client that can show a password is asked for it: it has one only where it was given one.
    let method = [PASSWORD, NOBODY]
        .into_iter()
        .find(|method| methods.contains(method));
    let Some(method) = method else {
        last_word(client, &[VERSION, NO_WAY]).await?;
        return Ok(None);
    };
    client.write_all(&[VERSION, method]).await?;
    if method == NOBODY {
        return Ok(shared.credentials.admission(&Shown::Nothing));
    }
    if client.read_u8().await? != PASSWORD_VERSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let user = read_short(client).await?;
    let password = read_short(client).await?;
    let shown = match (&user[..], String::from_utf8(password)) {
        ([], Ok(password)) if password.is_empty() => Shown::Nothing,
        (user, Ok(password)) if user == USER.as_bytes() => Shown::Token(password),
        _ => Shown::Other,
    };
    let admission = shared.credentials.admission(&shown);
    let verdict = [PASSWORD_VERSION, u8::from(admission.is_none())];
    if admission.is_some() {
        client.write_all(&verdict).await?;
    } else {
        last_word(client, &verdict).await?;
    }
    Ok(admission)
}

/// Why a request leads nowhere.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    NotAHost(String),
    Request(Reply),
}

async fn read_target(client: &mut TcpStream) -> io::Result<Result<Target, Refused>> {
    let [version, command, reserved, kind] = read_array(client).await?;
    if version != VERSION || reserved != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let host = match kind {
        1 => Ok(Host::Address(IpAddr::from(read_array::<4>(client).await?))),
        3 => {
            let name = String::from_utf8_lossy(&read_short(client).await?).into_owned();
            // Clients write addresses of the sixth version here without the brackets that tell a port apart.
            Host::parse(&name).map_err(|_| Refused::NotAHost(name))
        }
        4 => {
            let address = Ipv6Addr::from(read_array::<16>(client).await?);
            Ok(Host::Address(IpAddr::from(address).to_canonical()))
        }
        _ => return Ok(Err(Refused::Request(Reply::AddressType))),
    };
    let port = u16::from_be_bytes(read_array(client).await?);
    Ok(match host {
        _ if command != CONNECT => Err(Refused::Request(Reply::Command)),
        Ok(host) if port == 0 => Err(Refused::NotAHost(format!("{host}:0"))),
        Ok(host) => Ok(Target { host, port }),
        Err(refused) => Err(refused),
    })
}

/// As many bytes as the byte before them says.
async fn read_short(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn read_array<const LENGTH: usize>(client: &mut TcpStream) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}
