//! Module `cache`: values that live as long as the run. The host stores them as JSON.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::none::NoneType;
use starlark::values::{Heap, Value};

use super::error;
use crate::bindings::toolcrib::script::cache as host;
use crate::json;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Returns the value of a key.
    fn get<'v>(key: &str, default: Option<Value<'v>>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        match host::get(key) {
            Some(text) => json::decode(&text, heap).map_err(|what| error("cache.get", what)),
            None => Ok(default.unwrap_or(Value::new_none())),
        }
    }

    /// Sets the value of a key.
    fn set(key: &str, value: Value) -> starlark::Result<NoneType> {
        let text = json::encode(value).map_err(|what| error("cache.set", what))?;
        host::set(key, &text).map_err(|what| error("cache.set", what))?;
        Ok(NoneType)
    }
}
