//! Markdown of a model as elements of a page. Only the tags named here are written: HTML is shown as text, pictures are not
//! loaded, and links show their target instead of leading there.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use toolcrib_base::markdown::is_excessive;
use toolcrib_base::render::legible;

use super::layout;

/// Returns a text as elements, cut to `max` characters. A text beyond a bound is shown as it was written.
pub(super) fn shown(text: &str, max: usize) -> Markup {
    if text.chars().nth(max).is_some() || is_excessive(text) {
        return layout::block(text, max);
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Elements::default();
    let parser = Parser::new_ext(text, options);
    let definitions: Vec<_> = parser.reference_definitions().iter().map(|(_, found)| found.span.clone()).collect();
    parser.for_each(|event| page.add(event));
    html! {
        div.text {
            (PreEscaped(page.out))
            // A definition has no text of its own.
            @for span in definitions { p.quiet { (legible(&text[span])) } }
        }
    }
}

/// Elements of a text so far.
#[derive(Default)]
struct Elements {
    out: String,
    /// Targets of the open links and pictures.
    targets: Vec<String>,
    /// `true` in the first row of a table.
    is_heading: bool,
}

impl Elements {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(text) => {
                self.out += "<code>";
                self.text(&text);
                self.out += "</code>";
            }
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(&text),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out += "<br>",
            Event::Rule => self.out += "<hr>",
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    /// Adds a text without any meaning for the page.
    fn text(&mut self, text: &str) {
        self.out += &html! { (legible(text)) }.into_string();
    }

    fn start(&mut self, tag: Tag<'_>) {
        let element = match tag {
            // The page has headings of its own.
            Tag::Heading { .. } => "<p><strong>",
            Tag::Paragraph | Tag::HtmlBlock => "<p>",
            Tag::BlockQuote(_) => "<blockquote>",
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => "<pre tabindex=\"0\">",
            Tag::List(None) => "<ul>",
            Tag::List(Some(number)) => {
                // Writing into a text cannot fail.
                let _ = write!(self.out, "<ol start=\"{number}\">");
                ""
            }
            Tag::Item => "<li>",
            Tag::Table(_) => "<table>",
            Tag::TableHead => {
                self.is_heading = true;
                "<thead><tr>"
            }
            Tag::TableRow => "<tr>",
            Tag::TableCell if self.is_heading => "<th>",
            Tag::TableCell => "<td>",
            Tag::Strong => "<strong>",
            Tag::Emphasis => "<em>",
            Tag::Strikethrough => "<del>",
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.targets.push(dest_url.into_string());
                ""
            }
            _ => "",
        };
        self.out += element;
    }

    fn end(&mut self, tag: TagEnd) {
        let element = match tag {
            TagEnd::Heading(_) => "</strong></p>",
            TagEnd::Paragraph | TagEnd::HtmlBlock => "</p>",
            TagEnd::BlockQuote(_) => "</blockquote>",
            TagEnd::CodeBlock => "</pre>",
            TagEnd::List(false) => "</ul>",
            TagEnd::List(true) => "</ol>",
            TagEnd::Item => "</li>",
            TagEnd::Table => "</tbody></table>",
            TagEnd::TableHead => {
                self.is_heading = false;
                "</tr></thead><tbody>"
            }
            TagEnd::TableRow => "</tr>",
            TagEnd::TableCell if self.is_heading => "</th>",
            TagEnd::TableCell => "</td>",
            TagEnd::Strong => "</strong>",
            TagEnd::Emphasis => "</em>",
            TagEnd::Strikethrough => "</del>",
            TagEnd::Link | TagEnd::Image => {
                if let Some(target) = self.targets.pop().filter(|target| !target.is_empty()) {
                    self.out += " (<code>";
                    self.text(&target);
                    self.out += "</code>)";
                }
                ""
            }
            _ => "",
        };
        self.out += element;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_becomes_elements_and_nothing_leads_away() {
        let text = "# T\n\n1. **a** `b`\n2. c\n\n|x|y|\n|-|-|\n|1|2|\n\n> q\n\n```\n<i>\n```\n\n[l](https://x.example) ![p](https://x.example/p.png)";
        assert_eq!(
            shown(text, 1000).into_string(),
            "<div class=\"text\"><p><strong>T</strong></p><ol start=\"1\"><li><strong>a</strong> <code>b</code></li><li>c</li></ol>\
             <table><thead><tr><th>x</th><th>y</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>\
             <blockquote><p>q</p></blockquote><pre tabindex=\"0\">&lt;i&gt;\n</pre>\
             <p>l (<code>https://x.example</code>) p (<code>https://x.example/p.png</code>)</p></div>"
        );
    }

    #[test]
    fn no_tag_of_a_model_is_a_tag_of_the_page() {
        let markup = "<script>alert(1)</script>";
        for place in [
            "X",
            "X\n\nX",
            "a X b",
            "`X`",
            "```X\nX\n```",
            "[a](<javascript:X>)",
            "![X](X)",
            "|X|\n|-|\n|X|",
            "&lt;script&gt;",
            "<javascript:X>",
            "[a]: <X>",
            "\" onload=X",
        ] {
            let page = shown(&place.replace('X', markup), 1000).into_string();
            for wrong in ["<script", "<img", "<a ", "href", "src="] {
                assert!(!page.contains(wrong), "{place}: {page}");
            }
        }
        assert!(!shown("&#27;[2J \u{202e}", 100).into_string().contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn a_text_beyond_a_bound_is_shown_as_written() {
        let deep = format!("{}x", "> ".repeat(40));
        assert!(shown(&deep, 1000).into_string().starts_with("<pre"));
        assert!(shown("**long**", 7).into_string().starts_with("<pre"));
        assert!(shown("**long**", 8).into_string().starts_with("<div"));
    }
}
