//! Schemas and arguments that are made to cost: a schema may be any plugin's, and arguments are any model's.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::ArgumentSchema;

/// Far above what any of these may take, far below what they are made to take.
const SOON: Duration = Duration::from_secs(20);

/// What a call with these arguments is told; Ok where it passes.
fn check(schema: &Value, arguments: &Value) -> Result<(), String> {
    let arguments = arguments.as_object().cloned().unwrap();
    let started = Instant::now();
    let result = match ArgumentSchema::compile("t", schema) {
        Ok(schema) => schema
            .check("t", arguments)
            .map(drop)
            .map_err(|refused| refused.text),
        Err(fault) => Err(fault.to_string()),
    };
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    result
}

/// Definitions of which each applies the next one `times` times; the last one takes a number.
fn chain(keyword: &str, length: usize, times: usize) -> Value {
    let mut definitions = Map::new();
    for level in 0..length {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        definitions.insert(format!("l{level}"), json!({keyword: vec![next; times]}));
    }
    definitions.insert(format!("l{length}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": definitions})
}

/// Runs on a stack as small as that of the host's own threads.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_schema_whose_references_double_each_other_is_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let told = check(&chain(keyword, 30, 2), &json!({"x": "no"})).unwrap_err();
        assert!(
            told.contains("more than 1000 schemas to one value"),
            "{told}"
        );
        assert!(check(&chain(keyword, 3, 2), &json!({"x": "no"})).is_err());
    }
    assert_eq!(check(&chain("anyOf", 3, 2), &json!({"x": 5})), Ok(()));
}

#[test]
fn references_that_lead_on_for_ever_or_nowhere_are_refused() {
    on_a_small_stack(|| {
        for schema in [
            chain("allOf", 5000, 1),
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
            json!({"properties": {"x": {"$ref": "#/$defs/none"}}}),
            json!({"properties": {"x": {"$ref": "#name"}}, "$defs": {"a": {"$anchor": "name"}}}),
            json!({"properties": {"x": {"$id": "urn:x", "$ref": "#"}}}),
            json!({"properties": {"x": {"$dynamicRef": "#"}}}),
        ] {
            assert!(ArgumentSchema::compile("t", &schema).is_err());
        }
    });
}

#[test]
fn a_schema_may_refer_to_itself_for_what_lies_inside_a_value() {
    let schema = json!({
        "properties": {"x": {"$ref": "#/$defs/tree"}},
        "$defs": {"tree": {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/tree"}}}}},
    });
    assert_eq!(
        check(&schema, &json!({"x": {"kids": [{"kids": []}, {}]}})),
        Ok(())
    );
    assert!(check(&schema, &json!({"x": {"kids": [{"kids": [5]}]}})).is_err());
}

#[test]
fn a_schema_that_doubles_with_every_level_of_a_value_ends_with_a_clear_word() {
    let nested = |levels: usize| (0..levels).fold(json!("no"), |inner, _| json!({"c": inner}));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let next = json!({"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}});
        let schema = json!({
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {keyword: [next, next]}},
        });
        let told = check(&schema, &json!({"x": nested(120)})).unwrap_err();
        assert_eq!(
            told,
            "Invalid argument \"\" for t: by the tool's schema it takes more than 4000000 steps to judge them; send less at \
             once, or nested less deep."
        );
        let told = check(&schema, &json!({"x": nested(3)})).unwrap_err();
        assert!(told.starts_with("Invalid argument \"/x"), "{told}");
    }
    // The same without a circle: each level is a definition of its own.
    let mut definitions = Map::new();
    for level in 0..100 {
        let next = json!({"properties": {"c": {"$ref": format!("#/$defs/l{}", level + 1)}}});
        definitions.insert(format!("l{level}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert("l100".into(), json!({"type": "integer"}));
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": definitions});
    let told = check(&schema, &json!({"x": nested(100)})).unwrap_err();
    assert!(told.contains("more than 4000000 steps"), "{told}");
}

#[test]
fn a_tree_that_refers_to_itself_is_judged_however_large_an_honest_one_is() {
    let schema = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "additionalProperties": false, "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        }}},
    });
    fn tree(depth: usize) -> Value {
        let children: Vec<Value> = (0..if depth == 0 { 0 } else { 8 })
            .map(|_| tree(depth - 1))
            .collect();
        json!({"name": "x", "children": children})
    }
    assert_eq!(check(&schema, &json!({"root": tree(5)})), Ok(()));
}

#[test]
fn patterns_that_are_large_many_or_go_back_cost_little() {
    let large = json!({"properties": {"x": {"pattern": "(\\pL{500}){500}"}}});
    assert!(check(&large, &json!({"x": "x"})).is_err());
    let many: Map<String, Value> = (0..200)
        .map(|number| {
            (
                format!("p{number}"),
                json!({"pattern": format!("x{number}")}),
            )
        })
        .collect();
    let told = check(&json!({"properties": many}), &json!({})).unwrap_err();
    assert!(told.contains("200 patterns"), "{told}");
    let back = json!({"properties": {"x": {"pattern": "^(?=(a+)+$)(a|aa)*\\1c$"}}});
    assert!(check(&back, &json!({"x": "a".repeat(4000)})).is_err());
}

#[test]
fn two_million_faults_are_one_refusal_that_names_the_first() {
    let schema = json!({"properties": {"x": {"type": "array", "items": {"type": "object"}}}, "required": ["x"]});
    assert_eq!(
        check(&schema, &json!({"x": vec![1; 2_000_000]})).unwrap_err(),
        "Invalid argument \"/x/0\" for t: expected object, got number."
    );
    let mut late = vec![json!({}); 300_000];
    late.push(json!(1));
    let told = check(&schema, &json!({"x": late})).unwrap_err();
    assert!(told.contains("too long to say where"), "{told}");
    assert_eq!(
        check(&schema, &json!({"x": vec![json!({}); 300_000]})),
        Ok(())
    );
    let told = check(&schema, &json!({"y": vec![1; 2_000_000]})).unwrap_err();
    assert_eq!(told, "Missing required argument \"x\" for t.");
}

#[test]
fn texts_that_hold_json_in_json_nest_no_deeper_than_arguments_may() {
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}});
    let mut text = String::new();
    // Each level doubles the backslashes of those inside it: more do not fit into the arguments of a call.
    for _ in 0..20 {
        let quoted = serde_json::to_string(&text).unwrap();
        text = format!("{}{quoted}{}", "[".repeat(120), "]".repeat(120));
    }
    on_a_small_stack(move || {
        let told = check(&schema, &json!({"x": text})).unwrap_err();
        assert!(told.contains("nested too deep"), "{told}");
        assert_eq!(check(&schema, &json!({"x": "[[], \"[[]]\"]"})), Ok(()));
    });
}
