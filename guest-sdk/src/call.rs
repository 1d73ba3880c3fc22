//! Input of a call, parsed into the types of the tool. Arguments come from a model, so each error names the argument.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};

use crate::tree::{Tree, parse};
use crate::{Call, Error, Payload, Result};

impl Call {
    /// Parses the arguments. `#[tool]` defines a type with the name of the function that holds the arguments of that
    /// tool.
    ///
    /// # Errors
    ///
    /// If the arguments do not match the type, or the call carries text.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T> {
        match &self.payload {
            Payload::Object(text) => parse(text).map_err(|wrong| Error::invalid(format!("arguments: {wrong}"))),
            Payload::Text(_) => Err(Error::invalid(format!("`{}` takes an object of arguments, not text", self.tool))),
        }
    }

    /// Text of the call.
    ///
    /// # Errors
    ///
    /// If the call carries an object.
    pub fn text(&self) -> Result<&str> {
        match &self.payload {
            Payload::Text(text) => Ok(text),
            Payload::Object(_) => {
                Err(Error::invalid(format!("`{}` takes text, not an object of arguments", self.tool)))
            }
        }
    }

    /// Value that `prepare` returned in this session.
    ///
    /// # Errors
    ///
    /// If there is no such value, or it does not match the type.
    pub fn prepared<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.prepared.as_deref().ok_or_else(|| Error::new("no prepared value exists for this call"))?;
        parse(text).map_err(|wrong| Error::new(format!("prepared: {wrong}")))
    }

    /// Operator's settings for this tool; `null` without settings.
    ///
    /// # Errors
    ///
    /// If the settings do not match the type.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T> {
        config(&self.context)
    }

    /// Caller's metadata about the payload.
    ///
    /// # Errors
    ///
    /// If the metadata does not match the type.
    pub fn metadata<T: DeserializeOwned>(&self) -> Result<T> {
        parse(&self.metadata).map_err(|wrong| Error::invalid(format!("metadata: {wrong}")))
    }

    /// Context of the call.
    ///
    /// # Errors
    ///
    /// If the context does not match the type.
    pub fn context<T: DeserializeOwned>(&self) -> Result<T> {
        parse(&self.context).map_err(|wrong| Error::new(format!("context: {wrong}")))
    }
}

/// Input of `prepare`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// Name of the tool.
    pub tool: String,
    /// Context of the session: text of a JSON object.
    pub context: String,
}

impl Preparation {
    /// Operator's settings for this tool; `null` without settings.
    ///
    /// # Errors
    ///
    /// If the settings do not match the type.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T> {
        config(&self.context)
    }
}

/// Parses the member `config` of a context.
fn config<T: DeserializeOwned>(context: &str) -> Result<T> {
    #[derive(Deserialize)]
    struct Context {
        config: Option<Tree>,
    }
    let Context { config } = parse(context).map_err(|wrong| Error::new(format!("context: {wrong}")))?;
    T::deserialize(config.unwrap_or(Tree::Null)).map_err(|wrong| Error::new(format!("config: {wrong}")))
}

/// Arguments of a call, taken one by one by name.
#[derive(Debug)]
pub struct Fields(Vec<(String, Tree)>);

impl Fields {
    /// Reads the arguments; with `known`, other names are refused.
    ///
    /// # Errors
    ///
    /// If the input is not an object, or a name is unknown or repeated.
    pub fn read<'de, D: Deserializer<'de>>(deserializer: D, known: Option<&[&str]>) -> Result<Self, D::Error> {
        let fields = deserializer.deserialize_map(Reader)?;
        let Some(known) = known else { return Ok(fields) };
        match fields.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(fields),
            Some((name, _)) if known.is_empty() => {
                Err(D::Error::custom(format_args!("unknown argument `{name}`: this tool takes none")))
            }
            Some((name, _)) => {
                let known = known.join("`, `");
                Err(D::Error::custom(format_args!("unknown argument `{name}`, expected `{known}`")))
            }
        }
    }

    /// Takes a required argument.
    ///
    /// # Errors
    ///
    /// If it is missing or does not match the type.
    pub fn required<T: DeserializeOwned, E: serde::de::Error>(&mut self, name: &str) -> Result<T, E> {
        match self.take(name) {
            Some(value) => typed(name, value),
            None => Err(E::custom(format_args!("`{name}` is missing"))),
        }
    }

    /// Takes an argument, or parses `default` (JSON) if the argument is missing.
    ///
    /// # Errors
    ///
    /// If the value does not match the type.
    pub fn or<T: DeserializeOwned, E: serde::de::Error>(&mut self, name: &str, default: &str) -> Result<T, E> {
        match self.take(name) {
            Some(value) => typed(name, value),
            None => parse(default).map_err(|wrong| E::custom(format_args!("the default of `{name}`: {wrong}"))),
        }
    }

    fn take(&mut self, name: &str) -> Option<Tree> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.swap_remove(at).1)
    }
}

fn typed<T: DeserializeOwned, E: serde::de::Error>(name: &str, value: Tree) -> Result<T, E> {
    T::deserialize(value).map_err(|wrong| E::custom(format_args!("`{name}`: {wrong}")))
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::<(String, Tree)>::new();
        while let Some((name, value)) = map.next_entry()? {
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(A::Error::custom(format_args!("`{name}` occurs twice")));
            }
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }
}
