//! The frame of a page, forms, and texts that are cut. Text from outside is shown with its control, bidirectional and invisible
//! characters as escapes; the templates escape what has a meaning in a page.

use maud::{DOCTYPE, Markup, html};
use toolcrib_base::render::{counted, legible, one_line};

use super::query::{Query, parameter};
use super::visit::{Page, PageState, Tab, Visit};

/// Rows of a list on one page.
pub(super) const ROWS: usize = 50;
/// Maximum characters of a text in a cell.
pub(super) const MAX_CELL: usize = 160;
/// Maximum bytes of a parameter in a link.
const MAX_PARAMETER: usize = 512;
/// Maximum characters of a description or a fact.
pub(super) const MAX_TEXT: usize = 600;
/// Maximum characters of a text of several lines.
pub(super) const MAX_BLOCK: usize = 4_000;
/// Maximum characters of a text that is the subject of its page.
pub(super) const MAX_WHOLE: usize = 40_000;
/// Maximum items of a list in a page about something else.
pub(super) const MAX_LISTED: usize = 100;

/// Frames a session page, with the number of waiting calls, and what its script needs to keep it current.
pub(super) fn frame(visit: &Visit, state: &PageState, page: &Page) -> Markup {
    let waiting = state.waiting;
    let tabs = [
        (Tab::Runs, "runs", "Runs"),
        (Tab::Calls, "calls", "Calls"),
        (Tab::Figures, "figures", "Figures"),
        (Tab::Tools, "tools", "Tools"),
        (Tab::Decisions, "decisions", "Decisions"),
    ];
    let header = html! {
        nav aria-label="Parts of the console" {
            @for (tab, path, label) in tabs {
                a href=(visit.path(path)) aria-current=[(tab == page.tab).then_some("page")] {
                    (label)
                    @if tab == Tab::Decisions {
                        " " span.badge id="waiting" data-count=(waiting) hidden[waiting == 0] { (waiting) " waiting" }
                    }
                }
            }
        }
        span.state id="live" {}
        @if !visit.session.decides() { span.role { "read-only" } }
        p.unseen id="spoken" role="status" {}
    };
    document(&page.title, &header, &page.content, Some((&visit.events(), &state.revision)))
}

/// Page without a session.
pub(super) fn notice(title: &str, advice: &str) -> Markup {
    document(title, &html! {}, &html! { h1 { (title) } p { (advice) } }, None)
}

/// Page, with the address of its events and its revision if it stays current.
fn document(title: &str, header: &Markup, content: &Markup, live: Option<(&str, &str)>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · toolcrib" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/style.css";
                @if live.is_some() { script src="/live.js" defer {} }
            }
            body data-events=[live.map(|live| live.0)] data-revision=[live.map(|live| live.1)] {
                a.skip href="#main" { "Skip to the content" }
                header { span.brand { "toolcrib" } (header) }
                main id="main" tabindex="-1" { (content) }
            }
        }
    }
}

/// Text on one line, of at most `max` characters.
pub(super) fn line(text: &str, max: usize) -> Markup {
    let (kept, left_out) = cut(text, max);
    html! { bdi { (one_line(kept)) } (mark(left_out)) }
}

/// Text on one line for a list cell, cut to `max` characters: another page has the whole text.
pub(super) fn cell(text: &str, max: usize) -> Markup {
    let (kept, left_out) = cut(text, max);
    html! { bdi { (one_line(kept)) @if left_out > 0 { "…" } } }
}

/// The same for paths, which may go on in the next line after each slash.
pub(super) fn path_cell(text: &str, max: usize) -> Markup {
    let (kept, left_out) = cut(text, max);
    let kept = one_line(kept);
    html! { bdi { @for part in kept.split_inclusive('/') { (part) wbr; } @if left_out > 0 { "…" } } }
}

/// Text on one line for a place without elements, such as an option, of at most `max` characters.
pub(super) fn plain(text: &str, max: usize) -> String {
    let (kept, left_out) = cut(text, max);
    one_line(kept) + if left_out > 0 { " …" } else { "" }
}

/// Text with its line breaks, of at most `max` characters.
pub(super) fn block(text: &str, max: usize) -> Markup {
    let (kept, left_out) = cut(text.trim_end(), max);
    html! { pre tabindex=[is_wide(kept).then_some("0")] { (legible(kept)) (mark(left_out)) } }
}

/// Returns `true` for a text that may be wider or higher than its place, so that the keyboard can scroll it.
fn is_wide(text: &str) -> bool {
    text.len() > 60
}

/// Cuts a text, and returns the number of characters that are left out.
fn cut(text: &str, max: usize) -> (&str, usize) {
    match text.char_indices().nth(max) {
        Some((end, _)) => (&text[..end], text[end..].chars().count()),
        None => (text, 0),
    }
}

