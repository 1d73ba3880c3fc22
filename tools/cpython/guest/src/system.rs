//! Functions of WASI preview 1 that CPython imports. A program has clocks, random bytes, its output, and the archives of
//! modules; everything else is refused.

#![allow(unsafe_code, reason = "CPython passes addresses")]

use std::cell::RefCell;
use std::mem::take;
use std::slice;

use crate::bindings::wasi::cli::exit;
use crate::bindings::wasi::clocks::{monotonic_clock, wall_clock};
use crate::bindings::wasi::random::random;
use crate::files::{self, ROOT};

const SUCCESS: u32 = 0;
const BAD_DESCRIPTOR: u32 = 8;
const INVALID: u32 = 28;
const TOO_MANY: u32 = 33;
const NO_ENTRY: u32 = 44;
const NOT_SUPPORTED: u32 = 58;
const READ_ONLY: u32 = 69;
const CHARACTERS: u8 = 2;
const FOLDER: u8 = 3;
const FILE: u8 = 4;

/// Maximum pause in nanoseconds, of a program that sleeps: its own time ends it before.
const MAX_PAUSE: u64 = 3_600_000_000_000;

#[derive(Default)]
struct State {
    arguments: &'static [&'static str],
    printed: Vec<u8>,
    max_printed: usize,
    dropped: u64,
    /// Latest time that the monotonic clock returned.
    latest: u64,
    /// `true` once a program is checked or run; the snapshot must not depend on clocks and random bytes before.
    is_started: bool,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Starts a task that may print up to a number of bytes.
pub(crate) fn start(max_printed: usize) {
    STATE.with_borrow_mut(|state| {
        let State { arguments, latest, .. } = *state;
        *state = State { arguments, latest, max_printed, is_started: true, ..State::default() };
    });
}

/// Sets the arguments of CPython.
#[cfg_attr(feature = "numeric", allow(dead_code, reason = "its programs are passed as texts"))]
pub(crate) fn set_arguments(arguments: &'static [&'static str]) {
    STATE.with_borrow_mut(|state| state.arguments = arguments);
}

/// Takes the printed text, and the number of bytes beyond its limit.
pub(crate) fn take_printed() -> (String, u64) {
    STATE.with_borrow_mut(|state| {
        let mut printed = take(&mut state.printed);
        let mut dropped = take(&mut state.dropped);
        if dropped > 0 {
            // The limit may cut a character.
            let cut = printed.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
            printed.truncate(printed.len() - cut);
            dropped += cut as u64;
        }
        (String::from_utf8_lossy(&printed).into_owned(), dropped)
    })
}

/// Writes a value to an address that CPython passed.
fn put<T>(address: *mut T, value: T) -> u32 {
    // SAFETY: CPython passes addresses of its own memory, which is the memory of this module.
    unsafe { address.write_unaligned(value) };
    SUCCESS
}

/// Bytes at an address that CPython passed.
fn bytes<'a>(address: *const u8, length: u32) -> &'a [u8] {
    // SAFETY: as for `put`; CPython does not change them during a call.
    unsafe { slice::from_raw_parts(address, length as usize) }
}

/// Buffer of a read or write.
#[repr(C)]
#[derive(Clone, Copy)]
struct Buffer {
    address: *mut u8,
    length: u32,
}

fn buffers<'a>(address: *const Buffer, count: u32) -> &'a [Buffer] {
    // SAFETY: as for `bytes`.
    unsafe { slice::from_raw_parts(address, count as usize) }
}

#[unsafe(no_mangle)]
extern "C" fn args_sizes_get(count: *mut u32, size: *mut u32) -> u32 {
    STATE.with_borrow(|state| {
        put(count, state.arguments.len() as u32);
        put(size, state.arguments.iter().map(|argument| argument.len() as u32 + 1).sum())
    })
}

