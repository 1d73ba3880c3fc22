//! Module `env`: the granted environment variables.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Returns the value of a variable.
    fn get<'v>(name: &str, default: Option<Value<'v>>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        Ok(value(name).map(|value| heap.alloc(value)).or(default).unwrap_or(Value::new_none()))
    }

    /// Checks if a variable exists.
    fn has(name: &str) -> starlark::Result<bool> {
        Ok(value(name).is_some())
    }

    /// Lists the names of all variables, sorted.
    fn list() -> starlark::Result<Vec<String>> {
        let mut names: Vec<_> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }
}

/// Reads a variable. `std::env::var` panics on a name that no variable can have.
fn value(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
