//! The helper within bubblewrap: looks whether the walls are what the plan says, builds those that are left, and leads the
//! command as without bubblewrap.
//!
//! It is the first process of the namespaces that bubblewrap has made, and has no privilege to change anything in them. So
//! it believes nothing: a Workspace that is not the one the host opened, something protected that can be written to, or a
//! capability that is still there ends it before the command.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::exit;

use rustix::fs::{Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, capabilities, capability_is_in_ambient_set, capability_is_in_bounding_set,
    no_new_privs,
};
use serde::{Deserialize, Serialize};

use super::limits::{self, ProcessCap};
use super::{exec, failed, hand_over, identities, init, landlock, namespaces, proc, report_panics};
use super::{seccomp, stands};
use crate::control::{self, Received, Report};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};
use crate::plan::Bytes;
use crate::plan::wrapped::{Enclosed, Inside};

/// The argument that tells this helper that its namespace's processes are capped already.
pub(super) const PROCESSES_CAPPED: &str = "processes-capped";

/// What the outer helper says when everything outside is done; the control socket and the command's streams come along.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Proceed;

/// Takes over from the outer helper, on the other end of the tether.
pub(super) fn take_over(tether: &OwnedFd, plan: &Inside) -> Result<(), SandboxError> {
    leave_stderr()?;
    // It was executed by a descriptor, whose number says nothing to whoever looks at processes.
    let _ = rustix::thread::set_name(c"floe");
    let open_namespace = |_| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open("/proc/self/ns/mnt", flags, Mode::empty())
    };
    let namespace = plan.to_hold().map(open_namespace).transpose();
    let namespace =
        namespace.map_err(failed(LayerName::ProtectedPaths, "open /proc/self/ns/mnt"))?;
    let descriptors: Vec<_> = namespace.iter().map(AsFd::as_fd).collect();
    control::send(tether, &Report::Inside, &descriptors).map_err(untethered)?;
    drop(namespace);
    let mut streams = match control::receive::<Proceed>(tether).map_err(untethered)? {
        Received::Message(Proceed, descriptors) if !descriptors.is_empty() => descriptors,
        // The outer helper has failed, and has told why.
        _ => exit(1),
    };
    let control = streams.remove(0);
    report_panics(&control);
    let led = match plan {
        Inside::Anchor { network } => {
            namespaces::hand_out(*network).and_then(|made| hand_over(&control, made))
        }
        Inside::Command(plan) => tether
            .try_clone()
            .map_err(untethered)
            .and_then(|tether| lead(&control, plan, streams, tether)),
    };
    if let Err(failure) = led {
        let _ = control::send(&control, &Report::Failed(failure), &[]);
        exit(1);
    }
    exit(0);
}

fn untethered(error: std::io::Error) -> SandboxError {
    SandboxError::Helper {
        detail: format!("the helper outside bwrap is gone: {error}"),
    }
}

/// What bubblewrap has to say goes to the outer helper; this one reports in its own way.
fn leave_stderr() -> Result<(), SandboxError> {
    rustix::stdio::dup2_stderr(rustix::stdio::stdin()).map_err(|errno| SandboxError::Helper {
        detail: errno.to_string(),
    })
}

fn lead(
    control: &OwnedFd,
    plan: &Enclosed,
    streams: Vec<OwnedFd>,
    tether: OwnedFd,
) -> Result<(), SandboxError> {
    let root = open_root()?;
    let (workspace, mut layers) = examine(&root, plan)?;
    let processes = if std::env::args_os().any(|word| word == PROCESSES_CAPPED) {
        ProcessCap::Namespace
    } else {
        ProcessCap::User
    };
    layers.push(limits::apply(&plan.execution.limits, processes)?);
    let start = exec::prepare(&plan.execution, &workspace, streams)?;
    let writable = landlock::open_writable(&plan.writable)?;
    layers.push(confirm_no_capabilities()?);
    layers.push(landlock::restrict(writable)?);
    layers.push(seccomp::filter(seccomp::Sockets::OfNetwork)?);
    init::lead_confined(control, &plan.execution, start, tether, layers)
}

fn open_root() -> Result<OwnedFd, SandboxError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open("/", flags, Mode::empty()).map_err(failed(LayerName::Mounts, "open(/)"))
}

