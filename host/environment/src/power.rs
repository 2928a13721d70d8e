//! What a call may reach: what the component imports, of that what its manifest declares, of that what the operator granted,
//! of that what the mode and the permission cap allow (design 3). Every step only takes away.

use floe_protocol::{Mode, Permission};
use floe_runtime::{Capability, CapabilitySet};

/// The capabilities that a level of permission covers.
pub(crate) fn within(permission: Permission) -> CapabilitySet {
    Capability::ALL
        .into_iter()
        .filter(|capability| needs(*capability) <= permission)
        .collect()
}

/// The weakest permission that covers a capability. Children of a Session are capped on their own.
fn needs(capability: Capability) -> Permission {
    match capability {
        Capability::Interaction | Capability::SessionState | Capability::Subagents => {
            Permission::None
        }
        Capability::Workspace
        | Capability::Http
        | Capability::Vision
        | Capability::LanguageServer
        | Capability::WebSearch => Permission::ReadOnly,
        Capability::Edits => Permission::Write,
        Capability::Commands => Permission::Execute,
    }
}

/// The capabilities that a mode leaves.
pub(crate) fn in_mode(mode: Mode) -> CapabilitySet {
    match mode {
        Mode::Build => CapabilitySet::all(),
        Mode::Plan => CapabilitySet::all()
            .without(Capability::Edits)
            .without(Capability::Commands),
    }
}

/// Whether the HTTP of a call only reads: in plan mode, and where the call was decided as one that changes nothing.
pub(crate) fn reads_only(mode: Mode, permission: Permission) -> bool {
    mode == Mode::Plan || permission <= Permission::ReadOnly
}

/// What is left of `granted` in this mode and under this cap.
pub(crate) fn effective(
    granted: CapabilitySet,
    mode: Mode,
    cap: Option<Permission>,
) -> CapabilitySet {
    granted
        .intersection(in_mode(mode))
        .intersection(within(cap.unwrap_or(Permission::Dangerous)))
}

/// The names of a set, sorted, as an event carries them.
pub(crate) fn sorted_names(set: CapabilitySet) -> Vec<String> {
    let mut names: Vec<String> = set.iter().map(|one| one.name().to_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_mode_drops_edits_and_commands_and_nothing_else() {
        let left = effective(CapabilitySet::all(), Mode::Plan, None);
        let dropped = CapabilitySet::all().difference(left);
        assert_eq!(dropped.names(), ["edits", "commands"]);
    }

    #[test]
    fn a_cap_of_read_only_leaves_nothing_that_writes() {
        let left = effective(
            CapabilitySet::all(),
            Mode::Build,
            Some(Permission::ReadOnly),
        );
        assert!(!left.contains(Capability::Edits) && !left.contains(Capability::Commands));
        assert!(left.contains(Capability::Workspace));
    }

    #[test]
    fn a_higher_permission_never_covers_less() {
        for pair in Permission::ALL.windows(2) {
            assert!(within(pair[0]).is_subset(within(pair[1])), "{pair:?}");
        }
        assert_eq!(within(Permission::Dangerous), CapabilitySet::all());
    }

    #[test]
    fn http_writes_in_build_mode_and_with_a_permission_to_write_only() {
        for permission in Permission::ALL {
            assert!(reads_only(Mode::Plan, permission));
            let writes = permission >= Permission::Write;
            assert_eq!(reads_only(Mode::Build, permission), !writes);
        }
    }

    #[test]
    fn power_never_exceeds_the_grant() {
        let granted = CapabilitySet::EMPTY.with(Capability::Workspace);
        for mode in [Mode::Plan, Mode::Build] {
            for cap in Permission::ALL {
                assert!(effective(granted, mode, Some(cap)).is_subset(granted));
            }
        }
    }
}