#[unsafe(no_mangle)]
extern "C" fn args_get(addresses: *mut *mut u8, mut buffer: *mut u8) -> u32 {
    STATE.with_borrow(|state| {
        for (index, argument) in state.arguments.iter().enumerate() {
            // SAFETY: the buffers have the sizes that `args_sizes_get` returned.
            unsafe {
                addresses.add(index).write_unaligned(buffer);
                buffer.copy_from_nonoverlapping(argument.as_ptr(), argument.len());
                buffer.add(argument.len()).write(0);
                buffer = buffer.add(argument.len() + 1);
            }
        }
    });
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn environ_sizes_get(count: *mut u32, size: *mut u32) -> u32 {
    put(count, 0);
    put(size, 0)
}

#[unsafe(no_mangle)]
extern "C" fn environ_get(_: *mut *mut u8, _: *mut u8) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn clock_res_get(_: u32, resolution: *mut u64) -> u32 {
    put(resolution, 1000)
}

#[unsafe(no_mangle)]
extern "C" fn clock_time_get(clock: u32, _: u64, time: *mut u64) -> u32 {
    if !STATE.with_borrow(|state| state.is_started) {
        return put(time, 0);
    }
    let now = wall_clock::now();
    let now = now.seconds * 1_000_000_000 + u64::from(now.nanoseconds);
    match clock {
        0 => put(time, now),
        // From the same clock, so that a session that another instance continues does not see it go back. The times of the
        // process and of its thread are those of the clock.
        1..=3 => {
            let latest = STATE.with_borrow_mut(|state| {
                state.latest = state.latest.max(now);
                state.latest
            });
            put(time, latest)
        }
        _ => INVALID,
    }
}

#[unsafe(no_mangle)]
extern "C" fn random_get(buffer: *mut u8, length: u32) -> u32 {
    if !STATE.with_borrow(|state| state.is_started) {
        // Packages seed their numbers when they are loaded: the first program of an instance seeds them again.
        // SAFETY: the buffer has the length that CPython says.
        unsafe { buffer.write_bytes(0, length as usize) };
        return SUCCESS;
    }
    let random = random::get_random_bytes(u64::from(length));
    // SAFETY: the buffer has the length that CPython says.
    unsafe { buffer.copy_from_nonoverlapping(random.as_ptr(), random.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn fd_write(descriptor: u32, from: *const Buffer, count: u32, written: *mut u32) -> u32 {
    if !matches!(descriptor, 1 | 2) {
        return BAD_DESCRIPTOR;
    }
    let mut total = 0;
    STATE.with_borrow_mut(|state| {
        for buffer in buffers(from, count) {
            let fits = (buffer.length as usize).min(state.max_printed.saturating_sub(state.printed.len()));
            state.printed.extend(&bytes(buffer.address, buffer.length)[..fits]);
            state.dropped += u64::from(buffer.length) - fits as u64;
            total += buffer.length;
        }
    });
    put(written, total)
}

#[unsafe(no_mangle)]
extern "C" fn fd_read(descriptor: u32, to: *const Buffer, count: u32, read: *mut u32) -> u32 {
    if descriptor == 0 {
        return put(read, 0);
    }
    let Some(open) = files::opened(descriptor) else { return BAD_DESCRIPTOR };
    let total = fill(to, count, open.bytes(open.position));
    files::seek(descriptor, open.position + u64::from(total));
    put(read, total)
}

#[unsafe(no_mangle)]
extern "C" fn fd_pread(descriptor: u32, to: *const Buffer, count: u32, position: u64, read: *mut u32) -> u32 {
    match files::opened(descriptor) {
        Some(open) => put(read, fill(to, count, open.bytes(position))),
        None => BAD_DESCRIPTOR,
    }
}

/// Fills buffers from the start of `rest`, and returns the number of bytes.
fn fill(to: *const Buffer, count: u32, mut rest: &[u8]) -> u32 {
    let mut total = 0;
    for buffer in buffers(to, count) {
        let (part, after) = rest.split_at(rest.len().min(buffer.length as usize));
        // SAFETY: the buffer has the length that CPython says.
        unsafe { buffer.address.copy_from_nonoverlapping(part.as_ptr(), part.len()) };
        total += part.len() as u32;
        rest = after;
    }
    total
}

#[unsafe(no_mangle)]
extern "C" fn fd_seek(descriptor: u32, offset: i64, from: u32, position: *mut u64) -> u32 {
    let Some(open) = files::opened(descriptor) else { return BAD_DESCRIPTOR };
    let start = match from {
        0 => Some(0),
        1 => Some(open.position),
        2 => Some(open.size()),
        _ => None,
    };
    match start.and_then(|start| start.checked_add_signed(offset)) {
        Some(end) => {
            files::seek(descriptor, end);
            put(position, end)
        }
        None => INVALID,
    }
}

#[unsafe(no_mangle)]
extern "C" fn fd_tell(descriptor: u32, position: *mut u64) -> u32 {
    match files::opened(descriptor) {
        Some(open) => put(position, open.position),
        None => BAD_DESCRIPTOR,
    }
}

#[unsafe(no_mangle)]
extern "C" fn fd_close(descriptor: u32) -> u32 {
    if files::close(descriptor) { SUCCESS } else { BAD_DESCRIPTOR }
}

/// Type of an open descriptor.
fn kind(descriptor: u32) -> Option<u8> {
    match descriptor {
        0..=2 => Some(CHARACTERS),
        ROOT => Some(FOLDER),
        _ => files::opened(descriptor).map(|_| FILE),
    }
}

#[unsafe(no_mangle)]
extern "C" fn fd_fdstat_get(descriptor: u32, stat: *mut [u64; 3]) -> u32 {
    match kind(descriptor) {
        Some(kind) => put(stat, [u64::from(kind), u64::MAX, u64::MAX]),
        None => BAD_DESCRIPTOR,
    }
}

/// Writes the metadata of a file: device, inode, type, links, size, and three times.
fn put_metadata(metadata: *mut [u64; 8], kind: u8, inode: u64, size: u64) -> u32 {
    put(metadata, [1, inode, u64::from(kind), 1, size, 0, 0, 0])
}

#[unsafe(no_mangle)]
extern "C" fn fd_filestat_get(descriptor: u32, metadata: *mut [u64; 8]) -> u32 {
    let size = files::opened(descriptor).map_or(0, files::Open::size);
    kind(descriptor).map_or(BAD_DESCRIPTOR, |kind| put_metadata(metadata, kind, descriptor.into(), size))
}

#[unsafe(no_mangle)]
extern "C" fn path_filestat_get(folder: u32, _: u32, path: *const u8, length: u32, metadata: *mut [u64; 8]) -> u32 {
    const FIRST_INODE: u64 = 100;
    let path = bytes(path, length);
    match files::archive(path) {
        _ if folder != ROOT => BAD_DESCRIPTOR,
        Some(archive) => put_metadata(metadata, FILE, FIRST_INODE + archive as u64, files::size(archive)),
        None if files::is_folder(path) => put_metadata(metadata, FOLDER, 1, 0),
        None => NO_ENTRY,
    }
}

#[unsafe(no_mangle)]
extern "C" fn path_open(
    folder: u32,
    _: u32,
    path: *const u8,
    length: u32,
    flags: u32,
    _: u64,
    _: u64,
    _: u32,
    descriptor: *mut u32,
) -> u32 {
    const CREATE: u32 = 1;
    match files::archive(bytes(path, length)) {
        _ if folder != ROOT => BAD_DESCRIPTOR,
        Some(archive) => files::open(archive).map_or(TOO_MANY, |opened| put(descriptor, opened)),
        None if flags & CREATE != 0 => READ_ONLY,
        None => NO_ENTRY,
    }
}

#[unsafe(no_mangle)]
extern "C" fn fd_prestat_get(descriptor: u32, prestat: *mut [u32; 2]) -> u32 {
    if descriptor == ROOT { put(prestat, [0, 1]) } else { BAD_DESCRIPTOR }
}

#[unsafe(no_mangle)]
extern "C" fn fd_prestat_dir_name(descriptor: u32, name: *mut u8, _: u32) -> u32 {
    if descriptor == ROOT { put(name, b'/') } else { BAD_DESCRIPTOR }
}

/// Waits for the first clock of a list of subscriptions.
#[unsafe(no_mangle)]
extern "C" fn poll_oneoff(subscriptions: *const [u64; 6], events: *mut [u64; 4], count: u32, ready: *mut u32) -> u32 {
    const CLOCK: u64 = 0;
    const ABSOLUTE: u64 = 1;
    // SAFETY: CPython passes as many subscriptions as it says.
    let subscriptions = unsafe { slice::from_raw_parts(subscriptions, count as usize) };
    let clocks = subscriptions.iter().filter(|[_, kind, ..]| kind & 0xff == CLOCK);
    let Some([user, _, clock, timeout, _, flags]) = clocks.min_by_key(|[.., timeout, _, _]| *timeout) else {
        return NOT_SUPPORTED;
    };
    let pause = if flags & ABSOLUTE == 0 {
        *timeout
    } else {
        let mut now = 0;
        clock_time_get(*clock as u32, 0, &raw mut now);
        timeout.saturating_sub(now)
    };
    // Nothing waits while the snapshot is taken.
    if STATE.with_borrow(|state| state.is_started) {
        monotonic_clock::subscribe_duration(pause.min(MAX_PAUSE)).block();
    }
    put(events, [*user, CLOCK, 0, 0]);
    put(ready, 1)
}

#[unsafe(no_mangle)]
extern "C" fn proc_exit(_: u32) -> ! {
    exit::exit(Err(()));
    unreachable!("the host ended the instance")
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> u32 {
    SUCCESS
}

/// Functions that refuse every use.
macro_rules! refused {
    ($($error:ident: $($name:ident($($type:ty),*))*;)*) => {$($(
        #[unsafe(no_mangle)]
        extern "C" fn $name($(_: $type),*) -> u32 {
            $error
        }
    )*)*};
}

refused! {
    SUCCESS: fd_advise(u32, u64, u64, u32) fd_datasync(u32) fd_sync(u32) fd_fdstat_set_flags(u32, u32);
    READ_ONLY:
        fd_filestat_set_size(u32, u64)
        fd_filestat_set_times(u32, u64, u64, u32)
        fd_pwrite(u32, u32, u32, u64, u32)
        path_create_directory(u32, u32, u32)
        path_filestat_set_times(u32, u32, u32, u32, u64, u64, u32)
        path_link(u32, u32, u32, u32, u32, u32, u32)
        path_remove_directory(u32, u32, u32)
        path_rename(u32, u32, u32, u32, u32, u32)
        path_symlink(u32, u32, u32, u32, u32)
        path_unlink_file(u32, u32, u32);
    NO_ENTRY: path_readlink(u32, u32, u32, u32, u32, u32);
    NOT_SUPPORTED:
        fd_readdir(u32, u32, u32, u64, u32)
        sock_accept(u32, u32, u32)
        sock_recv(u32, u32, u32, u32, u32, u32)
        sock_send(u32, u32, u32, u32, u32)
        sock_shutdown(u32, u32);
}
