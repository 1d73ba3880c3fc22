//! A chat at the terminal: messages and commands of the user, with the loop and permissions that `run` has.

mod allowed;
mod changes;
mod command;
mod editor;
mod history;
mod line;

use std::path::Path;

use toolcrib::Runtime;
use toolcrib::policy::Pattern;
use toolcrib_base::interrupt;
use toolcrib_base::render::{self, counted, one_line, shortened};
use toolcrib_base::suggestion;

use crate::Agent;
use crate::conversation::DroppedExchange;
use crate::event::Ending;
use crate::keeper::Keeper;
use crate::message::{Message, Role};
use crate::unsent::unsent_hint;

use command::{HELP, Typed};
use editor::{Editor, Input};
use history::History;

pub use allowed::{AllowedAhead, ChatApprover};
pub use changes::{FileChanges, TakenBack};

/// Maximum characters shown of a dropped message.
const MAX_SHOWN: usize = 60;
/// Maximum number of changes that are listed.
const MAX_CHANGES: usize = 20;

/// A chat with an agent.
pub struct Chat {
    agent: Agent,
    runtime: Runtime,
    allowed: AllowedAhead,
    keeper: Option<Keeper>,
    history: Option<History>,
    /// File changes, if they are kept.
    files: Option<Box<dyn FileChanges>>,
    /// Number of calls with file changes before each message.
    marks: Vec<usize>,
    /// Number of calls with file changes before the last dropped message, until another message follows.
    dropped_from: Option<usize>,
}

impl Chat {
    /// Creates a chat. With a keeper, typed lines are kept in `folder`.
    pub fn new(
        agent: Agent,
        runtime: Runtime,
        allowed: AllowedAhead,
        keeper: Option<Keeper>,
        folder: Option<&Path>,
    ) -> Self {
        let history = folder.filter(|_| keeper.is_some()).map(History::in_folder);
        Self { agent, runtime, allowed, keeper, history, files: None, marks: Vec::new(), dropped_from: None }
    }

    /// Sets the file changes that `/undo` takes back.
    pub fn with_files(self, files: Option<Box<dyn FileChanges>>) -> Self {
        Self { files, ..self }
    }

    /// Reads and answers until the person ends the chat.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let mut editor = Editor::new(self.history.as_ref().map(History::read).unwrap_or_default());
        let _guard = interrupt::chat(editor.is_at_terminal());
        let end = match self.agent.begin().await {
            Ok(true) => self.converse(&mut editor).await,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Some(history) = &self.history {
            history.write(editor.history());
        }
        drop(editor);
        let ending = if interrupt::is_ending() { Ending::Interrupted } else { Ending::Answer };
        self.agent.close(end.map(|()| (ending, None))).await.map(drop)
    }

    async fn converse(&mut self, editor: &mut Editor) -> anyhow::Result<()> {
        if self.agent.awaits_model() {
            self.mark();
            self.answer().await?;
        }
        while !interrupt::is_ending() {
            let read = tokio::select! {
                biased;
                () = interrupt::ended() => break,
                read = editor.read() => read?,
            };
            let line = match read {
                Input::Line(line) => line,
                Input::Dropped => continue,
                Input::End => break,
            };
            if !line.trim().is_empty() {
                let kept = self.keeper.as_ref().map_or_else(|| line.clone(), |keeper| keeper.masked(&line));
                editor.remember(&kept);
            }
            match Typed::parse(&line) {
                Ok(Typed::Quit) => break,
                Ok(typed) => self.act(typed).await?,
                Err(message) => render::aside(&message),
            }
        }
        Ok(())
    }

