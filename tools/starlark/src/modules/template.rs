//! Module `template`: replaces names in double braces by values. Templates contain no logic, so that a text from
//! another source can only read the values that the script passes.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::Value;
use starlark::values::dict::DictRef;

use super::{bounded, error};
use crate::json;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Replaces `{{name}}` and `{{a.b}}`: strings unchanged, other values as JSON.
    fn render<'v>(text: &str, values: DictRef<'v>) -> starlark::Result<String> {
        let failed = |what: String| error("template.render", what);
        let mut rendered = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            rendered.push_str(before);
            let Some((path, after)) = after.split_once("}}") else {
                return Err(failed("`{{` without `}}`".to_owned()));
            };
            let path = path.trim();
            let value = find(&values, path).ok_or_else(|| failed(format!("`{path}` is missing in the values")))?;
            match value.unpack_str() {
                Some(text) => rendered.push_str(text),
                None => rendered.push_str(&json::encode(value).map_err(|what| failed(format!("`{path}` is {what}")))?),
            }
            bounded("template.render", &rendered)?;
            rest = after;
        }
        rendered.push_str(rest);
        bounded("template.render", &rendered)?;
        Ok(rendered)
    }
}

/// Value at the end of a path of names.
fn find<'v>(values: &DictRef<'v>, path: &str) -> Option<Value<'v>> {
    let mut names = path.split('.');
    let mut value = values.get_str(names.next()?)?;
    for name in names {
        value = DictRef::from_value(value)?.get_str(name)?;
    }
    Some(value)
}
