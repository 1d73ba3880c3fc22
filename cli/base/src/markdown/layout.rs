//! Layout of one block, as the parser reads it, in lines that fit the screen. Nesting beyond a depth is shown without indentation, and
//! what the parser would have to read again and again is not given to it.

use std::borrow::Cow;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::render::legible;

use super::pieces::marker;
use super::spans::{Span, Style, push, width, wrapped};
use super::table::{Cell, Table};
use super::{MAX_PROSE, MIN_WIDTH, Screen};

/// Maximum depth of quotes and lists.
pub(super) const MAX_DEPTH: usize = 12;
/// Maximum columns of a table.
pub(super) const MAX_COLUMNS: usize = 32;
/// Columns of a rule.
const RULE: usize = 40;

/// Quote or item around a block.
#[derive(Debug)]
enum Container {
    Quote,
    Item {
        /// Mark of the item until its first line is written.
        mark: Option<String>,
        indent: usize,
    },
}

/// Position in a paragraph: the number of spans, and the bytes in the last one.
type TextPlace = (usize, usize);

/// Layout of a block.
pub(super) struct Layout {
    screen: Screen,
    out: String,
    containers: Vec<Container>,
    /// Number of the next item in each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    /// Number of the last item in the outermost list.
    last: Option<u64>,
    spans: Vec<Span>,
    style: Style,
    /// Number of open marks for bold, italic and struck text.
    open: [usize; 3],
    /// Targets of the open links, each with the place at which its text begins.
    links: Vec<(String, TextPlace)>,
    table: Option<Table>,
    is_apart: bool,
    in_code: bool,
}

impl Layout {
    pub(super) fn new(screen: Screen) -> Self {
        Self {
            screen,
            out: String::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            last: None,
            spans: Vec::new(),
            style: Style::default(),
            open: [0; 3],
            links: Vec::new(),
            table: None,
            is_apart: false,
            in_code: false,
        }
    }