    async fn act(&mut self, typed: Typed) -> anyhow::Result<()> {
        match typed {
            Typed::Message(text) => {
                self.mark();
                self.agent.add(Message::text(Role::User, text))?;
                self.answer().await?;
            }
            Typed::Go if self.agent.awaits_model() => self.answer().await?,
            Typed::Go => {
                self.mark();
                self.agent.add(Message::text(Role::User, "Go on."))?;
                self.answer().await?;
            }
            Typed::Tools => self.show_tools(),
            Typed::Allow(Some(pattern)) => self.allow(pattern),
            Typed::Allow(None) => self.show_allowed(),
            Typed::Undo => self.undo().await?,
            Typed::Cost => self.show_cost(),
            Typed::Compact => self.compact().await?,
            Typed::Model(None) => self.show_model(),
            Typed::Model(Some(name)) => self.switch_model(&name)?,
            Typed::Help => render::aside(HELP),
            Typed::Empty | Typed::Quit => {}
        }
        Ok(())
    }

    /// Pre-approves calls of tools, including tools that scripts of this chat have added. A name without a tool is
    /// refused, since it is misspelt.
    fn allow(&self, pattern: Pattern) {
        let shown = one_line(pattern.as_str());
        let shown_tools = self.agent.session().tools();
        let names = || self.runtime.tools().chain(shown_tools.iter().copied()).map(|tool| tool.name.as_str());
        if names().any(|name| pattern.matches_tool(name)) {
            render::aside(&format!("`{shown}` calls are allowed without asking in this chat"));
            return self.allowed.add(pattern);
        }
        let meant = match suggestion::nearest(pattern.as_str(), names()) {
            Some(nearest) => format!("did you mean `/allow {}`?", one_line(nearest)),
            None => "`/tools` lists the tools".to_owned(),
        };
        render::aside(&format!("`{shown}` matches no tool, so nothing was allowed: {meant}"));
    }

    /// Lets the model answer. An error is explained, and the chat goes on.
    async fn answer(&mut self) -> anyhow::Result<()> {
        interrupt::resume();
        let end = self.agent.exchange().await;
        let is_ending = interrupt::is_ending();
        interrupt::resume();
        match end {
            Ok((Ending::Answer, _)) => {}
            Ok((Ending::Interrupted, _)) if is_ending => {}
            Ok((Ending::Interrupted, _)) => render::aside("info: interrupted; `/go` continues"),
            Ok((ending @ (Ending::MaxSteps | Ending::Budget(_)), _)) => {
                let words = self.agent.stopped_in_words(ending);
                render::aside(&format!("error: stopped: {words}; `/go` continues"));
            }
            Err(error) => {
                render::explain(&error);
                render::hint("`/go` asks the model again; `/undo` drops the last message");
            }
        }
        Ok(())
    }

    /// Compacts the conversation. An error is explained, and the chat goes on.
    async fn compact(&mut self) -> anyhow::Result<()> {
        interrupt::resume();
        let compacted = self.agent.compact_unless_interrupted().await;
        interrupt::resume();
        match compacted {
            Ok(Some(_)) => {}
            Ok(None) => render::aside("info: interrupted; the conversation is as before"),
            Err(error) => {
                render::explain(&error.context("cannot compact the conversation"));
            }
        }
        Ok(())
    }

    fn show_model(&self) {
        match self.agent.model() {
            Some(name) => render::aside(&format!("model {}; `/model NAME` continues with another one", one_line(name))),
            None => render::aside("a script replaces the model"),
        }
    }

    fn switch_model(&mut self, name: &str) -> anyhow::Result<()> {
        if self.agent.model().is_none() {
            render::aside("a script replaces the model: there is no other one");
            return Ok(());
        }
        self.agent.switch_model(name)?;
        render::aside(&format!(
            "continuing with {}; price and context window are still those in the settings",
            one_line(name)
        ));
        Ok(())
    }

    /// Counts the calls with file changes before a message.
    fn mark(&mut self) {
        // Without a number, the changes of the message are not taken back.
        let count = self.files.as_ref().and_then(|files| files.count().ok());
        self.marks.push(count.unwrap_or(usize::MAX));
        self.dropped_from = None;
    }

