//! Which set of walls a Session gets: the best that stands here, found out by building it around the first command.
//!
//! Nothing is concluded from what the machine says of itself. Once a set is chosen the Session keeps it: a later command
//! whose walls do not stand fails. What is weaker than the operator's minimum is not tried.

use crate::doctor;
use crate::error::SandboxError;
use crate::layer::Tier;
use crate::options::SandboxOptions;

/// The sets of walls to try, best first.
pub(super) fn candidates(options: &SandboxOptions) -> Vec<Tier> {
    if let Some(forced) = forced(options) {
        return vec![forced];
    }
    let minimum = options.policy.minimum_tier;
    let all = Tier::ALL.into_iter();
    all.filter(|tier| minimum.allows(*tier)).collect()
}

/// The one set of walls that was asked for, where one was.
pub(super) fn forced(options: &SandboxOptions) -> Option<Tier> {
    let asked = options.unconfined.then_some(Tier::Unconfined);
    asked.or(options.tier)
}

/// Why sets of walls were passed over, in the order in which they were tried.
#[derive(Debug, Default)]
pub(super) struct PassedOver(Vec<(Tier, SandboxError)>);

impl PassedOver {
    /// Notes that `tier` failed and that another may be tried, or gives the error back where that one would fail too or
    /// the fault is not of the walls.
    pub(super) fn note(&mut self, tier: Tier, error: SandboxError) -> Result<(), SandboxError> {
        let of_the_walls = match tier {
            Tier::Native => error.layer().is_some(),
            // Before it builds a wall, another program is started, and that may be missing or fail in its own way.
            _ => !matches!(
                error,
                SandboxError::Directory { .. }
                    | SandboxError::NulByte { .. }
                    | SandboxError::Program { .. }
            ),
        };
        if !of_the_walls {
            return Err(error);
        }
        self.0.push((tier, error));
        Ok(())
    }

    /// Whether one that protects less may follow: only where none of those passed over stands on this machine at all.
    /// Otherwise it is something in this Workspace that they cannot confine, and whoever put it there would get what a
    /// weaker set lets through.
    pub(super) fn allows(&self, next: Tier, options: &SandboxOptions) -> bool {
        next != Tier::Landlock
            || self
                .0
                .iter()
                .all(|(tier, _)| doctor::examine(&options.helper, *tier).is_err())
    }

    /// The error of a Session that has no walls: that of the best set, and what the others said.
    pub(super) fn into_error(self) -> SandboxError {
        let mut passed = self.0.into_iter();
        let Some((_, first)) = passed.next() else {
            return SandboxError::Helper {
                detail: "no set of walls was tried".to_owned(),
            };
        };
        match first {
            SandboxError::Layer(mut failure) => {
                failure
                    .others
                    .extend(passed.map(|(tier, error)| told(tier, &error)));
                SandboxError::Layer(failure)
            }
            other => other,
        }
    }

    /// What the person is told where walls were passed over.
    pub(super) fn warning(&self, chosen: Tier) -> Option<String> {
        let (_, first) = self.0.first()?;
        let walls = match chosen {
            Tier::Bwrap => {
                "Commands are confined with the help of the system's bwrap, because Floe's own walls do not stand here"
            }
            Tier::Landlock => {
                "Commands are confined by Landlock and seccomp alone, as `shell.min_tier` allows, because no better walls \
                 stand here"
            }
            _ => return None,
        };
        let remedy = first.layer().map_or(String::new(), |failure| {
            format!(" Remedy: {}", failure.remedy)
        });
        let others = self.0[1..].iter();
        let others: String = others
            .map(|(tier, error)| format!(" {}", told(*tier, error)))
            .collect();
        Some(format!("{walls}: {}{remedy}{others}", first.brief()))
    }
}

/// One line about a set of walls that does not stand.
fn told(tier: Tier, error: &SandboxError) -> String {
    format!("The tier `{tier}` does not stand either: {}", error.brief())
}
