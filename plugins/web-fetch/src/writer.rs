//! Writes blocks and inline text, as Markdown or as plain text. It is told where elements begin and end and never looks back further
//! than a fixed number of open ones, so that its work grows with the text and with nothing else. Pure.

mod table;

use table::Table;

/// Open quotes, lists and items that count. What is open beyond them is text of the innermost.
const DEEPEST: usize = 32;
/// Open marks that count.
const MOST_MARKS: usize = 16;
/// What is written of a page, in bytes: addresses that are made absolute could make it many times what was sent.
const MOST_WRITTEN: usize = 4 * 1024 * 1024;
/// The class of a block of code is looked at where no more than this stands before it.
const BEFORE_LANGUAGE: usize = 64;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// With the marks of Markdown.
    Markdown,
    /// The words alone.
    Text,
}

/// What indents the blocks that it holds.
#[derive(Debug)]
pub(crate) enum Container {
    /// A quotation.
    Quote,
    /// A list; numbered from `next` on where there is one.
    List {
        /// The number of the next item.
        next: Option<u64>,
    },
    /// An item of a list. Made by [`Writer::open_item`].
    Item {
        /// What stands before its first line.
        marker: String,
        /// True once that has been written.
        is_begun: bool,
    },
}

/// What is put around words.
#[derive(Debug, PartialEq)]
pub(crate) enum Mark {
    Strong,
    Emphasis,
    Strike,
    Code,
    /// A link to an address.
    Link(String),
}

impl Mark {
    fn is_like(&self, other: &Mark) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    fn opening(&self) -> &'static str {
        match self {
            Mark::Strong => "**",
            Mark::Emphasis => "*",
            Mark::Strike => "~~",
            Mark::Code => "",
            Mark::Link(_) => "[",
        }
    }

    fn closing(&self) -> String {
        match self {
            Mark::Link(target) => format!("]({target})"),
            other => other.opening().to_owned(),
        }
    }
}

/// A mark, and whether its beginning has been written, which happens with the first word in it.
#[derive(Debug)]
struct Open {
    mark: Mark,
    is_written: bool,
}

/// A block of code that is being gathered.
#[derive(Debug, Default)]
struct CodeBlock {
    language: String,
    text: String,
}

#[derive(Debug)]
pub(crate) struct Writer {
    form: Form,
    out: String,
    written: usize,
    /// Line breaks that are due before the next word, and a space.
    breaks: usize,
    space: bool,
    /// What stands before the next word of a heading.
    heading: Option<&'static str>,
    in_heading: bool,
    containers: Vec<Container>,
    more_containers: usize,
    marks: Vec<Open>,
    more_marks: usize,
    /// The words of a span of code, and whether a space is due in it.
    code: Option<(String, bool)>,
    code_block: Option<CodeBlock>,
    table: Option<Table>,
}

impl Writer {
    pub(crate) fn new(form: Form) -> Writer {
        Writer {
            form,
            out: String::new(),
            written: 0,
            breaks: 0,
            space: false,
            heading: None,
            in_heading: false,
            containers: Vec::new(),
            more_containers: 0,
            marks: Vec::new(),
            more_marks: 0,
            code: None,
            code_block: None,
            table: None,
        }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Adds text, its white space collapsed except in a block of code.
    pub(crate) fn text(&mut self, text: &str) {
        if let Some(block) = &mut self.code_block {
            block.text.push_str(text);
            return;
        }
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_space = |character: char| character.is_whitespace() || character == '\u{a0}';
            let end = match is_space(first) {
                true => rest.find(|character| !is_space(character)),
                false => rest.find(is_space),
            };
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            match (&mut self.code, is_space(first)) {
                (Some((_, space)), true) => *space = true,
                (Some((words, space)), false) => {
                    if *space && !words.is_empty() {
                        words.push(' ');
                    }
                    *space = false;
                    words.push_str(run);
                }
                (None, true) => self.space = true,
                (None, false) => self.word(run),
            }
            rest = after;
        }
    }

    /// Ends what is being written; the next word comes after at least so many line breaks.
    pub(crate) fn block(&mut self, breaks: usize) {
        self.interrupt_marks();
        if self.in_cell() {
            self.space = true;
            return;
        }
        self.space = false;
        let at_start_of_item = matches!(
            self.containers.last(),
            Some(Container::Item {
                is_begun: false,
                ..
            })
        );
        if !at_start_of_item {
            self.breaks = self.breaks.max(breaks);
        }
    }

    pub(crate) fn line_break(&mut self) {
        if let Some(block) = &mut self.code_block {
            block.text.push('\n');
        } else if self.in_cell() || self.in_heading || self.code.is_some() {
            self.text(" ");
        } else {
            self.breaks = self.breaks.max(1);
        }
    }

