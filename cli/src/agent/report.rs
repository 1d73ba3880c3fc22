//! Tells what happens in a run: to a program as one event a line on standard output, to a person as the answer on
//! standard output and a trace on standard error. What came from outside is inert there. It decides nothing.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use anyhow::Context;
use reqwest::Url;

use super::event::{Below, Ending, Event, Told, ToolResult, Totals};
use super::turn::Turn;
use crate::media::MediaFolder;
use crate::options::is_maskable;
use crate::render::{self, Tone, legible, one_line, ours, paint, shortened};
use crate::telemetry::AgentSpan;
use crate::watch;

/// How wide a line of the trace may be where standard error is no terminal, in characters.
const WIDTH: usize = 160;
/// The most characters that are shown of the name that a model calls.
const MAX_NAME: usize = 80;

/// To whom a run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A program: one event a line.
    Program,
    /// A person.
    Person(Detail),
}

/// How much a person is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// The answer, warnings and errors.
    Quiet,
    /// Calls, results and totals too.
    Trace,
    /// And what tools write to standard error, usage by step, and nothing cut.
    Verbose,
}

/// Where a run is told.
#[derive(Debug)]
pub(crate) struct Report {
    audience: Audience,
    debug: bool,
    secrets: Vec<String>,
    /// Whose report it is, where a task was handed on.
    below: Option<Below>,
    /// Where media are saved that tools show, if anywhere.
    media: Option<Arc<MediaFolder>>,
    /// Who traces the run, if somebody does.
    span: Option<AgentSpan>,
    /// Whether text was streamed in the answer that arrives, and whether its last line is still open.
    streamed: bool,
    line_open: bool,
}

