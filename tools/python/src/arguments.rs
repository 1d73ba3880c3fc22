//! Arguments of a call: what the program gave by position and by name, as one JSON object.

use monty_types::MontyObject;

use crate::json::Writer;
use code_guest::tools::Tool;

/// Joins the arguments of a call into the text of one JSON object. Positional arguments are the parameters in their order;
/// a single dict stands for all arguments if the tool's first parameter is not an object itself.
///
/// # Errors
/// A message for the program: the text of a `TypeError`.
pub(crate) fn join(
    tool: &Tool,
    positional: &[MontyObject],
    named: &[(MontyObject, MontyObject)],
    limit: usize,
) -> Result<String, String> {
    let mut entries: Vec<(&str, &MontyObject)> = Vec::with_capacity(positional.len() + named.len());
    if let ([MontyObject::Dict(pairs)], true) = (positional, named.is_empty() && !takes_object(tool)) {
        for (key, value) in pairs {
            entries.push((name(key)?, value));
        }
    } else {
        if positional.len() > tool.parameters.len() {
            return Err(format!(
                "tools.{} has {} parameters, but {} positional arguments were given",
                tool.name,
                tool.parameters.len(),
                positional.len()
            ));
        }
        entries.extend(tool.parameters.iter().map(|parameter| parameter.name.as_str()).zip(positional));
        for (key, value) in named {
            let key = name(key)?;
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(format!("tools.{} got two values for the argument `{key}`", tool.name));
            }
            entries.push((key, value));
        }
    }
    if let Some((unknown, _)) = entries.iter().find(|(name, _)| !tool.open && tool.parameter(name).is_none()) {
        return Err(tool.unknown_argument(unknown));
    }
    let missing: Vec<&str> = tool
        .parameters
        .iter()
        .filter(|parameter| parameter.required && !entries.iter().any(|(name, _)| *name == parameter.name))
        .map(|parameter| parameter.name.as_str())
        .collect();
    if !missing.is_empty() {
        return Err(tool.missing_arguments(&missing));
    }
    Writer::new(limit).object(entries).map_err(|problem| format!("tools.{}: {problem}", tool.name))
}

/// Returns `true` if a single dict can only be the tool's first parameter.
fn takes_object(tool: &Tool) -> bool {
    use code_guest::tools::{member, text};
    tool.parameters
        .first()
        .is_some_and(|first| member(&first.schema, "type").and_then(text).is_none_or(|kind| kind == "object"))
}

fn name(key: &MontyObject) -> Result<&str, String> {
    match key {
        MontyObject::String(name) => Ok(name),
        other => Err(format!("names of arguments are strings, not `{}`", other.type_name())),
    }
}

#[cfg(test)]
mod tests {
    use monty_types::MontyObject;

    use super::join;
    use code_guest::testing::tools;

    fn text(text: &str) -> MontyObject {
        MontyObject::String(text.to_owned())
    }

    #[test]
    fn arguments_are_joined() {
        let tools = tools();
        let search = tools.get("fs_search").expect("a tool");
        let named = [(text("limit"), MontyObject::Int(3))];
        assert_eq!(join(search, &[text("TODO")], &named, 99).as_deref(), Ok(r#"{"pattern":"TODO","limit":3}"#));
        let all = MontyObject::dict(vec![(text("pattern"), text("x"))]);
        assert_eq!(join(search, &[all], &[], 99).as_deref(), Ok(r#"{"pattern":"x"}"#));
        // `b` is first in the schema of `add`: both are required.
        let add = tools.get("add").expect("a tool");
        assert_eq!(join(add, &[MontyObject::Int(1), MontyObject::Int(2)], &[], 99).as_deref(), Ok(r#"{"b":1,"a":2}"#));
    }

    #[test]
    fn mistakes_are_named() {
        let tools = tools();
        let search = tools.get("fs_search").expect("a tool");
        let refused = |named: &[(MontyObject, MontyObject)]| join(search, &[], named, 99).expect_err("a mistake");
        assert!(refused(&[]).contains("needs the argument `pattern`"));
        assert!(refused(&[(text("patern"), text("x"))]).contains("did you mean `pattern`?"));
        assert!(refused(&[(text("pattern"), MontyObject::Bytes(vec![]))]).contains("is bytes"));
        assert!(join(search, &[text("a")], &[(text("pattern"), text("b"))], 99).is_err());
    }
}
