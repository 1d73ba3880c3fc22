//! A form as a part of a page: a field for each value, with its label, description, rules and problem.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use crate::layout::{self, MAX_CELL, MAX_TEXT};
use crate::schema;

use super::{MAX_ITEMS, Node, NodeKind};

/// Problems of a form, by the JSON pointers to their values.
pub(crate) type Problems = BTreeMap<String, String>;

/// Text length in bytes; the field of a longer text is high from the beginning.
const LONG: usize = 200;

/// Shows the whole form: the fields of the arguments.
pub(crate) fn shown(root: &Node, problems: &Problems) -> Markup {
    match &root.kind {
        NodeKind::Object { .. } => inside(root, problems),
        _ => part(root, problems),
    }
}

fn part(node: &Node, problems: &Problems) -> Markup {
    let is_group = matches!(node.kind, NodeKind::Object { .. } | NodeKind::Array(_) | NodeKind::Union { .. });
    html! {
        @if is_group {
            fieldset id=(node.path) aria-describedby=(described(node, problems)) {
                legend { (label(node)) }
                (about(node, problems))
                (inside(node, problems))
            }
        } @else {
            div.field {
                label for=(node.path) { (label(node)) }
                (inside(node, problems))
                (about(node, problems))
            }
        }
    }
}

fn label(node: &Node) -> Markup {
    let name = if node.label.is_empty() { "Value" } else { &node.label };
    html! { (layout::line(name, 120)) @if node.is_required { span.quiet { " (required)" } } }
}

/// Description, rules and problem of a part.
fn about(node: &Node, problems: &Problems) -> Markup {
    let description = node.schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let is_base64 = node.schema.get("contentEncoding").is_some_and(|encoding| encoding == "base64");
    html! {
        div.quiet id={ (node.path) "-about" } {
            @if !description.is_empty() { div { (layout::line(description, MAX_TEXT)) } }
            @if is_base64 { div { "The content of a file, as base64" } }
            (schema::rules(&node.schema))
        }
        @if is_base64 && matches!(node.kind, NodeKind::Text(_)) {
            // The script of the page shows it, and fills the field; a file itself is never sent.
            p hidden data-file=(node.path) { label { "Choose a file " input type="file"; } " " span role="status" {} }
        }
        @if let Some(problem) = problems.get(&node.pointer) {
            p.problem id={ (node.path) "-problem" } { (layout::line(problem, MAX_TEXT)) }
        }
    }
}

/// Names the texts that describe a field.
fn described(node: &Node, problems: &Problems) -> String {
    let path = &node.path;
    match problems.contains_key(&node.pointer) {
        true => format!("{path}-problem {path}-about"),
        false => format!("{path}-about"),
    }
}

fn inside(node: &Node, problems: &Problems) -> Markup {
    let (path, described) = (&node.path, described(node, problems));
    let invalid = problems.contains_key(&node.pointer).then_some("true");
    html! {
        @match &node.kind {
            NodeKind::Text(text) => {
                // The first line break in a text area is not a part of its text.
                textarea id=(path) name={ "v:" (path) } rows=(rows(text)) aria-describedby=(described) aria-invalid=[invalid]
                    spellcheck="false" { "\n" (text) }
                (sent_empty(node, "Send an empty text"))
            }
            NodeKind::Json(text) => {
                textarea.json id=(path) name={ "v:" (path) } rows=(rows(text)) aria-describedby=(described) aria-invalid=[invalid]
                    spellcheck="false" placeholder="JSON" { "\n" (text) }
            }
            NodeKind::Number(text) => {
                input id=(path) name={ "v:" (path) } inputmode="decimal" autocomplete="off" aria-describedby=(described)
                    aria-invalid=[invalid] value=(text);
            }
            NodeKind::Choice { values, chosen } => {
                select id=(path) name={ "v:" (path) } aria-describedby=(described) aria-invalid=[invalid] {
                    @if !node.is_required || values.len() > 1 {
                        option value="" { @if node.is_required { "choose" } @else { "left out" } }
                    }
                    @for (at, value) in values.iter().enumerate() {
                        option value=(at) selected[*chosen == Some(at)] { (layout::plain(&words(value), MAX_CELL)) }
                    }
                }
            }
            NodeKind::Object { fields, more } => {
                @for (_, field) in fields { (part(field, problems)) }
                @if let Some(more) = more {
                    input type="hidden" name={ "n:" (path) } value=(more.len());
                    @for (at, (name, member)) in more.iter().enumerate() {
                        @let id = format!("{path}.m{at}");
                        fieldset {
                            legend { "Member " (at + 1) }
                            div.field { label for={ (id) "-name" } { "Name" }
                                input id={ (id) "-name" } name={ "k:" (id) } autocomplete="off" value=(name); }
                            (part(member, problems))
                            (remove(path, &format!("m{at}"), &format!("member {}", at + 1)))
                        }
                    }
                    (add(path, more.len(), "Add member"))
                }
                @if fields.is_empty() || !node.is_required { (sent_empty(node, "Send it even if it is empty")) }
            }
            NodeKind::Array(items) => {
                input type="hidden" name={ "n:" (path) } value=(items.len());
                @for (at, item) in items.iter().enumerate() {
                    div.item { (part(item, problems)) (remove(path, &at.to_string(), &format!("item {}", at + 1))) }
                }
                (add(path, items.len(), "Add item"))
                (sent_empty(node, "Send an empty list"))
            }
            NodeKind::Union { kinds, chosen, inside } => {
                p {
                    label for={ (path) "-kind" } { "Kind" }
                    select id={ (path) "-kind" } name={ "u:" (path) } {
                        @if !node.is_required { option value="" { "left out" } }
                        @for (at, kind) in kinds.iter().enumerate() {
                            option value=(at) selected[*chosen == Some(at)] { (at + 1) ": " (layout::plain(kind, MAX_CELL)) }
                        }
                    }
                    " " button name="do" value="show" { "Show its fields" }
                }
                @if let Some(inside) = inside { (part(inside, problems)) }
            }
        }
    }
}

/// Text of a value that is chosen.
fn words(value: &Value) -> String {
    value.as_str().filter(|text| !text.is_empty()).map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the lines of a text area.
fn rows(text: &str) -> usize {
    let lines = text.lines().count().clamp(1, 16);
    if text.len() > LONG { lines.max(4) } else { lines }
}

fn sent_empty(node: &Node, text: &str) -> Markup {
    html! {
        @if !node.is_required {
            label.check { input type="checkbox" name={ "e:" (node.path) } value="1" checked[node.is_sent_empty]; " " (text) }
        }
    }
}

fn add(path: &str, count: usize, text: &str) -> Markup {
    html! {
        @if count < MAX_ITEMS { button name="do" value={ "add:" (path) } { (text) } }
        @else { p.quiet { "A form has at most " (MAX_ITEMS) " of these; write the arguments as JSON for more." } }
    }
}

fn remove(path: &str, item: &str, what: &str) -> Markup {
    html! { button.deny name="do" value={ "remove:" (path) ":" (item) } { "Remove " (what) } }
}
