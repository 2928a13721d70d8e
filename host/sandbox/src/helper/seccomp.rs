//! Layer 9: system calls that no build needs and that have led out of sandboxes.
//!
//! A list of refusals, not of permissions: what is not listed works, because a sandbox that breaks honest programs is
//! switched off. Refused calls fail with EPERM, as they do for a process without privileges. `clone3` and `openat2` are "not
//! there", so that libraries fall back to calls whose arguments a filter can read. Calls of another architecture kill.

use std::collections::BTreeMap;

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use super::{failed, last_errno, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};

/// Refused whatever their arguments.
#[rustfmt::skip]
const REFUSED: &[i64] = &[
    // Mounts, the old way and the new.
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot,
    libc::SYS_open_tree, libc::SYS_move_mount, libc::SYS_fsopen, libc::SYS_fsconfig,
    libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_mount_setattr, SYS_OPEN_TREE_ATTR,
    // Namespaces.
    libc::SYS_unshare, libc::SYS_setns,
    // Other processes' insides.
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev,
    libc::SYS_process_madvise, libc::SYS_kcmp, libc::SYS_pidfd_getfd,
    // Keys.
    libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl,
    // The kernel's own machinery, and the large parts of it that few programs use and many exploits do.
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_fanotify_init,
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at, libc::SYS_kexec_load, libc::SYS_kexec_file_load,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
    libc::SYS_syslog, libc::SYS_lookup_dcookie,
    // The machine.
    libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_reboot, libc::SYS_acct, libc::SYS_quotactl,
    libc::SYS_quotactl_fd, libc::SYS_settimeofday, libc::SYS_clock_settime,
    libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_vhangup,
];

/// `open_tree_attr` has this number on every architecture.
const SYS_OPEN_TREE_ATTR: i64 = 467;

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Namespaces that `clone` can make. Its time namespace flag is not among them: there the bit means a signal.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests to a descriptor that are refused.
#[rustfmt::skip]
const REQUESTS: [u64; 5] = [
    // These put words in another's mouth, or change what the terminal is.
    libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD,
    // Snapshots of btrfs: many kernels take any file for the whole subvolume that it lies in, so that a copy of all that
    // lies beside the Workspace would appear in it.
    BTRFS_IOC_SNAP_CREATE, BTRFS_IOC_SNAP_CREATE_V2,
];

const BTRFS_IOC_SNAP_CREATE: u64 = 0x5000_9401;
const BTRFS_IOC_SNAP_CREATE_V2: u64 = 0x5000_9417;

/// Which sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Those that programs have a use for, where a network namespace says what they reach.
    OfNetwork,
    /// Unix sockets alone, where nothing but this filter keeps the network away.
    OfUnix,
}

impl Sockets {
    /// Their families. Of the last only the routing table.
    fn families(self) -> &'static [libc::c_int] {
        match self {
            Sockets::OfNetwork => &[
                libc::AF_UNIX,
                libc::AF_INET,
                libc::AF_INET6,
                libc::AF_NETLINK,
            ],
            Sockets::OfUnix => &[libc::AF_UNIX],
        }
    }
}

/// System calls that give a file its mode: the number of the argument with the mode, and of the one with the flags that
/// say whether a file is made at all.
#[rustfmt::skip]
const MODES: &[(i64, u8, Option<u8>)] = &[
    (libc::SYS_fchmod, 1, None), (libc::SYS_fchmodat, 2, None), (SYS_FCHMODAT2, 2, None),
    (libc::SYS_mknodat, 2, None), (libc::SYS_openat, 3, Some(2)),
];

#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const MODES_HERE: &[(i64, u8, Option<u8>)] = &[
    (libc::SYS_chmod, 1, None), (libc::SYS_creat, 1, None), (libc::SYS_mknod, 1, None),
    (libc::SYS_open, 2, Some(1)),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8, Option<u8>)] = &[];

/// `fchmodat2` has this number on every architecture.
const SYS_FCHMODAT2: i64 = 452;

