//! Gate 4: the arguments fit the tool's JSON Schema, after the coercions. The one place where arguments are judged, so that
//! every tool refuses in the same words.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::coerce::coerce_object;
use super::json::is_nested_too_deep;
use super::{Gate, Refusal};
use super::{steps, weight};

/// Bytes of one compiled pattern of a schema, and steps back that it may take in one text.
const PATTERN_BYTES: usize = 1 << 20;
const PATTERN_STEPS: usize = 10_000;
/// Faults that are looked at to name one of them: values of the arguments times schemas that apply to each.
const MOST_FAULTS: usize = 1 << 18;
/// Values of an array that are looked at to name a fault in arguments that are long.
const SAMPLE: usize = 64;

/// Characters of a reason that come from a schema, which may be anyone's.
const REASON_LIMIT: usize = 300;

/// A schema that is no schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameters of `{tool}` are no JSON Schema of an object: {reason}")]
pub struct SchemaError {
    /// The tool.
    pub tool: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A schema that values are judged by, compiled once, with what bounds the work of that.
#[derive(Debug)]
pub(crate) struct Judge {
    schema: Value,
    validator: Validator,
    /// The most schemas that apply to one value.
    weight: usize,
    /// Objects in the schema, and whether any refers to another; without that none is applied twice to the same value.
    objects: usize,
    refers: bool,
}

/// What a value is by a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It fits.
    Fits,
    /// It does not fit.
    Unfit,
    /// Finding out would take too many steps.
    TooMuch,
}

impl Judge {
    /// Compiles a schema that may be anyone's. Nothing is fetched from elsewhere, and what would cost more than any real schema is
    /// refused.
    pub(crate) fn compile(schema: &Value) -> Result<Judge, String> {
        let weight = weight::weigh(schema)?;
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(
                PatternOptions::fancy_regex()
                    .size_limit(PATTERN_BYTES)
                    .dfa_size_limit(PATTERN_BYTES)
                    .backtrack_limit(PATTERN_STEPS),
            )
            .build(schema)
            .map_err(|error| error.to_string())?;
        let (objects, refers) = steps::measure(schema);
        Ok(Judge {
            schema: schema.clone(),
            validator,
            weight,
            objects,
            refers,
        })
    }

    pub(crate) fn judge(&self, value: &Value) -> Judgement {
        if !self.takes_at_most(steps::BUDGET, value) {
            Judgement::TooMuch
        } else if self.validator.is_valid(value) {
            Judgement::Fits
        } else {
            Judgement::Unfit
        }
    }

    /// Counts only where a look at the sizes does not say it already.
    fn takes_at_most(&self, budget: usize, value: &Value) -> bool {
        let bounded = !self.refers && self.objects.saturating_mul(steps::values(value)) <= budget;
        bounded || steps::at_most(budget, &self.schema, self.weight, value)
    }
}

/// The schema of one tool's arguments.
#[derive(Debug)]
pub(crate) struct ArgumentSchema {
    judge: Judge,
    required: Vec<String>,
    /// The names that it takes, where it takes no others.
    names: Option<Vec<String>>,
}

impl ArgumentSchema {
    /// Compiles `schema`, which never fetches anything from elsewhere.
    pub(crate) fn compile(tool: &str, schema: &Value) -> Result<ArgumentSchema, SchemaError> {
        let fault = |reason: String| SchemaError {
            tool: tool.to_owned(),
            reason,
        };
        if !schema.is_object() {
            return Err(fault("it is not an object".into()));
        }
        Ok(ArgumentSchema {
            judge: Judge::compile(schema).map_err(fault)?,
            required: strings(schema.get("required")),
            names: closed_names(schema),
        })
    }

    /// Coerces the arguments and judges them.
    pub(crate) fn check(
        &self,
        tool: &str,
        mut arguments: Map<String, Value>,
    ) -> Result<Value, Refusal> {
        let schema = &self.judge.schema;
        coerce_object(&mut arguments, schema, schema);
        let unknown = self.first_unknown(&arguments).map(str::to_owned);
        let arguments = Value::Object(arguments);
        if is_nested_too_deep(&arguments) {
            let text = format!(
                "Invalid argument \"\" for {tool}: texts in it that hold JSON are nested too deep."
            );
            return Err(Refusal::failed(Gate::Schema, "invalid-arguments", text));
        }
        match self.judge.judge(&arguments) {
            Judgement::Fits if unknown.is_none() => return Ok(arguments),
            Judgement::Fits | Judgement::Unfit => {}
            Judgement::TooMuch => {
                let text = format!(
                    "Invalid argument \"\" for {tool}: by the tool's schema it takes more than {} steps to judge them; send less \
                     at once, or nested less deep.",
                    steps::BUDGET
                );
                return Err(Refusal::failed(Gate::Schema, "invalid-arguments", text));
            }
        }
        let sample = self.sample(&arguments);
        let errors: Vec<ValidationError<'_>> = sample
            .iter()
            .flat_map(|sample| self.judge.validator.iter_errors(sample))
            .collect();
        let text = if let Some(name) = self.first_missing(&arguments, &errors) {
            format!("Missing required argument \"{name}\" for {tool}.")
        } else if let Some(name) = unknown {
            format!(
                "Unknown argument \"{name}\" for {tool}; it takes {}.",
                self.takes()
            )
        } else {
            match errors.first() {
                Some(error) => format!(
                    "Invalid argument \"{}\" for {tool}: {}.",
                    error.instance_path().as_str(),
                    reason(error)
                ),
                None => format!(
                    "Invalid argument \"\" for {tool}: it does not fit the schema, and is too long to say where."
                ),
            }
        };
        Err(Refusal::failed(Gate::Schema, "invalid-arguments", text))
    }