    pub(crate) fn rule(&mut self) {
        self.block(2);
        if self.form == Form::Markdown && !self.in_cell() && self.code_block.is_none() {
            self.word("---");
        }
        self.block(2);
    }

    pub(crate) fn open_heading(&mut self, level: usize) {
        const MARKS: [&str; 6] = ["# ", "## ", "### ", "#### ", "##### ", "###### "];
        self.block(2);
        self.in_heading = true;
        let has_mark = self.form == Form::Markdown && !self.in_cell();
        self.heading = has_mark.then(|| MARKS[(level - 1).min(5)]);
    }

    pub(crate) fn close_heading(&mut self) {
        self.block(2);
        self.in_heading = false;
        self.heading = None;
    }

    pub(crate) fn image(&mut self, alternative: &str, source: Option<&str>) {
        if self.code_block.is_some() || self.code.is_some() {
            return;
        }
        let words: Vec<&str> = alternative.split_whitespace().collect();
        let words = words.join(" ").replace(['[', ']'], "");
        match (self.form, source) {
            (Form::Markdown, Some(source)) => self.word(&format!("![{words}]({source})")),
            (Form::Text, _) if !words.is_empty() => self.word(&format!("[image: {words}]")),
            _ => {}
        }
    }

    pub(crate) fn open(&mut self, mark: Mark) {
        if self.code_block.is_some() || self.code.is_some() || self.form == Form::Text {
            return;
        }
        if self.marks.len() == MOST_MARKS {
            self.more_marks += 1;
            return;
        }
        if mark == Mark::Code {
            self.code = Some((String::new(), false));
        }
        self.marks.push(Open {
            mark,
            is_written: false,
        });
    }

    /// Ends the innermost mark of that kind, and those inside it.
    pub(crate) fn close(&mut self, mark: &Mark) {
        if self.code_block.is_some() {
            return;
        }
        if self.more_marks > 0 && self.code.is_none() {
            self.more_marks -= 1;
            return;
        }
        let Some(place) = self.marks.iter().rposition(|open| open.mark.is_like(mark)) else {
            return;
        };
        self.end_code();
        while self.marks.len() > place {
            if let Some(open) = self.marks.pop()
                && open.is_written
            {
                self.push(&open.mark.closing());
            }
        }
    }

    pub(crate) fn open_container(&mut self, container: Container) {
        let inside_item = matches!(self.containers.last(), Some(Container::Item { .. }));
        let is_list = matches!(container, Container::List { .. });
        self.block(if is_list && inside_item { 1 } else { 2 });
        if self.containers.len() == DEEPEST {
            self.more_containers += 1;
        } else {
            self.containers.push(container);
        }
    }

    /// Ends the innermost container of that kind, and those inside it.
    pub(crate) fn close_container(&mut self, is_it: impl Fn(&Container) -> bool) {
        self.interrupt_marks();
        if self.more_containers > 0 {
            self.more_containers -= 1;
        } else if let Some(place) = self.containers.iter().rposition(is_it) {
            self.containers.truncate(place);
        }
        let inside_item = matches!(self.containers.last(), Some(Container::Item { .. }));
        self.block(if inside_item { 1 } else { 2 });
    }

    pub(crate) fn open_item(&mut self) {
        self.interrupt_marks();
        let list = self
            .containers
            .iter()
            .rposition(|container| !matches!(container, Container::Item { .. }));
        if self.more_containers == 0 {
            // An item ends the one before it, whether that says so or not.
            self.containers.truncate(list.map_or(0, |list| list + 1));
        }
        self.block(1);
        if self.more_containers > 0 || self.containers.len() == DEEPEST {
            return;
        }
        let marker = match self.containers.last_mut() {
            Some(Container::List { next: Some(number) }) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "- ".to_owned(),
        };
        self.containers.push(Container::Item {
            marker,
            is_begun: false,
        });
    }

    pub(crate) fn close_item(&mut self) {
        self.interrupt_marks();
        if self.more_containers == 0
            && let Some(Container::Item { .. }) = self.containers.last()
        {
            self.containers.pop();
        }
        self.block(1);
    }

    pub(crate) fn open_code_block(&mut self) {
        if self.code_block.is_some() {
            return;
        }
        self.abandon_table();
        self.block(2);
        self.code_block = Some(CodeBlock::default());
    }

    /// Takes the language of a block of code from a class, such as `language-rust`.
    pub(crate) fn language(&mut self, class: &str) {
        let named = class.split_whitespace().find_map(|class| {
            class
                .strip_prefix("language-")
                .or_else(|| class.strip_prefix("lang-"))
        });
        if let (Some(block), Some(language)) = (&mut self.code_block, named)
            && block.text.len() <= BEFORE_LANGUAGE
            && block.text.trim().is_empty()
        {
            let is_plain =
                |character: char| character.is_ascii_alphanumeric() || "+#-_.".contains(character);
            block.language = language.chars().filter(|one| is_plain(*one)).collect();
        }
    }

