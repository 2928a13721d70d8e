use super::*;
use proptest::prelude::*;

fn once(text: &str, old: &str, new: &str) -> (String, Step) {
    let replaced = replace(text, old, new, false).unwrap();
    assert_eq!(replaced.count, 1);
    (replaced.text, replaced.step)
}

#[test]
fn what_is_there_exactly_is_replaced_there() {
    assert_eq!(once("abc", "b", "x"), ("axc".into(), Step::Exact));
    let all = replace("b b b", "b", "x", true).unwrap();
    assert_eq!((all.text.as_str(), all.count), ("x x x", 3));
    assert_eq!(replace("aaa", "aa", "b", true).unwrap().text, "ba");
}

#[test]
fn several_places_are_told_by_their_lines_and_nothing_is_guessed() {
    let fault = replace("b\na\nb\n", "b", "x", false).unwrap_err();
    assert_eq!(fault, Fault::Ambiguous(vec![1, 3]));
    // Nor by a step that allows more.
    let fault = replace("  a\n\n    a\n", "a\n", "x\n", false).unwrap_err();
    assert_eq!(fault, Fault::Ambiguous(vec![1, 3]));
}

#[test]
fn a_text_that_is_everywhere_in_the_longest_file_is_counted_at_once() {
    let text = "a\n".repeat(2_600_000);
    let begin = std::time::Instant::now();
    let Err(Fault::Ambiguous(lines)) = replace(&text, "a", "b", false) else {
        panic!("in several places");
    };
    assert_eq!((lines.len(), lines[2_599_999]), (2_600_000, 2_600_000));
    assert!(begin.elapsed().as_secs() < 60);
}

#[test]
fn line_endings_may_differ_and_those_of_the_file_stay() {
    let text = "one\r\ntwo\r\nthree\r\n";
    assert_eq!(
        once(text, "one\ntwo", "1\n2\n2b"),
        ("1\r\n2\r\n2b\r\nthree\r\n".into(), Step::LineEndings)
    );
    assert_eq!(once(text, "two", "2\n2b").0, "one\r\n2\r\n2b\r\nthree\r\n");
    assert_eq!(
        once("a\nb\n", "a\r\nb", "x\r\ny"),
        ("x\ny\n".into(), Step::LineEndings)
    );
}

#[test]
fn space_at_the_ends_of_lines_may_differ() {
    assert_eq!(
        once("a  \nb\t\nc", "a\nb", "x\ny"),
        ("x\ny\nc".into(), Step::TrailingSpace)
    );
    assert_eq!(once("a\nb \n", "b  \n", "x\n").0, "a\nx\n");
}

#[test]
fn indentation_may_differ_by_the_same_in_every_line() {
    let text = "if x {\n        a();\n\n        if b {\n            c();\n        }\n}\n";
    let old = "    a();\n\n    if b {\n        c();\n    }\n";
    let new = "    a();\n    d {\n        e();\n    }\n";
    assert_eq!(
        once(text, old, new),
        (
            "if x {\n        a();\n        d {\n            e();\n        }\n}\n".into(),
            Step::Indentation
        )
    );
    assert_eq!(
        once("\ta\n\tb\n", "\t\t\ta\n\t\t\tb\n", "\t\t\tx\n"),
        ("\tx\n".into(), Step::Indentation)
    );
    assert!(replace("  a\n    b\n", "a\nb\n", "x", false).is_err());
}

#[test]
fn typographic_punctuation_may_differ() {
    assert_eq!(
        once("say “hi” — é\n", "\"hi\" - é", "bye"),
        ("say bye\n".into(), Step::Punctuation)
    );
    assert_eq!(once("a 'b'", "‘b’", "c"), ("a c".into(), Step::Punctuation));
}

#[test]
fn what_is_nowhere_names_where_it_nearly_is() {
    let fault = replace(
        "fn a() {}\nfn total(x: u8) {}\n",
        "fn total(y: u8) {}",
        "",
        false,
    );
    let Err(Fault::NotFound(Some((line, similarity)))) = fault else {
        panic!("{fault:?}");
    };
    assert_eq!(line, 2);
    assert!(similarity > 0.6);
    assert_eq!(replace("", "a", "b", false), Err(Fault::NotFound(None)));
}

#[test]
fn all_places_of_a_looser_step_are_replaced_where_they_are_the_same_and_none_where_not() {
    let all = replace("a \nx\na \n", "a\n", "b\n", true).unwrap();
    assert_eq!(
        (all.text.as_str(), all.count, all.step),
        ("b\nx\nb\n", 2, Step::TrailingSpace)
    );
    let fault = replace("a \nx\na\t\n", "a\n", "b\n", true).unwrap_err();
    assert_eq!(fault, Fault::Unlike(vec![1, 3]));
    let fault = replace("  a();\n    a();\n", "\ta();\n", "b();\n", true).unwrap_err();
    assert_eq!(fault, Fault::NotFound(Some((1, 1.0))));
    let fault = replace("  a();\n    a();\n", "a();\n", "b();\n", true);
    assert_eq!(fault.unwrap().step, Step::Exact);
}

#[test]
fn a_fault_says_how_often_where_and_what_to_do() {
    let told = |fault: Fault| fault.told("f", "pass `replace_all`");
    assert_eq!(
        told(Fault::Ambiguous(vec![1, 3, 4])),
        "`old_string` matches 3 times in f; pass `replace_all` (lines 1, 3, 4)"
    );
    assert!(told(Fault::Ambiguous((1..=21).collect())).ends_with(", 19, 20, …)"));
    assert!(told(Fault::NotFound(None)).starts_with("`old_string` not found in f; "));
    assert!(
        told(Fault::NotFound(Some((7, 0.8))))
            .contains("most similar text starts at line 7 (80 % alike)")
    );
    assert!(
        told(Fault::Unlike(vec![1, 3]))
            .contains("2 places are like it, but not like each other (lines 1, 3)")
    );
}

proptest! {
    #[test]
    fn outside_the_place_not_one_byte_changes(
        before in "(?s)[a-c \\t\\r\\né]{0,20}", old in "[x-z“]{1,8}", after in "(?s)[a-c \\t\\r\\né]{0,20}", new in "(?s)[a-z\\n]{0,8}",
    ) {
        let text = format!("{before}{old}{after}");
        if let Ok(replaced) = replace(&text, &old, &new, false)
            && replaced.step == Step::Exact
        {
            prop_assert!(replaced.text.starts_with(&before));
            prop_assert!(replaced.text.ends_with(&after));
        }
    }

    #[test]
    fn no_text_makes_it_panic(
        text in "(?s)[ab \\t\\r\\n“”‘é]{0,40}", old in "(?s)[ab \\t\\r\\n\"'é]{1,10}", new in "(?s).{0,5}", all: bool,
    ) {
        let _ = replace(&text, &old, &new, all);
    }
}
