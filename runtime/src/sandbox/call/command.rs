//! Calls of commands: components that export `wasi:cli/run`, and core modules for preview 1.

use std::sync::Arc;

use wasmtime::Store;

use crate::error::{Outcome, ToolError};
use crate::sandbox::guest_io::{GuestInput, GuestOutput, Streams};
use crate::sandbox::program::{Program, ProgramKind, Sandbox};
use crate::sandbox::state::CallState;
use crate::sandbox::trap;
use crate::sandbox::usage::Usage;
use crate::sandbox::wasi::preview1;
use crate::tool::Limits;

use super::execute::{FreshStore, call_export, early_exit};
use super::rich::TOOL_EXITED;

impl Sandbox {
    /// Runs a command, and returns its exit code. Dropping the future stops the guest.
    pub(crate) async fn run(&self, program: &Program, input: GuestInput<'_>, usage: &Arc<Usage>) -> GuestOutput<i32> {
        let streams = Streams::separate(input.limits.stdout, input.limits, usage);
        let exit = self.run_command(program, &input, &streams, usage).await;
        streams.into_output(trap::refused_write(exit, |code| *code == 0, usage, input.limits))
    }

    async fn run_command(
        &self,
        program: &Program,
        input: &GuestInput<'_>,
        streams: &Streams,
        usage: &Arc<Usage>,
    ) -> Result<i32, ToolError> {
        let config = self.granted(input, streams, None, usage)?;
        let store = FreshStore { config, counts_fuel: program.counts_fuel, limits: input.limits, usage };
        let run = async |store: &mut Store<CallState>| match &program.kind {
            ProgramKind::Command { pre, .. } => {
                let command = pre.instantiate_async(&mut *store).await?;
                Ok(Some(command.wasi_cli_run().call_run(store).await?.map_or(1, |()| 0)))
            }
            ProgramKind::Module(pre) => preview1::run(pre, store).await.map(|()| Some(0)),
            ProgramKind::Rich(_) | ProgramKind::Plain { .. } => Ok(None),
        };
        let exit = self.execute(store, |code| Ok(Some(code)), run).await?;
        exit.ok_or_else(|| {
            ToolError::new(Outcome::BadComponent, "the program is not a command: it does not export `wasi:cli/run`")
        })
    }

    /// Checks arguments with the program's own export `toolcrib:tool/validate`, if it has one: with no grant and under the
    /// limits of the call. The inner error is the program's own.
    ///
    /// # Errors
    ///
    /// The error that ended the check.
    pub(crate) async fn check(
        &self,
        program: &Program,
        arguments: &str,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<Result<(), String>, ToolError> {
        let (
            Some(component),
            ProgramKind::Command { check: Some(check), .. } | ProgramKind::Plain { check: Some(check), .. },
        ) = (program.component(), &program.kind)
        else {
            return Ok(Ok(()));
        };
        let config = self.bare(None, limits, usage);
        let store = FreshStore { config, counts_fuel: program.counts_fuel, limits, usage };
        let run = async |store: &mut Store<CallState>| call_export(store, component, *check, (arguments,)).await;
        self.execute(store, |_| early_exit(TOOL_EXITED), run).await
    }
}
