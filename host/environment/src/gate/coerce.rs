//! Puts right what models commonly get wrong about types, in one place, and nothing else (decisions, "Gates and their words"):
//! a string that holds a number, `"true"` or `"false"`, a string that holds a JSON array or object, and `null` or `"null"`
//! for an optional property. A value that fits its schema is never changed.

use serde_json::{Map, Number, Value};

use super::json::parse_value;

/// Levels of `$ref` that are followed.
const REFERENCES: usize = 32;
/// Alternatives that are looked at to find the types of one value; a schema may be anyone's, and may refer to itself.
const ALTERNATIVES: usize = 64;

/// Coerces the properties of `object` towards `schema`, whose references lie in `root`.
pub(crate) fn coerce_object(object: &mut Map<String, Value>, schema: &Value, root: &Value) {
    let schema = resolve(schema, root);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, schema_of_value) in properties {
        let Some(value) = object.get_mut(name) else {
            continue;
        };
        if says_nothing(value, schema_of_value, root) && !is_required(schema, name) {
            // Not `swap_remove`: the order of the arguments is what the person is shown.
            object.shift_remove(name);
        } else {
            coerce_value(value, schema_of_value, root);
        }
    }
}

fn coerce_value(value: &mut Value, schema: &Value, root: &Value) {
    let schema = resolve(schema, root);
    if let Value::String(text) = value
        && let Some(coerced) = coerce_string(text, Types::of(schema, root))
    {
        *value = coerced;
    }
    let schema = single_alternative(schema, root);
    match value {
        Value::Object(object) => coerce_object(object, schema, root),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    coerce_value(item, schema, root);
                }
            }
        }
        _ => {}
    }
}

/// What a string stands for where the schema takes no string.
fn coerce_string(text: &str, types: Types) -> Option<Value> {
    if types.accept(Types::STRING) {
        return None;
    }
    match text {
        "true" if types.accept(Types::BOOLEAN) => return Some(Value::Bool(true)),
        "false" if types.accept(Types::BOOLEAN) => return Some(Value::Bool(false)),
        _ => {}
    }
    match text.trim_start().as_bytes().first()? {
        b'[' if types.accept(Types::ARRAY) => parse_value(text).ok().filter(Value::is_array),
        b'{' if types.accept(Types::OBJECT) => parse_value(text).ok().filter(Value::is_object),
        // The parser would let blanks pass after the number.
        b'-' | b'0'..=b'9' if text.ends_with(|last: char| last.is_ascii_digit()) => {
            let number: Number = serde_json::from_str(text).ok()?;
            let fits = types.accept(Types::NUMBER)
                || (types.accept(Types::INTEGER) && (number.is_i64() || number.is_u64()));
            fits.then_some(Value::Number(number))
        }
        _ => None,
    }
}

/// True for `null` and `"null"` where the schema takes neither.
fn says_nothing(value: &Value, schema: &Value, root: &Value) -> bool {
    let types = Types::of(resolve(schema, root), root);
    match value {
        Value::Null => !types.accept(Types::NULL),
        Value::String(text) => text == "null" && !types.accept(Types::STRING),
        _ => false,
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|required| required.iter().any(|entry| entry == name))
}

