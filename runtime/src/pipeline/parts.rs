//! From the parts of a rich tool's answer to what a model is told and what people are shown: a single JSON part stays as it
//! is, an envelope for one provider stays structured, and everything else becomes text.

use serde_json::{Value, json};

use crate::call::{Form, Link, Media, Part};
use crate::error::{Outcome, ToolError};
use crate::sandbox::{Elsewhere, Envelope, Failure, FailureKind, MediaBytes, Piece};
use crate::schema;

use super::answer::FRAME;

/// The most parts of one answer.
const MAX_PARTS: usize = 256;
/// The most characters of a name, a kind and an address.
const MAX_NAME_LEN: usize = 128;
const MAX_KIND_LEN: usize = 100;
const MAX_URI_LEN: usize = 2048;
/// The most characters of a failure's message, and bytes of what it says besides.
const MAX_MESSAGE_LEN: usize = 4096;
const MAX_DETAILS_LEN: usize = 64 << 10;
/// EventKind an envelope says that it is.
const ENVELOPE: &str = "provider_native_tool_result";

/// EventKind a model is told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// One line of JSON; nothing where the answer holds nothing.
    pub(super) line: Option<String>,
    pub(super) form: Form,
    pub(super) media: Vec<Media>,
}

/// EventKind a model is told of the content of an answer.
///
/// # Errors
///
/// [`Outcome::BadResult`] where a part breaks the contract.
pub(super) fn told(content: Vec<Piece>) -> Result<Told, ToolError> {
    if content.len() > MAX_PARTS {
        return Err(bad(format!("tool answered with {} parts, more than the {MAX_PARTS} allowed", content.len())));
    }
    if content.is_empty() {
        return Ok(Told::default());
    }
    match <[Piece; 1]>::try_from(content) {
        Ok([Piece::Json(text)]) => Ok(Told { line: Some(line(text)?), ..Told::default() }),
        Ok([Piece::Native(envelope)]) => native(envelope),
        Ok([one]) => text_of(vec![one]),
        Err(several) => text_of(several),
    }
}

/// A JSON text as one line.
fn line(text: String) -> Result<String, ToolError> {
    let text = match text.trim_matches(schema::JSON_SPACE) {
        trimmed if trimmed.len() == text.len() => text,
        trimmed => trimmed.to_owned(),
    };
    // Inside of its strings JSON has no line breaks.
    let text = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text };
    match schema::check_line(&text) {
        Ok(()) => Ok(text),
        Err(error) => Err(bad(format!("tool answered with something other than JSON: {error}"))),
    }
}

fn native(Envelope { format, content }: Envelope) -> Result<Told, ToolError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if format.is_empty() || format.len() > MAX_NAME_LEN || !format.chars().all(is_name) {
        return Err(bad("tool answered with an envelope with an unknown format name".to_owned()));
    }
    let content = schema::parse(&content).ok().filter(Value::is_array);
    let content = content.ok_or_else(|| bad("tool answered with an envelope that holds no array".to_owned()))?;
    let line = json!({ "type": ENVELOPE, "format": format, "content": content }).to_string();
    Ok(Told { line: Some(line), form: Form::Native { format }, media: Vec::new() })
}

fn text_of(pieces: Vec<Piece>) -> Result<Told, ToolError> {
    let mut text = String::new();
    let mut media = Vec::new();
    for (index, piece) in pieces.into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match piece {
            Piece::Text(part) => text.push_str(&part),
            Piece::Json(part) => text.push_str(&line(part)?),
            Piece::Media(bytes) => {
                let one = self::media(bytes).map_err(bad)?;
                text.push_str(&named(&one));
                media.push(one);
            }
            Piece::Link(elsewhere) => text.push_str(&described(&link(elsewhere).map_err(bad)?)),
            Piece::Native(_) => return Err(bad("tool answered with an envelope that does not stand alone".to_owned())),
        }
    }
    // A text that could be taken for a word of the host's is told as the JSON string that it is.
    let could_speak = text.contains('{') && (text.contains(&format!("\"{FRAME}")) || text.contains("\\u"));
    let form = if could_speak { Form::Json } else { Form::Text };
    Ok(Told { line: Some(Value::String(text).to_string()), form, media })
}

/// EventKind people are shown.
///
/// # Errors
///
/// [`Outcome::BadResult`] where there are too many parts.
pub(super) fn display(pieces: Vec<Piece>) -> Result<Vec<Part>, ToolError> {
    if pieces.len() > MAX_PARTS {
        return Err(bad(format!("tool shows {} parts, more than the {MAX_PARTS} allowed", pieces.len())));
    }
    Ok(pieces.into_iter().map(shown).collect())
}

/// A part as people are shown it; one that breaks the contract is a text that says so.
pub(super) fn shown(piece: Piece) -> Part {
    match piece {
        Piece::Text(text) => Part::Text(text),
        Piece::Json(text) => line(text).map_or_else(|error| Part::Text(error.message), Part::Json),
        Piece::Media(bytes) => media(bytes).map_or_else(Part::Text, Part::Media),
        Piece::Link(elsewhere) => link(elsewhere).map_or_else(Part::Text, Part::Link),
        Piece::Native(Envelope { format, .. }) => {
            let format: String = format.chars().take(MAX_NAME_LEN).collect();
            Part::Text(format!("[content for {format}]"))
        }
    }
}

fn media(MediaBytes { mime_type, name, data }: MediaBytes) -> Result<Media, String> {
    let mime_type = kind(&mime_type)?;
    // A name is a file's own, and no path.
    let plain = |name: &String| {
        !name.is_empty()
            && name.chars().count() <= MAX_NAME_LEN
            && !name.starts_with('.')
            && !name.chars().any(|c| c.is_control() || "/\\:\"<>|?*".contains(c))
    };
    Ok(Media { mime_type, name: name.filter(plain), data: data.into() })
}