    /// What the words of a refusal are found in: the arguments, or where that could mean millions of faults, the same with its
    /// arrays cut; none where that could still be.
    fn sample<'a>(&self, arguments: &'a Value) -> Option<Cow<'a, Value>> {
        let most = MOST_FAULTS / self.judge.weight;
        let is_short = |value: &Value| {
            has_at_most(value, most) && self.judge.takes_at_most(MOST_FAULTS, value)
        };
        if is_short(arguments) {
            return Some(Cow::Borrowed(arguments));
        }
        let cut = with_arrays_cut(arguments);
        is_short(&cut).then_some(Cow::Owned(cut))
    }

    fn first_unknown<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a str> {
        let names = self.names.as_ref()?;
        arguments
            .keys()
            .map(String::as_str)
            .find(|name| !names.iter().any(|known| known == name))
    }

    /// The first required property that is absent, of a type that did not coerce, or too short.
    fn first_missing(&self, arguments: &Value, errors: &[ValidationError<'_>]) -> Option<String> {
        let unusable: BTreeSet<String> = errors
            .iter()
            .filter_map(|error| match error.kind() {
                ValidationErrorKind::Type { .. } | ValidationErrorKind::MinLength { .. } => {
                    Some(error.instance_path().as_str().to_owned())
                }
                _ => None,
            })
            .collect();
        let declared = self
            .required
            .iter()
            .find(|name| {
                arguments.get(name.as_str()).is_none() || unusable.contains(&pointer(name))
            })
            .cloned();
        // A schema may also require deeper in its own structure, as in `allOf`.
        declared.or_else(|| {
            errors.iter().find_map(|error| match error.kind() {
                ValidationErrorKind::Required { property }
                    if error.instance_path().as_str().is_empty() =>
                {
                    property.as_str().map(str::to_owned)
                }
                _ => None,
            })
        })
    }

    fn takes(&self) -> String {
        match self.names.as_deref() {
            None | Some([]) => "no arguments".into(),
            Some(names) => names.join(", "),
        }
    }
}

fn has_at_most(value: &Value, most: usize) -> bool {
    let mut left = vec![value];
    let mut seen = 0;
    while let Some(value) = left.pop() {
        seen += 1;
        if seen + left.len() > most {
            return false;
        }
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
    true
}

fn with_arrays_cut(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().take(SAMPLE).map(with_arrays_cut).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), with_arrays_cut(member)))
            .collect(),
        value => value.clone(),
    }
}

/// The names of a schema that takes no others: one that lists its properties and does not say that it takes more.
fn closed_names(schema: &Value) -> Option<Vec<String>> {
    let composed = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some());
    let closed = match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => true,
        Some(_) => return None,
        None => false,
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    match properties {
        Some(properties) if !composed => Some(properties.keys().cloned().collect()),
        None if closed && !composed => Some(Vec::new()),
        _ => None,
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.as_str().map(str::to_owned))
        .collect()
}

