//! The literals that every match of a pattern must hold one of, so that the host can pass over files without any. Pure.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind};

/// More literals than this are searched no faster than the pattern itself.
const MOST: usize = 64;
/// A literal of one byte passes over nearly no file.
const SHORTEST: usize = 2;
/// Longer ones are cut: what is required is required up to there.
const LONGEST: usize = 32;

/// So many parts of a pattern are looked at, and so many that follow each: what is looked for stands near the start, or a pattern is a machine's.
const PARTS: usize = 256;
const FOLLOWING: usize = 64;

/// One of these is in everything that matches; empty where no such set is known.
pub(crate) fn required(pattern: &str, case_insensitive: bool, multi_line: bool) -> Vec<Vec<u8>> {
    let parsed = ParserBuilder::new()
        .utf8(false)
        .multi_line(true)
        .dot_matches_new_line(multi_line)
        .case_insensitive(case_insensitive)
        .build()
        .parse(pattern);
    let Ok(parsed) = parsed else {
        return Vec::new();
    };
    let mut best = Vec::new();
    consider(&parsed, &mut best, &mut { PARTS });
    best
}

/// Looks for a better set at the start of `hir`, and from each of its parts on, while parts are `left` to look at.
fn consider(hir: &Hir, best: &mut Vec<Vec<u8>>, left: &mut usize) {
    keep_better(literals(hir), best);
    match hir.kind() {
        HirKind::Concat(parts) => {
            for (first, part) in parts.iter().enumerate() {
                if *left == 0 {
                    return;
                }
                *left -= 1;
                if first > 0 {
                    let following = &parts[first..parts.len().min(first + FOLLOWING)];
                    keep_better(literals(&Hir::concat(following.to_vec())), best);
                }
                consider(part, best, left);
            }
        }
        HirKind::Capture(capture) => consider(&capture.sub, best, left),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            consider(&repetition.sub, best, left);
        }
        _ => {}
    }
}

fn literals(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_literal_len(LONGEST)
        .limit_total(4 * MOST);
    let mut set: Seq = extractor.extract(hir);
    set.minimize_by_preference();
    let literals = set.literals()?;
    let is_useful = !literals.is_empty()
        && literals.len() <= MOST
        && literals.iter().all(|literal| literal.len() >= SHORTEST);
    is_useful.then(|| {
        literals
            .iter()
            .map(|literal| literal.as_bytes().to_vec())
            .collect()
    })
}

/// The longer the shortest literal, the fewer files hold one; of equal ones, the smaller set.
fn keep_better(found: Option<Vec<Vec<u8>>>, best: &mut Vec<Vec<u8>>) {
    let worth = |set: &[Vec<u8>]| {
        let shortest = set.iter().map(Vec::len).min().unwrap_or(0).min(8);
        (shortest, std::cmp::Reverse(set.len()))
    };
    if let Some(found) = found
        && (best.is_empty() || worth(&found) > worth(best))
    {
        *best = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(pattern: &str) -> Vec<String> {
        let mut found: Vec<_> = required(pattern, false, false)
            .into_iter()
            .map(|literal| String::from_utf8(literal).unwrap())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn the_longest_required_part_is_found_wherever_it_stands() {
        assert_eq!(texts("PoolingConfig"), ["PoolingConfig"]);
        assert_eq!(texts(r"[A-Z][a-z]+Error\b"), ["Error"]);
        assert_eq!(texts(r"unsafe impl|extern .C."), ["extern ", "unsafe impl"]);
        assert_eq!(
            texts(r"^\s*pub (async )?fn \w+\("),
            ["pub async fn ", "pub fn "]
        );
        assert_eq!(texts(r"(\w+)=(value)"), ["=value"]);
    }

    #[test]
    fn where_nothing_is_required_nothing_is_said() {
        for pattern in [
            "",
            "a",
            r"\p{Greek}",
            "a*",
            "(abc)?",
            "x|.*",
            "[",
            r"(?:foo|)",
        ] {
            assert!(required(pattern, false, false).is_empty(), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_of_very_many_parts_costs_no_more_than_one_of_some() {
        assert!(required(&"x.".repeat(1 << 16), false, false).is_empty());
        let late = format!("{}needle", "x.".repeat(100));
        assert_eq!(texts(&late), ["needle"]);
    }

    #[test]
    fn without_case_every_form_is_named() {
        let found = required("ok", true, false);
        assert_eq!(found.len(), 6, "{found:?}"); // K has a third form, the Kelvin sign.
    }

    proptest! {
        #[test]
        fn whatever_matches_holds_one_of_the_literals(
            pattern in "([ab]|[ab]{2}|\\(ab\\|b\\)|a\\+|b\\?|\\[ab\\]|\\.|\\(aba\\)){1,6}",
            text in "[abc\\n]{0,30}",
            case_insensitive: bool,
        ) {
            let compiled = regex::RegexBuilder::new(&pattern)
                .multi_line(true)
                .case_insensitive(case_insensitive)
                .build()
                .unwrap();
            let literals = required(&pattern, case_insensitive, false);
            if compiled.is_match(&text) && !literals.is_empty() {
                let held = |literal: &Vec<u8>| {
                    text.as_bytes().windows(literal.len()).any(|window| window == literal)
                };
                prop_assert!(literals.iter().any(held), "{:?} of {} in {:?}", literals, pattern, text);
            }
        }
    }
}