    /// Returns the lines of a block, and its last number if it is a numbered list, which continues at `number`.
    pub(super) fn block(mut self, text: &str, number: Option<u64>) -> (String, Option<u64>) {
        if is_excessive(text) {
            return (format!("{}\n", legible(text.trim_end())), None);
        }
        let text = with_definitions(text);
        let text = text.as_ref();
        let parser =
            Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS);
        let mut definitions: Vec<_> =
            parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone()).collect();
        definitions.sort_by_key(|span| span.start);
        for event in parser {
            self.event(event, number);
        }
        self.end_text();
        // A definition in a quote or an item has no text of its own.
        for span in definitions {
            self.spans.push(Span { text: legible(&text[span]).into_owned(), style: Style::default() });
            self.end_text();
        }
        (self.out, self.last)
    }

    fn event(&mut self, event: Event<'_>, number: Option<u64>) {
        match event {
            Event::Start(tag) => self.start(tag, number),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.code(&text),
            Event::Text(text) | Event::Html(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
            Event::InlineHtml(html) => match html.as_ref() {
                "<br>" | "<br/>" | "<br />" => self.text("\n"),
                html => self.text(html),
            },
            Event::Code(text) => {
                let before = std::mem::replace(&mut self.style.is_code, true);
                self.mark("`");
                self.text(&text);
                self.mark("`");
                self.style.is_code = before;
            }
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.end_text();
                let columns = self.room().min(RULE);
                self.line(&"─".repeat(columns));
                self.is_apart = true;
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>, number: Option<u64>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_text();
                self.style.is_heading = true;
                self.mark(&format!("{} ", "#".repeat(level as usize)));
            }
            Tag::BlockQuote(_) => {
                self.end_text();
                self.gap();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.end_text();
                self.in_code = true;
                let info = match &kind {
                    pulldown_cmark::CodeBlockKind::Fenced(info) => info.as_ref(),
                    pulldown_cmark::CodeBlockKind::Indented => "",
                };
                self.fence(info);
            }
            Tag::List(start) => {
                self.end_text();
                let is_outermost = self.lists.is_empty();
                self.lists.push(start.map(|start| number.filter(|_| is_outermost).unwrap_or(start)));
            }
            Tag::Item => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                if let [Some(next)] = self.lists[..] {
                    self.last = Some(next.saturating_sub(1));
                }
                self.gap();
                self.containers.push(Container::Item { indent: width(&mark), mark: Some(mark) });
            }
            Tag::Table(alignments) => {
                self.end_text();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(|table| table.rows.push(Vec::new())),
            Tag::Strong => self.open(0, "**"),
            Tag::Emphasis => self.open(1, "*"),
            Tag::Strikethrough => self.open(2, "~~"),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.place()));
                self.style.is_link = true;
            }
            Tag::Image { dest_url, .. } => {
                self.text("image: ");
                self.links.push((dest_url.into_string(), self.place()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_text();
                self.is_apart = true;
            }
            TagEnd::Heading(_) => {
                self.end_text();
                self.style.is_heading = false;
                self.is_apart = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_text();
                self.containers.pop();
                self.is_apart = true;
            }
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.fence("");
                self.is_apart = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_apart |= self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_text();
                if let Some(Container::Item { mark: Some(_), .. }) = self.containers.last() {
                    self.line("");
                }
                self.containers.pop();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.available(), self.screen.colors);
                    lines.iter().for_each(|line| self.line(line));
                }
                self.is_apart = true;
            }
            TagEnd::TableCell => {
                let cell: Cell = std::mem::take(&mut self.spans);
                let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
                row.into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Strong => self.close(0, "**"),
            TagEnd::Emphasis => self.close(1, "*"),
            TagEnd::Strikethrough => self.close(2, "~~"),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Writes the target of a link behind its text: the text alone may mislead.
    fn end_link(&mut self) {
        let Some((target, before)) = self.links.pop() else { return };
        self.style.is_link = false;
        let (count, bytes) = before;
        let begun = count.checked_sub(1).and_then(|last| self.spans[last].text.get(bytes..)).unwrap_or_default();
        let shown = self.spans[count..].iter().fold(begun.to_owned(), |shown, span| shown + &span.text);
        let target = target.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_shown = [target.as_str(), target.strip_prefix("mailto:").unwrap_or(&target)].contains(&shown.as_str());
        if !is_shown && !target.is_empty() {
            self.text(&format!(" ({target})"));
        }
    }

    /// Returns the current end of the paragraph.
    fn place(&self) -> TextPlace {
        (self.spans.len(), self.spans.last().map_or(0, |span| span.text.len()))
    }

    fn open(&mut self, kind: usize, mark: &str) {
        self.open[kind] += 1;
        self.restyle();
        self.mark(mark);
    }

    fn close(&mut self, kind: usize, mark: &str) {
        self.mark(mark);
        self.open[kind] = self.open[kind].saturating_sub(1);
        self.restyle();
    }

    fn restyle(&mut self) {
        let [is_bold, is_italic, is_struck] = self.open.map(|open| open > 0);
        self.style = Style { is_bold, is_italic, is_struck, ..self.style };
    }

    /// Writes a mark of the Markdown where no color shows it.
    fn mark(&mut self, mark: &str) {
        if !self.screen.colors {
            self.text(mark);
        }
    }

    fn text(&mut self, text: &str) {
        push(&mut self.spans, &legible(text), self.style);
    }

    /// Writes the first or the last line of a code block.
    fn fence(&mut self, info: &str) {
        let style = Style { is_quiet: true, ..Style::default() };
        let line = format!("```{}", legible(info));
        self.line(&super::painted(&line, style, self.screen.colors));
    }

    fn code(&mut self, text: &str) {
        let style = Style { is_code: true, ..Style::default() };
        for line in text.lines() {
            let line = legible(line);
            let line = if line.is_empty() { String::new() } else { super::painted(&line, style, self.screen.colors) };
            self.line(&line);
        }
    }

    /// Writes the text of the paragraph, if there is any.
    fn end_text(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.is_empty() {
            return;
        }
        for line in wrapped(&spans, self.room(), false) {
            self.line(&line.painted(self.screen.colors));
        }
    }

    /// Returns the columns for prose.
    fn room(&self) -> usize {
        self.beside(self.screen.width.min(MAX_PROSE))
    }

    /// Returns the columns for tables.
    fn available(&self) -> usize {
        self.beside(self.screen.width)
    }

    /// Returns the columns that the marks of quotes and items leave.
    fn beside(&self, columns: usize) -> usize {
        let used: usize = self
            .containers
            .iter()
            .take(MAX_DEPTH)
            .map(|container| match container {
                Container::Quote => 2,
                Container::Item { indent, .. } => *indent,
            })
            .sum();
        columns.saturating_sub(used).max(MIN_WIDTH)
    }

    /// Writes a line behind the marks of its quotes and items.
    fn line(&mut self, line: &str) {
        self.gap();
        let prefix = self.prefix(true);
        self.out += if line.is_empty() { prefix.trim_end() } else { &prefix };
        self.out += line;
        self.out.push('\n');
    }

    /// Writes the empty line between two blocks, if one is due.
    fn gap(&mut self) {
        if std::mem::take(&mut self.is_apart) && !self.out.is_empty() {
            let prefix = self.prefix(false);
            self.out += prefix.trim_end();
            self.out.push('\n');
        }
    }

    /// Returns the marks before a line; with `is_text`, the marks of items are then written.
    fn prefix(&mut self, is_text: bool) -> String {
        let mut prefix = String::new();
        for (depth, container) in self.containers.iter_mut().enumerate() {
            let is_shown = depth < MAX_DEPTH;
            match container {
                Container::Quote if is_shown => prefix += "│ ",
                Container::Item { mark, .. } if is_text && mark.is_some() => prefix += &mark.take().unwrap_or_default(),
                Container::Item { indent, .. } if is_shown => prefix += &" ".repeat(*indent),
                _ => {}
            }
        }
        prefix
    }
}

/// Escapes definitions of link targets, so that they are shown: the links that use them may be in other blocks.
fn with_definitions(text: &str) -> Cow<'_, str> {
    if !text.starts_with('[') && !text.contains("\n[") {
        return Cow::Borrowed(text);
    }
    let lines = text.lines().map(|line| match line.starts_with('[') && line.contains("]:") {
        true => format!("\\{line}  \n"),
        false => format!("{line}\n"),
    });
    Cow::Owned(lines.collect())
}

/// Returns `true` for a block whose nesting or table exceeds a bound: it is shown as it was written.
pub fn is_excessive(text: &str) -> bool {
    text.lines().any(|line| {
        let (mut rest, mut depth) = (line.trim_start(), 0);
        loop {
            let len = if rest.starts_with('>') { 1 } else { marker(rest).unwrap_or_default() };
            if len == 0 {
                break;
            }
            depth += 1;
            rest = rest[len..].trim_start();
            if depth > MAX_DEPTH {
                return true;
            }
        }
        let is_delimiter = rest.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'));
        is_delimiter && rest.chars().filter(|c| *c == '|').count() > MAX_COLUMNS + 1
    })
}
