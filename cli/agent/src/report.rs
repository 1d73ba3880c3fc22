//! Reports a run: for programs as one JSON event per line on standard output, for people as the answer on standard output
//! and a trace on standard error. Text from outside is made inert.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use anyhow::Context;
use reqwest::Url;
use toolcrib_base::progress::{self, Spinner};
use toolcrib_base::render::{self, AnswerStream, counted, one_line, ours, shortened};
use toolcrib_settings::permission::{DenyFlags, FolderHints, KeyAnswer, ask_person_key, can_ask};
use toolcrib_sources::media::MediaFolder;
use toolcrib_sources::options::is_maskable;

use super::budget::UsedUp;
use super::event::{Ending, Event, EventLine, Subagent, Totals};
use super::keeper::Keeper;
use super::trace_line::{fitting, milliseconds, print_result, quiet, quiet_lines};
use super::turn::Turn;
use super::unfinished::UnfinishedAnswer;
use crate::telemetry::AgentSpan;
use crate::watch;

/// Maximum characters shown of a called name.
const MAX_NAME: usize = 80;

/// Audience of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A program: one JSON event per line.
    Program,
    /// A person.
    Person(Detail),
}

/// Level of detail for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The answer, warnings and errors.
    Quiet,
    /// Also calls, results and totals.
    Trace,
    /// Also standard error of tools and usage per step; nothing is cut.
    Verbose,
}

/// Reports the events of a run.
#[derive(Debug)]
pub struct Report {
    audience: Audience,
    debug: bool,
    secrets: Vec<String>,
    /// Subagent that the report belongs to, if any.
    below: Option<Subagent>,
    /// Folder for media.
    media: Option<Arc<MediaFolder>>,
    /// Trace span of the run, if tracing is enabled.
    span: Option<AgentSpan>,
    /// Flags that hints about denials name.
    deny_flags: DenyFlags,
    /// Hints about the folders of tools.
    folders: FolderHints,
    /// Command that goes on with a kept run.
    command: &'static str,
    /// Text of the current answer, which the kept run gets too.
    unfinished: UnfinishedAnswer,
    /// Spinner while the model has not begun to answer.
    spinner: Option<Spinner>,
    /// `true` if text of the current answer was streamed.
    streamed: bool,
    /// Text of the current answer on standard output.
    answer: AnswerStream,
}

