//! Results of `tools/call` as tool answers. Parts of unknown kinds are named, and nothing that they refer to is fetched.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use toolcrib::remote::{RemoteAnswer, RemoteContent};

use super::fault::{Fault, shown};

/// Decoder of media, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Maximum number of parts.
const MAX_PARTS: usize = 256;

/// Reads a result. `has_schema` is `true` if an output schema is pinned.
pub(super) fn answer(result: &Value, has_schema: bool) -> Result<RemoteAnswer, Fault> {
    let is_error = match &result["isError"] {
        Value::Null => false,
        Value::Bool(is_error) => *is_error,
        _ => return Err(Fault::foreign("`isError` of a result is neither true nor false")),
    };
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    let content = match &result["content"] {
        Value::Null => &[][..],
        Value::Array(parts) if parts.len() <= MAX_PARTS => parts,
        Value::Array(_) => return Err(Fault::TooMuch(format!("more than {MAX_PARTS} parts in a result"))),
        _ => return Err(Fault::foreign("`content` of a result is not an array")),
    };
    if result.get("content").is_none() && structured.is_none() {
        return Err(Fault::foreign("a result has neither `content` nor `structuredContent`"));
    }
    if has_schema && structured.is_none() && !is_error {
        return Err(Fault::foreign("a result has no `structuredContent`, which the pinned outputSchema requires"));
    }
    let content = content.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    // Without a schema, the structured answer is one more form of the content.
    let structured = structured.filter(|_| has_schema || content.is_empty()).map(Value::to_string);
    Ok(RemoteAnswer { content, structured, is_error })
}

fn part(part: &Value) -> Result<RemoteContent, Fault> {
    let text = |part: &Value, field: &str| part[field].as_str().map(str::to_owned);
    let required = |part: &Value, field: &str| {
        text(part, field).ok_or_else(|| Fault::foreign(format!("a part of a result has no `{field}`")))
    };
    Ok(match part["type"].as_str().unwrap_or_default() {
        "text" => RemoteContent::Text(required(part, "text")?),
        "image" | "audio" => media(part, "data", None)?,
        "resource_link" => link(part)?,
        "resource" => {
            let resource = &part["resource"];
            match text(resource, "text") {
                Some(text) => RemoteContent::Text(text),
                None if resource["blob"].is_string() => {
                    let uri = text(resource, "uri").unwrap_or_default();
                    media(resource, "blob", uri.rsplit('/').next().map(str::to_owned))?
                }
                None => link(resource)?,
            }
        }
        other => RemoteContent::Text(format!("[a part of the unknown kind `{}` is left out]", shown(other))),
    })
}

fn media(part: &Value, field: &str, name: Option<String>) -> Result<RemoteContent, Fault> {
    let data = part[field].as_str().and_then(|data| BASE64.decode(data).ok());
    let data = data.ok_or_else(|| Fault::foreign(format!("`{field}` of a result's part is not base64")))?;
    let mime_type = part["mimeType"].as_str().unwrap_or("application/octet-stream");
    let mime_type = mime_type.split(';').next().unwrap_or_default().trim().to_owned();
    Ok(RemoteContent::Media { mime_type, name, data })
}

fn link(part: &Value) -> Result<RemoteContent, Fault> {
    let text = |field: &str| part[field].as_str().map(str::to_owned);
    let uri = text("uri").ok_or_else(|| Fault::foreign("a link in a result has no `uri`"))?;
    Ok(RemoteContent::Link { uri, name: text("name"), mime_type: text("mimeType") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_content_becomes_a_part_and_unknown_ones_are_named() {
        let content = json!([
            {"type": "text", "text": "a"},
            {"type": "image", "data": "YWJj", "mimeType": "image/png; x=y"},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "t"}},
            {"type": "resource", "resource": {"uri": "a://b/c.bin", "blob": "YWJj"}},
            {"type": "hologram"},
        ]);
        let RemoteAnswer { content, structured, is_error } =
            answer(&json!({"content": content, "structuredContent": {"b": 1}}), false).unwrap();
        assert_eq!((structured, is_error), (None, false));
        let media = |mime_type: &str, name: Option<&str>| RemoteContent::Media {
            mime_type: mime_type.to_owned(),
            name: name.map(str::to_owned),
            data: b"abc".to_vec(),
        };
        assert_eq!((&content[0], &content[1]), (&RemoteContent::Text("a".to_owned()), &media("image/png", None)));
        assert_eq!(content[3], RemoteContent::Text("t".to_owned()));
        assert_eq!(content[4], media("application/octet-stream", Some("c.bin")));
        assert_eq!(content[5], RemoteContent::Text("[a part of the unknown kind `hologram` is left out]".to_owned()));
        let with_schema = answer(&json!({"content": [], "structuredContent": {"b": 1}}), true).unwrap();
        assert_eq!(with_schema.structured.as_deref(), Some(r#"{"b":1}"#));
    }

    #[test]
    fn a_result_that_is_none_is_refused() {
        for result in [
            json!({}),
            json!({"content": "a"}),
            json!({"content": [], "isError": "no"}),
            json!({"content": [{"type": "text"}]}),
            json!({"content": [{"type": "image", "data": "§", "mimeType": "image/png"}]}),
            json!({"content": [{"type": "resource_link"}]}),
            json!({"content": vec![json!({"type": "text", "text": ""}); MAX_PARTS + 1]}),
        ] {
            assert!(answer(&result, false).is_err(), "{result}");
        }
        assert!(answer(&json!({"content": []}), true).is_err(), "a schema requires a structured answer");
        assert!(answer(&json!({"content": [], "isError": true}), true).is_ok());
    }
}
