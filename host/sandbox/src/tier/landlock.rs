//! Landlock and seccomp alone, where neither Floe nor bwrap can make namespaces and mounts: in most containers.
//!
//! A command reads what the view of the better tiers would show and writes where it could write there, at the host's own
//! paths. What mounts and namespaces do beyond that, this cannot do, and its layers say so.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Prepared;
use super::unconfined::script_file;
use crate::command::ConfinedCommand;
use crate::error::SandboxError;
use crate::launch::Sandbox;
use crate::launch::site::Site;
use crate::launch::start::{self, duplicate};
use crate::layer::{Layer, LayerName};
use crate::options::SandboxOptions;
use crate::plan::{Access, Entry, Landlocked, Plan};
use crate::policy::Network;
use crate::view;

/// The walls of the better tiers that are missing here, and what that means.
const LACKING: [(LayerName, &str); 7] = [
    (
        LayerName::UserNamespace,
        "none: commands are the host's user, though without its capabilities",
    ),
    (
        LayerName::NetworkNamespace,
        "none: instead every socket but Unix ones is refused, also to the allowed hosts; services of this machine that \
         listen on a Unix socket can be reached",
    ),
    (
        LayerName::Loopback,
        "none: commands of a Session do not reach each other over the network",
    ),
    (
        LayerName::Namespaces,
        "none: commands see all processes of the machine, and how they were started",
    ),
    (
        LayerName::Mounts,
        "none: commands can find out whether a file exists, and change mode, times and attributes of the user's own",
    ),
    (LayerName::Proc, "the machine's own, read-only"),
    (
        LayerName::ProtectedPaths,
        "none: commands can change `.git/hooks` and the like in the Workspace, and read what `deny_read` names",
    ),
];

/// Nothing is shared by the commands of a Session.
#[derive(Debug)]
pub(crate) struct Ground {
    layers: Vec<Layer>,
}

/// What is missing here of the better tiers.
pub(crate) fn lacking() -> Vec<Layer> {
    let lacking = LACKING.iter();
    lacking
        .map(|&(name, meaning)| Layer::inactive(name, meaning, None))
        .collect()
}

impl Ground {
    pub(super) fn lay(options: &SandboxOptions) -> Ground {
        let mut layers = lacking();
        if options.policy.network == Network::Host {
            let open = "none: commands reach what the machine reaches, as `shell.network` says";
            let network = [LayerName::NetworkNamespace, LayerName::Loopback];
            layers.retain(|layer| network.iter().all(|name| layer.name != name.as_str()));
            let open = network.map(|name| Layer::inactive(name, open, None));
            layers.splice(1..1, open);
        }
        Ground { layers }
    }

    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    pub(super) fn prepare(
        &self,
        options: &SandboxOptions,
        site: &mut Site,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Prepared, SandboxError> {
        let command = ConfinedCommand {
            environment: resettled(&command.environment, options),
            ..command.clone()
        };
        // What is granted to one command is bound to what the person saw, and hides what is hidden in a Workspace. Here there are
        // no mounts to look at or to hide anything with.
        if let Some(path) = command.widening.paths().next() {
            return Err(SandboxError::Widening {
                path: path.display().to_string(),
            });
        }
        let script_file = script_file(options);
        let mut confined = site.confined(options, &command, files, script_file)?;
        confined.execution.fillable = options.fillable();
        let mut plan = Landlocked {
            readable: Vec::new(),
            writable: Vec::new(),
            workspace: Access::Read,
            network: options.policy.network == Network::Host,
            execution: confined.execution,
        };
        for entry in confined.view {
            match entry {
                Entry::Bind {
                    source,
                    access: Access::Read,
                    ..
                } => plan.readable.push(source),
                Entry::Bind {
                    source,
                    access: Access::Write,
                    ..
                } => plan.writable.push(source),
                Entry::Workspace { access } => plan.workspace = access,
                _ => {}
            }
        }
        Ok(Prepared {
            program: start::program(&options.helper),
            plan: Plan::Landlocked(Box::new(plan)),
            descriptors: vec![duplicate(&options.workspace)?],
        })
    }
}

/// The environment with the Session's folders at the host's own paths, which are the only ones here.
fn resettled(
    environment: &[(OsString, OsString)],
    options: &SandboxOptions,
) -> Vec<(OsString, OsString)> {
    let places = [
        ("HOME", Sandbox::HOME, &options.home_dir),
        ("TMPDIR", view::TMP, &options.tmp_dir),
    ];
    let resettle = |(name, value): &(OsString, OsString)| {
        let place = places
            .iter()
            .find(|(place, inside, _)| name == place && value == inside);
        let value = place.map_or_else(|| value.clone(), |(_, _, outside)| outside.into());
        (name.clone(), value)
    };
    environment.iter().map(resettle).collect()
}
