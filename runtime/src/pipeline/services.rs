//! Who answers a script: each question is held against its grant first, and what is refused stands in the record of its
//! call. A program that a script runs has the script's grant and never more, in a sandbox of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::call::{Denial, Execution};
use crate::delegate::Task;
use crate::error::ToolError;
use crate::policy::{Command, Grant, Sentence};
use crate::sandbox::{Addition, Ended, Finished, How, Invocation, Left, Provided, Services, Usage};
use crate::schema;
use crate::tool::{Body, Limits, Service, Tool};

use super::memory::Cache;
use super::ready::{Ready, aside, at_once};
use super::{Entry, Memory, Pipeline};

/// EventKind a shell would make something of, and no name of a program holds.
const SHELL: &[char] = &['|', '&', ';', '<', '>', '$', '`', '(', ')', '\n', '\r'];
/// The most arguments of a program, and the most bytes of all of them.
const MAX_ARGUMENTS: usize = 1000;
const MAX_ARGUMENT_BYTES: usize = 128 << 10;

/// Answers the questions of one script while it runs.
pub(super) struct Desk {
    pipeline: Arc<Pipeline>,
    memory: Arc<Memory>,
    /// How deep the call is.
    depth: u32,
    /// The tool whose script it is; a hook's has none.
    tool: Option<String>,
    grant: Arc<Grant>,
    limits: Limits,
    deadline: Instant,
    usage: Arc<Usage>,
    /// EventKind the script keeps where there is no run that could.
    cache: Cache,
}

