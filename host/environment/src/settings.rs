//! What may change while a Session runs, and what of it reaches its children: they are never wider than their parent, now or later.

use std::sync::{PoisonError, RwLock, Weak};

use floe_protocol::{ApprovalMode, Mode, Permission};

use crate::environment::{Environment, Inner};

/// What may change while a Session runs; a decision uses what holds when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) approval_mode: ApprovalMode,
    pub(crate) max_permission: Option<Permission>,
}

impl Settings {
    /// What nothing is narrower than.
    const NARROWEST: Settings = Settings {
        mode: Mode::Plan,
        approval_mode: ApprovalMode::DenyAll,
        max_permission: Some(Permission::None),
    };

    /// What is left of a child's settings under its parent's. Who is asked is the parent's alone to say.
    fn under(self, parent: Settings) -> Settings {
        Settings {
            mode: match parent.mode {
                Mode::Plan => Mode::Plan,
                Mode::Build => self.mode,
            },
            approval_mode: parent.approval_mode,
            max_permission: lower(self.max_permission, parent.max_permission),
        }
    }
}

/// The lower of two caps; none is no cap.
fn lower(one: Option<Permission>, other: Option<Permission>) -> Option<Permission> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The Environment of a parent Session, as that of a child knows it: what the parent's person changes holds for the child at once,
/// and where the parent is gone the child can do nothing more.
#[derive(Clone)]
pub struct Parent(pub(crate) Weak<Inner>);

impl Parent {
    /// The parent's Environment, where it is still there.
    pub fn upgrade(&self) -> Option<Environment> {
        self.0.upgrade().map(Environment)
    }
}

/// The settings of one Session.
pub(crate) struct Changeable {
    own: RwLock<Settings>,
    parent: Option<Parent>,
}

impl Changeable {
    pub(crate) fn new(own: Settings, parent: Option<Parent>) -> Changeable {
        Changeable {
            own: RwLock::new(own),
            parent,
        }
    }

    /// What holds now.
    pub(crate) fn now(&self) -> Settings {
        let own = *self.own.read().unwrap_or_else(PoisonError::into_inner);
        match &self.parent {
            None => own,
            Some(parent) => own.under(
                parent
                    .upgrade()
                    .map_or(Settings::NARROWEST, |parent| parent.0.settings()),
            ),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.own.write().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Settings = Settings {
        mode: Mode::Build,
        approval_mode: ApprovalMode::AllowAll,
        max_permission: None,
    };

    #[test]
    fn a_child_is_never_wider_than_its_parent_in_mode_or_cap() {
        for mode in [Mode::Plan, Mode::Build] {
            for cap in Permission::ALL {
                let narrow = Settings {
                    mode,
                    max_permission: Some(cap),
                    ..ALL
                };
                for (child, parent) in [(ALL, narrow), (narrow, ALL), (narrow, narrow)] {
                    assert_eq!(child.under(parent), narrow);
                }
            }
        }
        assert_eq!(ALL.under(ALL), ALL);
    }

    #[test]
    fn who_is_asked_is_the_parents_to_say() {
        let asking = Settings {
            approval_mode: ApprovalMode::AlwaysAsk,
            ..ALL
        };
        assert_eq!(ALL.under(asking), asking);
        assert_eq!(asking.under(ALL), ALL);
    }

    #[test]
    fn without_its_parent_a_child_can_do_nothing() {
        let orphan = Changeable::new(ALL, Some(Parent(Weak::new())));
        assert_eq!(orphan.now(), Settings::NARROWEST);
    }
}
