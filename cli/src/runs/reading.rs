//! State of a run from the lines of its file: its conversation, the calls that have not begun or not ended, and its end.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;

use crate::agent::message::{Message, Role};
use crate::agent::turn::Call;

use super::line::{Header, Line, RUN_VERSION, RunFigures};
use super::missing::{BROKEN_OFF, CallState, MissingResult, arriving, broken_off};

/// A run as it was kept.
#[derive(Debug)]
pub(crate) struct KeptRun {
    pub(crate) header: Header,
    /// The conversation. Every call but the `pending` and the `open` ones is answered.
    pub(crate) messages: Vec<Message>,
    /// Number of the first messages that the file holds. The others are results of the last step, of which the file has those
    /// of the `answered` calls, and what stands for the parts that an interruption left open.
    pub(crate) written: usize,
    /// Identifiers of the calls of the last step with a recorded end.
    pub(crate) answered: Vec<String>,
    /// Changes outside the conversation: the index of a message with what its call may have changed.
    pub(crate) changes: Vec<(usize, String)>,
    /// Calls of the last message, none of which has begun; empty in a run that goes on.
    pub(crate) pending: Vec<Call>,
    /// Calls of the last step without a result, in a run that goes on.
    pub(crate) open: Vec<(Call, CallState)>,
    /// Text of an answer that still arrives, in a run that goes on.
    pub(crate) arriving: String,
    pub(crate) figures: RunFigures,
    pub(crate) state: RunState,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunState {
    /// The process ended it for this reason.
    Ended(String),
    /// The process ended without a word.
    Killed,
    /// A process writes it now.
    Running,
}

impl RunState {
    /// Returns the state in a word.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Ended(reason) => reason,
            Self::Killed => "killed",
            Self::Running => "running",
        }
    }
}

/// Calls of the last message, while not all of them are answered.
#[derive(Debug, Default)]
struct OpenStep {
    calls: Vec<Call>,
    begun: bool,
    /// Identifiers of the calls that wait for an approval, although the others have begun.
    asked: HashSet<String>,
    masked: bool,
    results: HashMap<String, (Message, Option<String>)>,
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

    /// Returns the conversation for a run of its own, which makes none of the calls that have not ended here.
    pub(crate) fn copied(mut self) -> Self {
        let open = std::mem::take(&mut self.open).into_iter().map(|(call, _)| call);
        for call in std::mem::take(&mut self.pending).into_iter().chain(open) {
            self.messages.push(MissingResult::OfOrigin.message(&call));
        }
        let text = std::mem::take(&mut self.arriving);
        self.messages.extend((!text.is_empty()).then(|| broken_off(&text)));
        self
    }

    /// Returns the messages with a result for every call, which every API requires.
    pub(crate) fn exported(&self) -> Vec<Message> {
        let pending = self.pending.iter().map(|call| MissingResult::Stopped.message(call));
        let open = self.open.iter().map(|(call, state)| MissingResult::InProgress(*state).message(call));
        let text = (!self.arriving.is_empty()).then(|| arriving(&self.arriving));
        self.messages.iter().cloned().chain(pending).chain(open).chain(text).collect()
    }

    /// Returns the index of the first prompt.
    pub(crate) fn first_prompt(&self) -> Option<usize> {
        self.messages.iter().position(|message| message.role == Role::User)
    }

