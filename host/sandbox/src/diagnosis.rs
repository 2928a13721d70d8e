//! Why a wall does not stand on this machine, and the one thing to do about it.
//!
//! The helper only knows a call and an errno. What explains them (a sysctl, a container's filter, the kernel's age) is
//! read by the host after the failure, and only to explain it: no decision is taken from it.

use std::fs;

use crate::error::{LayerFailure, SandboxError};
use crate::helper::landlock::CREATE_ALONE;
use crate::layer::LayerName;

/// What is known of the machine, as this thread sees it: it is the one that started the helper.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Facts {
    apparmor_restricts_namespaces: bool,
    unprivileged_namespaces_off: bool,
    most_user_namespaces: Option<u64>,
    filtered: bool,
    kernel: String,
}

impl Facts {
    fn read() -> Facts {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Facts {
            apparmor_restricts_namespaces: number(
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            ) == Some(1),
            unprivileged_namespaces_off: number("/proc/sys/kernel/unprivileged_userns_clone")
                == Some(0),
            most_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            filtered: status
                .lines()
                .any(|line| line.starts_with("Seccomp:") && line.ends_with('2')),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
        }
    }
}

/// Adds cause and remedy to a failed wall; leaves any other error as it is.
pub(crate) fn explain(error: SandboxError) -> SandboxError {
    match error {
        SandboxError::Layer(mut failure) => {
            let (cause, remedy) = cause(&failure, &Facts::read());
            failure.cause = cause;
            failure.remedy = remedy;
            SandboxError::Layer(failure)
        }
        other => other,
    }
}

const CONTAINER: &str = "Allow it in the container: `docker run --security-opt seccomp=unconfined \
                         --security-opt apparmor=unconfined --security-opt systempaths=unconfined …`.";

