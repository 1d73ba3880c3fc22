//! Module `exec`: other programs of the crib. The host runs them by name, each in its own sandbox. There is no shell;
//! the host refuses and records a program name that looks like a shell command.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::list::UnpackList;
use starlark::values::none::NoneOr;
use starlark::values::{Heap, Value};

use super::{Fields, error, fields};
use crate::bindings::toolcrib::script::exec as host;

/// Maximum arguments of a program.
const MAX_ARGUMENTS: usize = 1000;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Runs a program of the crib and returns `ok`, `stdout`, `stderr`, `exit_code` and `duration_ms`.
    fn run<'v>(
        program: &str,
        #[starlark(default = UnpackList::default())] args: UnpackList<Value<'v>>,
        #[starlark(default = NoneOr::None)] timeout_ms: NoneOr<u64>,
        #[starlark(default = NoneOr::None)] cwd: NoneOr<String>,
        #[starlark(default = "")] stdin: &str,
        heap: Heap<'v>,
    ) -> starlark::Result<Fields<'v>> {
        let arguments = texts(&args.items)?;
        let options =
            host::Options { timeout_ms: timeout_ms.into_option(), folder: cwd.into_option(), stdin: stdin.to_owned() };
        let finished = host::run(program, &arguments, &options).map_err(|what| error("exec.run", what))?;
        Ok(fields([
            ("ok", heap.alloc(finished.exit_code == 0)),
            ("stdout", heap.alloc(finished.stdout)),
            ("stderr", heap.alloc(finished.stderr)),
            ("exit_code", heap.alloc(finished.exit_code)),
            ("duration_ms", heap.alloc(finished.duration_ms)),
        ]))
    }
}

fn texts(values: &[Value]) -> starlark::Result<Vec<String>> {
    if values.len() > MAX_ARGUMENTS {
        return Err(error("exec.run", format!("{} args, over the limit of {MAX_ARGUMENTS}", values.len())));
    }
    let text = |(index, value): (usize, &Value)| {
        let text = value.unpack_str().map(str::to_owned);
        text.ok_or_else(|| {
            let found = value.get_type();
            error("exec.run", format!("args[{index}] must be a string, found {found}; convert it with str()"))
        })
    };
    values.iter().enumerate().map(text).collect()
}
