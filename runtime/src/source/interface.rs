//! What a source says of a tool's behaviour, in the fields of the Agent Tool interface: one reading for the object in an
//! entry and for a record of its own. A wrong value is an error, a field that nobody knows is kept and told.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::tool::Interface;

use super::diagnostics::Diagnostics;
use super::shape::members;

/// The object of the standard's records that holds the fields of the partition of this name.
const RENDERING: &str = "rendering";
/// The field whose kind the standard leaves open: whatever is no string is taken as its JSON text.
const OF_ANY_KIND: &str = "classifier_input";

/// What was stated.
#[derive(Default)]
pub(super) struct Statement {
    /// The stated fields; the others at their defaults.
    pub(super) interface: Interface,
    /// The fields that no rule knows, as they were.
    pub(super) unknown: Map<String, Value>,
}

impl Statement {
    /// Takes the fields of an object. `within` is the object's own name, empty at the top; `elsewhere` names the fields
    /// that stand beside it and not in it.
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
                report.warn(&format!("{dotted}{field} is ignored: `{field}` stands beside `{within}`"));
                self.unknown.insert((*field).to_owned(), value);
            }
        }
        let place = if within.is_empty() { String::new() } else { format!("{within}: ") };
        report.unknown(&place, &unknown, &known);
        self.unknown.extend(unknown);
    }

    /// States each field that there is, and gives back the others.
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

    /// The schema of the arguments: `schema` as it stands in an entry, or the interface's own; where it states only
    /// what the model sees, that.
    ///
    /// # Errors
    ///
    /// A text, where two are stated and they differ.
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

    /// The deadline: the seconds of an entry, or the interface's `timeout_ms`.
    ///
    /// # Errors
    ///
    /// A text, where both are stated and they differ.
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
