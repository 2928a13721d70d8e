//! Which walls stand on this machine, found out by building them around `true`, set by set.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::command::{ConfinedCommand, Program};
use crate::control::Event;
use crate::error::{SandboxError, errno_text};
use crate::launch::Sandbox;
use crate::layer::{Layer, LayerName, MinimumTier, Tier};
use crate::options::SandboxOptions;
use crate::policy::WorkspaceMode;
use crate::tier;
use crate::widening::Widening;

/// What `floe doctor` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    /// Whether the operator's minimum holds.
    pub ok: bool,
    /// The operator's minimum.
    pub minimum: MinimumTier,
    /// The set of walls that a Session would get; none where its commands would be refused.
    pub tier: Option<Tier>,
    /// Every set, the best first.
    pub tiers: Vec<Examined>,
}

/// One set of walls, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examined {
    /// Which.
    pub tier: Tier,
    /// Whether commands can be run within it.
    pub stands: bool,
    /// Why not, where that is not the fault of one of its walls.
    pub fault: Option<String>,
    /// Its walls, in the order in which they are built. Those that belong to better sets only are there too.
    pub layers: Vec<Layer>,
}

/// Tries every wall by running `true` within each set of them, in folders made for it, and says which stand.
///
/// `helper` is the binary that calls [`crate::helper_main`], as in [`SandboxOptions::helper`].
pub fn doctor(helper: &Path, minimum: MinimumTier) -> Doctor {
    let tiers: Vec<Examined> = Tier::ALL
        .into_iter()
        .map(|tier| match examine(helper, tier) {
            Ok(layers) => Examined {
                tier,
                stands: true,
                fault: None,
                layers,
            },
            Err(error) => Examined {
                tier,
                stands: false,
                fault: error.layer().is_none().then(|| error.to_string()),
                layers: explain(tier, &error),
            },
        })
        .collect();
    let used = tiers
        .iter()
        .find(|examined| examined.stands && minimum.allows(examined.tier));
    let tier = used.map(|examined| examined.tier);
    Doctor {
        ok: tier.is_some(),
        minimum,
        tier,
        tiers,
    }
}

/// Runs `true` within one set of walls, in folders made for it.
pub(crate) fn examine(helper: &Path, tier: Tier) -> Result<Vec<Layer>, SandboxError> {
    let unusable = |error: std::io::Error| SandboxError::Setting {
        what: "temporary folder".to_owned(),
        reason: error.to_string(),
    };
    let folder = tempfile::Builder::new()
        .prefix("floe-doctor-")
        .tempdir()
        .map_err(unusable)?;
    let make = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path)
            .and_then(|()| path.canonicalize())
            .map_err(unusable)
    };
    let workspace = make("workspace")?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened =
        rustix::fs::open(&workspace, flags, Mode::empty()).map_err(|errno| SandboxError::Host {
            call: "open(workspace)".to_owned(),
            errno: errno.raw_os_error(),
        })?;
    let mut options = SandboxOptions::new(
        opened,
        workspace,
        make("home")?,
        make("tmp")?,
        make("outputs")?,
    );
    options.helper = helper.to_owned();
    options.tier = Some(tier);
    let sandbox = Sandbox::new(options)?;
    let child = sandbox.spawn(&ConfinedCommand {
        program: Program::Exec {
            program: "true".into(),
            args: Vec::new(),
        },
        working_directory: PathBuf::new(),
        environment: Vec::new(),
        terminal: None,
        workspace: WorkspaceMode::WorkspaceWrite,
        widening: Widening::default(),
    })?;
    match child.control.wait() {
        Event::Exited(0) => Ok(sandbox.confinement().layers),
        end => Err(SandboxError::Helper {
            detail: format!("`true` did not end well: {end:?}"),
        }),
    }
}

/// The walls up to the failed one stood; those after it were not tried.
fn explain(tier: Tier, error: &SandboxError) -> Vec<Layer> {
    let lacking = match tier {
        Tier::Native | Tier::Bwrap => Vec::new(),
        Tier::Landlock => tier::lacking(),
        Tier::Unconfined => return Vec::new(),
    };
    let missing = |name: LayerName| lacking.iter().any(|layer| layer.name == name.as_str());
    let own = LayerName::ALL.into_iter().filter(|name| !missing(*name));
    let found = own.map(|name| match error.layer() {
        Some(failure) if name < failure.layer => Layer::active(name, "stands"),
        Some(failure) if name == failure.layer => {
            let (call, errno) = (&failure.call, errno_text(failure.errno));
            let detail = format!("{call}: {errno}. {}", failure.cause);
            Layer::inactive(name, detail, Some(failure.remedy.clone()))
        }
        _ => Layer::inactive(name, "not tried", None),
    });
    let found: Vec<Layer> = found.collect();
    lacking.into_iter().chain(found).collect()
}
