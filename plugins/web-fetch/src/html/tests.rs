use proptest::prelude::*;

use super::*;

const BASE: &str = "https://a.example/docs/page.html";

fn markdown(html: &str) -> String {
    convert(html, BASE, Form::Markdown)
}

fn text(html: &str) -> String {
    convert(html, BASE, Form::Text)
}

#[test]
fn headings_paragraphs_and_marks_are_kept() {
    assert_eq!(
        markdown(
            "<h1>One\n two</h1><p>A <b>bold </b>and <i>slanted</i> &amp; <s>gone</s> word.</p><p>Next<br>line</p><hr>"
        ),
        "# One two\n\nA **bold** and *slanted* & ~~gone~~ word.\n\nNext\nline\n\n---"
    );
}

#[test]
fn scripts_styles_and_what_nobody_sees_are_dropped() {
    let page = "<style>p{}</style><script>if (a<b) document.write('<p>x</p>')</script><p>seen</p>\
        <svg><title>t</title><svg></svg><text>no</text></svg><noscript>no</noscript><template><p>no</p></template>\
        <!-- no --><select><option>no</select><p>end</p>";
    assert_eq!(markdown(page), "seen\n\nend");
}

#[test]
fn links_and_images_become_absolute() {
    assert_eq!(
        markdown(
            "<a href='../x (1).html'>a <b>link</b></a> <a href='javascript:x'>none</a> <a href='#s'></a><img src=/i.png alt='An [image]'>"
        ),
        "[a **link**](https://a.example/x%20%281%29.html) none ![An image](https://a.example/i.png)"
    );
    assert_eq!(
        markdown(
            "<base href='//b.example/d/'><a href=e>f</a><img src='data:image/png;base64,xx' alt=x>"
        ),
        "[f](https://b.example/d/e)"
    );
}

#[test]
fn a_link_around_blocks_is_a_link_in_the_first_of_them() {
    assert_eq!(
        markdown("<a href=/x><div>one</div><div>two</div></a>"),
        "[one](https://a.example/x)\ntwo"
    );
}

#[test]
fn code_is_kept_as_it_is() {
    assert_eq!(
        markdown(
            "<p>Run <code>a  `b`</code>:</p><pre><code class='hljs language-rust'>fn main() {\n    <span>let</span> x = \"```\";\n}\n</code></pre>"
        ),
        "Run ``  a `b` ``:\n\n````rust\nfn main() {\n    let x = \"```\";\n}\n````"
            .replace("``  a", "`` a")
    );
}

#[test]
fn lists_are_numbered_and_nested() {
    assert_eq!(
        markdown("<ul><li>a<li><p>b</p><ol start=3><li>c</li><li>d</li></ol></li></ul><p>e</p>"),
        "- a\n- b\n\n  3. c\n  4. d\n\ne"
    );
}

#[test]
fn quotes_are_marked_on_every_line() {
    assert_eq!(
        markdown("<blockquote><p>a</p><p>b</p><blockquote>c</blockquote></blockquote>d"),
        "> a\n>\n> b\n> >\n> > c\n\nd"
    );
}

#[test]
fn tables_are_kept_and_bars_in_them_escaped() {
    assert_eq!(
        markdown(
            "<table><thead><tr><th>Name<th>Value</thead><tbody><tr><td>a|b</td><td><p>one</p><p><b>two</b></p></td></tr></tbody></table>"
        ),
        "| Name | Value |\n| --- | --- |\n| a\\|b | one **two** |"
    );
    assert_eq!(
        text("<table><tr><td>a<td>b<tr><td>c<td>d</table>"),
        "a | b\nc | d"
    );
}

#[test]
fn a_table_in_a_table_is_text_of_its_cell_and_code_in_a_cell_stays_code() {
    assert_eq!(
        markdown(
            "<table><tr><td>a<td><table><tr><td>b<td>c</table></td></tr><tr><td>d<td>e</table>"
        ),
        "| a | b c |\n| --- | --- |\n| d | e |"
    );
    assert_eq!(
        markdown("<table><tr><td><pre>1\n2</pre></td><td><pre>a\n  b</pre></td></tr></table>x"),
        "```\n1\n2\n```\n\n```\na\n  b\n```\n\nx"
    );
}