/// A JSON pointer to a property of the root.
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// What is wrong with a value, without repeating the value, which may be long.
fn reason(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let text = match error.kind() {
        Kind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(several) => several
                    .iter()
                    .map(|one| one.to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            format!("expected {expected}, got {}", type_name(error.instance()))
        }
        Kind::Enum { options } => format!("expected one of {}", listing(options)),
        Kind::Constant { expected_value } => format!("expected {expected_value}"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::UniqueItems => "its items must differ".into(),
        Kind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        Kind::Format { format } => format!("must have the format {format}"),
        Kind::Required { property } => format!("the property {property} is missing"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("unknown property \"{}\"", unexpected.join("\", \""))
        }
        _ => error.masked().to_string(),
    };
    match text.char_indices().nth(REASON_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.trim_end_matches('.').to_owned(),
    }
}

fn listing(options: &Value) -> String {
    options.as_array().map_or_else(String::new, |options| {
        options
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    })
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod hostile;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn exec() -> ArgumentSchema {
        ArgumentSchema::compile(
            "exec_command",
            &json!({
                "type": "object",
                "properties": {
                    "cmd": {"type": "string", "minLength": 1},
                    "yield_time_ms": {"type": "integer", "minimum": 0},
                    "mode": {"enum": ["a", "b"]},
                    "edits": {"type": "array", "items": {
                        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
                        "additionalProperties": false}},
                },
                "required": ["cmd"],
            }),
        )
        .unwrap()
    }

    fn check(arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object");
        };
        exec()
            .check("exec_command", arguments)
            .map_err(|refusal| refusal.text)
    }

    fn text(arguments: Value) -> String {
        check(arguments).unwrap_err()
    }

    #[test]
    fn what_fits_passes_coerced() {
        assert_eq!(
            check(json!({"cmd": "ls", "yield_time_ms": "250"})),
            Ok(json!({"cmd": "ls", "yield_time_ms": 250}))
        );
    }

    #[test]
    fn a_required_argument_that_is_absent_empty_or_of_another_type_is_missing() {
        for arguments in [
            json!({}),
            json!({"cmd": ""}),
            json!({"cmd": 5}),
            json!({"cmd": null}),
            json!({"cmd": ["ls"]}),
        ] {
            assert_eq!(
                text(arguments.clone()),
                "Missing required argument \"cmd\" for exec_command.",
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_missing_argument_is_named_before_an_unknown_one() {
        assert_eq!(
            text(json!({"command": "ls"})),
            "Missing required argument \"cmd\" for exec_command."
        );
    }

    #[test]
    fn an_unknown_argument_is_named_with_those_that_exist() {
        assert_eq!(
            text(json!({"cmd": "ls", "cwd": "/"})),
            "Unknown argument \"cwd\" for exec_command; it takes cmd, yield_time_ms, mode, edits."
        );
    }

    #[test]
    fn any_other_fault_is_named_with_its_pointer_and_reason() {
        let cases = [
            (
                json!({"cmd": "ls", "yield_time_ms": "soon"}),
                "/yield_time_ms",
                "expected integer, got string",
            ),
            (
                json!({"cmd": "ls", "yield_time_ms": -1}),
                "/yield_time_ms",
                "must be at least 0",
            ),
            (
                json!({"cmd": "ls", "mode": "c"}),
                "/mode",
                "expected one of \"a\", \"b\"",
            ),
            (
                json!({"cmd": "ls", "edits": [{"path": "a"}, {}]}),
                "/edits/1",
                "the property \"path\" is missing",
            ),
            (
                json!({"cmd": "ls", "edits": [{"path": "a", "x": 1}]}),
                "/edits/0",
                "unknown property \"x\"",
            ),
            (
                json!({"cmd": "ls", "edits": "no"}),
                "/edits",
                "expected array, got string",
            ),
        ];
        for (arguments, pointer, reason) in cases {
            assert_eq!(
                text(arguments),
                format!("Invalid argument \"{pointer}\" for exec_command: {reason}.")
            );
        }
    }

    #[test]
    fn a_fault_never_repeats_the_value() {
        let long = "x".repeat(100_000);
        assert!(text(json!({"cmd": "ls", "mode": long})).len() < 200);
    }

    #[test]
    fn a_schema_that_says_it_takes_more_takes_more() {
        for schema in [
            json!({"type": "object"}),
            json!({"properties": {"a": {}}, "additionalProperties": true}),
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}),
            json!({"properties": {"a": {}}, "patternProperties": {"^b$": {}}}),
        ] {
            let schema = ArgumentSchema::compile("t", &schema).unwrap();
            let arguments = json!({"b": 1}).as_object().cloned().unwrap();
            assert!(schema.check("t", arguments).is_ok());
        }
    }

    #[test]
    fn a_tool_without_arguments_says_so() {
        for schema in [
            json!({"type": "object", "properties": {}}),
            json!({"additionalProperties": false}),
        ] {
            let schema = ArgumentSchema::compile("t", &schema).unwrap();
            let arguments = json!({"b": 1}).as_object().cloned().unwrap();
            assert_eq!(
                schema.check("t", arguments).unwrap_err().text,
                "Unknown argument \"b\" for t; it takes no arguments."
            );
        }
    }

    #[test]
    fn a_schema_that_is_none_or_lies_elsewhere_is_refused() {
        for schema in [
            json!(5),
            json!({"type": "nothing"}),
            json!({"$ref": "https://example.org/s.json"}),
        ] {
            let error = ArgumentSchema::compile("t", &schema).unwrap_err();
            assert!(error.to_string().contains("`t`"), "{error}");
        }
    }
}