/// With these flags a file is made.
const MAKING: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Installs the filter for this process and all that come from it.
pub(super) fn filter(sockets: Sockets) -> Result<Layer, SandboxError> {
    let (refusals, count) = refusals(sockets).map_err(|_| broken())?;
    for program in [absences(), refusals] {
        apply_filter(&program).map_err(|_| {
            failed(LayerName::Seccomp, "seccomp(SECCOMP_SET_MODE_FILTER)")(last_errno())
        })?;
    }
    Ok(stands(
        LayerName::Seccomp,
        format!("{count} system calls refused"),
    ))
}

fn broken() -> SandboxError {
    failed(LayerName::Seccomp, "compile the filter")(Errno::INVAL)
}

fn refusals(sockets: Sockets) -> Result<(BpfProgram, usize), seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    use SeccompCmpOp::{Eq, MaskedEq, Ne};

    let condition = SeccompCondition::new;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED
        .iter()
        .chain(REFUSED_HERE)
        .map(|&call| (call, Vec::new()))
        .collect();

    let mut clones = Vec::new();
    for flag in NAMESPACES {
        let flag = flag as u32 as u64;
        clones.push(SeccompRule::new(vec![condition(
            0,
            Qword,
            MaskedEq(flag),
            flag,
        )?])?);
    }
    rules.insert(libc::SYS_clone, clones);

    let mut requests = Vec::new();
    for request in REQUESTS {
        requests.push(SeccompRule::new(vec![condition(1, Dword, Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, requests);

    let mut other_family = Vec::new();
    for &family in sockets.families() {
        other_family.push(condition(0, Dword, Ne, family as u64)?);
    }
    let other_protocol = vec![
        condition(0, Dword, Eq, libc::AF_NETLINK as u64)?,
        condition(2, Dword, Ne, libc::NETLINK_ROUTE as u64)?,
    ];
    let refused_sockets = vec![
        SeccompRule::new(other_family)?,
        SeccompRule::new(other_protocol)?,
    ];
    rules.insert(libc::SYS_socket, refused_sockets);
    // The kernel makes both sockets, of whatever family, before it finds out that nearly none can be paired.
    let not_unix = condition(0, Dword, Ne, libc::AF_UNIX as u64)?;
    rules.insert(
        libc::SYS_socketpair,
        vec![SeccompRule::new(vec![not_unix])?],
    );

    // A program that runs with its owner's privileges, left in the Workspace, would give the host's to any other user of
    // the machine.
    let privileged = |argument| {
        let bit = u64::from(libc::S_ISUID);
        condition(argument, Dword, MaskedEq(bit), bit)
    };
    for &(call, mode, flags) in MODES.iter().chain(MODES_HERE) {
        let refused = match flags {
            None => vec![SeccompRule::new(vec![privileged(mode)?])?],
            Some(flags) => MAKING
                .iter()
                .map(|&making| {
                    let making = making as u64;
                    let made = condition(flags, Dword, MaskedEq(making), making)?;
                    SeccompRule::new(vec![made, privileged(mode)?])
                })
                .collect::<Result<_, _>>()?,
        };
        rules.insert(call, refused);
    }

    let count = rules.len();
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        architecture,
    )?;
    Ok((filter.try_into()?, count))
}

/// "Not implemented" for `clone3` and `openat2`, whose flags and mode a filter cannot read, and on x86-64 for the second numbering of all calls (x32), which would pass by the
/// filter's numbers.
fn absences() -> BpfProgram {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const X32: u32 = 0x4000_0000;
    let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        // The call's number is the first word of what a filter sees.
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 2, 0, libc::SYS_clone3 as u32),
        step(IF_EQUAL, 1, 0, libc::SYS_openat2 as u32),
        step(IF_AT_LEAST, 0, 1, X32),
        step(RETURN, 0, 0, absent),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_compiles_and_stays_far_below_what_the_kernel_takes() {
        for sockets in [Sockets::OfNetwork, Sockets::OfUnix] {
            let (program, count) = refusals(sockets).unwrap();
            assert!(count >= REFUSED.len() + REFUSED_HERE.len());
            assert!(program.len() < 1024, "{} steps", program.len());
        }
    }
}
