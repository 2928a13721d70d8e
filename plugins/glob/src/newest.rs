//! The newest of many paths, in bounded memory. Pure.

use floe_tool::output::push_on_one_line;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keeps the newest paths; of those of one age, the first by name.
#[derive(Debug)]
pub(crate) struct Newest {
    most: usize,
    total: u64,
    /// The one to give up first is on top.
    kept: BinaryHeap<(Reverse<i64>, String)>,
}

impl Newest {
    pub(crate) fn new(most: usize) -> Newest {
        Newest {
            most,
            total: 0,
            kept: BinaryHeap::new(),
        }
    }

    pub(crate) fn add(&mut self, modified_ms: i64, path: String) {
        self.total += 1;
        self.kept.push((Reverse(modified_ms), path));
        if self.kept.len() > self.most {
            self.kept.pop();
        }
    }

    /// The paths, a line each, and the note where some are not among them.
    pub(crate) fn render(self) -> (String, Option<String>) {
        let shown = self.kept.len();
        let mut text = String::new();
        for (_, path) in self.kept.into_sorted_vec() {
            push_on_one_line(&path, &mut text);
            text.push('\n');
        }
        let note = (self.total > shown as u64).then(|| {
            format!(
                "[the {shown} newest of {}; narrow the pattern or raise max_results to see others]",
                self.total
            )
        });
        (text, note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(most: usize, paths: &[(i64, &str)]) -> (String, Option<String>) {
        let mut newest = Newest::new(most);
        for (modified_ms, path) in paths {
            newest.add(*modified_ms, (*path).to_owned());
        }
        newest.render()
    }

    #[test]
    fn the_newest_come_first_and_those_of_one_age_by_name() {
        let paths = [(1, "old"), (3, "b"), (3, "a"), (2, "mid")];
        assert_eq!(rendered(9, &paths), ("a\nb\nmid\nold\n".into(), None));
    }

    #[test]
    fn what_is_left_out_is_counted_exactly() {
        let paths = [(1, "old"), (3, "b"), (3, "a"), (2, "mid")];
        assert_eq!(rendered(4, &paths).1, None);
        let (text, note) = rendered(2, &paths);
        assert_eq!(text, "a\nb\n");
        assert_eq!(
            note.unwrap(),
            "[the 2 newest of 4; narrow the pattern or raise max_results to see others]"
        );
    }

    #[test]
    fn a_name_cannot_break_its_line() {
        assert_eq!(rendered(1, &[(1, "a\nb")]).0, "a\\nb\n");
    }

    #[test]
    fn nothing_found_is_nothing() {
        assert_eq!(rendered(1, &[]), (String::new(), None));
    }
}
