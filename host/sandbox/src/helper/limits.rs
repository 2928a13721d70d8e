//! Layer 5: how much of the machine a command may use.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{failed, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};
use crate::policy::Limits;

/// How many processes a command may have, as far as this kernel can say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessCap {
    /// By the process namespace's own `pid_max`.
    Namespace,
    /// By `RLIMIT_NPROC` of the Session's user, which does not bind root.
    User,
    /// The same where no user namespace counts for the Session alone: so many tasks does the user have already.
    UserBeside(u64),
}

impl ProcessCap {
    /// The cap of a command among the machine's other processes.
    pub(super) fn beside_others() -> Result<ProcessCap, SandboxError> {
        let user = rustix::process::getuid().as_raw();
        let processes = std::fs::read_dir("/proc").map_err(|error| {
            failed(LayerName::Limits, "open(/proc)")(
                Errno::from_io_error(&error).unwrap_or(Errno::IO),
            )
        })?;
        let tasks = processes.flatten().filter_map(|process| {
            let tasks = process.path().join("task").metadata().ok()?;
            // Of a folder that holds only folders the links tell how many, beside two of its own.
            (tasks.uid() == user).then(|| tasks.nlink().saturating_sub(2))
        });
        Ok(ProcessCap::UserBeside(tasks.sum()))
    }
}

/// Process numbers below this are not given out again once they have been used.
const RESERVED: u32 = 300;

/// Caps the processes of this process namespace, through its own `/proc`.
///
/// Before Linux 6.14 the same file is the whole machine's, and a host that is root could change it from here: there it is
/// not touched.
pub(super) fn cap_processes(proc: &OwnedFd, limits: &Limits) -> Result<ProcessCap, SandboxError> {
    if kernel_version() < (6, 14) {
        return Ok(ProcessCap::User);
    }
    let call = "write to /proc/sys/kernel/pid_max";
    let failure = failed(LayerName::Limits, call);
    let cap = (limits.pids.saturating_add(RESERVED)).to_string();
    let written = openat(
        proc,
        "sys/kernel/pid_max",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .and_then(|file| rustix::io::write(&file, cap.as_bytes()));
    match written {
        Ok(_) => Ok(ProcessCap::Namespace),
        // More than the machine itself allows, or not ours to write: the other cap remains.
        Err(Errno::INVAL | Errno::PERM | Errno::ACCESS) => Ok(ProcessCap::User),
        Err(errno) => Err(failure(errno)),
    }
}

/// Sets the limits that processes inherit.
pub(super) fn apply(limits: &Limits, processes: ProcessCap) -> Result<Layer, SandboxError> {
    limit(Resource::Core, 0, "RLIMIT_CORE")?;
    limit(Resource::Nofile, limits.open_files, "RLIMIT_NOFILE")?;
    limit(
        Resource::Fsize,
        limits.file_mb.saturating_mul(1024 * 1024),
        "RLIMIT_FSIZE",
    )?;
    let already = match processes {
        ProcessCap::Namespace => None,
        ProcessCap::User => Some(0),
        ProcessCap::UserBeside(tasks) => Some(tasks),
    };
    if let Some(already) = already {
        let most = already.saturating_add(limits.pids.into());
        limit(Resource::Nproc, most, "RLIMIT_NPROC")?;
    }
    volunteer_for_the_out_of_memory_killer()?;
    let Limits {
        pids,
        file_mb,
        open_files,
        ..
    } = limits;
    let (cap, remedy) = match (processes, rustix::process::geteuid().is_root()) {
        (ProcessCap::Namespace, _) => (format!("{pids} processes"), None),
        (ProcessCap::User, false) => (format!("{pids} processes in the Session"), None),
        (ProcessCap::UserBeside(tasks), false) => (
            format!("{pids} processes beside the user's {tasks} others"),
            None,
        ),
        (ProcessCap::UserBeside(_), true) => (
            "processes not capped: RLIMIT_NPROC does not bind root".to_owned(),
            Some("Run Floe as an ordinary user.".to_owned()),
        ),
        (ProcessCap::User, true) => (
            "processes not capped: RLIMIT_NPROC does not bind root".to_owned(),
            Some("Run Floe as an ordinary user, or use Linux 6.14 or newer.".to_owned()),
        ),
    };
    let detail = format!("{cap}, {file_mb} MiB a file, {open_files} open files, no core dumps");
    Ok(Layer {
        remedy,
        ..stands(LayerName::Limits, detail)
    })
}

/// Lowers a limit to `most`; never raises one, which would need a privilege.
fn limit(resource: Resource, most: u64, name: &str) -> Result<(), SandboxError> {
    let now = getrlimit(resource).maximum;
    let most = Some(now.map_or(most, |now| now.min(most)));
    setrlimit(
        resource,
        Rlimit {
            current: most,
            maximum: most,
        },
    )
    .map_err(failed(LayerName::Limits, format!("setrlimit({name})")))
}

/// Where memory runs out, a command goes before the host.
pub(super) fn volunteer_for_the_out_of_memory_killer() -> Result<(), SandboxError> {
    const FILE: &str = "/proc/self/oom_score_adj";
    let now = std::fs::read_to_string(FILE)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let score: i32 = (now.unwrap_or(0) + 500).min(1000);
    std::fs::write(FILE, score.to_string()).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        failed(LayerName::Limits, format!("write to {FILE}"))(errno)
    })
}

fn kernel_version() -> (u32, u32) {
    let uname = rustix::system::uname();
    parse_version(&uname.release().to_string_lossy())
}

fn parse_version(release: &str) -> (u32, u32) {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn a_kernel_release_is_read_by_its_first_two_numbers() {
        assert_eq!(parse_version("6.18.44-fc-v857"), (6, 18));
        assert_eq!(parse_version("5.4.0-1-amd64"), (5, 4));
        assert_eq!(parse_version("odd"), (0, 0));
    }
}
