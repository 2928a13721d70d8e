//! Gate 1: the raw arguments are at most 4 MiB. Looks at the length alone, so that nothing is parsed that is too long.

use super::{Gate, Refusal};

/// Bytes of raw arguments.
pub(crate) const LIMIT: usize = 4_194_304;

/// Ends a call whose arguments are longer than the limit.
pub(crate) fn check(tool: &str, arguments: &str) -> Result<(), Refusal> {
    let length = arguments.len();
    if length <= LIMIT {
        return Ok(());
    }
    Err(Refusal::failed(
        Gate::Size,
        "too-large",
        format!("Arguments of {tool} are too long: {length} bytes (limit {LIMIT})."),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_limit_passes() {
        assert_eq!(check("list", &" ".repeat(LIMIT)), Ok(()));
    }

    #[test]
    fn one_byte_more_is_refused_with_the_count_and_the_limit() {
        let refusal = check("list", &" ".repeat(LIMIT + 1)).unwrap_err();
        assert_eq!(
            refusal.text,
            "Arguments of list are too long: 4194305 bytes (limit 4194304)."
        );
        assert_eq!(refusal.gate, Gate::Size);
    }
}
