//! Tools that a program can call: their names, parameters and types as their schemas state them, and the suggestion for a
//! name that none of them has.

use std::collections::HashMap;

use jiter::JsonValue;

/// Parameter of a tool.
#[derive(Debug)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// `true` if a call must give it.
    pub required: bool,
    /// Schema of its value.
    pub schema: JsonValue<'static>,
}

/// Tool.
#[derive(Debug)]
pub struct Tool {
    /// Name in programs.
    pub name: String,
    /// Parameters: required ones first, both groups in the order of the schema. Positional arguments follow this order.
    pub parameters: Vec<Parameter>,
    /// `true` if a call may have arguments that are no parameters.
    pub open: bool,
}

impl Tool {
    /// Reads the schema of a tool. A schema that says nothing about properties allows everything.
    fn new(name: &str, schema: &str) -> Result<Self, String> {
        let schema = JsonValue::parse(schema.as_bytes(), false)
            .map_err(|error| format!("the schema of the tool `{name}` is not JSON: {}", error.error_type))?
            .into_static();
        let properties = match member(&schema, "properties") {
            Some(JsonValue::Object(properties)) => properties.clone(),
            _ => Default::default(),
        };
        let required: Vec<&str> = match member(&schema, "required") {
            Some(JsonValue::Array(names)) => names.iter().filter_map(text).collect(),
            _ => Vec::new(),
        };
        let mut parameters: Vec<Parameter> = properties
            .iter()
            .map(|(name, schema)| Parameter {
                name: name.to_string(),
                required: required.contains(&name.as_ref()),
                schema: schema.clone(),
            })
            .collect();
        // Stable: the order of the schema stays within both groups.
        parameters.sort_by_key(|parameter| !parameter.required);
        let combined = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"];
        let open = match member(&schema, "additionalProperties") {
            Some(JsonValue::Bool(false)) => combined.iter().any(|key| member(&schema, key).is_some()),
            // Programs are checked as models mean them: an argument that a schema with properties does not name is a mistake.
            None => parameters.is_empty() || combined.iter().any(|key| member(&schema, key).is_some()),
            Some(_) => true,
        };
        Ok(Self { name: name.to_owned(), parameters, open })
    }

    /// Parameter of a name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Message for an argument that the tool does not have.
    pub fn unknown_argument(&self, name: &str) -> String {
        let names = self.parameters.iter().map(|parameter| parameter.name.as_str());
        let hint = suggestion(name, names.clone()).unwrap_or_else(|| match self.parameters.is_empty() {
            true => "it has no arguments".to_owned(),
            false => format!("it has {}", list(names)),
        });
        format!("tools.{} has no argument `{name}`: {hint}", self.name)
    }

    /// Message for arguments that a call lacks.
    pub fn missing_arguments(&self, names: &[&str]) -> String {
        let plural = if names.len() == 1 { "argument" } else { "arguments" };
        format!("tools.{} needs the {plural} {}", self.name, list(names.iter().copied()))
    }
}

/// Tools of a program.
#[derive(Debug, Default)]
pub struct Tools {
    tools: HashMap<String, Tool>,
}

impl Tools {
    /// Reads the names and schemas of tools.
    ///
    /// # Errors
    /// The first name or schema that cannot be used.
    pub fn new<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut read = HashMap::new();
        for (name, schema) in tools {
            if read.insert(name.to_owned(), Tool::new(name, schema)?).is_some() {
                return Err(format!("the tool `{name}` is given twice"));
            }
        }
        Ok(Self { tools: read })
    }

    /// Returns the names of the tools, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// Returns the tool with a name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// Returns the message for a name that no tool has.
    pub fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.names().collect();
        let hint = suggestion(name, names.iter().copied()).unwrap_or_else(|| match names.len() {
            0 => "this program has no tools".to_owned(),
            1..=12 => format!("the tools are {}", list(names.into_iter())),
            count => format!("none of the {count} tools has a similar name"),
        });
        format!("there is no tool `{name}`: {hint}")
    }
}

/// Returns a member of a JSON object.
pub fn member<'a, 's>(value: &'a JsonValue<'s>, name: &str) -> Option<&'a JsonValue<'s>> {
    match value {
        JsonValue::Object(entries) => entries.iter().find(|(key, _)| key == name).map(|(_, value)| value),
        _ => None,
    }
}

/// Returns the text of a JSON string.
pub fn text<'a>(value: &'a JsonValue<'_>) -> Option<&'a str> {
    match value {
        JsonValue::Str(text) => Some(text),
        _ => None,
    }
}

/// Lists names in a sentence.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the question about the most similar name, if one is similar enough.
fn suggestion<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace('_', "");
    let wanted = plain(name);
    names
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|(similarity, _)| *similarity >= 0.6)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use crate::testing::tools;

    #[test]
    fn similar_names_are_suggested() {
        assert!(tools().unknown("fs_serach").ends_with("did you mean `fs_search`?"));
        assert!(tools().unknown("zzz").contains("the tools are `add`, `any`, `fs_search`"));
        let tools = tools();
        let search = tools.get("fs_search").expect("a tool");
        assert!(search.unknown_argument("patern").ends_with("did you mean `pattern`?"));
        assert!(!search.open && tools.get("any").expect("a tool").open);
    }
}