impl Desk {
    /// For the script of a tool.
    pub(super) fn of_tool(
        pipeline: &Arc<Pipeline>,
        tool: &Tool,
        ready: &Ready,
        memory: &Arc<Memory>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Self {
        Self { tool: Some(tool.name.clone()), ..Self::of_hook(pipeline, ready, memory, limits, usage) }
    }

    /// For the script of a hook.
    pub(super) fn of_hook(
        pipeline: &Arc<Pipeline>,
        ready: &Ready,
        memory: &Arc<Memory>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Self {
        let now = Instant::now();
        let deadline = now.checked_add(limits.deadline).unwrap_or(now);
        let (pipeline, memory, grant, usage) = (pipeline.clone(), memory.clone(), ready.grant.clone(), usage.clone());
        Self {
            depth: memory.depth,
            pipeline,
            memory,
            tool: None,
            grant,
            limits: *limits,
            deadline,
            usage,
            cache: Cache::default(),
        }
    }

    /// The same for a call that is so deep.
    pub(super) fn at(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// Where values are kept: with the run, where there is one.
    fn cache(&self) -> &Cache {
        if self.memory.is_open() { &self.cache } else { &self.memory.cache }
    }

    fn refused(&self, denial: Denial, why: &str) -> String {
        let hint = denial.flag.as_ref().map(|flag| format!("; `{flag}` would allow it")).unwrap_or_default();
        self.usage.refused(denial);
        format!("{why}{hint}")
    }

    /// The command of this name: a tool's, or a program's file without its ending.
    fn command(&self, program: &str) -> Result<Entry<'_>, String> {
        let named = |entry: &Entry<'_>| {
            let file = entry.tool.body.program().and_then(|path| path.file_stem());
            entry.tool.name == program || file.is_some_and(|stem| stem == program)
        };
        let tools = 0..self.pipeline.ready.len();
        let mut commands = tools
            .map(|index| self.pipeline.at(index))
            .filter(|entry| matches!(entry.tool.body, Body::Command { .. }))
            .filter(named);
        let first = commands.next().ok_or_else(|| format!("no program of the crib is named `{program}`"))?;
        Ok(commands.find(|entry| entry.tool.name == program).filter(|_| first.tool.name != program).unwrap_or(first))
    }

    /// Whether the program of a tool may be run that operators, hooks and people judge. Their rules are about the tool's
    /// arguments, as [`Command`] has them.
    async fn judged(&self, entry: Entry<'_>, command: &Arc<Command>) -> Result<(), String> {
        if entry.ready.disabled.is_some() {
            return Err("refused: its tool cannot be called".to_owned());
        }
        let judged = self.by_rules(entry, command).await;
        match judged.ok_or("refused: its tool timed out while its input was held against rules")? {
            Sentence::Pass => {}
            Sentence::Denied => return Err("refused by a rule of the operator's".to_owned()),
            Sentence::Asked => return Err("refused: a person has to agree to each call of its tool".to_owned()),
            Sentence::Unseen => {
                let why = "refused: rules look at its arguments, and what it is given is not one JSON object alone";
                return Err(why.to_owned());
            }
        }
        let record = &entry.tool.interface;
        if record.safety.requires_user_interaction.value || record.permission.approval_reason.value.is_some() {
            return Err("refused: a person has to agree to each call of its tool".to_owned());
        }
        // EventKind hooks run is theirs: they do not judge themselves.
        match &self.tool {
            Some(_) => self.pipeline.hooks.admit(&self.pipeline, entry.tool, command, &self.memory, &self.usage).await,
            None => Ok(()),
        }
    }

    /// Holds a command against the rules over its tool; `None` where the call that runs it is over before.
    async fn by_rules(&self, entry: Entry<'_>, command: &Arc<Command>) -> Option<Sentence> {
        let rules = &self.pipeline.rules;
        if let Some(judged) = at_once(command.size, || rules.judge_command(entry.tool, &self.grant, command)) {
            return Some(judged);
        }
        let (rules, tool) = (rules.clone(), entry.tool.clone());
        let (grant, command) = (self.grant.clone(), command.clone());
        aside(self.deadline, move || rules.judge_command(&tool, &grant, &command)).await
    }

    async fn execute(
        &self,
        program: String,
        arguments: Vec<String>,
        how: How,
        fuel: Option<u64>,
    ) -> Result<Left, String> {
        let shown = super::clip(&program);
        let denied = |flag| Denial { capability: format!("exec:{shown}"), flag };
        if let Some(token) = program.chars().find(|c| SHELL.contains(c)) {
            let why =
                format!("forbidden shell token {token:?} in {shown:?}: name a program of the crib, without a shell");
            return Err(self.refused(denied(None), &why));
        }
        let bytes: usize = arguments.iter().map(String::len).sum();
        if arguments.len() > MAX_ARGUMENTS || bytes > MAX_ARGUMENT_BYTES {
            return Err(format!("more than {MAX_ARGUMENTS} arguments or {MAX_ARGUMENT_BYTES} bytes of them"));
        }
        if let Err(denial) = self.grant.rights().check(Service::Exec, Some(&program)) {
            let denial = Denial { capability: format!("exec:{shown}"), ..denial };
            return Err(self.refused(denial, &format!("`{shown}`: permission denied by the grant")));
        }
        let entry = self.command(&program).map_err(|why| why.replace(&program, &shown))?;
        let command = Arc::new(Command::new(&how.stdin, &arguments));
        let judged = self.judged(entry, &command).await;
        judged.map_err(|why| self.refused(denied(None), &format!("`{shown}`: {why}")))?;
        let only_reads = entry.tool.interface.safety.is_read_only.value;
        let grant = self
            .grant
            .for_program(how.folder.as_deref(), only_reads)
            .inspect_err(|_| self.usage.refused(denied(None)))?;
        let code = self.pipeline.program(entry).await.map_err(|fault| ToolError::of_fault(&fault).message)?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        // Nought is no time-out of its own.
        let asked = how.timeout_ms.filter(|asked| *asked > 0);
        let deadline = asked.map_or(left, |asked| left.min(Duration::from_millis(asked)));
        let least = self.limits.least(&entry.ready.limits);
        // Fuel is counted where the program was compiled for that; what is left of the script's is the most.
        let fuel = entry.ready.limits.fuel.map(|own| fuel.map_or(own, |left| own.min(left)));
        let limits = Limits { deadline, fuel, ..least };
        let Body::Command { argv, .. } = &entry.tool.body else { return Err(format!("`{shown}` is no command")) };
        let argv: Vec<String> = argv.iter().take(1).cloned().chain(arguments).collect();
        let begun = Execution {
            program: entry.tool.name.clone(),
            digest: code.digest.clone(),
            exit: None,
            stopped: None,
            ms: 0.0,
        };
        let place = self.usage.began(begun);
        let (usage, since) = (Usage::within(&self.usage), Instant::now());
        let stdin = Bytes::from(how.stdin);
        let provided = Provided::default();
        let call = Invocation { argv: &argv, stdin, grant: &grant, credentials: None, limits: &limits, provided };
        let Finished { exit, stdout, stderr } = self.pipeline.sandbox.run(&code, call, &usage).await;
        let took = since.elapsed();
        self.usage.ended(place, |execution| {
            execution.ms = (took.as_secs_f64() * 1e6).round() / 1e3;
            match &exit {
                Ok(code) => execution.exit = Some(*code),
                Err(error) => execution.stopped = Some(error.outcome),
            }
        });
        let exit_code = exit.map_err(|error| format!("`{shown}` was stopped: {}", error.message))?;
        let text = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let ended = Ended { exit_code, stdout: text(stdout), stderr: text(stderr), duration_ms };
        Ok(Left { ended, fuel: usage.fuel.load(Relaxed) })
    }

    async fn hand_on(&self, task: String) -> Result<String, String> {
        self.grant
            .rights()
            .check(Service::Delegate, None)
            .map_err(|denial| self.refused(denial, "permission denied by the grant"))?;
        let task: Value = schema::parse(&task).map_err(|error| error.to_string())?;
        let task = Task::read(task, self.depth + 1, &self.memory.agents)?;
        let delegate = self.pipeline.delegate.as_ref().ok_or("no other agent is set up here")?;
        self.usage.whole().delegated.fetch_add(1, Relaxed);
        delegate.delegate(task).await.map(|answer| answer.to_string())
    }
}

impl Services for Desk {
    fn exec(
        &self,
        program: String,
        arguments: Vec<String>,
        how: How,
        fuel: Option<u64>,
    ) -> BoxFuture<'_, Result<Left, String>> {
        Box::pin(self.execute(program, arguments, how, fuel))
    }

    fn cached(&self, key: &str) -> Option<String> {
        self.cache().get(key)
    }

    fn cache(&self, key: String, value: String) -> Result<(), String> {
        self.cache().set(key, value)
    }

    fn delegate(&self, task: String) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(self.hand_on(task))
    }

    fn register(&self, what: Addition, definition: String) -> Result<(), String> {
        self.grant
            .rights()
            .check(Service::Meta, None)
            .map_err(|denial| self.refused(denial, "permission denied by the grant"))?;
        let name = self.tool.as_ref().ok_or("only the script of a tool adds to its run")?;
        if self.memory.is_open() {
            return Err("there is no run to add to".to_owned());
        }
        let maker = self.pipeline.entry(name, &self.memory).map_err(|_| "its own tool is gone")?;
        let definition = schema::parse(&definition).map_err(|error| error.to_string())?;
        let told = self.pipeline.add(what, &definition, maker, &self.memory)?;
        self.usage.added(told);
        Ok(())
    }
}
