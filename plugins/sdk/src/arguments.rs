//! Reads the arguments of a call into the type of the tool.
//!
//! The host has checked them against the schema already. What is wrong all the same, under another host or after a change of the
//! schema, gets the same words here.

use crate::Tool;
use serde_json::Value;

/// The typed arguments, or a sentence for the model.
pub(crate) fn parse<T: Tool>(arguments: &str) -> Result<T::Arguments, String> {
    serde_json::from_str(arguments).or_else(|error| {
        let mut value: Value = serde_json::from_str(arguments).unwrap_or_default();
        whole_numbers(&mut value);
        serde_json::from_value(value).map_err(|_| explain::<T>(arguments, &error))
    })
}

/// Writes `1.0` as `1`: a schema takes both for a whole number, a type does not.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // Up to here every whole number is exactly one float.
            const EXACT: f64 = 9_007_199_254_740_992.0;
            if let Some(float) = number.as_f64().filter(|_| number.is_f64())
                && float.fract() == 0.0
                && float.abs() < EXACT
            {
                *number = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(properties) => properties.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn explain<T: Tool>(arguments: &str, error: &serde_json::Error) -> String {
    let tool = T::definition();
    let name = tool.name();
    match missing(&crate::schema::schema_of::<T::Arguments>(), arguments) {
        Some(argument) => format!("Missing required argument \"{argument}\" for {name}."),
        None => format!("Invalid arguments for {name}: {error}."),
    }
}

/// The first required property that is not there.
fn missing(schema: &Value, arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let required = schema.get("required")?.as_array()?;
    required
        .iter()
        .filter_map(Value::as_str)
        .find(|name| arguments.get(name).is_none_or(Value::is_null))
        .map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Definition, Failure, Outcome};

    #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
    struct Arguments {
        text: String,
        times: Option<u32>,
    }

    struct Repeat;

    impl Tool for Repeat {
        type Arguments = Arguments;

        fn definition() -> Definition {
            Definition::new("repeat", "Repeats.")
        }

        fn run(_: Arguments, _: &Context) -> Result<Outcome, Failure> {
            Ok(Outcome::completed())
        }
    }

    #[test]
    fn arguments_become_the_type_of_the_tool() {
        assert_eq!(
            parse::<Repeat>(r#"{"text":"a","times":2}"#),
            Ok(Arguments {
                text: "a".into(),
                times: Some(2)
            })
        );
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
        let times = |times: &str| {
            let arguments = format!(r#"{{"text":"1.0","times":{times}}}"#);
            parse::<Repeat>(&arguments).map(|arguments| arguments.times)
        };
        assert_eq!(times("2.0"), Ok(Some(2)));
        assert_eq!(times("2e1"), Ok(Some(20)));
        for other in ["2.5", "-1.0", "1e300"] {
            assert!(
                times(other)
                    .unwrap_err()
                    .starts_with("Invalid arguments for repeat: "),
                "{other}"
            );
        }
    }

    #[test]
    fn a_required_argument_that_is_absent_or_null_is_named() {
        for arguments in ["{}", r#"{"text":null}"#, "[]"] {
            assert_eq!(
                parse::<Repeat>(arguments),
                Err("Missing required argument \"text\" for repeat.".into()),
                "{arguments}"
            );
        }
    }

    #[test]
    fn an_argument_of_a_wrong_type_is_explained() {
        let message = parse::<Repeat>(r#"{"text":"a","times":"many"}"#).unwrap_err();
        assert!(
            message.starts_with("Invalid arguments for repeat: invalid type: string \"many\""),
            "{message}"
        );
    }
}