/// Follows references inside the document; what cannot be followed is left to the validator.
fn resolve<'schema>(mut schema: &'schema Value, root: &'schema Value) -> &'schema Value {
    for _ in 0..REFERENCES {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// The one alternative that is not `null`, where there is exactly one.
fn single_alternative<'schema>(schema: &'schema Value, root: &'schema Value) -> &'schema Value {
    let Some(alternatives) = alternatives(schema) else {
        return schema;
    };
    let mut others = alternatives
        .iter()
        .map(|alternative| resolve(alternative, root))
        .filter(|alternative| Types::of(alternative, root) != Types::NULL);
    match (others.next(), others.next()) {
        (Some(one), None) => one,
        _ => schema,
    }
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array)
}

/// A set of JSON types.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const NULL: Types = Types(1);
    const BOOLEAN: Types = Types(2);
    const INTEGER: Types = Types(4);
    const NUMBER: Types = Types(8);
    const STRING: Types = Types(16);
    const ARRAY: Types = Types(32);
    const OBJECT: Types = Types(64);
    const ANY: Types = Types(127);

    /// The types that a value of this schema may have; all of them where the schema does not say.
    fn of(schema: &Value, root: &Value) -> Types {
        Types::within(schema, root, &mut { ALTERNATIVES })
    }

    fn within(schema: &Value, root: &Value, left: &mut usize) -> Types {
        let schema = resolve(schema, root);
        let listed = |values: &Vec<Value>, of: &dyn Fn(&Value) -> Types| {
            Types(values.iter().fold(0, |set, value| set | of(value).0))
        };
        match schema.get("type") {
            Some(Value::String(name)) => return Types::named(name),
            Some(Value::Array(names)) => {
                return listed(names, &|name| {
                    name.as_str().map_or(Types::ANY, Types::named)
                });
            }
            _ => {}
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return listed(values, &Types::of_value);
        }
        if let Some(value) = schema.get("const") {
            return Types::of_value(value);
        }
        let Some(alternatives) = alternatives(schema) else {
            return Types::ANY;
        };
        let mut types = Types(0);
        for alternative in alternatives {
            if *left == 0 {
                return Types::ANY;
            }
            *left -= 1;
            types.0 |= Types::within(alternative, root, left).0;
        }
        types
    }

    fn named(name: &str) -> Types {
        match name {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "integer" => Types::INTEGER,
            "number" => Types(Types::NUMBER.0 | Types::INTEGER.0),
            "string" => Types::STRING,
            "array" => Types::ARRAY,
            "object" => Types::OBJECT,
            _ => Types::ANY,
        }
    }

    fn of_value(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Number(_) => Types(Types::NUMBER.0 | Types::INTEGER.0),
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }

    fn accept(self, types: Types) -> bool {
        self.0 & types.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn coerced(schema: &Value, arguments: Value) -> Value {
        let Value::Object(mut object) = arguments else {
            panic!("arguments are an object");
        };
        coerce_object(&mut object, schema, schema);
        Value::Object(object)
    }

    fn one(property: Value, value: Value) -> Value {
        let schema = json!({"type": "object", "properties": {"x": property}});
        coerced(&schema, json!({"x": value}))
    }

    #[test]
    fn a_string_that_holds_a_number_becomes_it() {
        assert_eq!(one(json!({"type": "integer"}), json!("5")), json!({"x": 5}));
        assert_eq!(
            one(json!({"type": "number"}), json!("-1.5")),
            json!({"x": -1.5})
        );
        for other in ["5.5", "0x5", "5 ", "", "five", "1e400"] {
            assert_eq!(
                one(json!({"type": "integer"}), json!(other)),
                json!({"x": other})
            );
        }
    }

    #[test]
    fn true_and_false_in_quotes_become_booleans_and_nothing_else_does() {
        assert_eq!(
            one(json!({"type": "boolean"}), json!("true")),
            json!({"x": true})
        );
        assert_eq!(
            one(json!({"type": "boolean"}), json!("false")),
            json!({"x": false})
        );
        for other in [json!("True"), json!("yes"), json!(1), json!("1")] {
            assert_eq!(
                one(json!({"type": "boolean"}), other.clone()),
                json!({"x": other})
            );
        }
    }

    #[test]
    fn a_string_that_holds_an_array_or_an_object_becomes_it() {
        assert_eq!(
            one(json!({"type": "array"}), json!("[1, 2]")),
            json!({"x": [1, 2]})
        );
        assert_eq!(
            one(json!({"type": "object"}), json!("{\"a\":1}")),
            json!({"x": {"a": 1}})
        );
        assert_eq!(
            one(json!({"type": "array"}), json!("[1,")),
            json!({"x": "[1,"})
        );
        assert_eq!(
            one(json!({"type": "array"}), json!("a,b")),
            json!({"x": "a,b"})
        );
    }

    #[test]
    fn null_for_an_optional_property_is_absent() {
        assert_eq!(one(json!({"type": "integer"}), json!(null)), json!({}));
        assert_eq!(one(json!({"type": "integer"}), json!("null")), json!({}));
        assert_eq!(
            one(json!({"type": ["integer", "null"]}), json!("null")),
            json!({})
        );
        assert_eq!(one(json!({"type": "string"}), json!(null)), json!({}));
    }

    #[test]
    fn null_that_fits_and_the_word_null_as_a_string_stay() {
        assert_eq!(
            one(json!({"type": ["integer", "null"]}), json!(null)),
            json!({"x": null})
        );
        assert_eq!(
            one(json!({"type": "string"}), json!("null")),
            json!({"x": "null"})
        );
        assert_eq!(one(json!({}), json!(null)), json!({"x": null}));
    }

    #[test]
    fn null_for_a_required_property_stays_and_is_refused_later() {
        let schema = json!({"properties": {"x": {"type": "string"}}, "required": ["x"]});
        assert_eq!(coerced(&schema, json!({"x": null})), json!({"x": null}));
    }

    #[test]
    fn nested_values_and_references_are_reached() {
        let schema = json!({
            "properties": {
                "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
                "point": {"anyOf": [{"$ref": "#/$defs/edit"}, {"type": "null"}]},
            },
            "$defs": {"edit": {"type": "object", "properties": {"all": {"type": "boolean"}}}},
        });
        assert_eq!(
            coerced(
                &schema,
                json!({"edits": "[{\"all\":\"true\"}]", "point": {"all": "false"}})
            ),
            json!({"edits": [{"all": true}], "point": {"all": false}})
        );
    }

    #[test]
    fn references_in_a_circle_end() {
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}, "b": {"$ref": "#/$defs/b"}}});
        assert_eq!(coerced(&schema, json!({"x": "5"})), json!({"x": "5"}));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            prop_oneof![
                Just("null".to_owned()),
                Just("true".to_owned()),
                Just("5".to_owned()),
                Just("[1]".to_owned()),
                Just("{\"x\":\"5\"}".to_owned()),
                "[ -~]{0,6}",
            ]
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec(("[xy]", inner), 0..3)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let name = prop_oneof![
            Just("null"),
            Just("boolean"),
            Just("integer"),
            Just("number"),
            Just("string"),
            Just("array"),
            Just("object"),
        ];
        let leaf = prop_oneof![
            Just(json!({})),
            name.clone().prop_map(|name| json!({"type": name})),
            proptest::collection::vec(name, 1..3).prop_map(|mut names| {
                names.sort_unstable();
                names.dedup();
                json!({"type": names})
            }),
            Just(json!({"enum": ["5", true, null]})),
            Just(json!({"const": "true"})),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                inner
                    .clone()
                    .prop_map(|items| json!({"type": "array", "items": items})),
                proptest::collection::vec(inner.clone(), 1..3)
                    .prop_map(|any| json!({"anyOf": any})),
                (inner.clone(), inner, any::<bool>()).prop_map(|(x, y, required)| {
                    let required: &[&str] = if required { &["x"] } else { &[] };
                    json!({"type": "object", "properties": {"x": x, "y": y}, "required": required})
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_value_that_fits_is_never_changed(schema in any_schema(), value in any_json()) {
            let schema = json!({"type": "object", "properties": {"v": schema}});
            let arguments = json!({"v": value});
            let validator = jsonschema::validator_for(&schema).unwrap();
            if validator.is_valid(&arguments) {
                prop_assert_eq!(coerced(&schema, arguments.clone()), arguments);
            }
        }
    }
}
