//! Table of a tool's facts: its interface's fields, combined with the fields that the tool holds itself.

use serde_json::{Value, json};

use super::fact::{Basis, Row};
use super::{Body, Tool};

impl Tool {
    /// Returns every fact in the order of the standard's partitions. The default tool identifier is
    /// `NAMESPACE.NAME`.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for mut row in self.interface.rows() {
            match row.field {
                "tool_id" if row.value == "" => {
                    let namespace = &self.interface.identity.namespace.value;
                    row.value = json!(format!("{namespace}.{}", self.name));
                }
                "runtime_input_schema" => {
                    row = with_declared(row, self.parameters.clone());
                    if matches!(self.body, Body::Typed(_)) {
                        row.basis = Basis::Inferred;
                    }
                }
                "model_input_schema" if row.basis == Basis::Default => {
                    row.value = json!(self.model_input_schema());
                    row.basis = if row.value.is_null() { Basis::Default } else { Basis::Inferred };
                }
                "timeout_ms" => {
                    row = with_declared(row, self.limits.deadline.map(|deadline| json!(deadline.as_millis())));
                }
                _ => {}
            }
            let partition = row.partition;
            let next = match row.field {
                "tool_id" => Some(("name", json!(self.name), Basis::Declared)),
                "search_hint" => {
                    let basis = if self.description.is_some() { Basis::Declared } else { Basis::Default };
                    Some(("description", json!(self.description), basis))
                }
                _ => None,
            };
            rows.push(row);
            rows.extend(next.map(|(field, value, basis)| Row { partition, field, value, basis }));
        }
        rows
    }
}

/// Returns the row with the value that the tool declares itself, if any.
fn with_declared(row: Row, value: Option<Value>) -> Row {
    match value {
        Some(value) => Row { value, basis: Basis::Declared, ..row },
        None => row,
    }
}
