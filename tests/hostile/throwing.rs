//! Hostile core modules with exceptions of WebAssembly.

/// Module with a memory, an exception, and this `_start`.
fn module(start: &str, items: &str) -> String {
    format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 16) "\"caught\"")
            (tag $oops (param i64))
            {items}
            (func (export "_start") {start}))"#
    )
}

/// Throws and catches without end.
pub(crate) fn throws() -> String {
    module(
        "(loop $more
            (drop (block $caught (result i64)
                (try_table (catch $oops $caught) (throw $oops (i64.const 1)))
                (i64.const 0)))
            (br $more))",
        "",
    )
}

/// Rethrows one exception without end.
pub(crate) fn rethrows() -> String {
    module(
        "(local $kept exnref)
        (local.set $kept (block $first (result exnref)
            (try_table (catch_all_ref $first) (throw $oops (i64.const 1)))
            (unreachable)))
        (loop $more
            (local.set $kept (block $caught (result exnref)
                (try_table (catch_all_ref $caught) (throw_ref (local.get $kept)))
                (unreachable)))
            (br $more))",
        "",
    )
}

/// Throws from the end of a deep recursion without end.
pub(crate) fn throws_from_the_depth() -> String {
    module(
        "(loop $more
            (drop (block $caught (result i64)
                (try_table (catch $oops $caught) (call $down (i32.const 3000)))
                (i64.const 0)))
            (br $more))",
        "(func $down (param $levels i32)
            (if (i32.eqz (local.get $levels)) (then (throw $oops (i64.const 2))))
            (call $down (i32.sub (local.get $levels) (i32.const 1))))",
    )
}

/// Keeps exceptions without end: in a table of 10,000, each with the one before it.
pub(crate) fn keeps() -> String {
    module(
        "(local $last exnref) (local $at i32)
        (loop $more
            (local.set $last (block $caught (result exnref)
                (try_table (catch_all_ref $caught) (throw $chain (local.get $last) (i64.const 1)))
                (unreachable)))
            (table.set $kept (i32.rem_u (local.get $at) (i32.const 10000)) (local.get $last))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br $more))",
        "(tag $chain (param exnref i64)) (table $kept 10000 exnref)",
    )
}

/// Throws what nothing catches.
pub(crate) fn throws_uncaught() -> String {
    module("(throw $oops (i64.const 1))", "")
}

/// Tries to catch an endless recursion, and answers if it can.
pub(crate) fn catches_the_end_of_the_stack() -> String {
    module(
        "(block $caught (try_table (catch_all $caught) (call $down)))
        (i32.store (i32.const 0) (i32.const 16))
        (i32.store (i32.const 4) (i32.const 8))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))",
        "(func $down (call $down) (call $down))",
    )
}

/// Tries to catch a division by zero, and answers if it can.
pub(crate) fn catches_a_trap() -> String {
    catches_the_end_of_the_stack().replace(
        "(func $down (call $down) (call $down))",
        "(func $down (drop (i32.div_u (i32.const 1) (i32.const 0))))",
    )
}
