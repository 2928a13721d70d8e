//! HTML becomes Markdown or plain text in one pass over its tokens. No tree is built and nothing recurses, so that a page that nests
//! without end costs no more than one of the same length that does not. Pure.
//!
//! What a reader does not see goes: scripts, styles, templates, drawings, frames. Links and images become absolute; lists, quotes, code
//! and tables stay what they are.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

use crate::writer::{Container, Form, Mark, Writer};

/// Elements that are left out with all that they hold.
const UNSEEN: [&[u8]; 13] = [
    b"canvas",
    b"datalist",
    b"iframe",
    b"math",
    b"noembed",
    b"noframes",
    b"noscript",
    b"object",
    b"script",
    b"select",
    b"style",
    b"svg",
    b"template",
];

/// Elements that are set off by an empty line.
const PARAGRAPHS: [&[u8]; 18] = [
    b"address",
    b"article",
    b"aside",
    b"details",
    b"dl",
    b"fieldset",
    b"figure",
    b"footer",
    b"form",
    b"header",
    b"hgroup",
    b"hr",
    b"main",
    b"nav",
    b"p",
    b"search",
    b"section",
    b"textarea",
];

/// Elements that begin and end a line.
const LINES: [&[u8]; 9] = [
    b"body",
    b"caption",
    b"dd",
    b"div",
    b"dt",
    b"figcaption",
    b"legend",
    b"option",
    b"summary",
];

/// Longer addresses are left out, in bytes.
const LONGEST_ADDRESS: usize = 2048;

/// What a page says, in this form; `base` is the address of the page.
pub(crate) fn convert(html: &str, base: &str, form: Form) -> String {
    let mut emitter = DefaultEmitter::default();
    // Without this the text of a script would be taken for elements.
    emitter.naively_switch_states(true);
    let mut page = Page {
        writer: Writer::new(form),
        base: base.to_owned(),
        has_base: false,
        unseen: None,
        title: Title::Awaited,
    };
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => page.start(&tag),
            Token::EndTag(tag) => page.end(&tag.name),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text.value)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.finish()
}

/// Whether a body can be HTML at all: it holds the beginning of a tag.
pub(crate) fn has_tags(text: &str) -> bool {
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        let opens = |next: &u8| next.is_ascii_alphabetic() || matches!(next, b'!' | b'/');
        if byte == b'<' && bytes.peek().is_some_and(opens) {
            return true;
        }
    }
    false
}

struct Page {
    writer: Writer,
    /// What links are relative to.
    base: String,
    has_base: bool,
    /// The element that is being left out, and how often it is open.
    unseen: Option<(Vec<u8>, usize)>,
    title: Title,
}

enum Title {
    Awaited,
    Open(String),
    Known(String),
}

