//! Cuts a page of characters out of a text. Pure.

/// A part of a text, and where it lies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page<'a> {
    pub(crate) text: &'a str,
    pub(crate) first: usize,
    /// The character after the last one.
    pub(crate) end: usize,
    /// Characters of the whole text.
    pub(crate) total: usize,
}

impl Page<'_> {
    /// Where to go on, where there is more.
    pub(crate) fn next(&self) -> Option<usize> {
        (self.end < self.total).then_some(self.end)
    }

    /// What is told of it, where it is not the whole.
    pub(crate) fn note(&self) -> Option<String> {
        let Page {
            first, end, total, ..
        } = self;
        match self.next() {
            Some(next) => Some(format!(
                "[characters {first}–{end} of {total}; continue with offset {next}]"
            )),
            None if *first > 0 => Some(format!("[characters {first}–{end} of {total}]")),
            None => None,
        }
    }
}

/// At most `room` characters from `offset` on, ending at a line's end where one is near.
///
/// # Errors
/// A sentence for the model where the text ends before.
pub(crate) fn cut(text: &str, offset: usize, room: usize) -> Result<Page<'_>, String> {
    let total = text.chars().count();
    if offset >= total && offset > 0 {
        return Err(format!(
            "Offset {offset} is past the end: there are {total} characters."
        ));
    }
    let place = |characters: usize| {
        let found = text.char_indices().nth(characters);
        found.map_or(text.len(), |(place, _)| place)
    };
    let start = place(offset);
    let most = &text[start..place(offset.saturating_add(room))];
    let part = match most.rfind('\n') {
        // A page that gives up a tenth for a whole line is read more easily.
        Some(line) if start + most.len() < text.len() && line >= most.len() / 10 * 9 => {
            &most[..=line]
        }
        _ => most,
    };
    Ok(Page {
        text: part,
        first: offset,
        end: offset + part.chars().count(),
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_is_one_page_without_a_note() {
        let page = cut("naïve", 0, 5).unwrap();
        assert_eq!((page.text, page.note()), ("naïve", None));
        assert_eq!(cut("", 0, 5).unwrap().text, "");
    }

    #[test]
    fn pages_one_after_the_other_are_the_text_and_each_names_the_next() {
        let text = format!("{}\n", "é 漢字 words ".repeat(12)).repeat(40);
        let (mut offset, mut gathered) = (0, String::new());
        loop {
            let page = cut(&text, offset, 1000).unwrap();
            assert!(page.text.chars().count() <= 1000);
            gathered.push_str(page.text);
            match page.next() {
                Some(next) => {
                    assert!(page.text.ends_with('\n'));
                    let note = page.note().unwrap();
                    assert!(
                        note.ends_with(&format!("continue with offset {next}]")),
                        "{note}"
                    );
                    offset = next;
                }
                None => break,
            }
        }
        assert_eq!(gathered, text);
    }

    #[test]
    fn a_text_without_line_ends_is_cut_where_the_room_ends() {
        let page = cut("abcdef", 1, 2).unwrap();
        assert_eq!(page.text, "bc");
        assert_eq!(
            page.note().as_deref(),
            Some("[characters 1–3 of 6; continue with offset 3]")
        );
        assert_eq!(
            cut("abcdef", 4, 9).unwrap().note().as_deref(),
            Some("[characters 4–6 of 6]")
        );
    }

    #[test]
    fn an_offset_past_the_end_is_refused_with_the_number_of_characters() {
        assert_eq!(
            cut("abc", 3, 9),
            Err("Offset 3 is past the end: there are 3 characters.".into())
        );
        assert!(cut("abc", usize::MAX, 9).is_err());
    }
}
