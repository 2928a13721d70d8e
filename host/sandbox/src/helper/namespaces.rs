//! Layer 1 and 2: namespaces, and who the command is in them.
//!
//! The user and network namespaces belong to the Session and are only joined by a command; mounts, processes, IPC, host
//! name and control groups are the command's own. Identities are mapped to themselves, so files keep their owners; that
//! the mapped identity may be root is why the later layers take every capability away.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::{failed, network, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};

/// What the Session's commands share.
pub(super) struct Anchored {
    pub(super) user: OwnedFd,
    pub(super) network: OwnedFd,
    pub(super) layers: Vec<Layer>,
}

/// Makes the Session's namespaces, with this process in them; the network's only where `separate_network` says so.
pub(super) fn anchor(separate_network: bool) -> Result<Anchored, SandboxError> {
    let user = LayerName::UserNamespace;
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER).map_err(failed(user, "unshare(CLONE_NEWUSER)"))?;
    write("/proc/self/setgroups", "deny").map_err(failed(user, "write to /proc/self/setgroups"))?;
    write("/proc/self/uid_map", &format!("{uid} {uid} 1"))
        .map_err(failed(user, "write to /proc/self/uid_map"))?;
    write("/proc/self/gid_map", &format!("{gid} {gid} 1"))
        .map_err(failed(user, "write to /proc/self/gid_map"))?;

    if separate_network {
        let net = LayerName::NetworkNamespace;
        unshare(UnshareFlags::NEWNET).map_err(failed(net, "unshare(CLONE_NEWNET)"))?;
        network::raise_loopback()?;
    }
    hand_out(separate_network)
}

/// The namespaces that this process is in, as those of a Session.
pub(super) fn hand_out(separate_network: bool) -> Result<Anchored, SandboxError> {
    let (user, net) = (LayerName::UserNamespace, LayerName::NetworkNamespace);
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let network_layers = if separate_network {
        [
            stands(
                net,
                "no interface but the loopback, shared by the Session's commands",
            ),
            stands(LayerName::Loopback, "up"),
        ]
    } else {
        let detail = "none: commands have the machine's own network, as `shell.network: host` says";
        [net, LayerName::Loopback].map(|name| Layer::inactive(name, detail, None))
    };
    Ok(Anchored {
        user: open("/proc/self/ns/user").map_err(failed(user, "open /proc/self/ns/user"))?,
        network: open("/proc/self/ns/net").map_err(failed(net, "open /proc/self/ns/net"))?,
        layers: [stands(
            user,
            format!("uid {uid} and gid {gid} mapped to themselves, no others"),
        )]
        .into_iter()
        .chain(network_layers)
        .collect(),
    })
}

/// Enters the Session's namespaces.
pub(super) fn join(user: &OwnedFd, network: &OwnedFd) -> Result<(), SandboxError> {
    use std::os::fd::AsFd;
    let net = LayerName::NetworkNamespace;
    // A Session that has the machine's own network is in it already, and may not be put into it again.
    let stays = is_mine(network).map_err(failed(net, "stat(/proc/self/ns/net)"))?;
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))
        .map_err(failed(LayerName::UserNamespace, "setns(CLONE_NEWUSER)"))?;
    if stays {
        return Ok(());
    }
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(failed(net, "setns(CLONE_NEWNET)"))
}

/// Whether `network` is the network namespace of this process.
fn is_mine(network: &OwnedFd) -> rustix::io::Result<bool> {
    let (own, other) = (
        rustix::fs::stat("/proc/self/ns/net")?,
        rustix::fs::fstat(network)?,
    );
    Ok((own.st_dev, own.st_ino) == (other.st_dev, other.st_ino))
}

/// Makes the next child the first process of a namespace of its own.
pub(super) fn separate_processes() -> Result<(), SandboxError> {
    unshare(UnshareFlags::NEWPID).map_err(failed(LayerName::Namespaces, "unshare(CLONE_NEWPID)"))
}

/// Separates all that can be separated without a new process, with the Workspace as working directory.
///
/// A mount can only be cloned within its own mount namespace, and of the descriptors that a process holds only its
/// working directory is carried over into a new one. So the Workspace enters as the working directory: by identity, never
/// by a path that somebody could have swapped.
pub(super) fn separate_rest(workspace: &OwnedFd) -> Result<Layer, SandboxError> {
    let layer = LayerName::Namespaces;
    rustix::process::fchdir(workspace).map_err(failed(layer, "fchdir to the Workspace"))?;
    let needed = UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    let call = "unshare(CLONE_NEWNS|CLONE_NEWIPC|CLONE_NEWUTS)";
    let control_groups = match unshare(needed | UnshareFlags::NEWCGROUP) {
        Ok(()) => true,
        // A kernel without control groups has none to hide.
        Err(Errno::INVAL) => {
            unshare(needed).map_err(failed(layer, call))?;
            false
        }
        Err(errno) => return Err(failed(layer, call)(errno)),
    };
    rustix::system::sethostname(b"floe").map_err(failed(layer, "sethostname"))?;
    Ok(stands(
        layer,
        if control_groups {
            "and a cgroup namespace"
        } else {
            "no cgroup namespace"
        },
    ))
}

fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: none of the flags used here is CLONE_FILES, the one that pulls descriptors from under other owners.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

fn write(path: &str, content: &str) -> rustix::io::Result<()> {
    fs::write(path, content).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn open(path: &str) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}
