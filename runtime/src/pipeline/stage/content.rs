//! Maps the parts of a rich tool's answer to content for the model and for people: a single JSON part stays as it is, an
//! envelope for one provider stays structured, and everything else becomes text.

use serde_json::{Value, json};
use toolcrib_foundation::text::MAX_NAME;

use crate::call::{Form, Link, Media, Part};
use crate::error::{Outcome, ToolError};
use crate::sandbox::{GuestFailure, GuestFailureKind, GuestLink, GuestMedia, GuestNative, GuestPart};
use crate::schema;
use crate::tool::names::NameRules;

use crate::pipeline::state::{MAX_ERROR_LEN, MAX_EXTRA_BYTES};

use super::result::FRAME;

/// Maximum number of parts per answer.
const MAX_PARTS: usize = 256;
/// Maximum bytes of a media type.
const MAX_TYPE_LEN: usize = 100;
/// Maximum characters of an address.
const MAX_URI_LEN: usize = 2048;
/// Type of an envelope for one provider.
const ENVELOPE: &str = "provider_native_tool_result";

/// Content of an answer for the model.
#[derive(Debug, Default)]
pub(crate) struct ModelContent {
    /// One line of JSON; `None` for an empty answer.
    pub(crate) line: Option<String>,
    pub(crate) form: Form,
    pub(crate) media: Vec<Media>,
}

/// Returns the content of an answer for the model.
///
/// # Errors
///
/// [`Outcome::BadResult`] for a part that breaks the contract.
pub(crate) fn model_content(content: Vec<GuestPart>) -> Result<ModelContent, ToolError> {
    if content.len() > MAX_PARTS {
        return Err(bad(format!("tool answered with {} parts, more than the {MAX_PARTS} allowed", content.len())));
    }
    if content.is_empty() {
        return Ok(ModelContent::default());
    }
    match <[GuestPart; 1]>::try_from(content) {
        Ok([GuestPart::Json(text)]) => Ok(ModelContent { line: Some(line(text)?), ..ModelContent::default() }),
        Ok([GuestPart::Native(envelope)]) => native(envelope),
        Ok([one]) => text_of(vec![one]),
        Err(several) => text_of(several),
    }
}

/// Writes a JSON text on one line.
fn line(text: String) -> Result<String, ToolError> {
    let text = match text.trim_matches(schema::JSON_SPACE) {
        trimmed if trimmed.len() == text.len() => text,
        trimmed => trimmed.to_owned(),
    };
    // JSON strings contain no raw line breaks.
    let text = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text };
    match schema::check_line(&text) {
        Ok(()) => Ok(text),
        Err(error) => Err(bad(format!("tool answered with something other than JSON: {error}"))),
    }
}

fn native(GuestNative { format, content }: GuestNative) -> Result<ModelContent, ToolError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if format.is_empty() || format.len() > MAX_NAME || !format.chars().all(is_name) {
        return Err(bad("tool answered with an envelope with an unknown format name".to_owned()));
    }
    let content = schema::parse(&content).ok().filter(Value::is_array);
    let content = content.ok_or_else(|| bad("tool answered with an envelope that holds no array".to_owned()))?;
    let line = json!({ "type": ENVELOPE, "format": format, "content": content }).to_string();
    Ok(ModelContent { line: Some(line), form: Form::Native { format }, media: Vec::new() })
}

fn text_of(pieces: Vec<GuestPart>) -> Result<ModelContent, ToolError> {
    let mut text = String::new();
    let mut media = Vec::new();
    for (index, piece) in pieces.into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match piece {
            GuestPart::Text(part) => text.push_str(&part),
            GuestPart::Json(part) => text.push_str(&line(part)?),
            GuestPart::Media(bytes) => {
                let one = self::media(bytes).map_err(bad)?;
                text.push_str(&named(&one));
                media.push(one);
            }
            GuestPart::Link(reference) => text.push_str(&described(&link(reference).map_err(bad)?)),
            GuestPart::Native(_) => {
                return Err(bad("tool answered with an envelope beside other content".to_owned()));
            }
        }
    }
    // A text that could look like the host's own stays a JSON string.
    let could_speak = text.contains('{') && (text.contains(&format!("\"{FRAME}")) || text.contains("\\u"));
    let form = if could_speak { Form::Json } else { Form::Text };
    Ok(ModelContent { line: Some(Value::String(text).to_string()), form, media })
}

