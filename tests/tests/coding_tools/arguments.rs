//! What a model may send instead of arguments: to every tool, before it runs.

use serde_json::json;

use crate::rig::{Rig, registry};

/// Every tool with its required arguments.
fn tools() -> Vec<(String, Vec<String>)> {
    let registry = registry();
    registry
        .names()
        .map(|name| {
            let tool = registry.get(name).unwrap();
            let required = tool.definition.parameters["required"].as_array();
            let names = required.into_iter().flatten();
            let names = names
                .map(|name| name.as_str().unwrap().to_owned())
                .collect();
            (tool.definition.name.clone(), names)
        })
        .collect()
}

#[tokio::test]
async fn what_is_not_json_is_refused_by_every_tool_in_the_same_words() {
    let rig = Rig::new();
    for (tool, _) in tools() {
        for empty in ["", " \n\t"] {
            assert_eq!(
                rig.call_raw(&tool, empty).await.failed(),
                format!(
                    "Tool call \"{tool}\" failed: the arguments field is empty. Re-issue the call with a complete JSON object."
                )
            );
        }
        for broken in ["{", "{\"a\":1,}", "nul", "{} {}", "'a'"] {
            let answer = rig.call_raw(&tool, broken).await;
            let text = answer.failed();
            let begins = format!("Tool call \"{tool}\" failed: the arguments are not valid JSON (");
            assert!(text.starts_with(&begins), "{broken}: {text}");
        }
    }
}

#[tokio::test]
async fn what_is_no_object_counts_as_an_empty_one() {
    let rig = Rig::new();
    for (tool, required) in tools() {
        let Some(first) = required.first() else {
            continue;
        };
        for other in ["null", "7", "\"text\"", "[1]"] {
            assert_eq!(
                rig.call_raw(&tool, other).await.failed(),
                format!("Missing required argument \"{first}\" for {tool}.")
            );
        }
    }
}

#[tokio::test]
async fn every_required_argument_that_is_missing_is_named() {
    let rig = Rig::new();
    for (tool, required) in tools() {
        for absent in [json!({}), json!({"unrelated": null})] {
            let answer = rig.call(&tool, absent).await;
            if let Some(first) = required.first() {
                let expected = format!("Missing required argument \"{first}\" for {tool}.");
                assert!(
                    answer.failed() == expected
                        || answer.text.starts_with("Unknown argument \"unrelated\""),
                    "{answer:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_argument_that_a_tool_does_not_take_is_refused_with_those_that_it_takes() {
    let rig = Rig::new();
    let call = json!({"pattern": "x", "approved": true});
    let answer = rig.call("grep", call).await;
    assert!(
        answer
            .failed()
            .starts_with("Unknown argument \"approved\" for grep; it takes pattern, "),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_unknown() {
    let rig = Rig::new();
    for name in ["no_such_tool", "", "../grep", "Grep", "grep "] {
        assert_eq!(
            rig.call(name, json!({})).await.failed(),
            format!("Unknown tool: {name}")
        );
    }
}
