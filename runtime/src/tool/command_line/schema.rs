//! JSON Schema of the arguments that a command line names, for a source that states none.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{ArgvItem, CommandLine, GroupCondition, Template};

impl CommandLine {
    /// Returns the schema of the arguments that the placeholders name: strings, flags for conditions without a placeholder, and arrays
    /// for repeated groups. An argument is optional if every use of it is.
    pub fn schema(&self) -> Option<Value> {
        if self.argv.is_none() && self.stdin.is_none() {
            return None;
        }
        let mut types: BTreeMap<&str, (Value, bool)> = BTreeMap::new();
        let string = || json!({ "type": "string" });
        let mut order: Vec<&str> = Vec::new();
        let mut add = |name, value: Value, required: bool| match types.get_mut(name) {
            Some(known) => known.1 |= required,
            None => {
                order.push(name);
                types.insert(name, (value, required));
            }
        };
        for item in self.argv.iter().flatten() {
            let (condition, templates) = match item {
                ArgvItem::One(template) => (None, std::slice::from_ref(template)),
                ArgvItem::Group(group) => (Some(&group.condition), group.argv.as_slice()),
            };
            let own = condition.map(GroupCondition::argument);
            match condition {
                Some(GroupCondition::Each(name)) => add(name, json!({ "type": "array", "items": string() }), false),
                Some(GroupCondition::When(name)) => {
                    let is_flag = !templates.iter().any(|template| template.placeholders().any(|one| one == name));
                    add(name, if is_flag { json!({ "type": "boolean" }) } else { string() }, false);
                }
                None => {}
            }
            for name in templates.iter().flat_map(Template::placeholders).filter(|name| Some(*name) != own) {
                add(name, string(), true);
            }
        }
        self.stdin.iter().flat_map(Template::placeholders).for_each(|name| add(name, string(), true));
        let required: Vec<_> = order.iter().filter(|name| types[**name].1).copied().collect();
        let properties: Map<_, _> = order.iter().map(|name| ((*name).to_owned(), types[*name].0.clone())).collect();
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Some(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ArgvGroup;

    #[test]
    fn placeholders_define_a_schema() {
        let template = |text: &str| text.parse::<Template>().unwrap();
        let group = |condition, argv: &str| {
            ArgvItem::Group(ArgvGroup { condition, argv: vec![template(argv)], options: false })
        };
        let line = CommandLine {
            argv: Some(vec![
                ArgvItem::One(template("-n")),
                group(GroupCondition::When("quiet".into()), "-q"),
                group(GroupCondition::When("max".into()), "--max={max}"),
                group(GroupCondition::Each("globs".into()), "--glob={globs}"),
                ArgvItem::One(template("{pattern}")),
            ]),
            stdin: Some(template("{text}")),
            ..CommandLine::default()
        };
        let expected = json!({
            "type": "object",
            "properties": {
                "quiet": { "type": "boolean" },
                "max": { "type": "string" },
                "globs": { "type": "array", "items": { "type": "string" } },
                "pattern": { "type": "string" },
                "text": { "type": "string" },
            },
            "additionalProperties": false,
            "required": ["pattern", "text"],
        });
        assert_eq!(line.schema(), Some(expected));
        assert_eq!(CommandLine::default().schema(), None);
    }
}
