//! A host on a machine that lacks something: a process that takes it from itself before anything else happens, runs one
//! command and says what became of it.

use std::collections::BTreeMap;

use floe_command::CommandSpec;
use floe_sandbox::MinimumTier;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::stage::{Stage, finish};

/// What the machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    UserNamespaces,
    /// Those that a container's filter refuses.
    SystemCalls,
    Landlock,
    Proc,
}

/// What the person accepts instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    Nothing,
    Landlock,
    NoWalls,
}

impl Lack {
    const ALL: [(Lack, &str); 4] = [
        (Lack::UserNamespaces, "user-namespaces"),
        (Lack::SystemCalls, "system-calls"),
        (Lack::Landlock, "landlock"),
        (Lack::Proc, "proc"),
    ];

    pub(crate) fn word(self) -> &'static str {
        Lack::ALL.iter().find(|(lack, _)| *lack == self).unwrap().1
    }

    pub(crate) fn from_word(word: &str) -> Lack {
        Lack::ALL
            .iter()
            .find(|(_, known)| *known == word)
            .unwrap()
            .0
    }

    /// What a shell does to the namespaces that were made for the host, if it is that. Nothing of it is the machine's own:
    /// the limit counts in the user namespace in which it is written, and the mount is seen in its mount namespace only.
    pub(crate) fn preparation(self) -> Option<&'static str> {
        match self {
            Lack::UserNamespaces => Some("echo 0 > /proc/sys/user/max_user_namespaces"),
            Lack::Proc => Some("mount -t tmpfs none /proc/acpi"),
            Lack::SystemCalls | Lack::Landlock => None,
        }
    }

    /// The wall that a refusal names, and a word of its remedy.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Lack::UserNamespaces => ("user namespace", "sysctl -w user.max_user_namespaces"),
            Lack::SystemCalls => ("user namespace", "seccomp=unconfined"),
            Lack::Landlock => ("landlock", "ordinary user"),
            Lack::Proc => ("proc", "systempaths=unconfined"),
        }
    }

    /// Takes it from this process and all that come from it.
    pub(crate) fn impose(self) {
        match self {
            Lack::SystemCalls => {
                refuse(
                    &[
                        libc::SYS_unshare,
                        libc::SYS_setns,
                        libc::SYS_mount,
                        libc::SYS_open_tree,
                        libc::SYS_move_mount,
                        libc::SYS_fsopen,
                    ],
                    libc::EPERM,
                );
                let flag = libc::CLONE_NEWUSER as u32 as u64;
                let wanted = SeccompCmpOp::MaskedEq(flag);
                let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, wanted, flag);
                let rule = SeccompRule::new(vec![condition.unwrap()]).unwrap();
                filter(BTreeMap::from([(libc::SYS_clone, vec![rule])]), libc::EPERM);
                refuse(&[libc::SYS_clone3], libc::ENOSYS);
            }
            Lack::Landlock => refuse(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS),
            Lack::UserNamespaces | Lack::Proc => {}
        }
    }
}

impl Accepted {
    const ALL: [(Accepted, &str); 3] = [
        (Accepted::Nothing, "nothing"),
        (Accepted::Landlock, "landlock"),
        (Accepted::NoWalls, "no-walls"),
    ];

    pub(crate) fn word(self) -> &'static str {
        let all = Accepted::ALL.iter();
        all.clone().find(|(known, _)| *known == self).unwrap().1
    }

    pub(crate) fn from_word(word: &str) -> Accepted {
        Accepted::ALL
            .iter()
            .find(|(_, known)| *known == word)
            .unwrap()
            .0
    }
}

fn refuse(calls: &[i64], errno: i32) {
    let rules = calls.iter().map(|&call| (call, Vec::new())).collect();
    filter(rules, errno);
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) {
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let action = SeccompAction::Errno(errno as u32);
    let program: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)
        .unwrap()
        .try_into()
        .unwrap();
    apply_filter(&program).unwrap();
}

/// Runs one command in the best walls that this host gives and the person accepts, and says what became of it.
pub(crate) fn serve(stage: &Stage, accepted: Accepted) {
    let session = stage.session_with(|setup| {
        setup.sandbox.tier = None;
        setup.sandbox.unconfined = accepted == Accepted::NoWalls;
        if accepted == Accepted::Landlock {
            setup.sandbox.policy.minimum_tier = MinimumTier::Landlock;
        }
    });
    // Only walls are attacked: where the person wants none, nothing outside is touched.
    let attack = match accepted {
        Accepted::NoWalls => "true".to_owned(),
        _ => format!(
            "cd {0} && (touch new; echo evil > file; mkdir d; rm program) 2>/dev/null; true",
            stage.outside.display()
        ),
    };
    let script = format!("touch it-ran; {attack}");
    let started = stage.wait(session.commands.spawn(CommandSpec::shell(script)));
    match started {
        Err(error) => println!("refused {error}"),
        Ok(command) => {
            stage.wait(finish(&command));
            println!("ran {}", command.confinement());
            for layer in session.sandbox.confinement().layers {
                println!(
                    "{} {}",
                    layer.name,
                    if layer.active { "active" } else { "inactive" }
                );
            }
        }
    }
    for (code, text) in session.notes.warnings() {
        println!("warned {code}: {text}");
    }
    stage.assert_outside_untouched();
    println!("nothing outside was written");
}
