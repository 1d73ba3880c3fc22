//! Module `meta`: tools and hooks that a script adds to the run. The host checks them as it checks those from files.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::dict::DictRef;
use starlark::values::none::{NoneOr, NoneType};
use starlark::values::{Heap, Value};

use super::{error, fields};
use crate::bindings::toolcrib::script::meta as host;
use crate::json;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Adds a tool.
    fn tool_register<'v>(
        name: &str,
        description: &str,
        script: &str,
        parameters: Option<DictRef<'v>>,
        #[starlark(default = NoneOr::None)] timeout_ms: NoneOr<u64>,
        heap: Heap<'v>,
    ) -> starlark::Result<NoneType> {
        tool("meta.tool_register", [name, description, script], parameters, timeout_ms.into_option(), heap)
    }

    /// Alias of `tool_register`.
    fn register_tool<'v>(
        name: &str,
        description: &str,
        script: &str,
        parameters: Option<DictRef<'v>>,
        #[starlark(default = NoneOr::None)] timeout_ms: NoneOr<u64>,
        heap: Heap<'v>,
    ) -> starlark::Result<NoneType> {
        tool("meta.register_tool", [name, description, script], parameters, timeout_ms.into_option(), heap)
    }

    /// Adds a hook.
    fn hook_register<'v>(
        name: &str,
        event: &str,
        script: &str,
        #[starlark(default = 0)] priority: i32,
        when: Option<Value<'v>>,
        heap: Heap<'v>,
    ) -> starlark::Result<NoneType> {
        hook("meta.hook_register", [name, event, script], priority, when, heap)
    }

    /// Alias of `hook_register`.
    fn register_hook<'v>(
        name: &str,
        event: &str,
        script: &str,
        #[starlark(default = 0)] priority: i32,
        when: Option<Value<'v>>,
        heap: Heap<'v>,
    ) -> starlark::Result<NoneType> {
        hook("meta.register_hook", [name, event, script], priority, when, heap)
    }
}

fn tool<'v>(
    function: &str,
    [name, description, script]: [&str; 3],
    parameters: Option<DictRef<'v>>,
    timeout_ms: Option<u64>,
    heap: Heap<'v>,
) -> starlark::Result<NoneType> {
    let parameters = match parameters {
        Some(given) => heap.alloc(fields(given.iter())),
        None => heap.alloc(fields::<&str>([])),
    };
    let mut definition = vec![
        ("name", heap.alloc(name)),
        ("description", heap.alloc(description)),
        ("script", heap.alloc(script)),
        ("parameters", parameters),
    ];
    definition.extend(timeout_ms.map(|time| ("timeout_ms", heap.alloc(time))));
    register(function, heap.alloc(fields(definition)), host::tool_register)
}

fn hook<'v>(
    function: &str,
    [name, event, script]: [&str; 3],
    priority: i32,
    when: Option<Value<'v>>,
    heap: Heap<'v>,
) -> starlark::Result<NoneType> {
    let mut definition = vec![
        ("name", heap.alloc(name)),
        ("event", heap.alloc(event)),
        ("script", heap.alloc(script)),
        ("priority", heap.alloc(priority)),
    ];
    definition.extend(when.filter(|when| !when.is_none()).map(|when| ("when", when)));
    register(function, heap.alloc(fields(definition)), host::hook_register)
}

fn register(
    function: &str,
    definition: Value,
    ask: impl FnOnce(&str) -> Result<(), String>,
) -> starlark::Result<NoneType> {
    let asked = json::encode(definition).and_then(|definition| ask(&definition));
    asked.map(|()| NoneType).map_err(|what| error(function, what))
}
