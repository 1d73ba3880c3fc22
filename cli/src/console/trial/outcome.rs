//! Result of a call that was tried, as far as its page shows it: bounded texts, and pictures.

use maud::{Markup, html};
use serde_json::Value;
use toolcrib::call::{Link, Media, Part};
use toolcrib::{Outcome, Receipt, Runtime, ToolResult};

use crate::parse::rounded_size;
use crate::permission::limit_hint;
use crate::render::{self, counted, shortened};
use crate::tool_facts;

use super::super::layout::{self, facts, word};
use super::super::record::{MAX_LISTED, grants};
use super::super::view::Visit;
use super::picture;

/// Maximum characters of a result and of the log lines of a tool.
const MAX_TEXT: usize = 40_000;
/// Maximum characters of another text.
const MAX_SHORT: usize = 4_000;
/// Maximum parts that are shown.
const MAX_PARTS: usize = 50;
/// Maximum pictures that are shown.
const MAX_PICTURES: usize = 4;

/// Content of the page of a result, within limits.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Outcome, empty for a call that left no result.
    outcome: String,
    content: String,
    display: Option<String>,
    parts: Vec<ShownPart>,
    left_out: usize,
    log: String,
    /// Fault of the host, for its operator.
    fault: Option<String>,
    hints: Vec<String>,
    limits: String,
    receipt: Option<Receipt>,
    /// Message of wrong arguments, if they were the reason.
    pub(super) wrong_arguments: Option<String>,
}

#[derive(Debug)]
enum ShownPart {
    Text(String),
    Picture { label: String, address: String },
    Note(String),
}

impl Shown {
    pub(super) fn of(result: &ToolResult, runtime: &Runtime) -> Self {
        let receipt = &result.receipt;
        let media = result.media.iter().cloned().map(Part::Media);
        let all: Vec<Part> = media.chain(result.shown.iter().cloned()).collect();
        let mut pictures = 0;
        let parts = all.iter().take(MAX_PARTS).map(|part| ShownPart::of(part, &mut pictures)).collect();
        let error = result.outcome.as_ref().err();
        let own = runtime.tool(&receipt.tool).map(|tool| &tool.limits);
        let hints = error.and_then(|error| limit_hint(error.outcome, own));
        let wrong = error.filter(|error| error.outcome == Outcome::BadArguments);
        Self {
            outcome: receipt.outcome.as_str().to_owned(),
            content: shortened(&pretty(&result.content()), MAX_TEXT).into_owned(),
            display: result.display.as_deref().map(|text| shortened(text, MAX_SHORT).into_owned()),
            parts,
            left_out: all.len().saturating_sub(MAX_PARTS),
            log: shortened(&result.log, MAX_TEXT).into_owned(),
            fault: result.fault.as_ref().map(|fault| render::message(&fault.clone().into())),
            hints: hints.into_iter().collect(),
            limits: runtime.limits(&receipt.tool).map(tool_facts::limits).unwrap_or_default(),
            receipt: Some(receipt.clone()),
            wrong_arguments: wrong.map(|error| error.message.clone()),
        }
    }

    /// Returns `true` if the call was over before its tool started, because of its arguments.
    pub(super) fn has_wrong_arguments(&self) -> bool {
        self.wrong_arguments.is_some() && self.receipt.as_ref().is_some_and(|receipt| receipt.stdin_bytes == 0)
    }

    /// Shows the result.
    pub(super) fn page(&self, visit: &Visit, call_id: &str) -> Markup {
        html! {
            p role="status" {
                @if self.outcome.is_empty() { "The call ended without a result." } @else {
                    (word(&self.outcome)) " "
                    @if let Some(display) = &self.display { (layout::line(display, 400)) }
                }
            }
            @for hint in self.hints.iter().chain(&self.fault) { p.problem { (layout::line(hint, 1_000)) } }
            h2 { "Result" }
            @if self.content.is_empty() { p.quiet { "empty" } } @else { (layout::block(&self.content, MAX_TEXT)) }
            @if !self.parts.is_empty() {
                h2 { "Parts" }
                @for part in &self.parts { (part.shown()) }
                @if self.left_out > 0 { p.quiet { "and " (counted(self.left_out, "more part")) } }
            }
            @if !self.log.trim().is_empty() {
                h2 { "Standard error of the tool" }
                (layout::block(&self.log, MAX_TEXT))
            }
            h2 { "Call" }
            @if let Some(receipt) = &self.receipt { (facts(self.figures(receipt))) }
            p { (layout::link(&visit.path("calls"), "q", call_id, &html! { "Its record in the audit log" })) }
        }
    }