/// Returns the parts of an answer for people.
///
/// # Errors
///
/// [`Outcome::BadResult`] for too many parts.
pub(crate) fn display(pieces: Vec<GuestPart>) -> Result<Vec<Part>, ToolError> {
    if pieces.len() > MAX_PARTS {
        return Err(bad(format!("tool shows {} parts, more than the {MAX_PARTS} allowed", pieces.len())));
    }
    Ok(pieces.into_iter().map(part).collect())
}

/// Returns a part for people; a part that breaks the contract becomes a text with the error.
pub(crate) fn part(piece: GuestPart) -> Part {
    match piece {
        GuestPart::Text(text) => Part::Text(text),
        GuestPart::Json(text) => line(text).map_or_else(|error| Part::Text(error.message), Part::Json),
        GuestPart::Media(bytes) => media(bytes).map_or_else(Part::Text, Part::Media),
        GuestPart::Link(reference) => link(reference).map_or_else(Part::Text, Part::Link),
        GuestPart::Native(GuestNative { format, .. }) => {
            let format: String = format.chars().take(MAX_NAME).collect();
            Part::Text(format!("[content for {format}]"))
        }
    }
}

fn media(GuestMedia { mime_type, name, data }: GuestMedia) -> Result<Media, String> {
    let mime_type = media_type(&mime_type)?;
    // A name is a file name on every system, not a path, a device or a stream.
    let plain = |name: &String| {
        !name.is_empty()
            && name.chars().count() <= MAX_NAME
            && !name.starts_with('.')
            && !name.chars().any(|c| c == '/' || c == '\\')
            && NameRules::Windows.misread(name).is_none()
    };
    Ok(Media { mime_type, name: name.filter(plain), data: data.into() })
}

fn link(GuestLink { uri, name, mime_type }: GuestLink) -> Result<Link, String> {
    if uri.is_empty() || uri.chars().count() > MAX_URI_LEN || uri.chars().any(|c| c.is_control() || c == ' ') {
        return Err("tool answered with an invalid link".to_owned());
    }
    let name = name.map(|name| name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect());
    Ok(Link { uri, name, mime_type: mime_type.and_then(|mime_type| media_type(&mime_type).ok()) })
}

/// Parses a media type: a type and a subtype, in lower case.
fn media_type(text: &str) -> Result<String, String> {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    match text.split_once('/') {
        Some((one, other)) if text.len() <= MAX_TYPE_LEN && plain(one) && plain(other) => Ok(text.to_ascii_lowercase()),
        _ => Err("tool answered with media without a type such as `image/png`".to_owned()),
    }
}

fn named(media: &Media) -> String {
    let name = media.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("[{}{name}, {} bytes]", media.mime_type, media.data.len())
}

fn described(link: &Link) -> String {
    match &link.name {
        Some(name) => format!("{name}: {}", link.uri),
        None => link.uri.clone(),
    }
}

/// Returns the error for a tool's failure. A text of the tool's presentation replaces the failure's own.
pub(crate) fn tool_error(failure: GuestFailure, presented: Option<String>) -> ToolError {
    let GuestFailure { kind, message, details } = failure;
    let (outcome, word) = match kind {
        GuestFailureKind::Invalid => (Outcome::BadArguments, Some("invalid")),
        GuestFailureKind::NotFound => (Outcome::Failed, Some("not-found")),
        GuestFailureKind::Conflict => (Outcome::Failed, Some("conflict")),
        GuestFailureKind::Unavailable => (Outcome::Upstream, Some("unavailable")),
        GuestFailureKind::Failed => (Outcome::Failed, None),
    };
    let message: String = presented.unwrap_or(message).chars().take(MAX_ERROR_LEN).collect();
    let message = if message.trim().is_empty() { "tool failed without a message".to_owned() } else { message };
    let details = details.filter(|text| text.len() <= MAX_EXTRA_BYTES);
    let details = details.and_then(|text| schema::parse(&text).ok()).filter(Value::is_object);
    if word.is_none() && details.is_none() {
        return ToolError::new(outcome, message);
    }
    let mut object = json!({ "error": message });
    if let Some(word) = word {
        object["kind"] = json!(word);
    }
    if let Some(details) = details {
        object["details"] = details;
    }
    ToolError { outcome, message, json: Some(object.to_string()) }
}