    /// Returns the last answer, if the conversation ends with one.
    pub(crate) fn answer(&self) -> Option<String> {
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
            pending: Vec::new(),
            open: Vec::new(),
            arriving: String::new(),
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
        match line {
            Line::Run(_) => bail!("the beginning of another run"),
            Line::Message { message, masked, change, .. } => self.message(message, masked, change)?,
            Line::Calls { ids } => {
                let Some(step) = self.step.as_mut().filter(|step| step.calls.iter().all(|call| ids.contains(&call.id)))
                else {
                    bail!("calls of no message");
                };
                step.begun = true;
            }
            Line::Asked { id } => {
                self.begun_step(&id)?.asked.insert(id);
            }
            Line::Begun { id } => {
                self.begun_step(&id)?.asked.remove(&id);
            }
            Line::Text { text } => self.text += &text,
            Line::Void => self.text.clear(),
            Line::Usage(usage) => self.run.figures.add_usage(usage),
            Line::Undo { messages, .. } => {
                self.close();
                self.text.clear();
                self.run.figures.undone = Some(true);
                self.run.messages.truncate(messages);
                self.run.changes.retain(|(index, _)| *index < messages);
            }
            Line::Resumed { .. } | Line::End { .. } => self.text.clear(),
        }
        Ok(())
    }

    /// Returns the last step, if this call is among its calls that have begun.
    fn begun_step(&mut self, id: &str) -> anyhow::Result<&mut OpenStep> {
        let has_begun = |step: &&mut OpenStep| step.begun && step.calls.iter().any(|call| call.id == id);
        self.step.as_mut().filter(has_begun).context("an approval of no call")
    }

    fn message(&mut self, message: Value, masked: bool, change: Option<String>) -> anyhow::Result<()> {
        let message: Message = serde_json::from_value(message)?;
        if let Some(id) = message.answered_call() {
            let Some(step) = self.step.as_mut().filter(|step| step.calls.iter().any(|call| call.id == id)) else {
                bail!("a result of no call");
            };
            self.run.figures.add_message(&message);
            step.results.insert(id.to_owned(), (message, change));
            return Ok(());
        }
        self.close();
        self.text.clear();
        let calls = message.calls();
        self.run.figures.add_message(&message);
        self.run.messages.push(message);
        if !calls.is_empty() {
            self.step = Some(OpenStep { calls, masked, ..OpenStep::default() });
        }
        Ok(())
    }

    /// Adds the results of the last step, in the order of its calls, and those that stand for missing ones.
    fn close(&mut self) {
        let Some(OpenStep { calls, begun, asked, masked, mut results }) = self.step.take() else { return };
        for call in calls {
            let (message, change) = results.remove(&call.id).unwrap_or_else(|| {
                let has_begun = begun && !asked.contains(&call.id);
                let missing = match begun {
                    true if !has_begun => MissingResult::NotApproved,
                    false if masked => MissingResult::Masked,
                    _ => MissingResult::Interrupted,
                };
                let change = has_begun.then(|| format!("{} (interrupted)", call.name));
                (missing.message(&call), change)
            });
            self.push_result(message, change);
        }
    }

    /// Adds the results of the last step, and leaves its other calls open.
    fn leave_open(&mut self) {
        let Some(OpenStep { calls, begun, asked, mut results, .. }) = self.step.take() else { return };
        for call in calls {
            match results.remove(&call.id) {
                Some((message, change)) => self.push_result(message, change),
                None => {
                    let state = match begun {
                        false => CallState::NotBegun,
                        true if asked.contains(&call.id) => CallState::AwaitsApproval,
                        true => CallState::Begun,
                    };
                    self.run.open.push((call, state));
                }
            }
        }
    }

    fn push_result(&mut self, message: Message, change: Option<String>) {
        self.run.changes.extend(change.map(|change| (self.run.messages.len(), change)));
        self.run.messages.push(message);
    }

