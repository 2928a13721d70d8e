//! Walls of which the system's bubblewrap builds the namespaces and mounts, where the machine lets it and not us.
//!
//! bubblewrap is told everything, to the last mount, from the same view of which the native walls are built; the helper,
//! which it executes within, looks whether it has done so and adds limits, Landlock and seccomp. A bubblewrap that is
//! setuid is refused: it would do all this with the machine's own root privileges.

mod arguments;

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use self::arguments::{Ask, Kind};
use super::Prepared;
use super::anchored::Anchored;
use crate::command::ConfinedCommand;
use crate::error::SandboxError;
use crate::launch::Sandbox;
use crate::launch::site::Site;
use crate::launch::start::{self, host};
use crate::options::SandboxOptions;
use crate::plan::Plan;
use crate::plan::wrapped::{Enclosed, Inside, With, Wrapped};
use crate::policy::Network;

/// Where distributions put bubblewrap, and where their AppArmor profiles expect it. No other is used.
const PROGRAM: &str = "/usr/bin/bwrap";

pub(super) fn lay(options: &SandboxOptions) -> Result<Anchored, SandboxError> {
    refuse_unusable(Path::new(PROGRAM))?;
    let network = options.policy.network != Network::Host;
    let plan = Plan::Wrapped(Box::new(Wrapped {
        program: PROGRAM.into(),
        options: arguments::anchor(network),
        with: With::Nothing,
        inside: Inside::Anchor { network },
    }));
    Anchored::by(options, &plan)
}

pub(super) fn prepare(
    anchored: &Anchored,
    options: &SandboxOptions,
    site: &mut Site,
    command: &ConfinedCommand,
    files: &[PathBuf],
) -> Result<Prepared, SandboxError> {
    let confined = site.confined(options, command, files, Sandbox::SCRIPT)?;
    let translation = arguments::translate(&confined, &Machine(&options.workspace));
    let status = rustix::fs::fstat(&options.workspace)
        .map_err(|errno| host("fstat(Workspace)")(errno.into()))?;
    let mut descriptors = anchored.descriptors(options)?;
    let script = confined.execution.long_script();
    let script = script.map(|script| start::sealed("floe-script", script));
    descriptors.extend(script.transpose()?);
    let wrapped = Wrapped {
        program: PROGRAM.into(),
        options: translation.options,
        with: if descriptors.len() == With::Session.count() {
            With::Session
        } else {
            With::SessionAndScript
        },
        inside: Inside::Command(Box::new(Enclosed {
            workspaces: translation.workspaces,
            workspace_identity: (status.st_dev, status.st_ino),
            identities: confined.identities,
            protected: confined.protected,
            denied: confined.denied,
            writable: confined.writable,
            execution: confined.execution,
        })),
    };
    Ok(Prepared {
        program: start::program(&options.helper),
        plan: Plan::Wrapped(Box::new(wrapped)),
        descriptors,
    })
}

/// Refuses a bubblewrap that is not there, or that runs with more privileges than who calls it.
fn refuse_unusable(program: &Path) -> Result<(), SandboxError> {
    let said = match program.metadata() {
        Err(_) => {
            "it is not installed; `sudo apt-get install bubblewrap`, or what your distribution has in its place, installs it"
        }
        Ok(metadata) if metadata.mode() & (libc::S_ISUID | libc::S_ISGID) != 0 => {
            "it is installed setuid and is not used; `sudo chmod u-s,g-s /usr/bin/bwrap` changes that where the kernel has \
             user namespaces"
        }
        Ok(_) => return Ok(()),
    };
    Err(SandboxError::Bubblewrap {
        said: said.to_owned(),
    })
}

/// This machine, and the Workspace on it.
struct Machine<'a>(&'a OwnedFd);

impl Ask for Machine<'_> {
    fn on_host(&self, path: &Path) -> Option<Kind> {
        kind(CWD, path, ResolveFlags::NO_SYMLINKS)
    }

    fn in_workspace(&self, path: &Path) -> Option<Kind> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        kind(self.0, path, resolve)
    }
}

fn kind(at: impl std::os::fd::AsFd, path: &Path, resolve: ResolveFlags) -> Option<Kind> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(at.as_fd(), path, flags, Mode::empty(), resolve)
    });
    let status = found.and_then(rustix::fs::fstat).ok()?;
    Some(match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::File,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_setuid_or_missing_bubblewrap_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bwrap");
        let refusal = refuse_unusable(&program).unwrap_err().to_string();
        assert!(refusal.contains("apt-get install bubblewrap"), "{refusal}");
        std::fs::write(&program, "").unwrap();
        for (mode, usable) in [(0o755, true), (0o4755, false), (0o2755, false)] {
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(refuse_unusable(&program).is_ok(), usable, "{mode:o}");
        }
        let refusal = refuse_unusable(&program).unwrap_err();
        assert_eq!(refusal.code(), "sandbox-bwrap");
        assert!(refusal.to_string().contains("setuid"), "{refusal}");
    }
}
