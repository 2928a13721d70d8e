//! Where a text is most like one that was not found in it.

use crate::lines::lines;

/// Less alike than this is not worth telling (spec/coding-tools.md 1.6).
const ALIKE: f64 = 0.6;
/// So many places are looked at closely.
const CLOSE: usize = 20;
/// Lines are compared up to so many bytes.
const LONGEST: usize = 400;

/// The number of the line, from 1 on, where the most similar part starts, and how similar it is.
pub(crate) fn nearest(text: &str, wanted: &str) -> Option<(usize, f64)> {
    let (text, wanted) = (lines(text), lines(wanted));
    // A blank first line is like every other.
    let first = wanted
        .iter()
        .position(|line| !line.text.trim().is_empty())?;
    let mut starts: Vec<(usize, f64)> = text
        .iter()
        .enumerate()
        .skip(first)
        .map(|(index, line)| (index - first, alike(line.text, wanted[first].text)))
        .collect();
    starts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    starts
        .into_iter()
        .take(CLOSE)
        .map(|(start, _)| {
            let sum: f64 = wanted
                .iter()
                .enumerate()
                .map(|(index, line)| {
                    text.get(start + index)
                        .map_or(0.0, |other| alike(other.text, line.text))
                })
                .sum();
            (start + 1, sum / wanted.len() as f64)
        })
        .filter(|(_, similarity)| *similarity >= ALIKE)
        .max_by(|(line, one), (other_line, other)| one.total_cmp(other).then(other_line.cmp(line)))
}

fn alike(one: &str, other: &str) -> f64 {
    let cut = |text: &str| text.trim().chars().take(LONGEST).collect::<String>();
    strsim::sorensen_dice(&cut(one), &cut(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_place_is_told_and_nothing_where_none_is() {
        let text = "fn one() {}\n\nfn two(a: u32) -> u32 {\n    a + 1\n}\n";
        let (line, similarity) = nearest(text, "fn two(b: u32) -> u32 {\n    b + 1\n}").unwrap();
        assert_eq!(line, 3);
        assert!(similarity > 0.7 && similarity < 1.0, "{similarity}");
        assert_eq!(nearest(text, "completely different text here"), None);
        assert_eq!(nearest("", "a"), None);
        assert_eq!(nearest(text, "\n"), None);
    }
}
