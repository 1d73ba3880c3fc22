//! State of a run, read from its file: its conversation, the calls that have not begun or not ended, and its end.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;
use toolcrib::flow::Label;

use crate::compaction::Compaction;
use crate::message::{Message, Role};
use crate::turn::Call;

use super::line::{Header, Line, RUN_VERSION, RunFigures};
use super::missing::{BROKEN_OFF, CallState, MissingResult, arriving, broken_off};
use super::shown::ShownPart;

/// A run as it was kept.
#[derive(Debug)]
pub struct KeptRun {
    /// Start of the file.
    pub header: Header,
    /// The conversation. Every call but the `pending` and the `open` ones is answered, in the order of the calls.
    pub messages: Vec<Message>,
    /// Number of leading messages that the file holds. The others are results of the last step, which the file has only
    /// for the `answered` calls, and replacements for the parts that an interruption left open.
    pub(crate) written: usize,
    /// Identifiers of calls with a recorded end in the last step.
    pub(crate) answered: Vec<String>,
    /// Changes outside the conversation: the index of a message with what its call may have changed.
    pub changes: Vec<(usize, String)>,
    /// Label of all that the model has seen.
    pub label: Label,
    /// Parts that calls showed to people, by the identifiers of the calls.
    pub shown: HashMap<String, Vec<ShownPart>>,
    /// Calls of the last step that have not begun; empty in a run that goes on.
    pub pending: Vec<Call>,
    /// Calls of the last step without a result, in a run that goes on.
    pub open: Vec<(Call, CallState)>,
    /// Text of an answer that still arrives, in a run that goes on.
    pub arriving: String,
    /// Summary that the model gets in place of the first messages.
    pub compaction: Option<Compaction>,
    /// Figures of the run.
    pub figures: RunFigures,
    /// State of the run.
    pub state: RunState,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// The process ended it for this reason.
    Ended(String),
    /// The process ended without a word.
    Killed,
    /// A process writes it now.
    Running,
}

impl RunState {
    /// Returns the state in a word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Ended(reason) => reason,
            Self::Killed => "killed",
            Self::Running => "running",
        }
    }
}

/// Calls of the last message, while some are not answered.
#[derive(Debug, Default)]
struct OpenStep {
    calls: Vec<Call>,
    /// `true` once calls are under way.
    under_way: bool,
    /// Identifiers of the calls that have begun.
    begun: HashSet<String>,
    /// Identifiers of the calls that wait for an approval.
    asked: HashSet<String>,
    masked: bool,
    results: HashMap<String, (Message, Option<String>)>,
}

impl OpenStep {
    /// Returns the state of a call without a result.
    fn state(&self, id: &str) -> CallState {
        match (self.begun.contains(id), self.asked.contains(id)) {
            (true, _) => CallState::Begun,
            (false, true) => CallState::AwaitsApproval,
            (false, false) => CallState::NotBegun,
        }
    }
}

impl KeptRun {
    /// Reads the complete lines of a file; `name` is its name in messages. Without a result, a call of a run that `goes_on` is
    /// open, and one of another was interrupted.
    ///
    /// # Errors
    ///
    /// The first line that is damaged, with its number.
    pub(super) fn read(bytes: &[u8], name: &str, goes_on: bool) -> anyhow::Result<Self> {
        let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate();
        let header = header_of(lines.next().map_or(&[][..], |(_, line)| line), name)?;
        if header.version != RUN_VERSION {
            bail!("`{name}`: format {} of a later version; this one reads {RUN_VERSION}", header.version);
        }
        let mut reading = Reading::new(header);
        for (at, line) in lines {
            let place = || format!("`{name}`: line {}", at + 1);
            let line = serde_json::from_slice(line).map_err(|error| anyhow!("{}: {error}", place()))?;
            reading.add(line).with_context(place)?;
        }
        Ok(reading.end(goes_on))
    }

    /// Returns the conversation for a separate run, which makes none of the calls that have not ended here.
    pub(crate) fn copied(mut self) -> Self {
        let open = std::mem::take(&mut self.open).into_iter().map(|(call, _)| call);
        for call in std::mem::take(&mut self.pending).into_iter().chain(open) {
            let at = Message::insert_result(&mut self.messages, MissingResult::OfOrigin.message(&call));
            self.changes.iter_mut().filter(|(index, _)| *index >= at).for_each(|(index, _)| *index += 1);
        }
        let text = std::mem::take(&mut self.arriving);
        self.messages.extend((!text.is_empty()).then(|| broken_off(&text)));
        self
    }

