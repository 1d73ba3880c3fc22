//! Classification of traps: the reason why a guest stopped, from the engine's error and the call's usage. The texts are
//! for the model; they contain no host path and no backtrace.

use std::sync::atomic::Ordering::Relaxed;

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;
use wiggle::GuestError;

use crate::error::{Outcome, ToolError};
use crate::flow::Way;
use crate::tool::Limits;

use super::address_space;
use super::causes::{ByteSize, DeadlinePassed, OutputExceeded, SocketRefused, WriteRefused};
use super::usage::Usage;

/// Minimum depth for a backtrace with few distinct functions to count as a recursion.
const RECURSION_FRAMES: usize = 16;

/// Message for a call that the system, and not a limit of the call, refused memory.
const SYSTEM_EXHAUSTED: &str = "the system has no memory or memory mappings left for this call; raise its limits (`ulimit -v`, \
    `sysctl vm.max_map_count`), or allow fewer calls at once (`--set limits.concurrency=N`)";

/// Returns the error of a call that exceeded its deadline.
pub(super) fn timed_out() -> ToolError {
    ToolError::new(Outcome::Deadline, "tool timed out")
}

/// Returns the exit code of a guest that ended itself, or the error for its trap.
pub(super) fn classify(error: &wasmtime::Error, usage: &Usage, limits: &Limits) -> Result<i32, ToolError> {
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return Ok(*code);
    }
    let fail = |outcome, message: String| Err(ToolError::new(outcome, message));
    if error.is::<DeadlinePassed>() {
        return Err(timed_out());
    }
    if let Some(stream) = error.downcast_ref::<OutputExceeded>() {
        let cap = match stream {
            OutputExceeded::Stdout => limits.stdout,
            OutputExceeded::Stderr => limits.stderr,
        };
        return fail(Outcome::OutputLimit, format!("tool wrote more than {} to {stream}", ByteSize(cap as u64)));
    }
    if let Some(refused) = error.downcast_ref::<SocketRefused>() {
        return fail(Outcome::Denied, refused.to_string());
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return fail(Outcome::Handles, format!("tool held more than {} open handles", limits.handles));
    }
    if address_space::is_exhausted(error) {
        return fail(Outcome::Busy, SYSTEM_EXHAUSTED.into());
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return fail(Outcome::Memory, "tool needs more memories or instances than a sandbox has".into());
    }
    if error.root_cause().to_string().contains("store handle limit exceeded") {
        return fail(Outcome::Handles, format!("tool held more than {} open handles", limits.handles));
    }
    // The engine has no type for this error.
    if error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted") {
        let max = ByteSize(limits.host_call as u64);
        return fail(Outcome::OutputLimit, format!("tool passed more than {max} of values to the host at once"));
    }
    if error.is::<GuestError>() {
        return fail(Outcome::Trap, "tool crashed: it passed the host an address outside its memory".into());
    }
    let trap = error.downcast_ref::<Trap>();
    // A guest that was refused memory ends itself: it aborts, or uses the address that it did not get.
    let may_lack_memory = matches!(trap, None | Some(Trap::UnreachableCodeReached | Trap::MemoryOutOfBounds));
    if may_lack_memory && usage.system_exhausted.load(Relaxed) {
        return fail(Outcome::Busy, SYSTEM_EXHAUSTED.into());
    }
    if may_lack_memory && usage.memory_refused.load(Relaxed) {
        return Err(out_of_memory(limits));
    }
    match trap {
        Some(Trap::OutOfFuel) => {
            let fuel = limits.fuel.unwrap_or_default();
            fail(Outcome::Fuel, format!("tool used up its fuel (limit {fuel})"))
        }
        Some(Trap::StackOverflow) => fail(Outcome::Stack, "tool recursed too deeply".into()),
        Some(Trap::MemoryOutOfBounds) if recursed(error) => fail(Outcome::Stack, "tool recursed too deeply".into()),
        Some(trap) => fail(Outcome::Trap, format!("tool crashed: {trap}")),
        None => fail(Outcome::Trap, "tool was stopped: the host refused its request".into()),
    }
}

/// Reports out of memory for a guest that ended itself after it was refused memory.
pub(super) fn after_exit(error: ToolError, usage: &Usage, limits: &Limits) -> ToolError {
    let lacks_memory = error.outcome == Outcome::Trap && usage.memory_refused.load(Relaxed);
    if lacks_memory { out_of_memory(limits) } else { error }
}

fn out_of_memory(limits: &Limits) -> ToolError {
    ToolError::new(Outcome::Memory, format!("tool ran out of memory (limit {})", ByteSize(limits.memory as u64)))
}

/// Reports a failure after a refused write as caused by that: the guest's own message rarely names the reason.
pub(super) fn refused_write<T>(
    ended: Result<T, ToolError>,
    succeeded: impl FnOnce(&T) -> bool,
    usage: &Usage,
    limits: &Limits,
) -> Result<T, ToolError> {
    let Some(refused) = usage.refused_write.get() else { return ended };
    match &ended {
        Ok(end) if succeeded(end) => return ended,
        Err(error) if error.outcome != Outcome::Trap => return ended,
        _ => {}
    }
    let message = match refused {
        WriteRefused::Bytes => format!("tool wrote more than {} to its folders", ByteSize(limits.disk_bytes)),
        WriteRefused::Entries => format!("tool made more than {} files, folders and links", limits.disk_entries),
        WriteRefused::Flow => {
            let why = usage.whole().flow.refusal(Way::Write).map_or_else(|| refused.to_string(), |(_, why)| why);
            return Err(ToolError::new(Outcome::Denied, format!("tool may not write to its folders: {why}")));
        }
    };
    Err(ToolError::new(Outcome::Quota, message))
}

/// Returns `true` if the trap occurred deep in a recursion. A program with its stack at the bottom of its memory
/// exhausts it with an access out of bounds.
fn recursed(error: &wasmtime::Error) -> bool {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return false };
    let mut functions: Vec<u32> = trace.frames().iter().map(|frame| frame.func_index()).collect();
    let depth = functions.len();
    functions.sort_unstable();
    functions.dedup();
    depth >= RECURSION_FRAMES && functions.len() * 2 <= depth
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::*;

    #[test]
    fn a_tool_is_not_blamed_for_what_the_system_refuses() {
        let (usage, limits) = (Usage::default(), Limits::default());
        let outcome = |error: &wasmtime::Error| classify(error, &usage, &limits).unwrap_err();
        let refused = outcome(&wasmtime::Error::from(io::Error::from(ErrorKind::OutOfMemory)).context("cannot map"));
        assert_eq!(refused.outcome, Outcome::Busy);
        assert!(refused.message.contains("vm.max_map_count"), "{}", refused.message);
        let aborted = wasmtime::Error::from(Trap::UnreachableCodeReached);
        assert_eq!(outcome(&aborted).outcome, Outcome::Trap);
        usage.system_exhausted.store(true, Relaxed);
        assert_eq!(outcome(&aborted).outcome, Outcome::Busy, "after a growth that the system refused");
        assert_eq!(outcome(&wasmtime::Error::from(Trap::StackOverflow)).outcome, Outcome::Stack);
    }
}