/// Looks at what bubblewrap has built. The Workspace, opened, and the walls that stand.
fn examine(root: &OwnedFd, plan: &Enclosed) -> Result<(OwnedFd, Vec<Layer>), SandboxError> {
    let pid = rustix::process::getpid();
    if !pid.is_init() {
        return Err(unlike("the process namespace", "is not the command's own"));
    }
    if !is_read_only(root)? {
        return Err(unlike("the view", "can be written to"));
    }
    for name in proc::READ_ONLY {
        match open(root, &Path::new("/proc").join(name)) {
            Ok(found) if is_read_only(&found)? => {}
            Err(Errno::NOENT) => {}
            _ => return Err(unlike(&format!("/proc/{name}"), "can be written to")),
        }
    }
    let mut workspaces = plan
        .workspaces
        .iter()
        .map(|place| examine_workspace(root, place, plan));
    let workspace = match workspaces.next() {
        Some(workspace) => workspace?,
        None => return Err(unlike("the Workspace", "is nowhere")),
    };
    workspaces.try_for_each(|workspace| workspace.map(drop))?;
    identities::verify(root, &plan.identities)?;
    let (protected, hidden) = (plan.protected.len(), plan.denied.len());
    Ok((
        workspace,
        vec![
            stands(LayerName::Namespaces, "made by bwrap"),
            stands(
                LayerName::Mounts,
                "made by bwrap; the Workspace is the one that was opened",
            ),
            stands(
                LayerName::Proc,
                "of the command's own processes; what speaks of the machine is read-only or hidden",
            ),
            stands(
                LayerName::ProtectedPaths,
                format!(
                    "{protected} read-only, with every folder above them pinned, {hidden} hidden"
                ),
            ),
        ],
    ))
}

/// The Workspace at one of its places, if it is the one that the host has opened and nothing in it is left unprotected.
fn examine_workspace(
    root: &OwnedFd,
    place: &Bytes,
    plan: &Enclosed,
) -> Result<OwnedFd, SandboxError> {
    let name = place.to_text();
    let workspace = open(root, place.as_path()).map_err(failed(
        LayerName::Mounts,
        format!("open({name}) in the view"),
    ))?;
    let status =
        rustix::fs::fstat(&workspace).map_err(failed(LayerName::Mounts, "fstat(Workspace)"))?;
    if (status.st_dev, status.st_ino) != plan.workspace_identity {
        return Err(unlike(&name, "is not the Workspace that was opened"));
    }
    for path in &plan.protected {
        let found = match open(&workspace, path.as_path()) {
            Ok(found) => is_read_only(&found)?,
            Err(errno) => errno == Errno::NOENT,
        };
        if !found {
            return Err(unprotected(path, "can be changed"));
        }
    }
    for path in &plan.denied {
        if !is_hidden(&workspace, path)? {
            return Err(unprotected(path, "can be read"));
        }
    }
    Ok(workspace)
}

/// Whether a path cannot be read: it is not there, or is one of the empty things that hide another.
fn is_hidden(workspace: &OwnedFd, path: &Bytes) -> Result<bool, SandboxError> {
    match open(workspace, path.as_path()) {
        Ok(found) => {
            let status =
                rustix::fs::fstat(&found).map_err(failed(LayerName::ProtectedPaths, "fstat"))?;
            let mode = Mode::from_raw_mode(status.st_mode);
            let is_folder = super::detached::is_folder(&found)
                .map_err(failed(LayerName::ProtectedPaths, "fstat"))?;
            Ok(is_read_only(&found)? && (is_folder || (status.st_size == 0 && mode.is_empty())))
        }
        Err(errno) => Ok(errno == Errno::NOENT),
    }
}

fn open(at: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(
            at,
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS,
        )
    })
}

fn is_read_only(opened: &OwnedFd) -> Result<bool, SandboxError> {
    rustix::fs::fstatvfs(opened)
        .map(|status| status.f_flag.contains(StatVfsMountFlags::RDONLY))
        .map_err(failed(LayerName::Mounts, "fstatfs"))
}

fn unlike(what: &str, how: &str) -> SandboxError {
    SandboxError::Bubblewrap {
        said: format!("{what} in its view {how}"),
    }
}