/// Mark of a text that is cut.
fn mark(left_out: usize) -> Markup {
    html! { @if left_out > 0 { span.cut { "… " (counted(left_out, "more character")) } } }
}

/// Link to a page with one parameter, under a text; the text alone if the parameter is too long for an address.
pub(super) fn link(path: &str, name: &str, value: &str, text: &Markup) -> Markup {
    html! {
        @if value.len() <= MAX_PARAMETER { a href={ (path) (parameter(name, value)) } { (text) } } @else { (text) }
    }
}

/// Duration in milliseconds, in a few characters.
pub(super) fn duration(ms: f64) -> String {
    match ms {
        ..10.0 => format!("{ms:.1} ms"),
        ..1_000.0 => format!("{ms:.0} ms"),
        ..60_000.0 => format!("{:.1} s", ms / 1_000.0),
        _ => format!("{:.1} min", ms / 60_000.0),
    }
}

/// Time of a record or a run in UTC, to the second, in a column that names the zone.
pub(super) fn time(text: &str) -> Markup {
    html! { time datetime=(line_text(text)) { (to_second(text)) } }
}

/// The same with its zone, within a sentence.
pub(super) fn moment(text: &str) -> Markup {
    html! { time datetime=(line_text(text)) { (to_second(text)) " UTC" } }
}

fn to_second(text: &str) -> String {
    line_text(&text.get(..19).unwrap_or(text).replacen('T', " ", 1))
}

fn line_text(text: &str) -> String {
    one_line(cut(text, 40).0)
}

/// List of facts with labels.
pub(super) fn facts(facts: Vec<(&str, Markup)>) -> Markup {
    html! { dl.facts { @for (label, fact) in facts { div { dt { (label) } dd { (fact) } } } } }
}

/// Choice in a form between values with their labels, with the value that is chosen now.
pub(super) fn choice<'a>(
    name: &str,
    label: &str,
    all: &str,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
    now: Option<&str>,
) -> Markup {
    html! {
        label { (label)
            select name=(name) {
                option value="" { (all) }
                @for (value, label) in values { option value=(value) selected[now == Some(value)] { (label) } }
            }
        }
    }
}

/// Field of a form with the text that it has now.
pub(super) fn field(name: &str, label: &str, placeholder: &str, query: &Query) -> Markup {
    html! {
        label { (label)
            input type="search" name=(name) maxlength="200" placeholder=(placeholder) autocomplete="off"
                value=(one_line(cut(query.get(name).unwrap_or_default(), 200).0));
        }
    }
}

/// Links to the pages before and after.
pub(super) fn pager(query: &Query, page: usize, has_more: bool) -> Markup {
    let (first, last) = if query.get("sort").is_some() { ("Previous", "Next") } else { ("Newer", "Older") };
    let before = page.checked_sub(1).and_then(|before| query.turned(before));
    let after = has_more.then(|| query.turned(page + 1)).flatten();
    html! {
        @if page > 0 || has_more {
            nav.pager aria-label="Pages of the list" {
                @if let Some(before) = before { a rel="prev" href=(before) { "← " (first) } }
                span { "Page " (page + 1) }
                @if let Some(after) = &after { a rel="next" href=(after) { (last) " →" } }
                @if has_more && after.is_none() { span.quiet { "Narrow the list to see more." } }
            }
        }
    }
}

/// Hidden form fields, with the session's token.
pub(super) fn hidden(visit: &Visit, fields: &[(&str, &str)]) -> Markup {
    html! {
        input type="hidden" name="token" value=(visit.session.form_token);
        @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_has_no_power_in_a_page() {
        let hostile = "<script>alert(1)</script>\u{202e}\u{1b}[2J\"'&";
        for shown in
            [line(hostile, 100).into_string(), block(hostile, 100).into_string(), cell(hostile, 100).into_string()]
        {
            assert!(!shown.contains("<script") && !shown.contains('\u{202e}') && !shown.contains('\u{1b}'), "{shown}");
            assert!(shown.contains("&lt;script&gt;alert(1)"), "{shown}");
        }
        let label = choice("a", "b", "c", [("\" onfocus=\"x", "\" onfocus=\"x")], None).into_string();
        assert!(!label.contains("\" onfocus=\"x"), "{label}");
    }

    #[test]
    fn a_long_text_is_cut_with_a_mark() {
        let long = "é".repeat(1 << 20);
        let shown = line(&long, 100).into_string();
        assert!(shown.len() < 400 && shown.contains("… 1048476 more characters"), "{shown}");
        assert!(!line("short", 5).into_string().contains("more"));
        assert_eq!(cell("longer", 4).into_string(), "<bdi>long…</bdi>");
    }
}