    /// Drops the last exchange, and takes back what its calls have changed in files, if the user wants that.
    async fn undo(&mut self) -> anyhow::Result<()> {
        let Some(DroppedExchange { prompt, changes }) = self.agent.undo()? else {
            render::aside("nothing to undo");
            return Ok(());
        };
        render::aside(&format!("dropped `{}` and everything after it", one_line(&shortened(&prompt, MAX_SHOWN))));
        let (from, until) = (self.marks.pop(), self.dropped_from);
        self.dropped_from = from;
        if changes.is_empty() {
            render::aside("none of the dropped calls can have changed anything outside the conversation");
            return Ok(());
        }
        let taken = match from {
            Some(from) => self.take_back(from, until).await,
            None => TakenBack::Unasked,
        };
        match taken {
            TakenBack::All(calls) if calls >= changes.len() => return Ok(()),
            TakenBack::All(_) => render::warning("files are as before; other effects of these calls remain:"),
            _ => render::warning("these calls are not undone; their effects remain:"),
        }
        for change in changes.iter().take(MAX_CHANGES) {
            render::aside(&format!("  {}", one_line(change)));
        }
        if let Some(more @ 1..) = changes.len().checked_sub(MAX_CHANGES) {
            render::aside(&format!("  and {more} more"));
        }
        if let (TakenBack::Declined | TakenBack::Unasked, Some(_), Some(keeper)) = (taken, &self.files, &self.keeper) {
            let id = keeper.id();
            render::hint(&format!("`toolcrib undo {id}` takes back what all calls of this chat have changed in files"));
        }
        Ok(())
    }

    /// Takes back the file changes between two marks. An error is explained, and the chat goes on.
    async fn take_back(&self, from: usize, until: Option<usize>) -> TakenBack {
        let Some(files) = &self.files else { return TakenBack::Nothing };
        let taken = async {
            let until = until.map_or_else(|| files.count(), Ok)?;
            files.take_back(from.min(until)..until).await
        };
        taken.await.unwrap_or_else(|error| {
            render::explain(&error.context("the changes of files are not taken back"));
            TakenBack::Part
        })
    }

    fn show_tools(&self) {
        let tools = self.agent.session().tools();
        if tools.is_empty() {
            render::aside("the model has no tools");
        }
        let column = tools.iter().map(|tool| tool.name.chars().count()).max().unwrap_or(0);
        for tool in tools {
            let granted = self.runtime.grant(&tool.name).map(|grant| grant.granted()).unwrap_or_default();
            let granted = if granted.is_empty() { String::new() } else { format!(" [{}]", granted.join(", ")) };
            let description = shortened(tool.description.as_deref().unwrap_or_default(), MAX_SHOWN);
            let text = one_line(&format!("{description}{granted}"));
            render::aside(&format!("{:column$}  {text}", one_line(&tool.name)));
        }
        if let Some(hint) = unsent_hint(&self.runtime) {
            render::hint(&hint);
        }
    }

    fn show_allowed(&self) {
        match self.allowed.texts() {
            texts if texts.is_empty() => render::aside("no calls are pre-approved; `/allow PATTERN` adds some"),
            texts => render::aside(&format!("allowed without asking in this chat: {}", one_line(&texts.join(", ")))),
        }
        render::aside("grant folders and hosts with options: `toolcrib chat --continue --allow-write=DIR`");
    }

    fn show_cost(&self) {
        let totals = self.agent.totals();
        let tokens = match totals.usage {
            Some(usage) => format!("{} + {} tokens", usage.prompt_tokens, usage.completion_tokens),
            None => "no token counts from the server".to_owned(),
        };
        let (steps, calls) = (counted(totals.steps, "step"), counted(totals.calls, "call"));
        let context = self.agent.context().in_words();
        let money = match totals.cost {
            Some(cost) => format!("cost {cost:.6} at your price"),
            None => "no cost: set `budgets.price`".to_owned(),
        };
        render::aside(&format!("in this process: {steps} · {calls} · {tokens} · {money}\ncontext: {context}"));
    }
}
