//! Arguments, variables, clocks, random bytes and the exit of a program.

use wasmtime_wasi::I32Exit;
use wasmtime_wasi::cli::WasiCliView;
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p1::types::{Clockid, Errno, Error, Exitcode, Fd, Size, Timestamp};
use wasmtime_wasi::p2::bindings::cli::environment;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::random::random;
use wasmtime_wasi::random::WasiRandomView;
use wiggle::{GuestMemory, GuestPtr};

use crate::call::Denial;
use crate::sandbox::wasi::state::{MAX_RANDOM_BYTES, WasiState};

use super::memory::{Result, put};
use super::stat::nanoseconds;

/// Returns the arguments as they are written to memory.
pub(super) fn arguments(state: &mut WasiState) -> Result<Vec<String>> {
    environment::Host::get_arguments(&mut state.cli()).map_err(Error::trap)
}

/// Returns the variables as they are written to memory.
pub(super) fn variables(state: &mut WasiState) -> Result<Vec<String>> {
    let variables = environment::Host::get_environment(&mut state.cli()).map_err(Error::trap)?;
    Ok(variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}

/// Returns the number of texts and their size in bytes, with the zero after each.
pub(super) fn sizes(texts: &[String]) -> Result<(Size, Size)> {
    let bytes: usize = texts.iter().map(|text| text.len() + 1).sum();
    Ok((Size::try_from(texts.len())?, Size::try_from(bytes)?))
}

/// Writes texts one after the other, each with a zero after it, and the address of each.
pub(super) fn write(
    memory: &mut GuestMemory<'_>,
    texts: &[String],
    mut pointer: GuestPtr<GuestPtr<u8>>,
    mut text_at: GuestPtr<u8>,
) -> Result<()> {
    for text in texts {
        memory.write(pointer, text_at)?;
        pointer = pointer.add(1)?;
        put(memory, text_at, text.as_bytes())?;
        let end = text_at.add(u32::try_from(text.len())?)?;
        memory.write(end, 0)?;
        text_at = end.add(1)?;
    }
    Ok(())
}

/// Returns the time of a clock.
pub(super) fn now(state: &mut WasiState, clock: Clockid) -> Result<Timestamp> {
    match clock {
        Clockid::Realtime => Ok(nanoseconds(Some(wall_clock::Host::now(&mut state.clocks()).map_err(Error::trap)?))),
        Clockid::Monotonic => monotonic_clock::Host::now(&mut state.clocks()).map_err(Error::trap),
        Clockid::ProcessCputimeId | Clockid::ThreadCputimeId => Err(Errno::Badf.into()),
    }
}

/// Returns the resolution of a clock.
pub(super) fn resolution(state: &mut WasiState, clock: Clockid) -> Result<Timestamp> {
    match clock {
        Clockid::Realtime => {
            Ok(nanoseconds(Some(wall_clock::Host::resolution(&mut state.clocks()).map_err(Error::trap)?)))
        }
        Clockid::Monotonic => monotonic_clock::Host::resolution(&mut state.clocks()).map_err(Error::trap),
        Clockid::ProcessCputimeId | Clockid::ThreadCputimeId => Err(Errno::Badf.into()),
    }
}

/// Fills memory with random bytes.
pub(super) fn random(state: &mut WasiState, memory: &mut GuestMemory<'_>, at: GuestPtr<u8>, bytes: Size) -> Result<()> {
    memory.as_slice(at.as_array(bytes))?;
    if u64::from(bytes) > MAX_RANDOM_BYTES {
        let text = format!("{bytes} random bytes were requested at once, more than the {MAX_RANDOM_BYTES} allowed");
        return Err(Error::trap(wasmtime::Error::msg(text)));
    }
    let random = random::Host::get_random_bytes(&mut state.random(), bytes.into()).map_err(Error::trap)?;
    put(memory, at, &random)
}

/// Returns the trap that ends the program with its exit code.
pub(super) fn exit(code: Exitcode) -> wasmtime::Error {
    I32Exit(code.cast_signed()).into()
}

/// Refuses a socket function. No tool is given sockets, so an open descriptor is something else.
pub(super) fn no_socket<T>(state: &WasiState, fd: Fd, function: &str) -> Result<T> {
    state.usage().refused(Denial { capability: format!("sockets:{function}"), flag: None });
    state.preview1.descriptors.get(fd)?;
    Err(Errno::Notsock.into())
}
