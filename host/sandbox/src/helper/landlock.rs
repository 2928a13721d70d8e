//! Layer 8: Landlock, the kernel's own access rules beside the mounts.
//!
//! It backs up the mounts: nothing is written outside the listed folders, whatever a mount says, and no mount can be
//! changed any more. Where the host is root it is what keeps root's files in `/proc` from being written, so there it is
//! required; elsewhere its absence is reported. Its first version refuses every move between folders, which ordinary
//! builds do not survive, so that one counts as absent.

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::io::Errno;

use super::{failed, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};
use crate::plan::Bytes;

/// What the tier promises: without it Landlock counts as absent.
const PROMISED: ABI = ABI::V2;
/// What is taken where the kernel has it.
const WANTED: ABI = ABI::V9;

const CREATE: &str = "landlock_create_ruleset";

/// Folders and device rules, opened while opening is still unrestricted.
pub(super) struct Writable {
    folders: Vec<PathFd>,
    devices: PathFd,
    root: PathFd,
}

/// Opens what the command may write below.
pub(super) fn open_writable(paths: &[Bytes]) -> Result<Writable, SandboxError> {
    let open = |path: &std::path::Path| {
        PathFd::new(path).map_err(|error| refused(format!("open({})", path.display()), &error))
    };
    Ok(Writable {
        folders: paths
            .iter()
            .map(|path| open(path.as_path()))
            .collect::<Result<_, _>>()?,
        devices: open("/dev".as_ref())?,
        root: open("/".as_ref())?,
    })
}

/// Restricts this process and all that come from it.
pub(super) fn restrict(writable: Writable) -> Result<Layer, SandboxError> {
    let ruleset = match create() {
        Ok(ruleset) => ruleset,
        Err(error) if rustix::process::geteuid().is_root() => return Err(refused(CREATE, &error)),
        Err(_) => {
            let detail = "this kernel lacks it, or its first version is all there is; the mounts confine alone";
            let remedy = "Use Linux 5.19 or newer with landlock in its lsm= list.";
            return Ok(Layer::inactive(
                LayerName::Landlock,
                detail,
                Some(remedy.to_owned()),
            ));
        }
    };
    let status = add_rules(ruleset, writable)
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

fn create() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(PROMISED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()
}

fn add_rules(ruleset: RulesetCreated, writable: Writable) -> Result<RulesetCreated, RulesetError> {
    let devices =
        AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let mut ruleset = ruleset
        .add_rule(PathBeneath::new(writable.root, AccessFs::from_read(WANTED)))?
        .add_rule(PathBeneath::new(writable.devices, devices))?;
    for folder in writable.folders {
        ruleset = ruleset.add_rule(PathBeneath::new(folder, everything_but_devices()))?;
    }
    Ok(ruleset)
}

fn everything_but_devices() -> BitFlags<AccessFs> {
    AccessFs::from_all(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
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
