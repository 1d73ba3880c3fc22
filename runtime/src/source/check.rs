//! All problems of a source, including faulty schemas and contradicting properties, which a load does not look for.

use std::path::Path;

use crate::schema;
use crate::tool::Tool;

use crate::error::Severity;

use super::diagnostics::{Diagnostic, Parsed, ScopedDiagnostic};
use super::{diagnostics, inference, read, tool_diagnostic};

/// Returns every problem of a source, errors and warnings, in source order.
pub fn check(path: &Path) -> Vec<Diagnostic> {
    let Parsed { tools, mut problems, bundle: _bundle, .. } = read(path);
    for tool in &tools {
        problems.extend(check_schemas(tool));
        let contradictions = inference::contradictions(tool).into_iter();
        problems.extend(contradictions.map(|text| tool_diagnostic(tool, Severity::Warning, &text, "/interface")));
    }
    diagnostics::locate(&mut problems);
    problems.into_iter().map(|scoped| scoped.problem).collect()
}

/// Warns of argument defaults that are not valid.
fn check_defaults(tool: &Tool) -> Vec<ScopedDiagnostic> {
    let refused = tool.parameters.iter().flat_map(schema::refused_defaults);
    let warning = |default: schema::RefusedDefault| {
        tool_diagnostic(tool, Severity::Warning, &default.message, &format!("/schema{}", default.pointer))
    };
    refused.map(warning).collect()
}

/// Returns every problem of a tool's schemas.
fn check_schemas(tool: &Tool) -> Vec<ScopedDiagnostic> {
    let Err(first) = schema::ToolValidator::compile(tool) else { return check_defaults(tool) };
    let schemas = &tool.interface.schemas;
    let each = [
        ("", "/schema", &tool.parameters),
        ("", "/interface/model_input_schema", &schemas.model_input_schema.value),
        ("output_", "/interface/output_schema", &schemas.output_schema.value),
    ];
    // Messages with the part of the entry that each is about.
    let mut found: Vec<(String, String)> = Vec::new();
    for (prefix, part, schema) in each {
        for fault in schema.iter().flat_map(schema::schema_errors) {
            let message = format!("{prefix}{fault}");
            // The schema for the model may equal the argument schema.
            if found.iter().all(|(known, _)| *known != message) {
                found.push((message, format!("{part}{}", fault.pointer)));
            }
        }
    }
    if found.iter().all(|(known, _)| *known != first) {
        found.insert(0, (first, "/schema".to_owned()));
    }
    found.into_iter().map(|(message, part)| tool_diagnostic(tool, Severity::Error, &message, &part)).collect()
}
