//! How many steps a validator may need for one value, counted without validating it: every application of a schema to a value is
//! one, as if none of them ended early.
//!
//! The weight of a schema bounds what is applied to each single value. Schemas that apply two others to what lies inside a value,
//! each of which does the same, still double with every level that the value nests. So there is one budget of steps for a whole
//! value, and what would take more is refused before it is judged.

use serde_json::{Map, Value};

/// Steps for the arguments of one call, or for one structured result: seconds at the most.
pub(crate) const BUDGET: usize = 4_000_000;

/// Keywords that apply a list of schemas to the same value.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that apply one schema to the same value.
const SINGLES: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that apply a named schema each, where the name is there, to the same value.
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords that apply one schema to every member.
const MEMBERS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
/// Keywords that apply one schema to every item.
const ITEMS: [&str; 4] = ["items", "additionalItems", "contains", "unevaluatedItems"];
/// Keywords for which what applies to a value is gone through once more for each of its parts.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Objects in a schema, each of which may be one, and whether any of them refers to another.
pub(crate) fn measure(schema: &Value) -> (usize, bool) {
    let (mut objects, mut refers) = (0, false);
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                objects += 1;
                refers |= members.contains_key("$ref");
                left.extend(members.values());
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    (objects, refers)
}

/// Values in a value, itself included.
pub(crate) fn values(value: &Value) -> usize {
    let mut seen = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        seen += 1;
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
    seen
}

/// Whether judging `value` takes at most `budget` steps. `weight` is the most schemas that `root` applies to one value.
pub(crate) fn at_most(budget: usize, root: &Value, weight: usize, value: &Value) -> bool {
    let mut count = Count {
        root,
        weight,
        left: budget,
        waiting: vec![(root, value)],
    };
    count.run().is_some()
}

/// The count. None, everywhere, is the end of the budget.
struct Count<'a> {
    root: &'a Value,
    weight: usize,
    left: usize,
    /// Schemas and the values that they are still to be applied to. A list and no recursion: the stack is short.
    waiting: Vec<(&'a Value, &'a Value)>,
}

impl<'a> Count<'a> {
    fn run(&mut self) -> Option<()> {
        while let Some((schema, value)) = self.waiting.pop() {
            let Value::Object(schema) = schema else {
                continue;
            };
            self.same(schema, value)?;
            match value {
                Value::Object(members) => self.members(schema, members)?,
                Value::Array(items) => self.items(schema, items)?,
                _ => {}
            }
        }
        Some(())
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    fn apply(&mut self, schema: &'a Value, value: &'a Value) -> Option<()> {
        self.spend(1)?;
        self.waiting.push((schema, value));
        Some(())
    }

    /// What a schema applies to the very value that it is applied to.
    fn same(&mut self, schema: &'a Map<String, Value>, value: &'a Value) -> Option<()> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = reference
                .strip_prefix('#')
                .and_then(|at| self.root.pointer(at))
        {
            self.apply(target, value)?;
        }
        for list in LISTS
            .into_iter()
            .filter_map(|name| schema.get(name)?.as_array())
        {
            for schema in list {
                self.apply(schema, value)?;
            }
        }
        for schema in SINGLES.into_iter().filter_map(|name| schema.get(name)) {
            self.apply(schema, value)?;
        }
        for named in DEPENDENT
            .into_iter()
            .filter_map(|name| schema.get(name)?.as_object())
        {
            for schema in named.values() {
                self.apply(schema, value)?;
            }
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            self.spend(values.len())?;
        }
        Some(())
    }

    fn members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &'a Map<String, Value>,
    ) -> Option<()> {
        self.again(schema, members.len())?;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, member) in members {
                if let Some(schema) = properties.get(name) {
                    self.apply(schema, member)?;
                }
            }
        }
        if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
            for schema in patterns.values() {
                for member in members.values() {
                    self.apply(schema, member)?;
                }
            }
        }
        if schema.contains_key("propertyNames") {
            self.spend(members.len().checked_mul(self.weight)?)?;
        }
        for schema in MEMBERS.into_iter().filter_map(|name| schema.get(name)) {
            for member in members.values() {
                self.apply(schema, member)?;
            }
        }
        Some(())
    }

    fn items(&mut self, schema: &'a Map<String, Value>, items: &'a [Value]) -> Option<()> {
        self.again(schema, items.len())?;
        for name in ["prefixItems", "items"] {
            if let Some(schemas) = schema.get(name).and_then(Value::as_array) {
                for (schema, item) in schemas.iter().zip(items) {
                    self.apply(schema, item)?;
                }
            }
        }
        for schema in ITEMS.into_iter().filter_map(|name| schema.get(name)) {
            for item in items {
                self.apply(schema, item)?;
            }
        }
        Some(())
    }

    fn again(&mut self, schema: &Map<String, Value>, parts: usize) -> Option<()> {
        let unevaluated = UNEVALUATED
            .into_iter()
            .any(|name| schema.contains_key(name));
        if unevaluated {
            self.spend(parts.checked_mul(self.weight)?)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The steps that `value` takes.
    fn steps(schema: &Value, value: &Value) -> usize {
        (0..)
            .find(|budget| at_most(*budget, schema, 1, value))
            .unwrap()
    }

    #[test]
    fn a_schema_without_parts_takes_no_step_and_each_part_takes_its_own() {
        assert_eq!(steps(&json!({"type": "string"}), &json!("x")), 0);
        let schema =
            json!({"properties": {"a": {"anyOf": [{}, {}]}, "b": {}}, "additionalProperties": {}});
        // a, its two alternatives, and both members once more.
        assert_eq!(steps(&schema, &json!({"a": 1, "c": 2})), 5);
        let schema = json!({"items": {"allOf": [{}, {}]}, "prefixItems": [{}]});
        assert_eq!(steps(&schema, &json!([1, 2])), 7);
    }

    #[test]
    fn what_doubles_with_every_level_is_counted_so() {
        let next = json!({"properties": {"c": {"$ref": "#/$defs/n"}}});
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [next, next]}}});
        let mut value = json!({});
        let mut before = 0;
        for _ in 0..8 {
            let now = steps(&schema, &value);
            assert!(now >= 2 * before, "{now} after {before}");
            before = now;
            value = json!({"c": value});
        }
    }

    #[test]
    fn a_budget_of_many_steps_ends_soon() {
        let next = json!({"properties": {"c": {"$ref": "#/$defs/n"}}});
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [next, next]}}});
        let mut value = json!({});
        for _ in 0..120 {
            value = json!({"c": value});
        }
        assert!(!at_most(BUDGET, &schema, 4, &value));
    }
}