fn cause(failure: &LayerFailure, facts: &Facts) -> (String, String) {
    let text = |cause: &str, remedy: &str| (cause.to_owned(), remedy.to_owned());
    let refused = matches!(failure.errno, libc::EPERM | libc::EACCES);
    let early = failure.layer <= LayerName::ProtectedPaths;
    if failure.call == CREATE_ALONE {
        return text(
            "Landlock is missing, switched off, or older than its fourth version; where nothing else confines it is required.",
            "Use Linux 6.7 or newer with `landlock` in the kernel's lsm= list.",
        );
    }
    if failure.layer == LayerName::Landlock {
        return text(
            "Landlock is missing, switched off, or in its first version; where Floe runs as root it is required.",
            "Use Linux 5.19 or newer with `landlock` in the kernel's lsm= list, or run Floe as an ordinary user.",
        );
    }
    if failure.errno == libc::ENOSYS && !facts.filtered {
        let cause = format!("This kernel ({}) is too old.", facts.kernel);
        return (cause, "Use Linux 5.13 or newer.".to_owned());
    }
    let held_link = matches!(failure.errno, libc::EINVAL | libc::ELOOP | libc::ENOTDIR);
    if failure.layer == LayerName::ProtectedPaths && held_link {
        return text(
            "A protected path is a symbolic link, and this kernel cannot mount on one.",
            "Replace the link in the Workspace by what it leads to.",
        );
    }
    if failure.layer == LayerName::UserNamespace && facts.most_user_namespaces == Some(0) {
        return text(
            "user.max_user_namespaces is 0.",
            "Run `sudo sysctl -w user.max_user_namespaces=15000`.",
        );
    }
    if failure.layer == LayerName::UserNamespace && failure.errno == libc::ENOSPC {
        return text(
            "The limit of user namespaces is reached (user.max_user_namespaces, or 32 within each other).",
            "Run `sudo sysctl -w user.max_user_namespaces=15000`.",
        );
    }
    if early && refused && facts.unprivileged_namespaces_off {
        return text(
            "kernel.unprivileged_userns_clone is 0.",
            "Run `sudo sysctl -w kernel.unprivileged_userns_clone=1`.",
        );
    }
    if early && refused && facts.apparmor_restricts_namespaces {
        return text(
            "AppArmor keeps programs without a profile from using user namespaces.",
            "Run `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`.",
        );
    }
    if facts.filtered && matches!(failure.errno, libc::EPERM | libc::EACCES | libc::ENOSYS) {
        return text("A container's seccomp filter refuses the call.", CONTAINER);
    }
    if failure.layer == LayerName::Proc && refused {
        return text(
            "A container hides a part of /proc, and then the kernel lets nobody mount another.",
            CONTAINER,
        );
    }
    if failure.layer == LayerName::UserNamespace && failure.errno == libc::EINVAL {
        return text(
            "This kernel was built without user namespaces.",
            "Use a kernel with CONFIG_USER_NS, as every large distribution ships it.",
        );
    }
    text(
        "None that Floe knows.",
        "Run `floe doctor`, and report what it prints together with the kernel's version.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(layer: LayerName, errno: i32) -> LayerFailure {
        let call = "unshare(CLONE_NEWUSER)".to_owned();
        LayerFailure {
            layer,
            call,
            errno,
            cause: String::new(),
            remedy: String::new(),
            others: Vec::new(),
        }
    }

    #[test]
    fn each_known_cause_has_its_own_remedy() {
        let facts = |change: fn(&mut Facts)| {
            let mut facts = Facts {
                kernel: "6.1".into(),
                ..Facts::default()
            };
            change(&mut facts);
            facts
        };
        let user = LayerName::UserNamespace;
        let cases = [
            (
                failure(user, libc::ENOSPC),
                facts(|f| f.most_user_namespaces = Some(0)),
                "user.max_user_namespaces=15000",
            ),
            (
                failure(user, libc::EPERM),
                facts(|f| f.unprivileged_namespaces_off = true),
                "unprivileged_userns_clone=1",
            ),
            (
                failure(user, libc::EACCES),
                facts(|f| f.apparmor_restricts_namespaces = true),
                "apparmor_restrict_unprivileged_userns=0",
            ),
            (
                failure(LayerName::Mounts, libc::EPERM),
                facts(|f| f.apparmor_restricts_namespaces = true),
                "apparmor_restrict_unprivileged_userns=0",
            ),
            (
                failure(user, libc::EPERM),
                facts(|f| f.filtered = true),
                "seccomp=unconfined",
            ),
            (
                failure(LayerName::Proc, libc::EPERM),
                facts(|_| {}),
                "systempaths=unconfined",
            ),
            (
                failure(LayerName::Mounts, libc::ENOSYS),
                facts(|_| {}),
                "Linux 5.13",
            ),
            (
                failure(LayerName::Landlock, libc::ENOSYS),
                facts(|_| {}),
                "Linux 5.19",
            ),
            (
                LayerFailure {
                    call: CREATE_ALONE.to_owned(),
                    ..failure(LayerName::Landlock, libc::ENOSYS)
                },
                facts(|_| {}),
                "Linux 6.7",
            ),
        ];
        for (failure, facts, expected) in cases {
            let (_, remedy) = cause(&failure, &facts);
            assert!(remedy.contains(expected), "{failure:?}: {remedy}");
        }
    }

    #[test]
    fn an_explained_failure_names_layer_call_errno_cause_remedy_and_the_way_without() {
        let mut failure = failure(LayerName::UserNamespace, libc::EPERM);
        failure.cause = "The cause.".into();
        failure.remedy = "The remedy.".into();
        let message = SandboxError::Layer(Box::new(failure)).to_string();
        assert_eq!(
            message,
            "Commands cannot be confined here: user namespace failed (unshare(CLONE_NEWUSER): Operation not permitted \
             (errno 1)). Likely cause: The cause. Remedy: The remedy. --unsafe-no-sandbox runs commands without any \
             confinement instead."
        );
    }
}
