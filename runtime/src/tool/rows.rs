//! A tool as the table of its facts: those of its interface, and in their places those that stand in the tool itself.

use serde_json::{Value, json};

use super::fact::{Basis, Row};
use super::{Body, Tool};

impl Tool {
    /// Every fact in the order of the standard's partitions, with its basis. A tool identifier that nobody stated is
    /// made of the namespace and the name.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for mut row in self.interface.rows() {
            match row.field {
                "tool_id" if row.value == "" => {
                    let namespace = &self.interface.identity.namespace.value;
                    row.value = json!(format!("{namespace}.{}", self.name));
                }
                "runtime_input_schema" => {
                    row = stated(row, self.parameters.clone());
                    if matches!(self.body, Body::Typed(_)) {
                        row.basis = Basis::Inferred;
                    }
                }
                "model_input_schema" if row.basis == Basis::Default => {
                    row.value = json!(self.model_input_schema());
                    row.basis = if row.value.is_null() { Basis::Default } else { Basis::Inferred };
                }
                "timeout_ms" => row = stated(row, self.limits.deadline.map(|deadline| json!(deadline.as_millis()))),
                _ => {}
            }
            let partition = row.partition;
            let follows = match row.field {
                "tool_id" => Some(("name", json!(self.name), Basis::Declared)),
                "search_hint" => {
                    let basis = if self.description.is_some() { Basis::Declared } else { Basis::Default };
                    Some(("description", json!(self.description), basis))
                }
                _ => None,
            };
            rows.push(row);
            rows.extend(follows.map(|(field, value, basis)| Row { partition, field, value, basis }));
        }
        rows
    }
}

/// A row whose value stands in the tool itself, where it has one.
fn stated(row: Row, value: Option<Value>) -> Row {
    match value {
        Some(value) => Row { value, basis: Basis::Declared, ..row },
        None => row,
    }
}