fn link(Elsewhere { uri, name, mime_type }: Elsewhere) -> Result<Link, String> {
    if uri.is_empty() || uri.chars().count() > MAX_URI_LEN || uri.chars().any(|c| c.is_control() || c == ' ') {
        return Err("tool answered with an invalid link".to_owned());
    }
    let name = name.map(|name| name.chars().filter(|c| !c.is_control()).take(MAX_NAME_LEN).collect());
    Ok(Link { uri, name, mime_type: mime_type.and_then(|mime_type| kind(&mime_type).ok()) })
}

/// A kind of content, lower case: a type and a subtype.
fn kind(text: &str) -> Result<String, String> {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    match text.split_once('/') {
        Some((one, other)) if text.len() <= MAX_KIND_LEN && plain(one) && plain(other) => Ok(text.to_ascii_lowercase()),
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

/// EventKind a failure in the tool's own words means. `said` stands in the place of its message, where the tool presents it
/// otherwise.
pub(super) fn failed(failure: Failure, said: Option<String>) -> ToolError {
    let Failure { kind, message, details } = failure;
    let (outcome, word) = match kind {
        FailureKind::Invalid => (Outcome::BadArguments, Some("invalid")),
        FailureKind::NotFound => (Outcome::Failed, Some("not-found")),
        FailureKind::Conflict => (Outcome::Failed, Some("conflict")),
        FailureKind::Unavailable => (Outcome::Upstream, Some("unavailable")),
        FailureKind::Failed => (Outcome::Failed, None),
    };
    let message: String = said.unwrap_or(message).chars().take(MAX_MESSAGE_LEN).collect();
    let message = if message.trim().is_empty() { "tool failed without a message".to_owned() } else { message };
    let details = details.filter(|text| text.len() <= MAX_DETAILS_LEN);
    let details = details.and_then(|text| schema::parse(&text).ok()).filter(Value::is_object);
    if word.is_none() && details.is_none() {
        return ToolError::new(outcome, message);
    }
    let mut told = json!({ "error": message });
    if let Some(word) = word {
        told["kind"] = json!(word);
    }
    if let Some(details) = details {
        told["details"] = details;
    }
    ToolError { outcome, message, json: Some(told.to_string()) }
}

fn bad(message: String) -> ToolError {
    ToolError::new(Outcome::BadResult, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    fn media(mime_type: &str, name: Option<&str>) -> Piece {
        Piece::Media(MediaBytes {
            mime_type: mime_type.to_owned(),
            name: name.map(str::to_owned),
            data: b"abc".to_vec(),
        })
    }

    fn why(content: Vec<Piece>) -> String {
        let error = told(content).expect_err("refused");
        assert_eq!(error.outcome, Outcome::BadResult);
        error.message
    }

    #[test]
    fn one_json_part_stays_as_it_is_on_one_line() {
        let told = told(vec![Piece::Json(" {\n \"a\": [1,\r\n 2] }\n".into())]).unwrap();
        assert_eq!((told.line.as_deref(), told.form), (Some("{  \"a\": [1,   2] }"), Form::Json));
        assert_eq!(super::told(Vec::new()).unwrap().line, None);
    }

    #[test]
    fn what_breaks_the_contract_is_a_bad_result() {
        let native = || Piece::Native(Envelope { format: "x".into(), content: "[]".into() });
        assert!(why(vec![Piece::Json("{".into())]).contains("something other than JSON"));
        assert!(why(vec![text("a"), native()]).contains("does not stand alone"));
        assert!(why(vec![Piece::Native(Envelope { format: "a b".into(), content: "[]".into() })]).contains("no name"));
        assert!(why(vec![Piece::Native(Envelope { format: "x".into(), content: "{}".into() })]).contains("no array"));
        assert!(why(vec![media("image", None)]).contains("media of no kind"));
        assert!(why(vec![media("image/p ng", None)]).contains("media of no kind"));
        let link = Elsewhere { uri: "https://a b".into(), name: None, mime_type: None };
        assert!(why(vec![Piece::Link(link)]).contains("a link that is none"));
        assert!(why(vec![text("x"); MAX_PARTS + 1]).contains("257 parts, more than the 256 allowed"));
        assert!(display(vec![text("x"); MAX_PARTS + 1]).is_err());
    }

    #[test]
    fn a_name_of_media_is_a_file_and_no_path() {
        for name in ["../x", "a/b", "C:x", ".hidden", "a\nb", ""] {
            let told = told(vec![media("IMAGE/PNG", Some(name))]).unwrap();
            assert_eq!(
                (told.media[0].name.as_deref(), told.media[0].mime_type.as_str()),
                (None, "image/png"),
                "{name}"
            );
        }
        let told = told(vec![media("image/png", Some("a.png"))]).unwrap();
        assert_eq!(told.line.as_deref(), Some("\"[image/png a.png, 3 bytes]\""));
    }

    #[test]
    fn a_failure_without_words_says_so_and_details_have_a_bound() {
        let failure = |message: &str, details: &str| Failure {
            kind: FailureKind::Failed,
            message: message.to_owned(),
            details: Some(details.to_owned()),
        };
        assert_eq!(failed(failure(" ", "no json"), None).content(), r#"{"error":"tool failed without a message"}"#);
        let told = failed(failure("why", r#"{"a":1}"#), None).content();
        assert_eq!(told, r#"{"error":"why","details":{"a":1}}"#);
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_DETAILS_LEN));
        assert_eq!(failed(failure("why", &large), None).content(), r#"{"error":"why"}"#);
        assert_eq!(failed(failure(&"x".repeat(10_000), ""), None).message.len(), MAX_MESSAGE_LEN);
    }
}
