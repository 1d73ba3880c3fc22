//! Value with its position in the file, from YAML front matter or from JSON. A null value counts as absent.

use serde_json::{Number, Value};

use crate::source::diagnostics::Fault;
use crate::source::places;
use crate::tool::Place;

/// Value with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Position of its first character; `None` in JSON.
    pub(super) place: Option<Place>,
    pub(super) data: Data,
}

/// Value without its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// Members in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// Name of a member.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub(super) place: Option<Place>,
    pub(super) name: String,
}

impl Node {
    /// Returns the string of a field.
    pub(super) fn text(self, field: &str) -> Result<String, Fault> {
        match self.data {
            Data::Text(text) => Ok(text),
            _ => Err(self.not(field, "a string")),
        }
    }

    /// Returns the boolean of a field.
    pub(super) fn boolean(self, field: &str) -> Result<bool, Fault> {
        match &self.data {
            Data::Boolean(value) => Ok(*value),
            // Booleans of YAML 1.1.
            Data::Text(word) if matches!(word.as_str(), "yes" | "on") => Ok(true),
            Data::Text(word) if matches!(word.as_str(), "no" | "off") => Ok(false),
            _ => Err(self.not(field, "true or false")),
        }
    }

    /// Returns the integer of a field.
    pub(super) fn integer(self, field: &str) -> Result<i64, Fault> {
        match &self.data {
            Data::Number(number) => number.as_i64().ok_or_else(|| self.not(field, "an integer")),
            _ => Err(self.not(field, "an integer")),
        }
    }

    /// Returns the items of a field.
    pub(super) fn list(self, field: &str) -> Result<Vec<Node>, Fault> {
        match self.data {
            Data::List(items) => Ok(items),
            _ => Err(self.not(field, "a list")),
        }
    }

    /// Returns the members of a field.
    pub(super) fn fields(self, field: &str) -> Result<Fields, Fault> {
        match self.data {
            Data::Map(members) => Ok(Fields { place: self.place, members }),
            _ => Err(self.not(field, "a map")),
        }
    }

    /// Returns the member `name` of a map.
    pub(super) fn name(&self) -> Option<String> {
        let Data::Map(members) = &self.data else { return None };
        let (_, node) = members.iter().find(|(key, _)| key.name == "name")?;
        match &node.data {
            Data::Text(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// Returns the position of the part that a message is about, or the nearest existing part around it. The message
    /// starts with the path of the part from this value, as in `limits.fuel`.
    pub(super) fn place_of(&self, message: &str) -> Option<Place> {
        let pointer = places::subject(message);
        // The first name belongs to this value.
        let mut names = pointer.split('/').skip(2);
        std::iter::successors(Some(self), |node| node.child(names.next()?)).last()?.place
    }

    /// Returns the member of a map with this name, or a list's item at this index.
    pub(super) fn child(&self, name: &str) -> Option<&Node> {
        match &self.data {
            Data::Map(members) => members.iter().find(|(key, _)| key.name == name).map(|(_, node)| node),
            Data::List(items) => items.get(name.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// Returns the list of a field's strings.
    pub(super) fn texts(self, field: &str) -> Result<Vec<String>, Fault> {
        let items = self.list(field)?.into_iter().enumerate();
        items.map(|(index, item)| item.text(&format!("{field}[{index}]"))).collect()
    }

    /// Converts the value to JSON.
    pub(super) fn json(self) -> Value {
        match self.data {
            Data::Null => Value::Null,
            Data::Boolean(value) => Value::Bool(value),
            Data::Number(number) => Value::Number(number),
            Data::Text(text) => Value::String(text),
            Data::List(items) => items.into_iter().map(Node::json).collect(),
            Data::Map(members) => {
                Value::Object(members.into_iter().map(|(key, value)| (key.name, value.json())).collect())
            }
        }
    }

    /// Creates the fault for a value of the wrong type.
    pub(super) fn not(&self, field: &str, wanted: &str) -> Fault {
        let found = match &self.data {
            Data::Null => "nothing".to_owned(),
            Data::Boolean(value) => value.to_string(),
            Data::Number(number) => number.to_string(),
            Data::Text(_) => "a string".to_owned(),
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "a map".to_owned(),
        };
        Fault { place: self.place, message: format!("{field} must be {wanted}, found {found}") }
    }
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(value) => Data::Boolean(*value),
            Value::Number(number) => Data::Number(number.clone()),
            Value::String(text) => Data::Text(text.clone()),
            Value::Array(items) => Data::List(items.iter().map(Node::from).collect()),
            Value::Object(members) => {
                let member =
                    |(name, value): (&String, &Value)| (Key { place: None, name: name.clone() }, Node::from(value));
                Data::Map(members.iter().map(member).collect())
            }
        };
        Self { place: None, data }
    }
}

/// Members of a map, taken one by one.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Position of the map.
    pub(super) place: Option<Place>,
    members: Vec<(Key, Node)>,
}

impl Fields {
    /// Returns a member by its name.
    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        self.members.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Takes a member by its name.
    pub(super) fn take(&mut self, name: &str) -> Option<Node> {
        let at = self.members.iter().position(|(key, _)| key.name == name)?;
        let (_, node) = self.members.remove(at);
        Some(node).filter(|node| node.data != Data::Null)
    }

    /// Takes a member by its name and converts it with `read`.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Node, &str) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.take(name).map(|node| read(node, name)).transpose()
    }

    /// Returns the members that were not taken.
    pub(super) fn rest(self) -> Vec<(Key, Node)> {
        self.members
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_kept_and_a_wrong_kind_names_the_field_and_what_was_found() {
        let value = json!({"b": [1, -2.5, "x", null, true], "a": {}});
        assert_eq!(Node::from(&value).json().to_string(), value.to_string());
        let of = |value: serde_json::Value| Node::from(&value);
        assert_eq!(of(json!(1.5)).integer("t").unwrap_err().message, "t must be an integer, found 1.5");
        assert_eq!(of(json!([])).text("t").unwrap_err().message, "t must be a string, found a list");
        assert_eq!(of(json!("a")).fields("t").unwrap_err().message, "t must be a map, found a string");
        assert_eq!(of(json!(["a", 2])).texts("t").unwrap_err().message, "t[1] must be a string, found 2");
        assert_eq!(of(json!("y")).boolean("t").unwrap_err().message, "t must be true or false, found a string");
        assert_eq!((of(json!("yes")).boolean("t"), of(json!(false)).boolean("t")), (Ok(true), Ok(false)));
    }

    #[test]
    fn null_is_absent_and_what_is_not_taken_stays() {
        let mut fields = Node::from(&json!({"a": null, "b": 1, "c": 2})).fields("x").unwrap();
        assert!(fields.take("a").is_none() && fields.take("z").is_none());
        assert_eq!(fields.read("b", Node::integer), Ok(Some(1)));
        assert_eq!(fields.rest().into_iter().map(|(key, _)| key.name).collect::<Vec<_>>(), ["c"]);
    }
}