    /// Returns the messages with a result for every call, which every API requires.
    pub fn exported(&self) -> Vec<Message> {
        let pending = self.pending.iter().map(|call| MissingResult::Stopped.message(call));
        let open = self.open.iter().map(|(call, state)| MissingResult::InProgress(*state).message(call));
        let mut messages = self.messages.clone();
        for result in pending.chain(open) {
            Message::insert_result(&mut messages, result);
        }
        messages.extend((!self.arriving.is_empty()).then(|| arriving(&self.arriving)));
        messages
    }

    /// Returns the index of the first prompt.
    pub(crate) fn first_prompt(&self) -> Option<usize> {
        self.messages.iter().position(|message| message.role == Role::User)
    }

    /// Returns the last answer, if the conversation ends with one.
    pub fn answer(&self) -> Option<String> {
        let last = self.messages.last().filter(|last| last.role == Role::Assistant && self.pending.is_empty())?;
        Some(last.shown_text()).filter(|text| !text.ends_with(BROKEN_OFF))
    }

    /// Returns `true` if a text occurs in a message, in any spelling of its letters.
    pub(crate) fn contains(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let is_in = |searched: &str| searched.to_lowercase().contains(&text);
        is_in(&self.arriving) || self.messages.iter().any(|message| is_in(&message.searched_text()))
    }
}

/// Parses the first line of a file; `name` is its name in messages.
///
/// # Errors
///
/// It is not the beginning of a run.
pub(super) fn header_of(line: &[u8], name: &str) -> anyhow::Result<Header> {
    match serde_json::from_slice(line) {
        Ok(Line::Run(header)) => Ok(header),
        _ => bail!("`{name}`: line 1 is not the beginning of a run"),
    }
}

/// A run while its lines are read.
struct Reading {
    run: KeptRun,
    step: Option<OpenStep>,
    /// Text of the answer that still arrives.
    text: String,
}

impl Reading {
    fn new(header: Header) -> Self {
        let run = KeptRun {
            header,
            messages: Vec::new(),
            written: 0,
            answered: Vec::new(),
            changes: Vec::new(),
            label: Label::default(),
            shown: HashMap::new(),
            pending: Vec::new(),
            open: Vec::new(),
            arriving: String::new(),
            compaction: None,
            figures: RunFigures { undone: Some(false), ..RunFigures::default() },
            state: RunState::Killed,
        };
        Self { run, step: None, text: String::new() }
    }

    fn add(&mut self, line: Line) -> anyhow::Result<()> {
        self.run.state = match &line {
            Line::End { reason, .. } => RunState::Ended(reason.clone()),
            _ => RunState::Killed,
        };
        if let Some(stated) = line.figures() {
            (self.run.figures.ms, self.run.figures.cost) = (stated.ms, stated.cost);
        }
        match line {
            Line::Run(_) => bail!("the beginning of another run"),
            Line::Message { message, masked, change, shown, .. } => self.message(message, (masked, change, shown))?,
            Line::Calls { ids, singly } => {
                let has = |step: &OpenStep, id: &String| step.calls.iter().any(|call| call.id == *id);
                let Some(step) = self.step.as_mut().filter(|step| ids.iter().all(|id| has(step, id))) else {
                    bail!("calls without their message");
                };
                step.under_way = true;
                step.asked.retain(|id| !ids.contains(id));
                if !singly {
                    step.begun.extend(ids);
                }
            }
            Line::Asked { id } => {
                let step = self.step_under_way(&id)?;
                step.begun.remove(&id);
                step.asked.insert(id);
            }
            Line::Begun { id } => {
                let step = self.step_under_way(&id)?;
                step.asked.remove(&id);
                step.begun.insert(id);
            }
            Line::Label(label) => self.run.label.join(&label),
            Line::Text { text } => self.text += &text,
            Line::Void => self.text.clear(),
            Line::Usage(usage) => self.run.figures.add_usage(usage),
            Line::Compacted { messages, summary } => {
                if messages > self.run.messages.len() {
                    bail!("a summary of {messages} messages, and {} came before", self.run.messages.len());
                }
                self.run.compaction = Some(Compaction { messages, summary });
            }
            Line::Undo { messages, .. } => {
                self.run.compaction.take_if(|compaction| !compaction.survives(messages));
                self.end_step();
                self.text.clear();
                self.run.figures.undone = Some(true);
                self.run.messages.truncate(messages);
                self.run.changes.retain(|(index, _)| *index < messages);
            }
            Line::Resumed { .. } | Line::End { .. } => self.text.clear(),
        }
        Ok(())
    }