impl Report {
    /// A report to `audience`; with `debug`, requests and answers go to standard error, `secrets` masked.
    pub(crate) fn new(audience: Audience, debug: bool, secrets: Vec<String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|secret| is_maskable(secret)).collect();
        // A secret that holds another is masked whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { audience, debug, secrets, below: None, media: None, span: None, streamed: false, line_open: false }
    }

    /// The same report, which saves media that tools show.
    pub(crate) fn saving(self, media: Option<Arc<MediaFolder>>) -> Self {
        Self { media, ..self }
    }

    /// The same report, to `span` too.
    pub(crate) fn traced(self, span: Option<AgentSpan>) -> Self {
        Self { span, ..self }
    }

    /// The report of an agent below, told where this one is told.
    pub(crate) fn below(&self, below: Below) -> Self {
        Self {
            secrets: self.secrets.clone(),
            below: Some(below),
            media: self.media.clone(),
            span: self.span.as_ref().map(AgentSpan::below),
            streamed: false,
            line_open: false,
            ..*self
        }
    }

    /// Tells one event.
    pub(crate) fn emit(&mut self, event: &Event<'_>) -> anyhow::Result<()> {
        if let Some(span) = &mut self.span {
            span.hear(event);
        }
        match self.audience {
            Audience::Program => {
                let told = Told { event, below: self.below };
                render::print_json(&serde_json::to_string(&told).context("cannot write an event as JSON")?)?;
                if self.below.is_some() {
                    return Ok(());
                }
                if let Event::End { reason: Ending::MaxSteps, totals, .. } = event {
                    render::aside(&out_of_steps(totals));
                }
                Ok(())
            }
            Audience::Person(detail) => self.tell(event, detail),
        }
    }

    /// Tells whoever traces the run that the model is asked, behind `server` or in a script.
    pub(crate) fn asked(&mut self, step: u32, server: Option<&Url>) {
        if let Some(span) = &mut self.span {
            span.asked(step, server);
        }
    }

    /// Tells whoever traces the run of the answer, or of the kind of failure there was instead.
    pub(crate) fn answered(&mut self, end: Result<&Turn, &str>) {
        if let Some(span) = &mut self.span {
            span.answered(end);
        }
    }

    /// Tells that something was not as asked for.
    pub(crate) fn warn(&mut self, message: &str) -> anyhow::Result<()> {
        self.emit(&Event::Warning { message })
    }

    /// Tells what travels, where that was asked for.
    pub(crate) fn debug(&mut self, what: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.debug {
            self.close_line()?;
            render::aside(&format!("debug: {}", self.masked(&what())));
        }
        Ok(())
    }

    /// `text` without the secrets in it.
    pub(crate) fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets.iter().fold(Cow::Borrowed(text), |text, secret| match text.contains(secret.as_str()) {
            true => Cow::Owned(text.replace(secret.as_str(), "***")),
            false => text,
        })
    }

    fn tell(&mut self, event: &Event<'_>, detail: Detail) -> anyhow::Result<()> {
        if let Event::Text { delta, .. } = event {
            return self.stream(delta);
        }
        self.close_line()?;
        let traced = detail >= Detail::Trace;
        let margin = self.margin();
        let is_below = self.below.is_some();
        match event {
            Event::Message { content, r#final, .. } => {
                let shown = std::mem::take(&mut self.streamed);
                match (*r#final && !is_below, shown) {
                    (true, false) => render::print(legible(content).trim_end_matches('\n'))?,
                    (false, false) if traced => render::quoted(&format!("{margin}·"), content),
                    _ => {}
                }
            }
            Event::Start { model, tools, .. } if detail == Detail::Verbose => {
                render::aside(&format!("model `{model}`, {}", counted(tools.len() as u64, "tool")));
            }
            Event::ToolCall { name, arguments, .. } if traced => {
                let name = one_line(&shortened(name, MAX_NAME));
                let arguments = fitting(name.chars().count() + 3, arguments, detail);
                ours(&format!("{} {name} {arguments}", quiet(&format!("{margin}→"))));
            }
            Event::ToolPreview { text, .. } if traced => render::quoted(&format!("{margin}?"), text),
            Event::ToolPart { name, ms, part, .. } if traced => {
                let text = watch::text_of(part, self.media.as_deref());
                let shown = fitting(name.chars().count() + 16, &text, detail);
                render::quoted(&format!("{margin}┊ {} {}", milliseconds(*ms), one_line(name)), &shown);
            }
            Event::ToolResult(result) if traced => {
                told(&margin, result, detail);
                render::dropped(result.receipt);
                for part in result.shown {
                    render::quoted(&format!("{margin}|"), &watch::text_of(part, self.media.as_deref()));
                }
            }
            Event::Usage { usage, .. } if detail == Detail::Verbose => {
                render::aside(&format!("{} + {} tokens", usage.prompt_tokens, usage.completion_tokens));
            }
            Event::Retry { attempt, attempts, wait_ms, reason, .. } => {
                self.streamed = false;
                if traced {
                    render::aside(&format!("{reason}; retrying in {wait_ms} ms (attempt {attempt} of {attempts})"));
                }
            }
            Event::Warning { message } => render::warning(message),
            Event::End { reason, totals, .. } => {
                if traced {
                    ours(&quiet(&format!("{margin}{}", summary(totals))));
                }
                match reason {
                    // What became of the task is told by the result of the call that handed it on.
                    _ if is_below => {}
                    Ending::Answer => {}
                    Ending::MaxSteps => render::aside(&out_of_steps(totals)),
                    Ending::Interrupted => render::aside("info: interrupted"),
                }
            }
            Event::Error { message, .. } if is_below => {
                render::warning(&format!("a delegated agent failed: {message}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// What the lines of an agent below begin with.
    fn margin(&self) -> String {
        "│ ".repeat(self.below.map_or(0, |below| below.depth as usize))
    }

    fn stream(&mut self, delta: &str) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let text = legible(delta);
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            // Whether it is a failure that nobody reads on is not decided here.
            drop(out);
            return render::print("");
        }
        self.streamed = true;
        self.line_open = !text.ends_with('\n');
        Ok(())
    }

    fn close_line(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.line_open) { render::print("") } else { Ok(()) }
    }
}

fn told(margin: &str, result: &ToolResult<'_>, detail: Detail) {
    let outcome = result.receipt.outcome.as_str();
    let took = format!(" {}", milliseconds(result.receipt.ms));
    let name = if result.alone { String::new() } else { format!("{} ", one_line(result.name)) };
    let tone = if result.is_error { Tone::Bad } else { Tone::Good };
    let painted = paint(tone, outcome, io::stderr().is_terminal());
    let width = outcome.len() + took.len() + name.chars().count() + 4;
    let content = fitting(width, result.content, detail);
    ours(&format!("{} {painted}{took}  {name}{}", quiet(&format!("{margin}←")), quiet(&content)));
    render::executed(&result.receipt.executed);
    if detail == Detail::Verbose && !result.log.is_empty() {
        render::quoted("|", result.log);
    }
    render::flags(&result.receipt.flags);
    if result.is_error || detail == Detail::Verbose {
        render::denials(&result.receipt.denied);
    }
    if let Some(hint) = result.hint {
        render::hint(hint);
    }
}

/// As much of `text` as fits on one line beside `width` characters.
fn fitting(width: usize, text: &str, detail: Detail) -> String {
    let most = if detail == Detail::Verbose { usize::MAX } else { line_width().saturating_sub(width).max(20) };
    // Cut first: a result may be a megabyte.
    let line = one_line(&shortened(text, most));
    shortened(&line, most).into_owned()
}

fn line_width() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(WIDTH, |(width, _)| usize::from(width.0))
}

fn quiet(text: &str) -> Cow<'_, str> {
    paint(Tone::Quiet, text, io::stderr().is_terminal())
}

fn out_of_steps(totals: &Totals) -> String {
    format!("error: stopped after {} without a final answer", counted(totals.steps.into(), "step"))
}

fn summary(totals: &Totals) -> String {
    let mut parts = vec![counted(totals.steps.into(), "step"), counted(totals.calls, "call")];
    if totals.failed_calls > 0 {
        parts[1] += &format!(" ({} failed)", totals.failed_calls);
    }
    if let Some(usage) = totals.usage {
        parts.push(format!("{} + {} tokens", usage.prompt_tokens, usage.completion_tokens));
    }
    parts.push(milliseconds(totals.ms as f64));
    parts.join(" · ")
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn milliseconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.1} ms") } else { format!("{:.1} s", ms / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_wherever_it_stands() {
        let report =
            Report::new(Audience::Person(Detail::Trace), true, vec!["sk-1".into(), "sk-123456".into(), "ab".into()]);
        assert_eq!(report.masked("key sk-123456, sk-1, abc"), "key ***, ***, abc");
    }
}
