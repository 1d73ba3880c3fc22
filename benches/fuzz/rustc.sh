#!/bin/sh
# The compiler of the workspace's own crates, for fuzzing: it counts which branches of the library and of the targets an
# input takes. What the library depends on, the engine above all, is compiled as ever and not twice.
rustc=$1
shift
case " $* " in
*" --crate-name toolcrib "*" --crate-type lib "* | *" --crate-name toolcrib_agent_tool "* | \
  *" --crate-name toolcrib_component "* | *" --crate-name toolcrib_foundation "* | *" --crate-name fuzz"*)
  exec "$rustc" "$@" -Cdebug-assertions=on -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
  ;;
esac
exec "$rustc" "$@"
