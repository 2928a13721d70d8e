//! Which walls stand on this machine, found out by building them around `true`.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::command::{ConfinedCommand, Program};
use crate::control::Event;
use crate::error::SandboxError;
use crate::launch::Sandbox;
use crate::layer::{Layer, LayerName, Tier};
use crate::options::SandboxOptions;
use crate::widening::Widening;

/// What `floe doctor` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    /// The set of walls that was tried.
    pub tier: Tier,
    /// Every wall, in the order in which they are built.
    pub layers: Vec<Layer>,
    /// Whether commands can be confined.
    pub ok: bool,
}

/// Tries every wall by running `true` within them, in folders made for it, and says which stand.
///
/// `helper` is the binary that calls [`crate::helper_main`], as in [`SandboxOptions::helper`].
pub fn doctor(helper: &Path) -> Doctor {
    let tier = Tier::Native;
    match examine(helper, tier) {
        Ok(layers) => Doctor {
            tier,
            ok: true,
            layers,
        },
        Err(error) => Doctor {
            tier,
            ok: false,
            layers: explain(&error),
        },
    }
}

/// Runs `true` within one set of walls, in folders made for it.
pub(crate) fn examine(helper: &Path, tier: Tier) -> Result<Vec<Layer>, SandboxError> {
    let folder = tempfile::Builder::new()
        .prefix("floe-doctor-")
        .tempdir()
        .map_err(|error| SandboxError::Setting {
            what: "temporary folder".to_owned(),
            reason: error.to_string(),
        })?;
    let make = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path)
            .and_then(|()| path.canonicalize())
            .map_err(|error| SandboxError::Setting {
                what: "temporary folder".to_owned(),
                reason: error.to_string(),
            })
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
fn explain(error: &SandboxError) -> Vec<Layer> {
    let failed = error
        .layer()
        .map(|failure| (failure.layer, failure.remedy.clone()));
    LayerName::ALL
        .into_iter()
        .map(|name| match &failed {
            Some((layer, _)) if name < *layer => Layer::active(name, "stands"),
            Some((layer, remedy)) if name == *layer => {
                Layer::inactive(name, error.to_string(), Some(remedy.clone()))
            }
            Some(_) => Layer::inactive(name, "not tried", None),
            None => Layer::inactive(name, error.to_string(), None),
        })
        .collect()
}
