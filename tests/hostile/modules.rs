//! Hostile core modules for WASI preview 1: calls that no library would make.

/// Module with the functions of preview 1, a memory of 2 MiB, and this `_start`.
fn module(start: &str) -> String {
    with(start, "")
}

fn with(start: &str, items: &str) -> String {
    format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_readdir" (func $readdir (param i32 i32 i32 i64 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_filestat_set_size" (func $set_size (param i32 i64) (result i32)))
            (import "wasi_snapshot_preview1" "path_open"
                (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
            (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 32)
            (data (i32.const 64) "f")
            (data (i32.const 80) "pipe")
            (data (i32.const 96) "\"ok\"")
            (func $open (param $name i32) (param $length i32) (param $how i32) (result i32)
                (call $path_open (i32.const 3) (i32.const 1) (local.get $name) (local.get $length) (local.get $how)
                    (i64.const 66) (i64.const 66) (i32.const 0) (i32.const 16)))
            (func $buffer (param $at i32) (param $length i32)
                (i32.store (i32.const 0) (local.get $at))
                (i32.store (i32.const 4) (local.get $length)))
            {items}
            (func (export "_start") {start}))"#
    )
}

/// Computes without end.
pub(crate) fn spins() -> String {
    module("(loop $more (br $more))")
}

/// Yields without end.
pub(crate) fn yields() -> String {
    module("(loop $more (drop (call $yield)) (br $more))")
}

/// Grows its memory until the host refuses, and then ends.
pub(crate) fn grows() -> String {
    module("(loop $more (if (i32.eq (memory.grow (i32.const 160)) (i32.const -1)) (then (unreachable))) (br $more))")
}

/// Calls the host at every level of an endless recursion.
pub(crate) fn recurses() -> String {
    with(
        "(drop (call $down))",
        "(func $down (result i32) (drop (call $time (i32.const 1) (i64.const 0) (i32.const 8)))
            (i32.add (call $down) (call $time (i32.const 1) (i64.const 0) (i32.const 8))))",
    )
}

/// Writes to a standard stream without end.
pub(crate) fn floods(stream: u8) -> String {
    module(&format!(
        "(call $buffer (i32.const 0) (i32.const 100000))
         (loop $more (drop (call $write (i32.const {stream}) (i32.const 0) (i32.const 1) (i32.const 8))) (br $more))"
    ))
}

/// Opens one file repeatedly, and closes none.
pub(crate) fn opens() -> String {
    module("(loop $more (br_if $more (i32.eqz (call $open (i32.const 64) (i32.const 1) (i32.const 0))))) (unreachable)")
}

/// Opens a FIFO, for which the host must not wait.
pub(crate) fn opens_a_fifo() -> String {
    module(
        "(if (i32.ne (call $open (i32.const 80) (i32.const 4) (i32.const 0)) (i32.const 63)) (then (unreachable)))
         (call $buffer (i32.const 96) (i32.const 4))
         (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))",
    )
}

/// Passes more buffers than a memory can hold.
pub(crate) fn hands_over_buffers(count: u32) -> String {
    module(&format!(
        "(loop $more (drop (call $write (i32.const 1) (i32.const 131072) (i32.const {count}) (i32.const 8))) (br $more))"
    ))
}

/// Passes a buffer that exceeds its memory.
pub(crate) fn reaches_out() -> String {
    module(
        "(call $buffer (i32.const 2097000) (i32.const 0x7fffffff))
         (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))",
    )
}

/// Requests as many random bytes as one call can, if it gets the memory.
pub(crate) fn asks_for_random_bytes() -> String {
    module("(drop (call $random (i32.const 0) (i32.const 0x1ffff0)))")
}

/// Waits for a clock for an hour, or for the largest representable time.
pub(crate) fn sleeps(nanoseconds: i64) -> String {
    module(&format!(
        "(i32.store (i32.const 1040) (i32.const 1))
         (i64.store (i32.const 1048) (i64.const {nanoseconds}))
         (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 8)))"
    ))
}

/// Polls standard input, which is always ready, repeatedly.
pub(crate) fn polls() -> String {
    module(
        "(i32.store8 (i32.const 1032) (i32.const 1))
         (loop $more (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 8))) (br $more))",
    )
}

/// Lists its folder from every position without end.
pub(crate) fn lists() -> String {
    module(
        "(local $cookie i64)
         (loop $more
            (drop (call $readdir (i32.const 3) (i32.const 4096) (i32.const 65536) (local.get $cookie) (i32.const 8)))
            (local.set $cookie (i64.rem_u (i64.add (local.get $cookie) (i64.const 611)) (i64.const 2000)))
            (br $more))",
    )
}

/// Creates a file over the limit, or folders without end.
pub(crate) fn fills(with_folders: bool) -> String {
    let start = match with_folders {
        false => {
            "(drop (call $open (i32.const 64) (i32.const 1) (i32.const 1)))
             (if (call $set_size (i32.load (i32.const 16)) (i64.const 0x10000000000)) (then (call $exit (i32.const 1))))"
        }
        true => {
            "(local $n i32)
             (loop $more
                (i32.store (i32.const 128) (i32.add (i32.const 0x61616161) (local.get $n)))
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (if (i32.eq (call $mkdir (i32.const 3) (i32.const 128) (i32.const 4)) (i32.const 19))
                    (then (call $exit (i32.const 1))))
                (br $more))"
        }
    };
    module(start)
}
