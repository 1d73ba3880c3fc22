//! Conversion of results: text, structured content, media, links, errors with their cure, and the call's receipt.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{Annotations, CallToolResult, ContentBlock, MetaObject, Resource, ResourceContents, Role};
use serde_json::{Map, Value, json};
use toolcrib::call::{Form, Link, Media, Part, Reason};
use toolcrib::{Receipt, ToolResult};
use toolcrib_settings::permission::{DenyFlags, denial_hints, hint, pending_refusal};
use toolcrib_sources::schemas::mcp::{RESULT, STORED};

use super::caller::OpenQuestion;
use super::catalog::Output;

/// Prefix of stored result addresses.
pub(super) const RESULTS: &str = "toolcrib://results/";
/// Key of the receipt in a result's metadata.
const RECEIPT: &str = "toolcrib/receipt";
/// Key of the label in the metadata.
pub(super) const LABEL: &str = "toolcrib/label";
/// Maximum number of denials in a receipt for clients.
const MAX_DENIALS: usize = 50;

/// Identifiers of refused calls that a person can allow on the command line.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Identifier of the call itself.
    own: Option<String>,
    /// Identifiers of calls that it made.
    nested: Vec<String>,
}

impl Pending {
    /// Sorts the questions that a call left open.
    pub(super) fn new(open: Vec<(String, OpenQuestion)>, receipt: &Receipt) -> Self {
        let mut pending = Self::default();
        for (invocation, question) in open {
            match question {
                OpenQuestion::Pending(id) if invocation == receipt.invocation => pending.own = Some(id),
                OpenQuestion::Pending(id) => pending.nested.push(id),
                OpenQuestion::Input { .. } => {}
            }
        }
        pending
    }

    /// Message for a model about refused calls of a call that made `calls` calls; `None` without any.
    fn nested_refusal(&self, calls: u64) -> Option<String> {
        let commands: Vec<String> = self.nested.iter().map(|id| format!("`toolcrib approvals allow {id}`")).collect();
        let made = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        (!commands.is_empty()).then(|| {
            format!(
                "calls that this call made need the approval of the user: ask them to run {}, then call again. This call \
                 made {made}, the refused ones included; calling again makes them again.",
                commands.join(" and ")
            )
        })
    }
}

