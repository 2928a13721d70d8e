//! Gate 8: the permission cap of the surface, `--max-permission` and `surfaces:`. It only lowers.

use floe_protocol::Permission;

use super::{Gate, Refusal};
use crate::options::Surface;

/// Ends a call that needs more than the surface allows.
pub(crate) fn check(
    tool: &str,
    surface: Surface,
    cap: Option<Permission>,
    permission: Permission,
) -> Result<(), Refusal> {
    match cap {
        Some(cap) if permission > cap => Err(Refusal::policy(
            Gate::Surface,
            format!(
                "{tool} needs {permission}; {surface} is limited to {cap}. The person can raise it with --max-permission {permission} or under `surfaces` in the configuration."
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_cap_everything_passes() {
        assert_eq!(
            check("t", Surface::Run, None, Permission::Dangerous),
            Ok(())
        );
    }

    #[test]
    fn a_call_at_the_cap_passes_and_one_above_does_not() {
        let cap = Some(Permission::Write);
        assert_eq!(check("edit", Surface::Mcp, cap, Permission::Write), Ok(()));
        assert_eq!(
            check("exec_command", Surface::Mcp, cap, Permission::Execute)
                .unwrap_err()
                .text,
            "Tool call denied by policy.\nexec_command needs execute; floe mcp is limited to write. The person can raise it with --max-permission execute or under `surfaces` in the configuration."
        );
    }
}
