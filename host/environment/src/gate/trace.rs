//! The last gate before approval: a call above read-only needs a Trace that can be written (design 6).

use floe_protocol::Permission;

use super::{Gate, Refusal};

/// Ends a call above read-only where records are lost.
pub(crate) fn check(recording: Result<(), String>, permission: Permission) -> Result<(), Refusal> {
    match recording {
        Err(reason) if permission > Permission::ReadOnly => Err(Refusal::failed(
            Gate::Trace,
            "trace-unavailable",
            format!("[trace unavailable: {reason}]"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_read_only_does_not_run_where_the_trace_cannot_be_written() {
        let lost = || Err("the disk is full".to_owned());
        for permission in Permission::ALL {
            let stopped = check(lost(), permission).is_err();
            assert_eq!(stopped, permission > Permission::ReadOnly, "{permission}");
            assert_eq!(check(Ok(()), permission), Ok(()));
        }
        assert_eq!(
            check(lost(), Permission::Write).unwrap_err().text,
            "[trace unavailable: the disk is full]"
        );
    }
}