fn bad(message: String) -> ToolError {
    ToolError::new(Outcome::BadResult, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> GuestPart {
        GuestPart::Text(text.to_owned())
    }

    fn media(mime_type: &str, name: Option<&str>) -> GuestPart {
        GuestPart::Media(GuestMedia {
            mime_type: mime_type.to_owned(),
            name: name.map(str::to_owned),
            data: b"abc".to_vec(),
        })
    }

    fn why(content: Vec<GuestPart>) -> String {
        let error = model_content(content).expect_err("refused");
        assert_eq!(error.outcome, Outcome::BadResult);
        error.message
    }

    #[test]
    fn one_json_part_stays_as_it_is_on_one_line() {
        let content = model_content(vec![GuestPart::Json(" {\n \"a\": [1,\r\n 2] }\n".into())]).unwrap();
        assert_eq!((content.line.as_deref(), content.form), (Some("{  \"a\": [1,   2] }"), Form::Json));
        assert_eq!(model_content(Vec::new()).unwrap().line, None);
    }

    #[test]
    fn what_breaks_the_contract_is_a_bad_result() {
        let native = || GuestPart::Native(GuestNative { format: "x".into(), content: "[]".into() });
        assert!(why(vec![GuestPart::Json("{".into())]).contains("something other than JSON"));
        assert!(why(vec![text("a"), native()]).contains("beside other content"));
        assert!(
            why(vec![GuestPart::Native(GuestNative { format: "a b".into(), content: "[]".into() })])
                .contains("an unknown format name")
        );
        assert!(
            why(vec![GuestPart::Native(GuestNative { format: "x".into(), content: "{}".into() })]).contains("no array")
        );
        assert!(why(vec![media("image", None)]).contains("media without a type"));
        assert!(why(vec![media("image/p ng", None)]).contains("media without a type"));
        let link = GuestLink { uri: "https://a b".into(), name: None, mime_type: None };
        assert!(why(vec![GuestPart::Link(link)]).contains("an invalid link"));
        assert!(why(vec![text("x"); MAX_PARTS + 1]).contains("257 parts, more than the 256 allowed"));
        assert!(display(vec![text("x"); MAX_PARTS + 1]).is_err());
    }

    #[test]
    fn a_name_of_media_is_a_file_and_no_path() {
        for name in ["../x", "a/b", r"a\b", "C:x", ".hidden", "a\nb", "", "nul.png", "x.png.", "a?b"] {
            let content = model_content(vec![media("IMAGE/PNG", Some(name))]).unwrap();
            assert_eq!(
                (content.media[0].name.as_deref(), content.media[0].mime_type.as_str()),
                (None, "image/png"),
                "{name}"
            );
        }
        let content = model_content(vec![media("image/png", Some("a.png"))]).unwrap();
        assert_eq!(content.line.as_deref(), Some("\"[image/png a.png, 3 bytes]\""));
    }

    #[test]
    fn a_failure_without_words_says_so_and_details_have_a_bound() {
        let failure = |message: &str, details: &str| GuestFailure {
            kind: GuestFailureKind::Failed,
            message: message.to_owned(),
            details: Some(details.to_owned()),
        };
        assert_eq!(tool_error(failure(" ", "no json"), None).content(), r#"{"error":"tool failed without a message"}"#);
        let content = tool_error(failure("why", r#"{"a":1}"#), None).content();
        assert_eq!(content, r#"{"error":"why","details":{"a":1}}"#);
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_EXTRA_BYTES));
        assert_eq!(tool_error(failure("why", &large), None).content(), r#"{"error":"why"}"#);
        assert_eq!(tool_error(failure(&"x".repeat(10_000), ""), None).message.len(), MAX_ERROR_LEN);
    }
}
