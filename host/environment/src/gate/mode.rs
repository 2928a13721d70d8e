//! Gate 7: what the mode of the Session allows. Plan mode stops what is above read-only and what works through `edits` or
//! `commands`; it is also linked without them, so that this gate is not the only thing in the way.

use floe_protocol::{Mode, Permission};
use floe_runtime::CapabilitySet;

use super::{Gate, Refusal};
use crate::power;

/// Ends a call that the mode does not allow. `granted` is what the tool would have in build mode.
pub(crate) fn check(
    tool: &str,
    mode: Mode,
    permission: Permission,
    granted: CapabilitySet,
) -> Result<(), Refusal> {
    if mode == Mode::Build {
        return Ok(());
    }
    let withheld = granted.difference(power::in_mode(mode));
    let needs = if permission > Permission::ReadOnly {
        permission.to_string()
    } else if let Some(capability) = withheld.iter().next() {
        format!("the capability {capability}")
    } else {
        return Ok(());
    };
    Err(Refusal::policy(
        Gate::Mode,
        format!(
            "{tool} needs {needs}; plan mode allows at most read-only. The person can switch this Session to build mode."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_runtime::Capability;

    #[test]
    fn build_mode_allows_everything() {
        for permission in Permission::ALL {
            assert_eq!(
                check("t", Mode::Build, permission, CapabilitySet::all()),
                Ok(())
            );
        }
    }

    #[test]
    fn plan_mode_stops_what_is_above_read_only() {
        let refusal = check(
            "exec_command",
            Mode::Plan,
            Permission::Execute,
            CapabilitySet::EMPTY,
        )
        .unwrap_err();
        assert_eq!(
            refusal.text,
            "Tool call denied by policy.\nexec_command needs execute; plan mode allows at most read-only. The person can switch this Session to build mode."
        );
        assert_eq!(refusal.stop_reason, floe_protocol::StopReason::Aborted);
    }

    #[test]
    fn plan_mode_stops_a_reader_that_works_through_commands() {
        let commands = CapabilitySet::EMPTY.with(Capability::Commands);
        let refusal = check("git_log", Mode::Plan, Permission::ReadOnly, commands).unwrap_err();
        assert!(refusal.text.contains("needs the capability commands"));
    }

    #[test]
    fn plan_mode_lets_readers_through() {
        let workspace = CapabilitySet::EMPTY.with(Capability::Workspace);
        for permission in [Permission::None, Permission::ReadOnly] {
            assert_eq!(check("t", Mode::Plan, permission, workspace), Ok(()));
        }
    }
}
