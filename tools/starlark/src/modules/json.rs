//! Module `json`: conversion between values of a script and JSON.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};

use super::error;
use crate::json;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Encodes a value as compact JSON.
    fn encode(#[starlark(require = pos)] value: Value) -> starlark::Result<String> {
        json::encode(value).map_err(|what| error("json.encode", what))
    }

    /// Decodes a JSON text.
    fn decode<'v>(#[starlark(require = pos)] text: &str, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        json::decode(text, heap).map_err(|what| error("json.decode", what))
    }
}
