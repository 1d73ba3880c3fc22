//! Hostile programs that no compiler makes: WebAssembly texts, each for one attack on the engine or the host.

use std::fmt::Write;

/// Component that exports `wasi:cli/run` from these items, among them the core instance `$i` with a function `run` that
/// returns an i32.
fn command(items: &str) -> String {
    command_with(items, "")
}

fn command_with(items: &str, lift: &str) -> String {
    format!(
        r#"(component {items}
            (func $run (result (result)) (canon lift (core func $i "run") {lift}))
            (instance $exports (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $exports)))"#
    )
}

fn module(items: &str) -> String {
    command(&format!("(core module $m {items}) (core instance $i (instantiate $m))"))
}

/// Loops before any call.
pub(crate) fn start_loops() -> String {
    module(r#"(func $forever (loop br 0)) (start $forever) (func (export "run") (result i32) i32.const 0)"#)
}

/// Loops when the host allocates memory for its results.
pub(crate) fn realloc_loops() -> String {
    command(
        r#"(import "wasi:cli/environment@0.2.0"
            (instance $environment (export "get-arguments" (func (result (list string))))))
        (core module $libc (memory (export "memory") 1)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (loop $forever (br $forever)) unreachable))
        (core instance $libc (instantiate $libc))
        (core func $arguments (canon lower (func $environment "get-arguments")
            (memory $libc "memory") (realloc (func $libc "realloc"))))
        (core module $m (import "host" "arguments" (func $arguments (param i32)))
            (func (export "run") (result i32) (call $arguments (i32.const 8)) i32.const 0))
        (core instance $i (instantiate $m (with "host" (instance (export "arguments" (func $arguments))))))"#,
    )
}

/// Loops after its answer, in the function that frees the result.
pub(crate) fn post_return_loops() -> String {
    command_with(
        r#"(core module $m (func (export "run") (result i32) i32.const 0)
            (func (export "post") (param i32) (loop $forever (br $forever))))
        (core instance $i (instantiate $m))"#,
        r#"(post-return (func $i "post"))"#,
    )
}

/// Calls the host at every level of an endless recursion, so also at the end of its stack.
pub(crate) fn host_call_at_the_end_of_the_stack() -> String {
    command(
        r#"(import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
        (core func $now (canon lower (func $clock "now")))
        (core module $m (import "host" "now" (func $now (result i64)))
            (func $down (result i64) (i64.add (call $now) (i64.add (call $down) (call $now))))
            (func (export "run") (result i32) (drop (call $down)) i32.const 0))
        (core instance $i (instantiate $m (with "host" (instance (export "now" (func $now))))))"#,
    )
}

/// Recursion without a frame in memory.
pub(crate) fn pure_recursion() -> String {
    module(r#"(func $down (call $down) (call $down)) (func (export "run") (result i32) (call $down) i32.const 0)"#)
}

/// Four memories, each of them within the limit.
pub(crate) fn memories_over_the_cap_in_sum() -> String {
    let mut items = String::from(
        r#"(core module $m (memory 0)
            (func $grow (if (i32.eq (memory.grow (i32.const 600)) (i32.const -1)) (then unreachable)))
            (start $grow) (func (export "run") (result i32) i32.const 0))"#,
    );
    for name in ["i", "j", "k", "l"] {
        let _ = write!(items, "(core instance ${name} (instantiate $m))");
    }
    command(&items)
}

/// Requests a table of this many elements, and ends if it does not get it.
pub(crate) fn table_of(elements: u32) -> String {
    module(&format!(
        r#"(table 1 funcref) (func (export "run") (result i32)
            (if (i32.eq (table.grow (ref.null func) (i32.const {elements})) (i32.const -1)) (then unreachable))
            i32.const 0)"#
    ))
}

/// Copies half of a heap of 124 MiB onto the other half, repeatedly: each copy is one instruction.
pub(crate) fn copies_its_heap() -> String {
    module(
        r#"(memory 1984) (func (export "run") (result i32)
            (loop $again (memory.copy (i32.const 0) (i32.const 65011712) (i32.const 65011712)) (br $again)) i32.const 0)"#,
    )
}

/// Creates handles of its own resource without end.
pub(crate) fn own_handles() -> String {
    command(
        r#"(type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core module $m (import "host" "new" (func $new (param i32) (result i32)))
            (func (export "run") (result i32) (loop $more (drop (call $new (i32.const 1))) (br $more)) i32.const 0))
        (core instance $i (instantiate $m (with "host" (instance (export "new" (func $new))))))"#,
    )
}

/// Passes a list of one gibibyte to the host: outside of its memory, or (`held`) inside.
pub(crate) fn gibibyte_list(held: bool) -> String {
    let pages = if held { 16385 } else { 1 };
    command(&format!(
        r#"(import "wasi:io/error@0.2.0" (instance $errors (export "error" (type (sub resource)))))
        (alias export $errors "error" (type $error))
        (import "wasi:io/streams@0.2.0" (instance $streams
            (alias outer 1 $error (type $outer-error))
            (export "error" (type $e (eq $outer-error)))
            (export "output-stream" (type $stream (sub resource)))
            (type $failure (variant (case "last-operation-failed" (own $e)) (case "closed")))
            (export "stream-error" (type $stream-error (eq $failure)))
            (export "[method]output-stream.write" (func (param "self" (borrow $stream)) (param "contents" (list u8))
                (result (result (error $stream-error)))))))
        (alias export $streams "output-stream" (type $stream))
        (import "wasi:cli/stdout@0.2.0" (instance $stdout
            (alias outer 1 $stream (type $outer-stream))
            (export "output-stream" (type $s (eq $outer-stream)))
            (export "get-stdout" (func (result (own $s))))))
        (core module $libc (memory (export "memory") {pages}))
        (core instance $libc (instantiate $libc))
        (core func $get (canon lower (func $stdout "get-stdout")))
        (core func $write (canon lower (func $streams "[method]output-stream.write") (memory $libc "memory")))
        (core module $m
            (import "host" "get" (func $get (result i32)))
            (import "host" "write" (func $write (param i32 i32 i32 i32)))
            (func (export "run") (result i32)
                (call $write (call $get) (i32.const 64) (i32.const 1073741824) (i32.const 16)) i32.const 0))
        (core instance $i (instantiate $m (with "host" (instance
            (export "get" (func $get)) (export "write" (func $write))))))"#
    ))
}
