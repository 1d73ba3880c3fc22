//! Writes a run to its file as it happens: each message, the beginning of each call before it begins, each result when
//! its call ends, and an answer's text while it arrives.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use toolcrib::call::Part;
use toolcrib::flow::Label;
use toolcrib_base::render::Advice;

use super::compaction::Compaction;
use super::event::Totals;
use super::message::Message;
use super::turn::{Call, Usage};
use crate::runs::{Header, KeptRun, Line, RunFigures, RunFile, RunMasks, ShownPart, ShownParts, kept_options};

/// Minimum time between two lines with text of an answer that still arrives.
const TEXT_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum bytes of lines, except for the last one, without the run's figures.
const MAX_WITHOUT_FIGURES: usize = 4 << 10;
/// Maximum bytes of files that calls showed and one process keeps with a run.
const MAX_FILES: usize = 8 << 20;

/// Keeper of one run. Clones share the file.
#[derive(Debug, Clone)]
pub struct Keeper(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    id: Arc<str>,
    file: RunFile,
    masks: RunMasks,
    is_new: bool,
    /// Figures of the lines in the file.
    figures: RunFigures,
    /// Milliseconds and cost of the run before this process.
    before: (Option<u64>, Option<f64>),
    /// Bytes since the last line that states them.
    without_figures: usize,
    /// Number of conversation messages in the file.
    messages: usize,
    /// Index of the message with the title.
    titled: Option<usize>,
    /// Calls with a result in the file.
    answered: HashSet<String>,
    /// Calls of the last step that were not received yet.
    expected: HashSet<String>,
    /// Identifiers of received calls that have not begun in the last step, by invocation.
    invocations: HashMap<String, String>,
    /// Parts that calls of the last step have shown to people; each call has its own until its result is written.
    shown: HashMap<String, ShownParts>,
    /// Bytes of files that can still be kept.
    room: usize,
    /// Label in the file.
    label: Label,
    /// Text of the answer so far.
    text: String,
    /// Its beginning in the file, masked.
    written_text: String,
    text_at: Option<Instant>,
}

impl Keeper {
    /// Begins a new file with its header.
    pub(crate) fn begin(file: RunFile, header: Header, masks: RunMasks) -> anyhow::Result<Self> {
        let header = Header { options: kept_options(&masks), ..header };
        let keeper = Self::new(file, &header.id, masks, None);
        keeper.lock().write(Line::Run(header))?;
        Ok(keeper)
    }

    /// Goes on with the file of a run.
    pub(crate) fn resume(file: RunFile, run: &KeptRun, masks: RunMasks, model: &str) -> anyhow::Result<Self> {
        let keeper = Self::new(file, &run.header.id, masks, Some(run));
        // What stands for interrupted parts comes first: it belongs to the lines before.
        for (index, message) in run.messages.iter().enumerate().skip(run.written) {
            let change = run.changes.iter().find(|(changed, _)| *changed == index).map(|(_, change)| change.clone());
            keeper.message(message, change)?;
        }
        keeper.resumed(model)?;
        Ok(keeper)
    }

    /// Writes that the run goes on with a model, in this process.
    pub(crate) fn resumed(&self, model: &str) -> anyhow::Result<()> {
        let mut state = self.lock();
        let options = kept_options(&state.masks);
        state.write(Line::Resumed { at: Timestamp::now(), model: model.to_owned(), options })
    }

    /// Writes the summary in place of the first messages.
    pub(crate) fn compacted(&self, compaction: &Compaction) -> anyhow::Result<()> {
        let mut state = self.lock();
        let summary = state.masks.mask_text(&compaction.summary);
        state.write(Line::Compacted { messages: compaction.messages, summary })
    }

    fn new(file: RunFile, id: &str, masks: RunMasks, earlier: Option<&KeptRun>) -> Self {
        let new = RunFigures { undone: Some(false), ..RunFigures::default() };
        Self(Arc::new(Mutex::new(State {
            id: id.into(),
            file,
            masks,
            is_new: earlier.is_none(),
            figures: earlier.map_or(new, |run| run.figures.clone()),
            before: earlier.map_or((None, None), |run| (run.figures.ms, run.figures.cost)),
            without_figures: 0,
            messages: earlier.map_or(0, |run| run.written + run.answered.len()),
            titled: earlier.and_then(KeptRun::first_prompt),
            answered: earlier.into_iter().flat_map(|run| run.answered.iter().cloned()).collect(),
            expected: HashSet::new(),
            invocations: HashMap::new(),
            shown: HashMap::new(),
            room: MAX_FILES,
            label: earlier.map(|run| run.label.clone()).unwrap_or_default(),
            text: String::new(),
            written_text: String::new(),
            text_at: None,
        })))
    }

