//! The fields of the Agent Tool interface in a source: one reader for the object in an entry and for an Agent Tool record. A wrong
//! value is an error; an unknown field is kept, with a warning.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::tool::Interface;

use super::diagnostics::Diagnostics;
use super::shape::members;

/// Object in an Agent Tool record that holds the fields of the partition with the same name.
const RENDERING: &str = "rendering";
/// Field without a type in the standard: a value that is not a string becomes its JSON text.
const OF_ANY_KIND: &str = "classifier_input";

/// The fields that a source states.
#[derive(Default)]
pub(super) struct Statement {
    /// The stated fields; the others have their defaults.
    pub(super) interface: Interface,
    /// Unknown fields, unchanged.
    pub(super) unknown: Map<String, Value>,
}

impl Statement {
    /// Reads the fields of an object. `within` is the object's name, empty at the top level; `elsewhere` lists the fields that belong
    /// beside the object and not into it.
    pub(super) fn read(
        &mut self,
        within: &str,
        mut fields: Map<String, Value>,
        elsewhere: &[&str],
        report: &mut Diagnostics,
    ) {
        let rendering = fields.remove(RENDERING);
        let known: Vec<&str> = Interface::FIELDS.iter().chain(elsewhere).chain(&[RENDERING]).copied().collect();
        let dotted = if within.is_empty() { String::new() } else { format!("{within}.") };
        if let Some(rendering) =
            rendering.and_then(|value| report.value(members(&format!("{dotted}{RENDERING}"), value)))
        {
            let (rendering, other): (Map<_, _>, Map<_, _>) =
                rendering.into_iter().partition(|(field, _)| Interface::partition(field) == Some(RENDERING));
            for field in rendering.keys().filter(|field| fields.contains_key(*field)) {
                report.error(&format!(
                    "{dotted}{field} and {dotted}{RENDERING}.{field} are the same field: state it once"
                ));
            }
            self.state(&format!("{dotted}{RENDERING}."), rendering, report);
            report.unknown(&format!("{dotted}{RENDERING}: "), &other, &known);
            if !other.is_empty() {
                self.unknown.insert(RENDERING.into(), other.into());
            }
        }
        let mut unknown = self.state(&dotted, fields, report);
        for field in elsewhere {
            if let Some(value) = unknown.shift_remove(*field) {
                report.warn(&format!("{dotted}{field} is ignored: write `{field}` beside `{within}` instead"));
                self.unknown.insert((*field).to_owned(), value);
            }
        }
        let place = if within.is_empty() { String::new() } else { format!("{within}: ") };
        report.unknown(&place, &unknown, &known);
        self.unknown.extend(unknown);
    }

    /// Reads the fields of the interface and returns the others.
    fn state(&mut self, dotted: &str, fields: Map<String, Value>, report: &mut Diagnostics) -> Map<String, Value> {
        let mut others = Map::new();
        for (field, value) in fields {
            if Interface::partition(&field).is_none() {
                others.insert(field, value);
                continue;
            }
            let value = match value {
                value if field == OF_ANY_KIND && !value.is_string() => Value::String(value.to_string()),
                value => value,
            };
            report.value(self.interface.declare(&field, value).map_err(|wrong| format!("{dotted}{wrong}")));
        }
        others
    }

    /// Returns the schema of the arguments: `schema` of the entry, else `runtime_input_schema`, else `model_input_schema`.
    ///
    /// # Errors
    ///
    /// Two schemas are stated and differ.
    pub(super) fn parameters(&self, schema: Option<Value>) -> Result<Option<Value>, String> {
        let schemas = &self.interface.schemas;
        match (schema, &schemas.runtime_input_schema.value) {
            (Some(schema), Some(other)) if schema != *other => {
                Err("schema and interface.runtime_input_schema differ: state one of them".to_owned())
            }
            (Some(schema), _) => Ok(Some(schema)),
            (None, Some(schema)) => Ok(Some(schema.clone())),
            (None, None) => Ok(schemas.model_input_schema.value.clone()),
        }
    }

    /// Returns the deadline: the seconds of the entry, or the interface's `timeout_ms`.
    ///
    /// # Errors
    ///
    /// Both are stated and differ.
    pub(super) fn deadline(&self, seconds: Option<u64>) -> Result<Option<Duration>, String> {
        let millis = self.interface.execution.timeout_ms.value.map(|millis| millis as u64);
        match (seconds, millis) {
            (Some(seconds), Some(millis)) if seconds.checked_mul(1000) != Some(millis) => {
                Err(format!("timeoutSec {seconds} and interface.timeout_ms {millis} differ: state one of them"))
            }
            (Some(seconds), _) => Ok(Some(Duration::from_secs(seconds))),
            (None, millis) => Ok(millis.map(Duration::from_millis)),
        }
    }
}