#[test]
fn a_title_stands_first_unless_the_first_heading_says_the_same() {
    assert_eq!(
        markdown("<head><title> The\npage </title></head><body>x"),
        "# The page\n\nx"
    );
    assert_eq!(markdown("<title>A</title><h1>A</h1>x"), "# A\n\nx");
    assert_eq!(text("<title>A</title><h1>A</h1>x"), "A\n\nx");
}

#[test]
fn plain_text_has_words_only() {
    assert_eq!(
        text(
            "<h2>H</h2><p>A <b>b</b> <a href=/x>c</a> <code>d</code> <img src=i.png alt=e></p><ul><li>f</ul><pre>g\n h</pre>"
        ),
        "H\n\nA b c d [image: e]\n\n- f\n\ng\n h"
    );
}

#[test]
fn only_what_holds_a_tag_is_taken_for_a_page() {
    for html in ["<p>x", "<!doctype html>", "a </b>"] {
        assert!(has_tags(html), "{html}");
    }
    for other in ["{\"a\": 1}", "1 < 2", "a <3", "<"] {
        assert!(!has_tags(other), "{other}");
    }
}

/// A page that nests without end is no more work than one of as many letters: these would overflow a stack, or take hours, where depth
/// counted.
#[test]
fn a_nest_bomb_is_only_a_long_page() {
    for (open, close) in [
        ("<div>", "</div>"),
        ("<b>", "</b>"),
        ("<ul><li>x", "</li></ul>"),
        ("<blockquote>x", "</ul>"),
        ("<table><tr><td>", "</td></tr></table>"),
        ("<svg>", "</svg>"),
        ("<a href=x>y<p>", "</a>"),
        ("<pre><code class=language-x> ", "</code>"),
        ("<h1>x", "</h2>"),
        ("<font color=a>", ""),
    ] {
        let times = 400_000 / (open.len() + close.len());
        let page = format!("{}text{}", open.repeat(times), close.repeat(times));
        let converted = markdown(&page);
        assert!(
            converted.len() <= 6 * 1024 * 1024,
            "{open}: {}",
            converted.len()
        );
    }
}

#[test]
fn addresses_made_absolute_do_not_multiply_a_page_without_end() {
    let base = format!("<base href='https://a.example/{}/'>", "x".repeat(1900));
    let page = format!("{base}{}", "<a href=a>b</a>".repeat(60_000));
    assert!(markdown(&page).len() < 5 * 1024 * 1024);
    let long = format!("<a href='/{}'>b</a>", "x".repeat(5000));
    assert_eq!(markdown(&long), "b");
}

proptest! {
    #[test]
    fn any_soup_of_tags_is_converted_and_loses_no_word(
        pieces in proptest::collection::vec(prop_oneof![
            Just("<p>"), Just("</p>"), Just("<b>"), Just("</b>"), Just("<i>"), Just("</i>"), Just("<a href=/x>"), Just("</a>"),
            Just("<ul>"), Just("</ul>"), Just("<li>"), Just("</li>"), Just("<ol>"), Just("<blockquote>"), Just("</blockquote>"),
            Just("<table>"), Just("</table>"), Just("<tr>"), Just("<td>"), Just("</td>"), Just("<pre>"), Just("</pre>"),
            Just("<code>"), Just("</code>"), Just("<h2>"), Just("</h2>"), Just("<br>"), Just("<hr>"), Just(" "), Just("word"),
        ], 0..60),
    ) {
        let page = pieces.concat();
        let words = page.matches("word").count();
        for form in [Form::Markdown, Form::Text] {
            let converted = convert(&page, BASE, form);
            prop_assert_eq!(converted.matches("word").count(), words, "{}\n{}", &page, converted);
        }
    }

    #[test]
    fn any_text_is_converted_without_a_panic(html in ".{0,200}") {
        markdown(&html);
        text(&html);
    }
}