impl Page {
    fn start(&mut self, tag: &StartTag<()>) {
        let name: &[u8] = &tag.name;
        if let Some((unseen, depth)) = &mut self.unseen {
            *depth += usize::from(unseen == name);
            return;
        }
        if UNSEEN.contains(&name) {
            if !tag.self_closing || !matches!(name, b"svg" | b"math") {
                self.unseen = Some((name.to_vec(), 1));
            }
            return;
        }
        let attribute = |name: &[u8]| {
            let value = tag.attributes.get(name)?;
            Some(String::from_utf8_lossy(&value.value).into_owned())
        };
        let writer = &mut self.writer;
        match name {
            b"title" => {
                if matches!(self.title, Title::Awaited) {
                    self.title = Title::Open(String::new());
                }
            }
            b"base" if !self.has_base => {
                if let Some(base) = attribute(b"href").and_then(|href| resolved(&self.base, &href))
                {
                    self.base = base;
                    self.has_base = true;
                }
            }
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                writer.open_heading(usize::from(name[1] - b'0'));
            }
            b"br" => writer.line_break(),
            b"hr" => writer.rule(),
            b"b" | b"strong" => writer.open(Mark::Strong),
            b"i" | b"em" => writer.open(Mark::Emphasis),
            b"s" | b"del" | b"strike" => writer.open(Mark::Strike),
            b"code" | b"kbd" | b"samp" | b"tt" => {
                if let Some(class) = attribute(b"class") {
                    writer.language(&class);
                }
                writer.open(Mark::Code);
            }
            b"a" => {
                // An anchor does not nest.
                writer.close(&Mark::Link(String::new()));
                let target = attribute(b"href").and_then(|href| resolved(&self.base, &href));
                if let Some(target) = target {
                    writer.open(Mark::Link(escaped(&target)));
                }
            }
            b"img" => {
                let source = attribute(b"src").and_then(|source| resolved(&self.base, &source));
                let alternative = attribute(b"alt").unwrap_or_default();
                writer.image(&alternative, source.as_deref().map(escaped).as_deref());
            }
            b"pre" | b"xmp" | b"listing" => {
                writer.open_code_block();
                if let Some(class) = attribute(b"class") {
                    writer.language(&class);
                }
            }
            b"blockquote" => writer.open_container(Container::Quote),
            b"ul" | b"menu" => writer.open_container(Container::List { next: None }),
            b"ol" => {
                let first = attribute(b"start").and_then(|start| start.trim().parse().ok());
                writer.open_container(Container::List {
                    next: Some(first.unwrap_or(1)),
                });
            }
            b"li" => writer.open_item(),
            b"table" => writer.open_table(),
            b"tr" => writer.open_row(),
            b"td" | b"th" => writer.open_cell(),
            _ => self.boundary(name),
        }
    }

    fn end(&mut self, name: &[u8]) {
        if let Some((unseen, depth)) = &mut self.unseen {
            *depth -= usize::from(unseen == name);
            if *depth == 0 {
                self.unseen = None;
            }
            return;
        }
        let writer = &mut self.writer;
        match name {
            b"title" => {
                if let Title::Open(title) = &mut self.title {
                    self.title = Title::Known(std::mem::take(title));
                }
            }
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => writer.close_heading(),
            b"b" | b"strong" => writer.close(&Mark::Strong),
            b"i" | b"em" => writer.close(&Mark::Emphasis),
            b"s" | b"del" | b"strike" => writer.close(&Mark::Strike),
            b"code" | b"kbd" | b"samp" | b"tt" => writer.close(&Mark::Code),
            b"a" => writer.close(&Mark::Link(String::new())),
            b"pre" | b"xmp" | b"listing" => writer.close_code_block(),
            b"blockquote" => {
                writer.close_container(|container| matches!(container, Container::Quote))
            }
            b"ul" | b"ol" | b"menu" => {
                writer.close_container(|container| matches!(container, Container::List { .. }));
            }
            b"li" => writer.close_item(),
            b"table" => writer.close_table(),
            b"tr" | b"td" | b"th" => writer.close_cell(),
            b"br" => writer.line_break(),
            _ => self.boundary(name),
        }
    }

    /// An element that means nothing but where text begins and ends.
    fn boundary(&mut self, name: &[u8]) {
        if PARAGRAPHS.contains(&name) {
            self.writer.block(2);
        } else if LINES.contains(&name) {
            self.writer.block(1);
        }
    }

    fn text(&mut self, text: &str) {
        if self.unseen.is_some() {
            return;
        }
        match &mut self.title {
            Title::Open(title) => title.push_str(text),
            _ => self.writer.text(text),
        }
    }

    fn finish(self) -> String {
        let form = self.writer.form();
        let body = self.writer.finish();
        let title = match &self.title {
            Title::Open(title) | Title::Known(title) => title.as_str(),
            Title::Awaited => "",
        };
        let title: Vec<&str> = title.split_whitespace().collect();
        let title = title.join(" ");
        // The first heading often says the same.
        let first = body.lines().next().unwrap_or_default();
        if title.is_empty() || first.trim_start_matches('#').trim() == title {
            return body;
        }
        match form {
            Form::Markdown => format!("# {title}\n\n{body}"),
            Form::Text => format!("{title}\n\n{body}"),
        }
    }
}

/// Where a reference leads, where that is not longer than an address should be.
fn resolved(base: &str, reference: &str) -> Option<String> {
    if reference.len() > LONGEST_ADDRESS {
        return None;
    }
    floe_web::resolve(base, reference).filter(|address| address.len() <= LONGEST_ADDRESS)
}

/// An address without what would end a link in Markdown.
fn escaped(target: &str) -> String {
    let mut escaped = String::with_capacity(target.len());
    for character in target.chars() {
        match character {
            ' ' => escaped.push_str("%20"),
            '(' => escaped.push_str("%28"),
            ')' => escaped.push_str("%29"),
            '<' => escaped.push_str("%3C"),
            '>' => escaped.push_str("%3E"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