impl Report {
    /// Creates a report. With `debug`, requests and responses go to standard error with `secrets` masked.
    pub fn new(audience: Audience, debug: bool, mut secrets: Vec<String>) -> Self {
        secrets.retain(|secret| is_maskable(secret));
        // Longer secrets first, since one may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self {
            audience,
            debug,
            secrets,
            below: None,
            media: None,
            span: None,
            deny_flags: DenyFlags::default(),
            folders: FolderHints::default(),
            command: "run",
            unfinished: UnfinishedAnswer::default(),
            spinner: None,
            streamed: false,
            answer: AnswerStream::new(),
        }
    }

    /// Sets the keeper of the run, and the command that goes on with it.
    pub fn kept(self, keeper: Option<Keeper>, command: &'static str) -> Self {
        Self { unfinished: UnfinishedAnswer::kept(keeper), command, ..self }
    }

    /// Sets the flags that hints about denials name.
    pub fn naming(self, deny_flags: DenyFlags) -> Self {
        Self { deny_flags, ..self }
    }

    /// Sets the hints about the folders of tools.
    pub fn placing(self, folders: FolderHints) -> Self {
        Self { folders, ..self }
    }

    /// Sets the folder for media.
    pub fn saving(self, media: Option<Arc<MediaFolder>>) -> Self {
        Self { media, ..self }
    }

    /// Sets the trace span.
    pub fn traced(self, span: Option<AgentSpan>) -> Self {
        Self { span, ..self }
    }

    /// Creates the report of a subagent.
    pub(crate) fn below(&self, below: Subagent) -> Self {
        Self {
            secrets: self.secrets.clone(),
            below: Some(below),
            media: self.media.clone(),
            span: self.span.as_ref().map(AgentSpan::below),
            deny_flags: self.deny_flags.clone(),
            folders: self.folders.clone(),
            unfinished: UnfinishedAnswer::default(),
            spinner: None,
            streamed: false,
            answer: AnswerStream::new(),
            ..*self
        }
    }

    /// Reports one event.
    pub fn emit(&mut self, event: &Event<'_>) -> anyhow::Result<()> {
        self.spinner = None;
        self.unfinished.follow(event)?;
        if let Some(span) = &mut self.span {
            span.observe(event);
        }
        match self.audience {
            Audience::Program => {
                let line = EventLine { event, below: self.below };
                render::print_json(&serde_json::to_string(&line).context("cannot write an event as JSON")?)?;
                if self.below.is_some() {
                    return Ok(());
                }
                if let Event::End { reason: Ending::MaxSteps | Ending::Budget(_), totals, stopped, .. } = event {
                    self.explain_stop(totals, *stopped);
                }
                Ok(())
            }
            Audience::Person(detail) => self.print(event, detail),
        }
    }

    /// Prepares for the next answer of a model: shows a spinner until it begins.
    pub(crate) fn begin_answer(&mut self, model: &str) {
        self.unfinished.begin();
        self.spinner = None;
        let is_traced = matches!(self.audience, Audience::Person(detail) if detail >= Detail::Trace);
        if is_traced && self.below.is_none() && !self.debug {
            self.spinner = progress::spinner(&format!("waiting for {}", one_line(&shortened(model, MAX_NAME))));
        }
    }

    /// Ends the current answer; returns its text so far if it is not empty.
    pub(crate) fn end_answer(&mut self) -> Option<String> {
        self.spinner = None;
        // A closed output shows when more is printed.
        let _ = self.close_line();
        self.unfinished.end()
    }

    /// Asks a person at the terminal whether to go on although a budget is used up; `false` if there is nobody.
    pub(crate) async fn ask_to_go_on(&mut self, used_up: &UsedUp, totals: &Totals) -> anyhow::Result<bool> {
        self.spinner = None;
        if self.audience == Audience::Program || self.below.is_some() || !can_ask() {
            return Ok(false);
        }
        self.close_line()?;
        render::aside(&format!("\n{}: {used_up}.", summary(totals)));
        let question = format!("Raise the budget by {} and continue? [y]es, or [N]o? ", used_up.limit());
        Ok(ask_person_key(&question, &['y']).await == KeyAnswer::Key('y'))
    }

    /// Returns `true` if text of the answer was shown. A subagent's text is not: no run goes on from it.
    pub(crate) fn has_text(&self) -> bool {
        self.below.is_none() && self.unfinished.has_text()
    }

    /// Returns the command that goes on with a kept run. It names the run: `--continue` may find a later one of the folder.
    pub fn resume_command(&self) -> Option<String> {
        self.unfinished.keeper().map(|keeper| format!("toolcrib {} --resume {}", self.command, keeper.id()))
    }

    /// Returns `true` in a chat, which goes on after an error.
    pub(crate) fn is_chat(&self) -> bool {
        self.command == "chat"
    }

    /// Returns `true` if the trace is short: in a chat at a terminal.
    pub(crate) fn is_brief(&self) -> bool {
        self.is_chat() && self.audience == Audience::Person(Detail::Trace) && io::stderr().is_terminal()
    }

    /// Says why a run stopped without an answer, and how to go on.
    fn explain_stop(&self, totals: &Totals, stopped: Option<&str>) {
        match stopped {
            Some(stopped) => render::aside(&format!("error: stopped: {stopped}")),
            None => {
                render::aside(&format!("error: stopped after {} without a final answer", counted(totals.steps, "step")))
            }
        }
        self.explain_resume();
    }

    /// Says how to go on with a kept run.
    fn explain_resume(&self) {
        let keeper = self.unfinished.keeper().filter(|keeper| !keeper.is_empty());
        if let (Some(command), Some(_)) = (self.resume_command(), keeper) {
            render::hint(&format!("run saved; continue: `{command}` (repeat your options)"));
        }
    }

    /// Records a request to `server` or to a script in the trace.
    pub(crate) fn asked(&mut self, step: u32, server: Option<&Url>) {
        if let Some(span) = &mut self.span {
            span.asked(step, server);
        }
    }

    /// Records in the trace the answer or the kind of error.
    pub(crate) fn answered(&mut self, end: Result<&Turn, &str>) {
        if let Some(span) = &mut self.span {
            span.answered(end);
        }
    }

    /// Reports a warning.
    pub fn warn(&mut self, message: &str) -> anyhow::Result<()> {
        self.emit(&Event::Warning { message })
    }

    /// Reports request and response data if `debug` is set.
    pub(crate) fn debug(&mut self, what: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.debug {
            self.spinner = None;
            self.close_line()?;
            render::aside(&format!("debug: {}", self.masked(&what())));
        }
        Ok(())
    }

    /// Masks the secrets in `text`.
    pub(crate) fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets.iter().fold(Cow::Borrowed(text), |text, secret| match text.contains(secret.as_str()) {
            true => Cow::Owned(text.replace(secret.as_str(), "***")),
            false => text,
        })
    }

    fn print(&mut self, event: &Event<'_>, detail: Detail) -> anyhow::Result<()> {
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
                    (true, false) => render::print_answer(content)?,
                    (false, false) if traced => render::quoted(&format!("{margin}·"), content),
                    _ => {}
                }
            }
            Event::Start { model, tools, .. } if detail == Detail::Verbose => {
                render::aside(&format!("model `{model}`, {}", counted(tools.len(), "tool")));
            }
            Event::ToolCall { name, arguments, .. } if traced => {
                let name = one_line(&shortened(name, MAX_NAME));
                let arguments = fitting(name.chars().count() + 3, arguments, detail);
                ours(&format!("{} {name} {arguments}", quiet(&render::spoken(&format!("{margin}→")))));
            }
            Event::ToolPreview { text, .. } if traced => render::quoted(&format!("{margin}»"), text),
            Event::ToolPart { name, ms, part, .. } if traced => {
                let text = watch::text_of(part, self.media.as_deref());
                let shown = fitting(name.chars().count() + 16, &text, detail);
                render::quoted(&format!("{margin}┊ {} {}", milliseconds(*ms), one_line(name)), &shown);
            }
            Event::ToolHooks { name, hooks, .. } if traced => render::hooks(&margin, name, hooks),
            Event::TextHooks { event, hooks } if traced => render::hooks(&margin, event, hooks),
            Event::ToolResult(result) if traced => {
                print_result(&margin, result, detail, &self.deny_flags);
                self.folders.take(result.receipt).iter().for_each(|hint| render::hint(hint));
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
            Event::Compacted { messages, before, after } => {
                let messages = counted(*messages, "message");
                render::aside(&format!(
                    "compacted: a summary replaces {messages}; context {before} → about {after} tokens"
                ));
            }
            Event::Warning { message } => render::warning(message),
            Event::End { reason, totals, stopped, .. } => {
                if traced {
                    ours(&quiet_lines(&format!("{margin}{}", summary(totals))));
                }
                match reason {
                    // The result of the delegating call reports the outcome.
                    _ if is_below => {}
                    Ending::Answer => {}
                    Ending::MaxSteps | Ending::Budget(_) => self.explain_stop(totals, *stopped),
                    Ending::Interrupted => {
                        render::aside("info: interrupted");
                        self.explain_resume();
                    }
                }
            }
            Event::Error { message, .. } if is_below => {
                render::warning(&format!("a delegated agent failed: {message}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the line prefix of a subagent.
    fn margin(&self) -> String {
        "│ ".repeat(self.below.map_or(0, |below| below.depth as usize))
    }

    fn stream(&mut self, delta: &str) -> anyhow::Result<()> {
        self.streamed = true;
        self.answer.write(delta)
    }

    fn close_line(&mut self) -> anyhow::Result<()> {
        self.answer.close()
    }
}

fn summary(totals: &Totals) -> String {
    let mut parts = vec![counted(totals.steps, "step"), counted(totals.calls, "call")];
    parts[1] += &match (totals.failed_calls, totals.denied_calls) {
        (0, _) => String::new(),
        (failed, 0) => format!(" ({failed} failed)"),
        (failed, denied) if failed == denied => format!(" ({denied} denied)"),
        (failed, denied) => format!(" ({failed} failed, {denied} of them denied)"),
    };
    if totals.calls > 0 && totals.denied_calls == totals.calls {
        parts.push("every call was denied".to_owned());
    }
    if let Some(usage) = totals.usage {
        parts.push(format!("{} + {} tokens", usage.prompt_tokens, usage.completion_tokens));
    }
    if let Some(cost) = totals.cost {
        parts.push(format!("cost {cost:.6}"));
    }
    parts.push(milliseconds(totals.ms as f64));
    parts.join(" · ")
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
