//! Built-ins `block`, `allow` and `modify`: answers of a hook, in the form that the host reads.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};

use super::{Fields, fields};

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Refuses the pending action.
    fn block<'v>(#[starlark(default = "")] reason: &str, heap: Heap<'v>) -> starlark::Result<Fields<'v>> {
        Ok(fields([("action", heap.alloc("block")), ("reason", heap.alloc(reason))]))
    }

    /// Permits the pending action.
    fn allow<'v>(heap: Heap<'v>) -> starlark::Result<Fields<'v>> {
        Ok(fields([("action", heap.alloc("allow"))]))
    }

    /// Permits the pending action with another payload.
    fn modify<'v>(payload: Value<'v>, heap: Heap<'v>) -> starlark::Result<Fields<'v>> {
        Ok(fields([("action", heap.alloc("modify")), ("payload", payload)]))
    }
}