    fn figures<'a>(&self, receipt: &Receipt) -> Vec<(&'a str, Markup)> {
        let mut all = vec![
            (
                "Time",
                html! {
                    (layout::duration(receipt.ms)) span.quiet { ", of which it waited " (layout::duration(receipt.waited_ms))
                        " and computed " (layout::duration(receipt.cpu_ms)) }
                },
            ),
            (
                "Used",
                html! {
                    (rounded_size(receipt.peak_memory_bytes)) " of memory, " (rounded_size(receipt.stdout_bytes)) " of output, "
                    (rounded_size(receipt.disk_bytes)) " to disk"
                },
            ),
            ("Limits", layout::line(&self.limits, 400)),
            ("Granted", grants(&receipt.granted)),
        ];
        if !receipt.denied.is_empty() {
            all.push((
                "Denied",
                html! {
                    ul.plain {
                        @for denial in receipt.denied.iter().take(MAX_LISTED) {
                            li {
                                code { (layout::line(&denial.capability, 120)) }
                                @if let Some(flag) = &denial.flag { span.quiet { " allowed by " } code { (layout::line(flag, 120)) } }
                            }
                        }
                    }
                },
            ));
        }
        if let Some(decision) = &receipt.decision {
            all.push(("Decision", super::page::decided(decision)));
        }
        for warning in receipt.warnings.iter().take(10) {
            all.push(("Warning", layout::line(warning, 400)));
        }
        all
    }
}

impl ShownPart {
    fn of(part: &Part, pictures: &mut usize) -> Self {
        let cut = |text: &str| shortened(text, MAX_SHORT).into_owned();
        match part {
            Part::Text(text) => Self::Text(cut(text)),
            Part::Json(text) => Self::Text(cut(&pretty(text))),
            Part::Media(media) => Self::of_media(media, pictures),
            Part::Link(Link { uri, name, .. }) => {
                Self::Note(format!("Link {}: {}", cut(name.as_deref().unwrap_or_default()), cut(uri)))
            }
            Part::Progress { done, total: Some(total) } => Self::Note(format!("{done} of {total}")),
            Part::Progress { done, total: None } => Self::Note(done.to_string()),
            _ => Self::Note("a part that this version does not show".to_owned()),
        }
    }

    fn of_media(media: &Media, pictures: &mut usize) -> Self {
        let name = media.name.as_deref().unwrap_or("without a name");
        let label = format!("{name}, {}, {}", media.mime_type, rounded_size(media.data.len() as u64));
        let label = shortened(&label, 400).into_owned();
        let address = match *pictures < MAX_PICTURES {
            true => picture::address(media),
            false => Err("one of more than 4 pictures"),
        };
        match address {
            Ok(address) => {
                *pictures += 1;
                Self::Picture { label, address }
            }
            Err(why) => Self::Note(format!("{label}; not shown: {why}")),
        }
    }

    fn shown(&self) -> Markup {
        html! {
            @match self {
                Self::Text(text) => (layout::block(text, MAX_SHORT)),
                Self::Note(text) => p.quiet { (layout::line(text, 2 * MAX_SHORT)) },
                Self::Picture { label, address } => figure {
                    img src=(address) alt=(layout::plain(label, 400));
                    figcaption.quiet { (layout::line(label, 400)) }
                },
            }
        }
    }
}

/// Formats a JSON text over several lines; another text stays as it is.
pub(super) fn pretty(text: &str) -> String {
    let value: Option<Value> =
        serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array());
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_beyond_the_fourth_are_named() {
        let picture = Part::Media(Media::new("image/gif", Some("p.gif".to_owned()), b"GIF89a\x01\0\x01\0".to_vec()));
        let mut pictures = 0;
        let shown: Vec<ShownPart> = (0..=MAX_PICTURES).map(|_| ShownPart::of(&picture, &mut pictures)).collect();
        assert!(shown[..MAX_PICTURES].iter().all(|part| matches!(part, ShownPart::Picture { .. })));
        let ShownPart::Note(note) = &shown[MAX_PICTURES] else { panic!("it is shown") };
        assert!(note.starts_with("p.gif, image/gif") && note.contains("more than 4"), "{note}");
    }
}
