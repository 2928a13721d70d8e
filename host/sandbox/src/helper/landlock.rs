//! Layer 8: Landlock, the kernel's own access rules beside the mounts.
//!
//! It backs up the mounts: nothing is written outside the listed folders, whatever a mount says, and no mount can be
//! changed any more. Where the host is root it is what keeps root's files in `/proc` from being written, so there it is
//! required; elsewhere its absence is reported. Its first version refuses every move between folders, which ordinary
//! builds do not survive, so that one counts as absent.
//!
//! Where there are no mounts it stands alone: then it also says what is read, and more of it is required.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::detached::{is_folder, open_shown};
use super::{failed, last_errno, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};
use crate::plan::{Bytes, Landlocked};

/// What is promised beside mounts: without it Landlock counts as absent.
const PROMISED: ABI = ABI::V2;
/// What is promised without mounts: also that nothing outside is emptied and no TCP port reached.
const PROMISED_ALONE: ABI = ABI::V4;
/// What is taken where the kernel has it.
const WANTED: ABI = ABI::V9;

const CREATE: &str = "landlock_create_ruleset";
/// The same where it stands alone, so that the remedy can tell.
pub(crate) const CREATE_ALONE: &str = "landlock_create_ruleset, version 4";

/// The devices that a command may use where the machine's own are all there.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// What the command reaches, opened while opening is still unrestricted.
pub(super) struct Reach {
    readable: Vec<OwnedFd>,
    writable: Vec<OwnedFd>,
    devices: Vec<OwnedFd>,
}

/// Opens what the command may write below, in a view where all that there is may be read.
pub(super) fn open_writable(paths: &[Bytes]) -> Result<Reach, SandboxError> {
    Ok(Reach {
        readable: vec![open("/".as_ref())?],
        writable: open_all(paths)?,
        devices: vec![open("/dev".as_ref())?],
    })
}

/// Opens what the command reaches of a machine that it sees as it is.
pub(super) fn open_alone(
    plan: &Landlocked,
    workspace: &OwnedFd,
    terminal: Option<BorrowedFd<'_>>,
) -> Result<Reach, SandboxError> {
    let kept = |descriptor: BorrowedFd<'_>| {
        rustix::io::fcntl_dupfd_cloexec(descriptor, 0)
            .map_err(failed(LayerName::Landlock, "fcntl(F_DUPFD_CLOEXEC)"))
    };
    let mut reach = Reach {
        readable: open_all(&plan.readable)?,
        writable: open_all(&plan.writable)?,
        devices: Vec::new(),
    };
    reach.readable.push(open("/proc".as_ref())?);
    for device in DEVICES
        .map(Path::new)
        .into_iter()
        .filter(|path| path.exists())
    {
        reach.devices.push(open(device)?);
    }
    reach.devices.extend(terminal.map(kept).transpose()?);
    let workspace = kept(workspace.as_fd())?;
    match plan.workspace {
        crate::plan::Access::Read => reach.readable.push(workspace),
        crate::plan::Access::Write => reach.writable.push(workspace),
    }
    Ok(reach)
}

fn open_all(paths: &[Bytes]) -> Result<Vec<OwnedFd>, SandboxError> {
    let open = |path: &Bytes| {
        open_shown(path.as_path()).map_err(failed(
            LayerName::Landlock,
            format!("open({})", path.to_text()),
        ))
    };
    paths.iter().map(open).collect()
}

fn open(path: &Path) -> Result<OwnedFd, SandboxError> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed(
        LayerName::Landlock,
        format!("open({})", path.display()),
    ))
}

/// Restricts this process and all that come from it, beside the mounts.
pub(super) fn restrict(reach: Reach) -> Result<Layer, SandboxError> {
    match create(PROMISED, BitFlags::EMPTY) {
        Ok(ruleset) => enforce(ruleset, reach),
        Err(error) if rustix::process::geteuid().is_root() => Err(refused(CREATE, &error)),
        Err(_) => {
            let detail = "this kernel lacks it, or its first version is all there is; the mounts confine alone";
            let remedy = "Use Linux 5.19 or newer with landlock in its lsm= list.";
            Ok(Layer::inactive(
                LayerName::Landlock,
                detail,
                Some(remedy.to_owned()),
            ))
        }
    }
}

/// Restricts this process and all that come from it, where nothing else keeps them from what they shall not reach.
/// `network` lets them reach what the machine reaches.
pub(super) fn restrict_alone(reach: Reach, network: bool) -> Result<Layer, SandboxError> {
    let ports = match network {
        true => BitFlags::EMPTY,
        false => AccessNet::from_all(PROMISED_ALONE),
    };
    let ruleset = create(PROMISED_ALONE, ports).map_err(|error| refused(CREATE_ALONE, &error))?;
    enforce(ruleset, reach)
}

/// A domain for the command alone, below that of its leader, so that it cannot signal its leader. Nothing where the kernel
/// does not restrict signals.
pub(super) fn enclosure() -> Option<OwnedFd> {
    let root = open("/".as_ref()).ok()?;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        // Every domain refuses moves between folders unless it says something about them.
        .and_then(|ruleset| ruleset.handle_access(AccessFs::Refer))
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer)));
    ruleset.ok()?.into()
}

/// Enters a domain that [`enclosure`] has made.
pub(super) fn enter(enclosure: &OwnedFd) -> rustix::io::Result<()> {
    // SAFETY: takes a descriptor that is open, and touches no memory.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_restrict_self,
            enclosure.as_raw_fd(),
            0_u32,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

fn enforce(ruleset: RulesetCreated, reach: Reach) -> Result<Layer, SandboxError> {
    let status = add_rules(ruleset, reach)
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(|error| refused("landlock_restrict_self", &error))?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(failed(LayerName::Landlock, "landlock_restrict_self")(
            Errno::OPNOTSUPP,
        ));
    }
    let version = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
        _ => 0,
    };
    let scopes = if version >= ABI::V6 as i32 {
        "with"
    } else {
        "without"
    };
    Ok(stands(
        LayerName::Landlock,
        format!("version {version}, {scopes} signal and socket scopes"),
    ))
}

/// `ports` is what of TCP is refused, since no rule follows that allows any.
fn create(promised: ABI, ports: BitFlags<AccessNet>) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(promised))?;
    if !ports.is_empty() {
        ruleset = ruleset.handle_access(ports)?;
    }
    ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()
}

fn add_rules(mut ruleset: RulesetCreated, reach: Reach) -> Result<RulesetCreated, RulesetError> {
    let devices =
        AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let everything_but_devices =
        AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for (reached, rights) in [
        (reach.readable, AccessFs::from_read(WANTED)),
        (reach.devices, devices),
        (reach.writable, everything_but_devices),
    ] {
        for beneath in reached {
            let rights = match is_folder(&beneath) {
                Ok(false) => rights & AccessFs::from_file(WANTED),
                _ => rights,
            };
            ruleset = ruleset.add_rule(PathBeneath::new(beneath, rights))?;
        }
    }
    Ok(ruleset)
}

/// The failure of this wall, with the errno that lies below the crate's error where there is one.
fn refused(call: impl Into<String>, error: &(dyn std::error::Error + 'static)) -> SandboxError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(errno) = error
            .downcast_ref::<std::io::Error>()
            .and_then(Errno::from_io_error)
        {
            return failed(LayerName::Landlock, call)(errno);
        }
        cause = error.source();
    }
    failed(LayerName::Landlock, call)(Errno::OPNOTSUPP)
}
