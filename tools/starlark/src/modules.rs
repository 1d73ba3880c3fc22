//! Built-in modules of scripts: one file per module, with its functions under the names that scripts use. This file
//! holds the shared parts.

mod agents;
mod base64;
mod cache;
mod env;
mod exec;
mod fs;
mod hash;
mod hooks;
#[cfg_attr(not(target_arch = "wasm32"), path = "modules/http_native.rs")]
mod http;
mod json;
mod log;
mod math;
mod meta;
mod re;
mod string;
mod template;
mod time;
mod url;
mod uuid;

use std::fmt::Display;

use starlark::environment::GlobalsBuilder;
use starlark::values::Value;
use starlark::values::dict::AllocDict;

pub(crate) use log::write_line;

/// Maximum size of a text that a built-in creates, in bytes.
const MAX_TEXT: usize = 16 << 20;

/// Adds every module under its name.
pub(crate) fn add(builder: &mut GlobalsBuilder) {
    agents::functions(builder);
    hooks::functions(builder);
    builder.set("log", log::Log);
    builder.namespace("base64", base64::functions);
    builder.namespace("cache", cache::functions);
    builder.namespace("env", env::functions);
    builder.namespace("exec", exec::functions);
    builder.namespace("fs", fs::functions);
    builder.namespace("hash", hash::functions);
    builder.namespace("http", http::functions);
    builder.namespace("json", json::functions);
    builder.namespace("math", math::functions);
    builder.namespace("meta", meta::functions);
    builder.namespace("re", re::functions);
    builder.namespace("string", string::functions);
    builder.namespace("template", template::functions);
    builder.namespace("time", time::functions);
    builder.namespace("url", url::functions);
    builder.namespace("uuid", uuid::functions);
}

/// Dict with these fields in this order.
type Fields<'v, K = &'static str> = AllocDict<Vec<(K, Value<'v>)>>;

fn fields<'v, K>(fields: impl IntoIterator<Item = (K, Value<'v>)>) -> Fields<'v, K> {
    AllocDict(fields.into_iter().collect())
}

/// Error of a built-in: the name of the function comes first.
fn error(function: &str, what: impl Display) -> starlark::Error {
    starlark::Error::new_native(anyhow::anyhow!("{function}: {what}"))
}

/// Refuses a text that exceeds the limit.
fn bounded(function: &str, text: &str) -> starlark::Result<()> {
    if text.len() > MAX_TEXT {
        return Err(error(function, format!("the text is longer than {MAX_TEXT} bytes")));
    }
    Ok(())
}
