//! `env`: the environment variables that the call was granted.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// The value of a variable.
    fn get<'v>(name: &str, default: Option<Value<'v>>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        Ok(value(name).map(|value| heap.alloc(value)).or(default).unwrap_or(Value::new_none()))
    }

    /// Whether there is such a variable.
    fn has(name: &str) -> starlark::Result<bool> {
        Ok(value(name).is_some())
    }

    /// The names of all variables, sorted.
    fn list() -> starlark::Result<Vec<String>> {
        let mut names: Vec<_> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }
}

/// `std::env::var` panics on a name that no variable can have.
fn value(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
