//! Patterns and arguments that ask for too much.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::rig::Rig;

/// Ten times what the slowest of these takes on a busy machine without optimisation.
const SOON: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_pattern_that_compiles_to_too_much_is_refused_soon() {
    let rig = Rig::new();
    rig.write("a", "aaaa\n");
    let begun = Instant::now();
    for pattern in [
        "(a{1000}){1000}",
        "a{1000000}",
        "((((x{100}){100}){100}){100}){100}",
        r"[\p{L}]{1000}{100}",
        r"(\w{200}){200}",
        "(((((((((a*)*)*)*)*){9}){9}){9}){9}){9}",
    ] {
        for extra in [
            json!({}),
            json!({"multiline": true}),
            json!({"case_insensitive": true}),
        ] {
            let mut arguments = json!({ "pattern": pattern });
            for (name, value) in extra.as_object().unwrap() {
                arguments[name] = value.clone();
            }
            let answer = rig.call("grep", arguments).await;
            let text = answer.failed();
            assert!(
                text.starts_with("Invalid regex: ") && text.len() < 1000,
                "{text}"
            );
        }
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_pattern_that_others_match_in_exponential_time_takes_no_longer_than_any() {
    let rig = Rig::new();
    rig.write("a", format!("{}!\n", "a".repeat(100_000)));
    let begun = Instant::now();
    for pattern in ["(a+)+$", "(a|a)*b", "(.*a){20}b", "^(([a-z])+.)+[A-Z]$"] {
        let answer = rig.call("grep", json!({ "pattern": pattern })).await;
        assert_eq!(answer.completed(), "[no output]", "{pattern}");
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_pattern_of_a_megabyte_is_refused() {
    let rig = Rig::new();
    rig.write("a", "needle\n");
    let begun = Instant::now();
    for (pattern, fixed) in [
        ("x".repeat(1 << 20), true),
        ("x".repeat(1 << 20), false),
        ("x|y.".repeat(1 << 18), false),
        ("[a-z]".repeat(1 << 18), false),
        ("(".repeat(1 << 20), false),
        ("x.".repeat(1 << 19), false),
    ] {
        let arguments = json!({"pattern": pattern, "fixed_strings": fixed});
        let answer = rig.call("grep", arguments).await;
        let shown: String = answer.text.chars().take(200).collect();
        assert!(
            answer.text.starts_with("Invalid regex: the pattern has"),
            "{shown}"
        );
        assert!(
            answer.text.len() < 10_000,
            "{} of {shown}",
            answer.text.len()
        );
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_longest_pattern_that_is_taken_ends_with_a_result_or_a_refusal() {
    let rig = Rig::new();
    rig.write("a", "needle\n");
    let begun = Instant::now();
    for part in [
        "x", "x|y.", "[a-z]", "(", "x.", "é", "x?", "(?:a|b)", r"\pL", r"\w", "a{3}", "|",
    ] {
        for (fixed, most) in [(false, 4 * 1024), (true, 32 * 1024)] {
            let pattern = part.repeat(most / part.len());
            let arguments = json!({"pattern": pattern, "fixed_strings": fixed});
            let answer = rig.call("grep", arguments).await;
            let shown: String = answer.text.chars().take(200).collect();
            assert!(
                ["[no output]", "a:1:needle\n"].contains(&answer.text.as_str())
                    || answer.failed().starts_with("Invalid regex: "),
                "{part}: {shown}"
            );
            assert!(
                answer.text.len() < 2000,
                "{part}: {} of {shown}",
                answer.text.len()
            );
        }
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn globs_that_ask_for_too_much_end_soon_too() {
    let rig = Rig::new();
    rig.write("a".repeat(200), "");
    let begun = Instant::now();
    for pattern in [
        "*a".repeat(100),
        "{a,b}".repeat(1000),
        "**/".repeat(1000) + "x",
        "{".repeat(10_000),
        "[!a]".repeat(10_000),
        "*".repeat(1 << 20),
        "x".repeat(1 << 20),
    ] {
        let answer = rig.call("glob", json!({ "pattern": pattern })).await;
        let shown: String = answer.text.chars().take(300).collect();
        assert!(answer.text.len() < 5000, "{} of {shown}", answer.text.len());
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_number_that_is_out_of_range_or_none_is_refused_by_its_name() {
    let rig = Rig::new();
    rig.write("a", "x\nx\n");
    for value in [
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!(-1),
        json!(0),
        json!(1.5),
        json!("many"),
        json!([1]),
        json!({}),
        json!(true),
    ] {
        for (tool, argument) in [("grep", "max_matches"), ("glob", "max_results")] {
            let arguments = json!({"pattern": "x", argument: value});
            let answer = rig.call(tool, arguments).await;
            let text = answer.failed();
            assert!(
                text.contains(&format!("Invalid argument \"/{argument}\" for {tool}: ")),
                "{value}: {text}"
            );
        }
    }
    for raw in ["1e400", "99999999999999999999999999", "-0.0", "NaN"] {
        let arguments = format!("{{\"pattern\": \"x\", \"max_matches\": {raw}}}");
        let answer = rig.call_raw("grep", &arguments).await;
        assert!(answer.failed().len() < 1000, "{answer:?}");
    }
}

#[tokio::test]
async fn a_number_in_a_string_and_a_float_without_a_fraction_are_the_number() {
    let rig = Rig::new();
    rig.write("a", "x\nx\n");
    for value in [json!("1"), json!(1.0)] {
        let arguments = json!({"pattern": "x", "max_matches": value});
        let answer = rig.call("grep", arguments).await;
        assert!(
            answer.completed().starts_with("a:1:x\n\n[matches 1–1;"),
            "{answer:?}"
        );
    }
    for nothing in [Value::Null, json!("null")] {
        let arguments = json!({"pattern": "x", "max_matches": nothing});
        assert_eq!(
            rig.call("grep", arguments).await.completed(),
            "a:1:x\na:2:x\n"
        );
    }
}

#[tokio::test]
async fn huge_offsets_and_limits_are_no_reason_to_fail_or_to_wait() {
    let rig = Rig::new();
    rig.write("a", "x\nx\n");
    let most = u64::MAX;
    let read = rig
        .call("file_read", json!({"path": "a", "limit": most}))
        .await;
    assert_eq!(read.completed(), "x\nx\n");
    let read = rig
        .call(
            "file_read",
            json!({"path": "a", "offset": most, "limit": most}),
        )
        .await;
    assert!(read.failed().contains("has 2 lines; offset"), "{read:?}");
    let searched = rig
        .call("grep", json!({"pattern": "x", "offset": most}))
        .await;
    assert!(
        searched.completed().contains("is past the end"),
        "{searched:?}"
    );
    let listed = rig.call("list", json!({"offset": most})).await;
    assert!(listed.failed().contains("is past the end"), "{listed:?}");
}

#[tokio::test]
async fn arguments_of_more_than_four_mebibytes_are_refused_unread() {
    let rig = Rig::new();
    for tool in ["file_read", "grep", "glob", "list"] {
        let arguments = format!("{{\"path\": \"{}\"}}", "x".repeat(4 * 1024 * 1024));
        let answer = rig.call_raw(tool, &arguments).await;
        let text = answer.failed();
        assert!(
            text.contains(&format!(
                "Arguments of {tool} are too long: {} bytes (limit 4194304).",
                arguments.len()
            )),
            "{text}"
        );
    }
}

#[tokio::test]
async fn arguments_that_nest_deeper_than_128_are_no_arguments() {
    let rig = Rig::new();
    for depth in [200, 100_000, 2_000_000] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let arguments = format!("{{\"path\": {nested}}}");
        let answer = rig.call_raw("list", &arguments).await;
        assert!(answer.failed().len() < 2000, "{answer:?}");
    }
}
