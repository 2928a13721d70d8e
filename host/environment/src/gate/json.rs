//! Gate 3: the arguments are JSON, nested at most 128 deep (spec/environment.md 1.3, step 3).
//!
//! The depth is counted before anything is parsed, so that no text can exhaust the stack.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Gate, Refusal};

/// Levels of arrays and objects.
const DEPTH: usize = 128;

/// Reads the arguments. A value that is not an object counts as an empty one.
pub(crate) fn parse(tool: &str, arguments: &str) -> Result<Map<String, Value>, Refusal> {
    let refuse = |fault: &str| {
        Err(Refusal::failed(
            Gate::Json,
            "invalid-arguments",
            format!("Tool call \"{tool}\" failed: {fault}"),
        ))
    };
    if arguments.trim().is_empty() {
        return refuse(
            "the arguments field is empty. Re-issue the call with a complete JSON object.",
        );
    }
    match parse_value(arguments) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(detail) => refuse(&format!(
            "the arguments are not valid JSON ({detail}). Re-issue the call with one complete, valid JSON object."
        )),
    }
}

/// Reads any JSON value that is not nested too deep; the error says where it is at fault.
pub(crate) fn parse_value(text: &str) -> Result<Value, String> {
    if is_too_deep(text) {
        return Err(format!("nested deeper than {DEPTH} levels"));
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    // The parser's own limit is one level short of ours; the count above has bounded the depth already.
    parser.disable_recursion_limit();
    let value = Value::deserialize(&mut parser).map_err(|error| error.to_string())?;
    parser.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// True for a value that is nested deeper than arguments may be, as one that was put together from several texts can.
pub(crate) fn is_nested_too_deep(value: &Value) -> bool {
    let mut left: Vec<(&Value, usize)> = vec![(value, 0)];
    while let Some((value, depth)) = left.pop() {
        if depth > DEPTH {
            return true;
        }
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                left.extend(members.values().map(|member| (member, depth + 1)));
            }
            _ => {}
        }
    }
    false
}

/// Counts brackets outside strings. Up to the first fault this sees the same tokens as the parser, which goes no further.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(arguments: &str) -> String {
        parse("exec_command", arguments).unwrap_err().text
    }

    #[test]
    fn empty_arguments_are_told_apart_from_broken_ones() {
        for empty in ["", "  \n\t"] {
            assert_eq!(
                text(empty),
                "Tool call \"exec_command\" failed: the arguments field is empty. Re-issue the call with a complete JSON object."
            );
        }
    }

    #[test]
    fn text_that_is_not_json_is_named_with_the_place() {
        assert_eq!(
            text("{\"cmd\": nope}"),
            "Tool call \"exec_command\" failed: the arguments are not valid JSON (expected ident at line 1 column 10). Re-issue the call with one complete, valid JSON object."
        );
        assert!(text("{} {}").contains("trailing characters"));
    }

    #[test]
    fn what_is_not_an_object_counts_as_an_empty_one() {
        for arguments in ["[]", "5", "null", "\"x\"", "[{\"cmd\":\"ls\"}]"] {
            assert_eq!(parse("t", arguments), Ok(Map::new()), "{arguments}");
        }
    }

    #[test]
    fn a_depth_of_128_passes_and_129_does_not() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse("t", &nested(128)).is_ok());
        assert!(text(&nested(129)).contains("(nested deeper than 128 levels)"));
    }

    #[test]
    fn ten_thousand_levels_exhaust_no_stack() {
        for deep in [
            "[".repeat(10_000),
            "{\"a\":".repeat(10_000),
            format!("\"\\\"{}", "[".repeat(10_000)),
        ] {
            assert!(parse("t", &deep).is_err());
        }
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        let arguments = serde_json::json!({"cmd": "[{\\\"".repeat(200)}).to_string();
        assert!(parse("t", &arguments).is_ok());
    }
}