    fn end(mut self, goes_on: bool) -> KeptRun {
        self.run.written = self.run.messages.len();
        match &mut self.step {
            Some(step) if !goes_on && !step.begun && !step.masked && step.results.is_empty() => {
                self.run.pending = std::mem::take(&mut step.calls);
                self.step = None;
            }
            Some(step) => {
                self.run.answered = step.results.keys().cloned().collect();
                if goes_on { self.leave_open() } else { self.close() }
            }
            None => {}
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
mod tests {
    use serde_json::json;

    use super::*;

    fn header() -> Value {
        json!({ "type": "run", "version": 1, "id": "7k3md-x0q9a", "created": "2026-01-31T12:00:00Z", "door": "run",
            "model": "m", "folder": "/work" })
    }

    fn read(lines: &[Value]) -> anyhow::Result<KeptRun> {
        KeptRun::read(text(lines).as_bytes(), "a", false)
    }

    fn text(lines: &[Value]) -> String {
        [&[header()], lines].concat().iter().map(|line| format!("{line}\n")).collect()
    }

    fn message(message: Value) -> Value {
        json!({ "type": "message", "message": message })
    }

    fn two_calls() -> Value {
        let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "t", "arguments": "{}" } });
        message(json!({ "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] }))
    }

    fn result(id: &str) -> Value {
        message(json!({ "role": "tool", "content": "done", "tool_call_id": id }))
    }

    fn roles(run: &KeptRun) -> Vec<String> {
        run.messages.iter().map(Message::shown_text).collect()
    }

    #[test]
    fn calls_that_have_not_begun_are_made_and_begun_ones_are_never_repeated() {
        let begun = json!({ "type": "calls", "ids": ["a", "b"] });
        let pending =
            |lines: &[Value]| read(lines).unwrap().pending.into_iter().map(|call| call.id).collect::<Vec<_>>();
        assert_eq!(pending(&[two_calls()]), ["a", "b"]);
        let run = read(&[two_calls(), begun.clone()]).unwrap();
        assert_eq!((run.pending.len(), run.written, run.messages.len()), (0, 1, 3));
        assert!(roles(&run)[1].contains("may or may not have happened"), "{run:?}");
        let run = read(&[two_calls(), begun.clone(), result("b")]).unwrap();
        assert_eq!((run.pending.len(), run.written, run.answered.as_slice()), (0, 1, ["b".to_owned()].as_slice()));
        assert!(roles(&run)[1].contains("may or may not") && roles(&run)[2] == "done", "in the order of the calls");
        let begun_again = begun.clone();
        let run =
            read(&[two_calls(), begun, result("b"), result("a"), message(json!({ "role": "user", "content": "c" }))]);
        assert_eq!(roles(&run.unwrap()), ["", "done", "done", "c"]);
        let of = |kind: &str, id: &str| json!({ "type": kind, "id": id });
        let asked = [two_calls(), begun_again.clone(), of("asked", "a"), of("asked", "b")];
        let run = read(&asked).unwrap();
        assert!(
            run.pending.is_empty() && roles(&run)[1..].iter().all(|text| text.contains("has not happened")),
            "{run:?}"
        );
        assert!(run.changes.is_empty(), "{run:?}");
        let run = read(&[&asked[..], &[of("begun", "a"), result("b")]].concat()).unwrap();
        assert!(roles(&run)[1].contains("may or may not have happened") && roles(&run)[2] == "done", "{run:?}");
        let mut masked = two_calls();
        masked["masked"] = json!(true);
        let run = read(&[masked]).unwrap();
        assert!(run.pending.is_empty() && roles(&run)[1].contains("not made"), "{run:?}");
    }

    #[test]
    fn in_a_run_that_goes_on_nothing_is_interrupted() {
        let of = |kind: &str, id: &str| json!({ "type": kind, "id": id });
        let begun = json!({ "type": "calls", "ids": ["a", "b"] });
        let open = |lines: &[Value]| KeptRun::read(text(lines).as_bytes(), "a", true).unwrap();
        let states = |run: &KeptRun| run.open.iter().map(|(_, state)| *state).collect::<Vec<_>>();
        let run = open(&[two_calls()]);
        assert_eq!((states(&run), run.pending.len()), (vec![CallState::NotBegun; 2], 0));
        let mut lines = vec![two_calls(), begun, of("asked", "a")];
        let run = open(&lines);
        assert_eq!((states(&run), run.messages.len()), (vec![CallState::AwaitsApproval, CallState::Begun], 1));
        let exported: Vec<String> = run.exported().iter().map(Message::shown_text).collect();
        assert!(exported[1].contains("in progress") && exported[1].contains("waits for an approval"), "{exported:?}");
        assert!(exported[2].contains("in progress") && exported[2].contains("begun"), "{exported:?}");
        assert!(roles(&run.copied())[1..].iter().all(|text| text.contains("is a copy")));
        lines.extend([of("begun", "a"), result("b")]);
        let run = open(&lines);
        assert_eq!((states(&run), roles(&run)), (vec![CallState::Begun], vec![String::new(), "done".to_owned()]));
        lines.extend([result("a"), json!({ "type": "text", "text": "It is" })]);
        let run = open(&lines);
        assert_eq!((run.open.len(), run.messages.len(), run.arriving.as_str()), (0, 3, "It is"));
        assert_eq!(run.state, RunState::Running);
        assert_eq!(run.exported()[3].shown_text(), "It is\n[The answer was still arriving here.]");
        assert_eq!(run.copied().messages[3].shown_text(), format!("It is{BROKEN_OFF}"));
    }

    #[test]
    fn a_text_that_broke_off_stays_and_a_void_one_does_not() {
        let user = message(json!({ "role": "user", "content": "go" }));
        let text = |text: &str| json!({ "type": "text", "text": text });
        let run = read(&[user.clone(), text("one "), text("two")]).unwrap();
        assert_eq!(roles(&run), ["go".to_owned(), format!("one two{BROKEN_OFF}")]);
        assert_eq!((run.written, run.answer()), (1, None));
        let run = read(&[user.clone(), text("one"), json!({ "type": "void" }), text("two")]).unwrap();
        assert_eq!(roles(&run)[1], format!("two{BROKEN_OFF}"));
        let run = read(&[user, text("one"), message(json!({ "role": "assistant", "content": "one two" }))]).unwrap();
        assert_eq!(
            (roles(&run), run.answer().as_deref()),
            (vec!["go".to_owned(), "one two".to_owned()], Some("one two"))
        );
    }

    #[test]
    fn a_cut_conversation_and_its_end_are_read_back() {
        let turn = |text: &str| {
            [
                message(json!({ "role": "user", "content": text })),
                message(json!({ "role": "assistant", "content": text })),
            ]
        };
        let mut lines = [turn("one"), turn("two")].concat();
        lines.push(json!({ "type": "undo", "messages": 2 }));
        lines.push(json!({ "type": "end", "at": "2026-01-31T12:00:00Z", "reason": "answer", "steps": 2, "calls": 0 }));
        let run = read(&lines).unwrap();
        assert_eq!(
            (roles(&run), &run.state),
            (vec!["one".to_owned(), "one".to_owned()], &RunState::Ended("answer".into()))
        );
        assert_eq!((run.figures.undone, run.figures.title.as_deref()), (Some(true), Some("one")));
        assert_eq!(read(&turn("one")).unwrap().figures.undone, Some(false));
    }

    #[test]
    fn a_damaged_line_is_named() {
        for (line, wanted) in [
            (json!({ "type": "later" }), "`a`: line 3"),
            (result("x"), "a result of no call"),
            (json!({ "type": "calls", "ids": ["x"] }), "calls of no message"),
            (json!({ "type": "asked", "id": "x" }), "an approval of no call"),
            (header(), "the beginning of another run"),
        ] {
            let user = message(json!({ "role": "user", "content": "go" }));
            let error = format!("{:#}", read(&[user, line]).unwrap_err());
            assert!(error.contains(wanted) && error.contains("line 3"), "{error}");
        }
        let later = header().to_string().replace("\"version\":1", "\"version\":2");
        assert!(KeptRun::read(later.as_bytes(), "a", false).unwrap_err().to_string().contains("later version"));
    }
}
