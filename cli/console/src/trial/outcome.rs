//! Result of a call that was tried, as far as its page shows it: bounded texts, and pictures.

use maud::{Markup, html};
use toolcrib::call::Decision;
use toolcrib::call::Part;
use toolcrib::{Outcome, Receipt, Runtime, ToolResult};
use toolcrib_agent::runs::ShownPart;
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::{self, counted, shortened};
use toolcrib_settings::permission::limit_hint;
use toolcrib_sources::tool_facts;

use super::super::content;
use super::super::layout::{self, MAX_BLOCK, MAX_LISTED, MAX_WHOLE, ROWS, facts};
use super::super::parts::{PartView, Room};
use super::super::record::{grants, in_words};
use super::super::states::word;
use super::super::visit::Visit;

/// Maximum pictures that are shown.
const MAX_PICTURES: usize = 4;

/// Content of a result's page, within limits.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Outcome, empty for a call that left no result.
    outcome: String,
    content: String,
    display: Option<String>,
    parts: Vec<PartView>,
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

impl Shown {
    /// Views a result, and the parts that its call showed while it ran.
    pub(super) fn of(result: &ToolResult, before: &[ShownPart], runtime: &Runtime) -> Self {
        let receipt = &result.receipt;
        let media = result.media.iter().cloned().map(Part::Media);
        let all: Vec<Part> = media.chain(result.shown.iter().cloned()).collect();
        let mut room = Room { pictures: MAX_PICTURES, text: 10 * MAX_WHOLE };
        let mut parts: Vec<_> = all.iter().take(ROWS).map(|part| PartView::of(part, &mut room)).collect();
        let before = before.iter().map(|part| PartView::of_kept(part, &mut room));
        parts.splice(..0, before.collect::<Vec<_>>());
        let error = result.outcome.as_ref().err();
        let own = runtime.tool(&receipt.tool).map(|tool| &tool.limits);
        let deadline = runtime.limits(&receipt.tool).map(|limits| limits.deadline);
        let hints = error.and_then(|error| limit_hint(error.outcome, own, deadline));
        let wrong = error.filter(|error| error.outcome == Outcome::BadArguments);
        Self {
            outcome: receipt.outcome.as_str().to_owned(),
            content: shortened(&result.content(), MAX_WHOLE).into_owned(),
            display: result.display.as_deref().map(|text| shortened(text, MAX_BLOCK).into_owned()),
            parts,
            left_out: all.len().saturating_sub(ROWS),
            log: shortened(&result.log, MAX_WHOLE).into_owned(),
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
            @if !self.parts.is_empty() {
                h2 { "Parts" }
                @for part in &self.parts { (part.shown()) }
                @if self.left_out > 0 { p.quiet { "and " (counted(self.left_out, "more part")) } }
            }
            h2 { "Result" }
            @if self.content.is_empty() { p.quiet { "empty" } } @else { (content::shown(&self.content, MAX_WHOLE)) }
            @if !self.log.trim().is_empty() {
                h2 { "Standard error of the tool" }
                (layout::block(&self.log, MAX_WHOLE))
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
            (
                "Parts",
                html! {
                    (counted(receipt.parts, "part")) " while it ran"
                    @if receipt.dropped_parts > 0 { span.quiet { ", and " (receipt.dropped_parts) " beyond its limit" } }
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
            all.push(("Decision", decided(decision)));
        }
        for warning in receipt.warnings.iter().take(10) {
            all.push(("Warning", layout::line(warning, 400)));
        }
        all
    }
}

/// Shows a decision in words.
pub(super) fn decided(decision: &Decision) -> Markup {
    let reason = in_words(decision.reason.as_str());
    html! {
        (word(decision.behavior.as_str())) " " (reason)
        @if let Some(rests_on) = &decision.rests_on { ": " code { (layout::line(rests_on, 300)) } }
    }
}
