//! Layer 4: the loopback of the Session's network namespace, which starts down, and the one socket on it that is the host's.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{failed, last_errno};
use crate::error::SandboxError;
use crate::layer::LayerName;

/// Brings `lo` up.
pub(super) fn raise_loopback() -> Result<(), SandboxError> {
    let layer = LayerName::Loopback;
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed(layer, "socket(AF_INET)"))?;
    // SAFETY: all bytes zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the socket is open, and SIOCSIFFLAGS reads one `ifreq` with a terminated name and flags.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) };
    if result == -1 {
        return Err(failed(layer, "ioctl(SIOCSIFFLAGS, lo up)")(last_errno()));
    }
    Ok(())
}

/// Clients that may wait until they are served.
const BACKLOG: i32 = 128;

/// A socket that listens on a free port of the loopback.
pub(super) fn listen() -> Result<OwnedFd, SandboxError> {
    let layer = LayerName::Loopback;
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed(layer, "socket(AF_INET)"))?;
    let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    rustix::net::bind(&socket, &any_port).map_err(failed(layer, "bind(127.0.0.1)"))?;
    rustix::net::listen(&socket, BACKLOG).map_err(failed(layer, "listen"))?;
    Ok(socket)
}