    /// Returns the last step, if it is under way and has this call.
    fn step_under_way(&mut self, id: &str) -> anyhow::Result<&mut OpenStep> {
        let has_call = |step: &&mut OpenStep| step.under_way && step.calls.iter().any(|call| call.id == id);
        self.step.as_mut().filter(has_call).context("the start of an unknown call")
    }

    fn message(
        &mut self,
        message: Value,
        (masked, change, shown): (bool, Option<String>, Vec<ShownPart>),
    ) -> anyhow::Result<()> {
        let message: Message = serde_json::from_value(message)?;
        if let Some(id) = message.answered_call() {
            let Some(step) = self.step.as_mut().filter(|step| step.calls.iter().any(|call| call.id == id)) else {
                bail!("the result of an unknown call");
            };
            self.run.figures.add_message(&message);
            // Another step may have a call with the same identifier.
            match shown.is_empty() {
                true => drop(self.run.shown.remove(id)),
                false => drop(self.run.shown.insert(id.to_owned(), shown)),
            }
            step.results.insert(id.to_owned(), (message, change));
            return Ok(());
        }
        self.end_step();
        self.text.clear();
        let calls = message.calls();
        self.run.figures.add_message(&message);
        self.run.messages.push(message);
        if !calls.is_empty() {
            self.step = Some(OpenStep { calls, masked, ..OpenStep::default() });
        }
        Ok(())
    }

    /// Adds the results of the last step, in call order. A call without a result was interrupted if it had begun;
    /// otherwise it is pending, or not made if its arguments were not kept.
    fn close(&mut self) {
        let Some(mut step) = self.step.take() else { return };
        for call in std::mem::take(&mut step.calls) {
            let (missing, change) = match (step.results.remove(&call.id), step.state(&call.id)) {
                (Some((message, change)), _) => {
                    self.push_result(message, change);
                    continue;
                }
                (None, CallState::Begun) => (MissingResult::Interrupted, Some(format!("{} (interrupted)", call.name))),
                (None, _) if step.masked => (MissingResult::Masked, None),
                (None, _) => {
                    self.run.pending.push(call);
                    continue;
                }
            };
            self.push_result(missing.message(&call), change);
        }
    }

    /// Adds the results of the last step, and leaves its other calls open.
    fn leave_open(&mut self) {
        let Some(mut step) = self.step.take() else { return };
        for call in std::mem::take(&mut step.calls) {
            match step.results.remove(&call.id) {
                Some((message, change)) => self.push_result(message, change),
                None => {
                    let state = step.state(&call.id);
                    self.run.open.push((call, state));
                }
            }
        }
    }

    /// Ends the last step before what follows it: a call without a result was not made.
    fn end_step(&mut self) {
        self.close();
        for call in std::mem::take(&mut self.run.pending) {
            let at = Message::insert_result(&mut self.run.messages, MissingResult::Stopped.message(&call));
            self.run.changes.iter_mut().filter(|(index, _)| *index >= at).for_each(|(index, _)| *index += 1);
        }
    }

    fn push_result(&mut self, message: Message, change: Option<String>) {
        self.run.changes.extend(change.map(|change| (self.run.messages.len(), change)));
        self.run.messages.push(message);
    }

    fn end(mut self, goes_on: bool) -> KeptRun {
        self.run.written = self.run.messages.len();
        if let Some(step) = &self.step {
            self.run.answered = step.results.keys().cloned().collect();
            if goes_on { self.leave_open() } else { self.close() }
        }
        match (self.text.trim().is_empty(), goes_on) {
            (true, _) => {}
            (false, true) => self.run.arriving = self.text,
            (false, false) => self.run.messages.push(broken_off(&self.text)),
        }
        if goes_on {
            self.run.state = RunState::Running;
        }
        self.run.figures.title = self.run.first_prompt().map(|index| RunFigures::title_of(&self.run.messages[index]));
        self.run
    }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
