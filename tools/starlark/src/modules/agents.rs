//! Built-in `delegate`: other agents.

use starlark::collections::SmallMap;
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::none::NoneOr;
use starlark::values::{Heap, Value};

use super::{error, fields};
use crate::bindings::toolcrib::script::agents as host;
use crate::json;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Delegates a task to a new agent and waits for its answer. Further named strings are sent with the task.
    fn delegate<'v>(
        task: &str,
        #[starlark(default = NoneOr::None)] agent: NoneOr<&'v str>,
        #[starlark(default = NoneOr::None)] context: NoneOr<Value<'v>>,
        #[starlark(default = NoneOr::None)] max_steps: NoneOr<u32>,
        #[starlark(kwargs)] others: SmallMap<String, &'v str>,
        heap: Heap<'v>,
    ) -> starlark::Result<Value<'v>> {
        let named = [
            ("task", Some(heap.alloc(task))),
            ("agent", agent.into_option().map(|agent| heap.alloc(agent))),
            ("context", context.into_option()),
            ("max_steps", max_steps.into_option().map(|steps| heap.alloc(steps))),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let others = others.into_iter().map(|(name, value)| (name, heap.alloc(value)));
        let definition = json::encode(heap.alloc(fields(named.chain(others))));
        let answer = definition.and_then(|definition| host::delegate(&definition));
        let answer = answer.map_err(|what| error("delegate", what))?;
        json::decode(&answer, heap).map_err(|what| error("delegate", what))
    }
}