    /// Identifier of the run.
    pub fn id(&self) -> Arc<str> {
        self.lock().id.clone()
    }

    /// Returns `true` if the file was begun by this process.
    pub(crate) fn is_new(&self) -> bool {
        self.lock().is_new
    }

    /// Returns `true` for a new run without a message of the user or an answer.
    pub fn is_empty(&self) -> bool {
        let state = self.lock();
        let is_new = RunFigures { undone: Some(false), ..RunFigures::default() };
        state.is_new && state.figures == is_new
    }

    /// Removes the run.
    pub(crate) fn discard(&self) -> anyhow::Result<()> {
        let state = self.lock();
        state.file.remove().map_err(|error| state.failed(&error))
    }

    /// Returns a text with the masks of the run.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.lock().masks.mask_text(text)
    }

    /// Writes a message, unless it is a result that the file has.
    pub(crate) fn message(&self, message: &Message, change: Option<String>) -> anyhow::Result<()> {
        let mut state = self.lock();
        let answered = message.answered_call().map(str::to_owned);
        match &answered {
            Some(id) if state.answered.contains(id) => return Ok(()),
            Some(_) => {}
            // A task in the background may begin after its step.
            None => state.invocations.clear(),
        }
        let mut message = serde_json::to_value(message).context("cannot write a message as JSON")?;
        let masked = state.masks.mask_message(&mut message);
        let change = change.map(|change| state.masks.mask_text(&change));
        state.forget_text();
        state.count(&message)?;
        let shown = answered.as_ref().and_then(|id| state.take_shown(id)).unwrap_or_default();
        state.write(Line::Message { message, masked, change, shown, whole: None })?;
        state.answered.extend(answered);
        Ok(())
    }

    /// Writes the label of a result that is about to be written, if it adds to those before.
    pub(crate) fn label(&self, label: &Label) -> anyhow::Result<()> {
        let mut state = self.lock();
        let mut label = label.clone();
        label.map_sources(|source| state.masks.mask_text(source));
        let mut joined = state.label.clone();
        joined.join(&label);
        if joined == state.label {
            return Ok(());
        }
        state.label = joined.clone();
        state.write(Line::Label(joined))
    }

    /// Writes that calls are under way; none of them has begun.
    pub(crate) fn calls(&self, calls: &[Call]) -> anyhow::Result<()> {
        let mut state = self.lock();
        state.write(Line::Calls { ids: calls.iter().map(|call| call.id.clone()).collect(), singly: true })?;
        state.expected = calls.iter().map(|call| call.id.clone()).collect();
        state.shown = calls.iter().map(|call| (call.id.clone(), ShownParts::default())).collect();
        state.invocations.clear();
        state.sync()
    }

    /// Notes the invocation of a call in the last step. Calls of its tools and of other agents have identifiers that no
    /// call of the model has.
    pub(crate) fn received(&self, invocation: &str, id: &str) {
        let mut state = self.lock();
        if let Some(id) = state.expected.take(id) {
            state.invocations.insert(invocation.to_owned(), id);
        }
    }

    /// Writes that a call of the last step waits for an approval. The line informs alone: such a call has not begun.
    pub(crate) fn asked(&self, invocation: &str) {
        let mut state = self.lock();
        if let Some(id) = state.invocations.get(invocation).cloned() {
            // A failure shows when the call begins.
            let _ = state.write(Line::Asked { id });
        }
    }

    /// Writes that a call of the last step begins, and waits until this is on the disk: from here on it is never repeated.
    pub(crate) fn begun(&self, invocation: &str) -> anyhow::Result<()> {
        let mut state = self.lock();
        let Some(id) = state.invocations.get(invocation).cloned() else { return Ok(()) };
        if !state.answered.contains(&id) {
            state.write(Line::Begun { id })?;
            state.sync()?;
        }
        // Without its line, the call waits.
        state.invocations.remove(invocation);
        Ok(())
    }

    /// Adds a part that a call of the last step has shown to people. It is written with the result of the call.
    pub(crate) fn shown(&self, id: &str, part: &Part) {
        if let Some(parts) = self.lock().shown.get_mut(id) {
            parts.add(part);
        }
    }

    /// Returns `true` for a call of the last step that has not begun: a call that is stopped meanwhile is made later.
    pub(crate) fn waits(&self, id: &str) -> bool {
        let state = self.lock();
        state.expected.contains(id) || state.invocations.values().any(|waiting| waiting == id)
    }

    /// Adds text of an answer that still arrives. It is written now and then; a failure shows when the message is written.
    pub(crate) fn text(&self, delta: &str) {
        let mut state = self.lock();
        state.text += delta;
        if state.text_at.is_some_and(|at| at.elapsed() < TEXT_INTERVAL) {
            return;
        }
        state.text_at = Some(Instant::now());
        let beginning = state.masks.mask_beginning(&state.text);
        let Some(new) = beginning.strip_prefix(&state.written_text).filter(|new| !new.is_empty()) else { return };
        if state.write(Line::Text { text: new.to_owned() }).is_ok() {
            state.written_text = beginning;
        }
    }

    /// Drops the text of an answer that is requested again.
    pub(crate) fn void_text(&self) -> anyhow::Result<()> {
        let mut state = self.lock();
        let is_written = !state.written_text.is_empty();
        state.forget_text();
        if is_written { state.write(Line::Void) } else { Ok(()) }
    }

    /// Notes the time and the cost of this process, which the next line with figures states.
    pub(crate) fn spent(&self, totals: &Totals) {
        self.lock().spent(totals);
    }

    /// Writes the tokens of a request.
    pub(crate) fn usage(&self, usage: Usage) -> anyhow::Result<()> {
        let mut state = self.lock();
        state.figures.add_usage(usage);
        state.write(Line::Usage(usage))
    }

    /// Writes that the conversation is cut to its first `messages`.
    pub(crate) fn undo(&self, messages: usize) -> anyhow::Result<()> {
        let mut state = self.lock();
        state.forget_text();
        state.figures.undone = Some(true);
        state.messages = messages;
        if state.titled.is_some_and(|index| index >= messages) {
            (state.titled, state.figures.title) = (None, None);
        }
        let whole = Some(state.figures.clone());
        state.write(Line::Undo { messages, whole })?;
        state.sync()
    }

    /// Writes the end of the run in this process.
    pub(crate) fn end(&self, reason: &str, totals: &Totals) -> anyhow::Result<()> {
        let mut state = self.lock();
        state.spent(totals);
        let (at, reason) = (Timestamp::now(), reason.to_owned());
        let whole = Some(state.figures.clone());
        state.write(Line::End { at, reason, steps: totals.steps, calls: totals.calls, whole })?;
        state.sync()
    }

    /// Waits until everything is on the disk.
    pub(crate) fn sync(&self) -> anyhow::Result<()> {
        self.lock().sync()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn spent(&mut self, totals: &Totals) {
        self.figures.set_spent(self.before, (totals.ms, totals.cost));
    }

    /// Counts a message, masked as it is written.
    fn count(&mut self, message: &Value) -> anyhow::Result<()> {
        let message = Message::deserialize(message).context("cannot read a masked message")?;
        let has_title = self.figures.title.is_some();
        self.figures.add_message(&message);
        if !has_title && self.figures.title.is_some() {
            self.titled = Some(self.messages);
        }
        self.messages += 1;
        Ok(())
    }

    /// Writes a line. A message states the figures of the run if the last line that did is far back.
    fn write(&mut self, mut line: Line) -> anyhow::Result<()> {
        let encode = |line: &Line| serde_json::to_vec(line).context("cannot write a line of the run as JSON");
        let mut bytes = encode(&line)?;
        self.without_figures += bytes.len();
        if let Line::Message { whole, .. } = &mut line
            && self.without_figures >= MAX_WITHOUT_FIGURES
        {
            *whole = Some(self.figures.clone());
            bytes = encode(&line)?;
        }
        if line.figures().is_some() {
            self.without_figures = 0;
        }
        let written = self.file.append(&bytes).or_else(|error| match &mut line {
            // The conversation is kept rather than the parts that a call showed besides.
            Line::Message { shown, .. } if !shown.is_empty() => {
                shown.clear();
                self.file.append(&serde_json::to_vec(&line)?)
            }
            _ => Err(error),
        });
        written.map_err(|error| self.failed(&error))
    }

    /// Takes the parts that a call showed, masked.
    fn take_shown(&mut self, id: &str) -> Option<Vec<ShownPart>> {
        Some(self.shown.remove(id)?.into_kept(Some((&self.masks, id)), &mut self.room))
    }

    fn sync(&self) -> anyhow::Result<()> {
        self.file.sync().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> anyhow::Error {
        let message = format!("cannot keep the run in `{}`: {error}", self.file.path().display());
        Advice::new(message, "`--no-keep` runs without keeping anything; `toolcrib runs remove` makes room").into()
    }

    fn forget_text(&mut self) {
        self.text.clear();
        self.written_text.clear();
        self.text_at = None;
    }
}

#[cfg(test)]
mod tests {
    use toolcrib::call::Media;

    use super::super::message::Role;
    use super::super::turn::Turn;
    use super::*;
    use crate::runs::RunStore;

    /// Keeps a call that shows a file, behind a line with this many bytes of text, and returns the run as it is read again.
    fn kept(filled: usize) -> KeptRun {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(folder.path().to_path_buf());
        let (file, header) = store.create(RunStore::new_id().unwrap(), "run", "m", None).unwrap();
        let id = header.id.clone();
        let keeper = Keeper::begin(file, header, RunMasks::default()).unwrap();
        keeper.message(&Message::text(Role::User, "go"), None).unwrap();
        keeper.lock().write(Line::Text { text: "x".repeat(filled) }).unwrap();
        let call = Call { id: "c".to_owned(), name: "t".to_owned(), arguments: "{}".to_owned(), ..Call::default() };
        let turn = Turn { calls: vec![call.clone()], ..Turn::default() };
        keeper.message(&Message::assistant(&turn), None).unwrap();
        keeper.calls(std::slice::from_ref(&call)).unwrap();
        keeper.shown("c", &Part::Media(Media::new("image/png", None, vec![0; 100_000])));
        keeper.shown("another call", &Part::Text("not of this step".to_owned()));
        keeper.message(&Message::result(&call, "done".to_owned().into()), None).unwrap();
        keeper.end("answer", &Totals::default()).unwrap();
        drop(keeper);
        store.read(&id).unwrap()
    }

    #[test]
    fn time_and_cost_of_all_processes_are_stated_together() {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(folder.path().to_path_buf());
        let (file, header) = store.create(RunStore::new_id().unwrap(), "run", "m", None).unwrap();
        let id = header.id.clone();
        let keeper = Keeper::begin(file, header, RunMasks::default()).unwrap();
        let spent = |ms, cost| Totals { ms, cost, ..Totals::default() };
        // A chat ends each exchange with its totals so far.
        [spent(20, None), spent(70, Some(0.5))].iter().for_each(|totals| keeper.end("answer", totals).unwrap());
        drop(keeper);
        let (file, run) = store.open(&id).unwrap();
        let keeper = Keeper::resume(file, &run, RunMasks::default(), "m").unwrap();
        keeper.end("answer", &spent(30, Some(0.25))).unwrap();
        drop(keeper);
        let figures = store.read(&id).unwrap().figures;
        assert_eq!((figures.ms, figures.cost), (Some(100), Some(0.75)));
        assert_eq!(store.summary(&id).unwrap().figures, Some(figures));
    }

    #[test]
    fn a_result_is_kept_without_the_parts_for_which_the_run_has_no_room() {
        let run = kept(0);
        assert_eq!((run.messages.len(), run.shown["c"].len(), run.shown.len()), (3, 1, 1));
        let full = kept((64 << 20) - 10_000);
        assert_eq!((full.messages.len(), full.shown.len()), (3, 0));
        assert_eq!(full.messages[2].shown_text(), "done");
    }
}
