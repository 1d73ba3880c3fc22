//! What a call carries, read into the types of the tool. Arguments come from a model: what is wrong with them is told by
//! their names.

use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Call, Error, Payload, Result};

impl Call {
    /// Its arguments. The type that `#[tool]` makes beside the function, of the same name, holds those of that tool.
    ///
    /// # Errors
    ///
    /// Where they do not fit the type, or the call carries text.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T> {
        match &self.payload {
            Payload::Object(text) => {
                serde_json::from_str(text).map_err(|error| Error::invalid(format!("arguments: {error}")))
            }
            Payload::Text(_) => Err(Error::invalid(format!("`{}` takes an object of arguments, not text", self.tool))),
        }
    }

    /// Its text.
    ///
    /// # Errors
    ///
    /// Where it carries an object.
    pub fn text(&self) -> Result<&str> {
        match &self.payload {
            Payload::Text(text) => Ok(text),
            Payload::Object(_) => Err(Error::invalid(format!("`{}` takes text, not an object of arguments", self.tool))),
        }
    }

    /// What `prepare` gave in this session.
    ///
    /// # Errors
    ///
    /// Where it gave nothing, or something else.
    pub fn prepared<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.prepared.as_deref().ok_or_else(|| Error::new("nothing is prepared for this call"))?;
        serde_json::from_str(text).map_err(|error| Error::new(format!("prepared: {error}")))
    }

    /// What the operator set for this tool; nothing set is `null`.
    ///
    /// # Errors
    ///
    /// Where it does not fit the type.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T> {
        config(&self.context)
    }

    /// What the caller says about the payload.
    ///
    /// # Errors
    ///
    /// Where it does not fit the type.
    pub fn metadata<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.metadata).map_err(|error| Error::invalid(format!("metadata: {error}")))
    }

    /// What surrounds the call.
    ///
    /// # Errors
    ///
    /// Where it does not fit the type.
    pub fn context<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.context).map_err(|error| Error::new(format!("context: {error}")))
    }
}

/// What a tool prepares itself with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// The tool that is prepared.
    pub tool: String,
    /// What surrounds it: the text of a JSON object.
    pub context: String,
}

impl Preparation {
    /// What the operator set for this tool; nothing set is `null`.
    ///
    /// # Errors
    ///
    /// Where it does not fit the type.
    pub fn config<T: DeserializeOwned>(&self) -> Result<T> {
        config(&self.context)
    }
}

/// The `config` of a context. The host's own word may be of any shape, so a wrong one is told by its name.
fn config<T: DeserializeOwned>(context: &str) -> Result<T> {
    #[derive(Deserialize)]
    struct Context {
        #[serde(default)]
        config: Value,
    }
    let Context { config } =
        serde_json::from_str(context).map_err(|error| Error::new(format!("context: {error}")))?;
    T::deserialize(config).map_err(|error| Error::new(format!("config: {error}")))
}

/// The arguments of a call, to be taken out by their names.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Reads them; with `known`, no others are taken.
    ///
    /// # Errors
    ///
    /// Where they are no object, or one is unknown.
    pub fn read<'de, D: Deserializer<'de>>(deserializer: D, known: Option<&[&str]>) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        match known.and_then(|known| fields.keys().find(|name| !known.contains(&name.as_str())).zip(Some(known))) {
            None => Ok(Self(fields)),
            Some((name, [])) => Err(D::Error::custom(format!("unknown argument `{name}`: there are none"))),
            Some((name, known)) => {
                Err(D::Error::custom(format!("unknown argument `{name}`, expected `{}`", known.join("`, `"))))
            }
        }
    }

    /// Takes one that has to be there.
    ///
    /// # Errors
    ///
    /// Where it is not, or does not fit the type.
    pub fn required<T: DeserializeOwned, E: serde::de::Error>(&mut self, name: &str) -> Result<T, E> {
        match self.0.remove(name) {
            Some(value) => typed(name, value),
            None => Err(E::custom(format!("`{name}` is missing"))),
        }
    }

    /// Takes one, or what stands for it where it is missing.
    ///
    /// # Errors
    ///
    /// Where it does not fit the type.
    pub fn or<T: DeserializeOwned, E: serde::de::Error>(&mut self, name: &str, default: Value) -> Result<T, E> {
        typed(name, self.0.remove(name).unwrap_or(default))
    }
}

fn typed<T: DeserializeOwned, E: serde::de::Error>(name: &str, value: Value) -> Result<T, E> {
    T::deserialize(value).map_err(|error| E::custom(format!("`{name}`: {error}")))
}
