//! Runs the commands of a script. A command has the grant of the script and never more, and is judged like a call of its
//! tool.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::call::{Denial, ProgramRun, clipped};
use crate::error::ToolError;
use crate::pipeline::prepared::ToolEntry;
use crate::pipeline::prepared::compute::{aside, at_once};
use crate::policy::{Command, CommandDecision};
use crate::sandbox::{ExecOptions, ExecOutcome, ExecOutput, GuestInput, GuestOutput, Usage, WasiExtras};
use crate::tool::{Body, Limits, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, Service};

use super::{CallServices, NOT_GRANTED, Script};

/// Characters with a meaning in a shell, which no name of a program holds.
const SHELL: &[char] = &['|', '&', ';', '<', '>', '$', '`', '(', ')', '\n', '\r'];

impl CallServices {
    /// Returns the command with a name: the name of its tool, or of its program file without the extension.
    fn command(&self, program: &str) -> Result<ToolEntry<'_>, String> {
        let named = |entry: &ToolEntry<'_>| {
            let file = entry.tool.body.program().and_then(|path| path.file_stem());
            entry.tool.name == program || file.is_some_and(|stem| stem == program)
        };
        let tools = 0..self.pipeline.prepared.len();
        let mut commands = tools
            .map(|index| self.pipeline.at(index))
            .filter(|entry| matches!(entry.tool.body, Body::Command { .. }))
            .filter(named);
        let first = commands.next().ok_or_else(|| format!("the crib has no program named `{program}`"))?;
        Ok(commands.find(|entry| entry.tool.name == program).filter(|_| first.tool.name != program).unwrap_or(first))
    }

    /// Judges a command as a call of its tool: by the operator's rules, the tool's definition and the hooks. Rules see the
    /// arguments as [`Command`] has them.
    async fn judge(&self, script: &Script, entry: ToolEntry<'_>, command: &Arc<Command>) -> Result<(), String> {
        if entry.prepared.disabled.is_some() {
            return Err("its tool is not available".to_owned());
        }
        let judged = self.judge_by_rules(script, entry, command).await;
        match judged.ok_or("its tool timed out while rules were matched against its input")? {
            CommandDecision::Allow => {}
            CommandDecision::Deny => return Err("denied by an operator rule".to_owned()),
            CommandDecision::Ask => return Err("each call of its tool requires approval".to_owned()),
            CommandDecision::Undecidable => {
                let why = "rules match its arguments, but its input is not a single JSON object";
                return Err(why.to_owned());
            }
        }
        let interface = &entry.tool.interface;
        if interface.safety.requires_user_interaction.value || interface.permission.approval_reason.value.is_some() {
            return Err("each call of its tool requires approval".to_owned());
        }
        // Hooks do not judge the commands of hooks.
        match &script.tool {
            Some(_) => self.pipeline.judge_command(entry.tool, command, &self.memory, &self.usage).await,
            None => Ok(()),
        }
    }

    /// Judges a command by the operator's rules; `None` if the deadline of the call passes first.
    async fn judge_by_rules(
        &self,
        script: &Script,
        entry: ToolEntry<'_>,
        command: &Arc<Command>,
    ) -> Option<CommandDecision> {
        let (rules, holds) = (&self.pipeline.rules, self.usage.holds_requests());
        if let Some(judged) =
            at_once(command.size, || rules.decide_command((entry.tool, &self.grant, holds), script.kind, command))
        {
            return Some(judged);
        }
        let (rules, tool) = (rules.clone(), entry.tool.clone());
        let (grant, command, kind) = (self.grant.clone(), command.clone(), script.kind);
        aside(script.deadline, move || rules.decide_command((&tool, &grant, holds), kind, &command)).await
    }

    /// Runs a crib command in a sandbox of its own, with the grant of the script.
    pub(super) async fn execute(
        &self,
        script: &Script,
        program: String,
        arguments: Vec<String>,
        how: ExecOptions,
        fuel: Option<u64>,
    ) -> Result<ExecOutcome, String> {
        let shown = clipped(&program);
        let denied = |flag| Denial { capability: format!("exec:{shown}"), flag };
        if let Some(token) = program.chars().find(|c| SHELL.contains(c)) {
            let why = format!(
                "forbidden shell token {token:?} in {shown:?}: name a program in the crib, without shell syntax"
            );
            return Err(self.refused(denied(None), &why));
        }
        let bytes: usize = arguments.iter().map(String::len).sum();
        if arguments.len() > MAX_ARGUMENTS || bytes > MAX_ARGUMENT_BYTES {
            return Err(format!("more than {MAX_ARGUMENTS} arguments or {MAX_ARGUMENT_BYTES} bytes of them"));
        }
        if let Err(denial) = self.grant.rights().check(Service::Exec, Some(&program)) {
            let denial = Denial { capability: format!("exec:{shown}"), ..denial };
            return Err(self.refused(denial, &format!("`{shown}`: {NOT_GRANTED}")));
        }
        let entry = self.command(&program).map_err(|why| why.replace(&program, &shown))?;
        let command = Arc::new(Command::new(&how.stdin, &arguments));
        let judged = self.judge(script, entry, &command).await;
        judged.map_err(|why| self.refused(denied(None), &format!("`{shown}`: {why}")))?;
        if !self.grant.has_denials_of(&entry.prepared.grant) {
            let why = "its tool has a denial of its own, which does not apply to this script";
            return Err(self.refused(denied(None), &format!("`{shown}`: {why}")));
        }
        let grant = self
            .grant
            .for_program(how.folder.as_deref(), entry.prepared.only_reads)
            .inspect_err(|_| self.usage.refused(denied(None)))?;
        let code = self.pipeline.programs.program(entry).await.map_err(|fault| ToolError::of_fault(&fault).message)?;
        let left = script.deadline.saturating_duration_since(Instant::now());
        // A time-out of zero means none.
        let timeout = how.timeout_ms.filter(|timeout| *timeout > 0);
        let deadline = timeout.map_or(left, |timeout| left.min(Duration::from_millis(timeout)));
        let least = script.limits.min(&entry.prepared.limits);
        // Fuel is counted if the program was compiled for it, and limited by the remaining fuel of the script.
        let fuel = entry.prepared.limits.fuel.map(|own| fuel.map_or(own, |left| own.min(left)));
        let limits = Limits { deadline, fuel, ..least };
        let Body::Command { argv, .. } = &entry.tool.body else { return Err(format!("`{shown}` is not a command")) };
        let argv: Vec<String> = argv.iter().take(1).cloned().chain(arguments).collect();
        let started = ProgramRun {
            program: entry.tool.name.clone(),
            digest: code.digest.clone(),
            exit: None,
            stopped: None,
            ms: 0.0,
        };
        let index = self.usage.began(started);
        let (usage, since) = (Usage::within(&self.usage), Instant::now());
        let stdin = Bytes::from(how.stdin);
        let provided = WasiExtras::default();
        let call =
            GuestInput { argv: &argv, stdin, grant: &grant, credentials: None, limits: &limits, extras: provided };
        let GuestOutput { result: exit, stdout, stderr } = self.pipeline.sandbox.run(&code, call, &usage).await;
        let took = since.elapsed();
        self.usage.ended(index, |execution| {
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
        let ended = ExecOutput { exit_code, stdout: text(stdout), stderr: text(stderr), duration_ms };
        Ok(ExecOutcome { output: ended, fuel: usage.fuel.load(Relaxed) })
    }
}