/// Converts a tool's result with this kind of structured content.
pub(super) fn convert(
    result: &ToolResult,
    output: Output,
    pending: &Pending,
    deny_flags: &DenyFlags,
) -> CallToolResult {
    let text = match &pending.own {
        Some(id) => json!({ "error": pending_refusal(id) }).to_string(),
        None => result.content().into_owned(),
    };
    let mut content = vec![ContentBlock::text(text)];
    content.extend(pending.nested_refusal(result.receipt.calls).map(ContentBlock::text));
    content.extend(result.media.iter().map(media));
    let stored = result.receipt.persisted.as_ref().filter(|_| result.receipt.withheld.is_none());
    if let Some(reference) = stored.and_then(|persisted| persisted.reference.as_ref()) {
        let mut link = Resource::new(format!("{RESULTS}{reference}"), reference.clone());
        link.description = Some("the whole result".to_owned());
        content.push(ContentBlock::resource_link(link));
    }
    content.extend(result.shown.iter().filter_map(shown));
    // Refusals name files and hosts.
    if result.is_error() && pending.own.is_none() && result.receipt.withheld.is_none() {
        let decision = result.receipt.decision.as_ref();
        let hints = match decision.is_some_and(|decision| decision.reason == Reason::Rule) {
            true => hint(&result.receipt, None, "").into_iter().collect(),
            false => denial_hints(&result.receipt, true, deny_flags),
        };
        content.extend(hints.into_iter().map(ContentBlock::text));
    }
    let mut converted = match result.is_error() {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    let value = || serde_json::from_str::<Value>(&result.line()).ok().filter(|_| result.form == Form::Json);
    converted.structured_content = match (output, &result.receipt.persisted) {
        _ if result.is_error() => None,
        (Output::None, _) => None,
        // A shortened result is no longer one of the tool's own schema.
        (_, Some(persisted)) => {
            let address = persisted.reference.as_ref().map(|reference| format!("{RESULTS}{reference}"));
            Some(json!({ STORED: address }))
        }
        (Output::Object, None) => value().filter(Value::is_object),
        (Output::Wrapped, None) => value().map(|value| json!({ RESULT: value })),
    };
    let mut meta = MetaObject::default();
    meta.insert(RECEIPT.to_owned(), receipt(&result.receipt, pending));
    if let Some(label) = label(&result.receipt) {
        meta.insert(LABEL.to_owned(), label);
    }
    converted.with_meta(Some(meta))
}

/// Describes the label of a result; `None` if the result depends on trusted and public sources alone.
pub(super) fn label(receipt: &Receipt) -> Option<Value> {
    let label = receipt.label.as_ref()?;
    let names: Vec<&str> = label.confidentiality().collect();
    Some(json!({ "integrity": label.integrity(), "confidentiality": names }))
}

/// Describes a receipt for the client.
fn receipt(receipt: &Receipt, pending: &Pending) -> Value {
    let shown = if receipt.withheld.is_none() { &receipt.denied[..] } else { &[] };
    let denied: Vec<Value> = (shown.iter().take(MAX_DENIALS))
        .map(|denial| json!({ "capability": denial.capability, "flag": denial.flag }))
        .collect();
    let mut all = Map::new();
    all.insert("invocation".to_owned(), json!(receipt.invocation));
    all.insert("outcome".to_owned(), json!(receipt.outcome));
    all.insert("ms".to_owned(), json!(receipt.ms));
    all.insert("cpuMs".to_owned(), json!(receipt.cpu_ms));
    all.insert("peakMemoryBytes".to_owned(), json!(receipt.peak_memory_bytes));
    if let Some(fuel) = receipt.fuel {
        all.insert("fuel".to_owned(), json!(fuel));
    }
    if !denied.is_empty() {
        all.insert("denied".to_owned(), json!(denied));
    }
    if receipt.truncated {
        all.insert("truncated".to_owned(), json!(true));
    }
    if let Some(id) = &pending.own {
        all.insert("approval".to_owned(), json!(id));
    }
    if !pending.nested.is_empty() {
        all.insert("nestedApprovals".to_owned(), json!(pending.nested));
    }
    Value::Object(all)
}

fn media(media: &Media) -> ContentBlock {
    let data = BASE64_STANDARD.encode(&media.data);
    match media.mime_type.split('/').next() {
        Some("image") => ContentBlock::image(data, &media.mime_type),
        Some("audio") => ContentBlock::audio(data, &media.mime_type),
        _ => {
            let uri = format!("toolcrib://media/{}", media.name.as_deref().unwrap_or("file"));
            let contents = ResourceContents::blob(data, uri).with_mime_type(&media.mime_type);
            ContentBlock::resource(contents)
        }
    }
}

/// Converts a part for people. Progress was reported while the call ran.
fn shown(part: &Part) -> Option<ContentBlock> {
    let mut block = match part {
        Part::Text(text) | Part::Json(text) => ContentBlock::text(text),
        Part::Media(it) => media(it),
        Part::Link(Link { uri, name, mime_type, .. }) => {
            let mut link = Resource::new(uri, name.as_deref().unwrap_or(uri));
            link.mime_type.clone_from(mime_type);
            ContentBlock::resource_link(link)
        }
        _ => return None,
    };
    let mut annotations = Annotations::default();
    annotations.audience = Some(vec![Role::User]);
    match &mut block {
        ContentBlock::Text(text) => text.annotations = Some(annotations),
        ContentBlock::Image(image) => image.annotations = Some(annotations),
        ContentBlock::Audio(audio) => audio.annotations = Some(annotations),
        ContentBlock::Resource(resource) => resource.annotations = Some(annotations),
        ContentBlock::ResourceLink(link) => link.annotations = Some(annotations),
        _ => {}
    }
    Some(block)
}