fn unprotected(path: &Bytes, how: &str) -> SandboxError {
    unlike(&format!("\"{}\" of the Workspace", path.to_text()), how)
}

/// Neither this process nor what it executes has a capability, or gets one.
///
/// They are gone already, by bubblewrap; without any, nothing could be taken from the bounding set here.
fn confirm_no_capabilities() -> Result<Layer, SandboxError> {
    let layer = LayerName::Capabilities;
    let held = capabilities(None).map_err(failed(layer, "capget"))?;
    let sets = held.effective | held.permitted | held.inheritable;
    let mut reachable = !sets.is_empty();
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(bounded) => reachable |= bounded,
            // The kernel knows none from here on.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(failed(layer, "prctl(PR_CAPBSET_READ)")(errno)),
        }
        reachable |= capability_is_in_ambient_set(capability)
            .map_err(failed(layer, "prctl(PR_CAP_AMBIENT_IS_SET)"))?;
    }
    let gaining = !no_new_privs().map_err(failed(layer, "prctl(PR_GET_NO_NEW_PRIVS)"))?;
    if reachable || gaining {
        return Err(unlike("a command", "could have privileges"));
    }
    Ok(stands(layer, "none, bounding set empty, no_new_privs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Execution, Fillable, Run};
    use crate::policy::Limits;
    use crate::survey::tests::{file, workspace};

    fn plan(workspace: &OwnedFd) -> Enclosed {
        let status = rustix::fs::fstat(workspace).unwrap();
        Enclosed {
            workspaces: vec!["/w".into()],
            workspace_identity: (status.st_dev, status.st_ino),
            identities: Vec::new(),
            protected: Vec::new(),
            denied: Vec::new(),
            writable: Vec::new(),
            execution: Execution {
                program: Run::Script("true".into()),
                directory: "".into(),
                environment: Vec::new(),
                terminal: None,
                script_file: "/floe/script".into(),
                limits: Limits::default(),
                fillable: Fillable {
                    workspace: "/w".into(),
                    private: ["/tmp".into(), "/floe/home".into()],
                },
            },
        }
    }

    /// A view of a test, in which nothing is mounted and so nothing protected: the Workspace in it, and the view itself.
    fn view() -> (tempfile::TempDir, OwnedFd, OwnedFd) {
        let (folder, root) = workspace(|root| {
            file(root, "w/.git/config");
            file(root, "w/.env");
            file(root, "other/file");
        });
        let opened = open(&root, Path::new("/w")).unwrap();
        (folder, opened, root)
    }

    #[test]
    fn a_workspace_that_is_not_the_one_that_was_opened_ends_it() {
        let (folder, opened, root) = view();
        let plan = plan(&opened);
        examine_workspace(&root, &"/w".into(), &plan).unwrap();
        let other = examine_workspace(&root, &"/other".into(), &plan).unwrap_err();
        assert!(other.to_string().contains("not the Workspace"), "{other}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("w", link).unwrap();
        for place in ["/link", "/missing"] {
            assert!(examine_workspace(&root, &place.into(), &plan).is_err());
        }
    }

    #[test]
    fn something_protected_that_could_be_changed_ends_it() {
        let (_folder, opened, root) = view();
        let mut plan = plan(&opened);
        plan.protected = vec![".git/config".into()];
        let refusal = examine_workspace(&root, &"/w".into(), &plan).unwrap_err();
        let refusal = refusal.to_string();
        assert!(refusal.contains(".git/config"), "{refusal}");
        // What is gone needs no protection.
        plan.protected = vec![".git/hooks".into()];
        examine_workspace(&root, &"/w".into(), &plan).unwrap();
    }

    #[test]
    fn something_hidden_that_could_be_read_ends_it() {
        let (_folder, opened, root) = view();
        let mut plan = plan(&opened);
        plan.denied = vec![".env".into()];
        let refusal = examine_workspace(&root, &"/w".into(), &plan).unwrap_err();
        assert!(refusal.to_string().contains("can be read"), "{refusal}");
        plan.denied = vec!["gone".into()];
        examine_workspace(&root, &"/w".into(), &plan).unwrap();
    }
}