    pub(crate) fn close_code_block(&mut self) {
        let Some(CodeBlock { language, text }) = self.code_block.take() else {
            return;
        };
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        if text.is_empty() {
            return;
        }
        let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
        let is_markdown = self.form == Form::Markdown;
        if is_markdown {
            self.line(&format!("{fence}{language}"));
        }
        for line in text.lines() {
            self.line(line.trim_end());
        }
        if is_markdown {
            self.line(&fence);
        }
        self.block(2);
    }

    /// Everything that was written.
    pub(crate) fn finish(mut self) -> String {
        self.close_code_block();
        self.abandon_table();
        self.block(1);
        let end = self.out.trim_end().len();
        self.out.truncate(end);
        self.out
    }

    /// A line as it is.
    fn line(&mut self, line: &str) {
        if self.written > MOST_WRITTEN {
            return;
        }
        self.written += line.len();
        self.breaks = self.breaks.max(1);
        self.begin_line();
        self.out.push_str(line);
    }

    /// A word, after what is due before it.
    fn word(&mut self, word: &str) {
        if self.written > MOST_WRITTEN {
            return;
        }
        if let Some(cell) = self.table.as_mut().and_then(Table::cell) {
            if self.space && !cell.is_empty() {
                cell.push(' ');
            }
        } else if self.breaks > 0 || self.out.is_empty() {
            self.begin_line();
        } else if self.space {
            self.out.push(' ');
        }
        self.space = false;
        let mut opening = String::new();
        for open in self.marks.iter_mut().filter(|open| !open.is_written) {
            // What a span of code holds is written whole, when it ends.
            if open.mark != Mark::Code {
                open.is_written = true;
                opening.push_str(open.mark.opening());
            }
        }
        self.push(&opening);
        self.push(word);
    }

    fn push(&mut self, text: &str) {
        self.written += text.len();
        match self.table.as_mut().and_then(Table::cell) {
            Some(cell) => cell.push_str(text),
            None => self.out.push_str(text),
        }
    }

    fn begin_line(&mut self) {
        let end = self.out.trim_end_matches(' ').len();
        self.out.truncate(end);
        let before = self.out.len();
        let breaks = if self.out.is_empty() { 0 } else { self.breaks };
        let is_markdown = self.form == Form::Markdown;
        for written in 1..=breaks {
            self.out.push('\n');
            if written < breaks && is_markdown {
                let quotes = self
                    .containers
                    .iter()
                    .filter(|one| matches!(one, Container::Quote));
                self.out.push_str(&vec![">"; quotes.count()].join(" "));
            }
        }
        for container in &mut self.containers {
            match container {
                Container::Quote if is_markdown => self.out.push_str("> "),
                Container::Quote => self.out.push_str("  "),
                Container::List { .. } => {}
                Container::Item { marker, is_begun } => match std::mem::replace(is_begun, true) {
                    true => self.out.extend(std::iter::repeat_n(' ', marker.len())),
                    false => self.out.push_str(marker),
                },
            }
        }
        self.out.push_str(self.heading.take().unwrap_or_default());
        self.written += self.out.len() - before;
        self.breaks = 0;
        self.space = false;
    }

    /// Ends a span of code: its words become one.
    fn end_code(&mut self) {
        let Some((words, _)) = self.code.take() else {
            return;
        };
        if words.is_empty() {
            return;
        }
        let fence = "`".repeat(longest_run(&words, '`') + 1);
        let pad = if words.starts_with('`') || words.ends_with('`') {
            " "
        } else {
            ""
        };
        self.word(&format!("{fence}{pad}{words}{pad}{fence}"));
    }

    /// Marks do not reach over the end of a block: they end here and begin again with the next word. A link is not begun again.
    fn interrupt_marks(&mut self) {
        let had_code = self.code.is_some();
        self.end_code();
        let (mut closing, mut is_linked) = (String::new(), false);
        for open in self.marks.iter_mut().rev() {
            if std::mem::take(&mut open.is_written) {
                closing.push_str(&open.mark.closing());
                is_linked |= open.mark.is_like(&Mark::Link(String::new()));
            }
        }
        self.push(&closing);
        if is_linked {
            let is_link = |open: &Open| open.mark.is_like(&Mark::Link(String::new()));
            self.marks.retain(|open| !is_link(open));
        }
        if had_code {
            self.code = Some((String::new(), false));
        }
    }
}

/// The longest run of one character.
fn longest_run(text: &str, character: char) -> usize {
    let runs = text.split(|other| other != character);
    runs.map(str::len).max().unwrap_or(0)
}
