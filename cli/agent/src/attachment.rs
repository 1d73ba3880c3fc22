//! Files and piped text that are added to a prompt: text as text, images as parts of the message. The type is judged by the
//! content, not by the name.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcrib_base::input;
use toolcrib_base::render::{one_line, shortened, usage_error};

use super::responses::IMAGES;

/// Maximum number of attached files.
const MAX_FILES: usize = 16;
/// Maximum size of attached or piped text, in bytes.
pub(super) const MAX_TEXT: u64 = 1 << 20;
/// Maximum size of an attached image, in bytes.
const MAX_IMAGE: u64 = 10 << 20;
/// Maximum size of all attached files, in bytes.
const MAX_TOTAL: usize = 24 << 20;
/// Other way to a file.
const GRANT: &str = "grant a tool its folder with `--allow-read=DIR`";
/// Maximum length of a file's name in the message, in characters.
const MAX_NAME: usize = 120;

/// An attached file.
#[derive(Debug, PartialEq, Eq)]
enum Attachment {
    Text { name: String, text: String },
    Image { mime_type: &'static str, data: Vec<u8> },
}

/// Creates the content of a message from a prompt, the text that was piped besides it, and attached files.
///
/// # Errors
///
/// A usage error about the first file that cannot be attached.
pub(super) fn content(prompt: Option<&str>, piped: Option<&str>, files: &[PathBuf]) -> anyhow::Result<Value> {
    if files.len() > MAX_FILES {
        let given = files.len();
        let fix = "join files, or grant a tool their folder with `--allow-read=DIR`";
        return Err(usage_error(format!("--attach is given {given} times, more than the {MAX_FILES} allowed: {fix}")));
    }
    let (mut attached, mut total) = (Vec::with_capacity(files.len()), 0);
    for file in files {
        let (attachment, size) = read(file).map_err(|reason| cannot_attach(file, &reason))?;
        total += size;
        if total > MAX_TOTAL {
            return Err(cannot_attach(
                file,
                &format!("the files together are larger than the {MAX_TOTAL} bytes allowed; {GRANT}"),
            ));
        }
        attached.push(attachment);
    }
    Ok(joined(prompt, piped, &attached))
}

fn joined(prompt: Option<&str>, piped: Option<&str>, attached: &[Attachment]) -> Value {
    let piped = match (prompt, piped) {
        (Some(_), Some(piped)) => Some(section("Standard input", piped)),
        (_, piped) => piped.map(str::to_owned),
    };
    let text_of = |one: &Attachment| match one {
        Attachment::Text { name, text } => Some(section(&format!("File {name}"), text)),
        Attachment::Image { .. } => None,
    };
    let sections = prompt.map(str::to_owned).into_iter().chain(piped).chain(attached.iter().filter_map(text_of));
    let text = sections.collect::<Vec<_>>().join("\n\n");
    let image = |one: &Attachment| match one {
        Attachment::Text { .. } => None,
        Attachment::Image { mime_type, data } => {
            let url = format!("data:{mime_type};base64,{}", STANDARD.encode(data));
            Some(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
    };
    let images: Vec<Value> = attached.iter().filter_map(image).collect();
    match images.is_empty() {
        true => Value::String(text),
        false => [json!({ "type": "text", "text": text })].into_iter().chain(images).collect(),
    }
}

/// Formats a text between two lines that name it.
fn section(name: &str, text: &str) -> String {
    format!("--- {name} ---\n{}\n--- End of {} ---", text.trim_end_matches(['\r', '\n']), name.to_lowercase())
}

/// Reads a file and judges its type; returns it with its size.
fn read(file: &Path) -> Result<(Attachment, usize), String> {
    // Only a regular file has an end.
    let kind = file.metadata().map_err(|error| match error.kind() {
        ErrorKind::NotFound => "no such file; a relative path starts at the current directory".to_owned(),
        _ => error.to_string(),
    })?;
    if kind.is_dir() {
        return Err(format!("it is a folder; attach the files in it, or {GRANT}"));
    }
    if !kind.is_file() {
        return Err("not a regular file; pipe its content into the command instead".to_owned());
    }
    let data = input::bytes(file, MAX_IMAGE).map_err(|error| format!("{error}; {GRANT} to read it in parts"))?;
    let size = data.len();
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((judged(&name, data)?, size))
}

fn judged(name: &str, data: Vec<u8>) -> Result<Attachment, String> {
    if let Some(mime_type) = image_type(&data) {
        return Ok(Attachment::Image { mime_type, data });
    }
    let is_text = !data.contains(&0);
    match String::from_utf8(data) {
        Ok(text) if is_text && text.len() as u64 > MAX_TEXT => {
            Err(format!("a text larger than the {MAX_TEXT} bytes allowed; {GRANT} to read it in parts"))
        }
        Ok(text) if is_text => Ok(Attachment::Text { name: one_line(&shortened(name, MAX_NAME)), text }),
        _ => Err(format!("neither text (UTF-8) nor a PNG, JPEG, GIF or WebP image; convert it, or {GRANT}")),
    }
}

/// Returns the type of an image by its first bytes.
fn image_type(data: &[u8]) -> Option<&'static str> {
    let (mime_type, _) = IMAGES.iter().find(|(_, begins)| data.starts_with(begins))?;
    let is_other_riff = *mime_type == "image/webp" && data.get(8..12) != Some(b"WEBP");
    (!is_other_riff).then_some(*mime_type)
}

fn cannot_attach(file: &Path, reason: &str) -> anyhow::Error {
    usage_error(format!("cannot attach `{}`: {reason}", one_line(&file.display().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, text: &str) -> Attachment {
        Attachment::Text { name: name.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_prompt_alone_stays_as_it_is_and_the_rest_follows_with_its_name() {
        assert_eq!(joined(Some("go"), None, &[]), "go");
        assert_eq!(joined(None, Some("piped"), &[]), "piped", "piped text alone is the prompt");
        let all = joined(Some("go"), Some("a\nb\n"), &[text("x.md", "c")]);
        let wanted = "go\n\n--- Standard input ---\na\nb\n--- End of standard input ---\n\n\
                      --- File x.md ---\nc\n--- End of file x.md ---";
        assert_eq!(all, wanted);
        let image = Attachment::Image { mime_type: "image/png", data: b"abc".to_vec() };
        let parts = joined(Some("look"), None, &[image, text("y", "d")]);
        assert_eq!(parts[0], json!({"type": "text", "text": "look\n\n--- File y ---\nd\n--- End of file y ---"}));
        assert_eq!(parts[1], json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}}));
    }

    #[test]
    fn the_content_decides_about_the_type() {
        let kind = |bytes: &[u8]| match judged("a.txt", bytes.to_vec()) {
            Ok(Attachment::Text { .. }) => "text",
            Ok(Attachment::Image { mime_type, .. }) => mime_type,
            Err(_) => "refused",
        };
        for (bytes, wanted) in [
            (b"plain \xc5\xbe".as_slice(), "text"),
            (b"", "text"),
            (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\x04\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x04\0\0\0WAVEfmt ", "refused"),
            (b"a\0b", "refused"),
            (b"caf\xe9", "refused"),
            (b"\x7fELF\x02\x01", "text"),
            (b"%PDF-1.7\n%\xe2\xe3", "refused"),
        ] {
            assert_eq!(kind(bytes), wanted, "{bytes:?}");
        }
        let long_name = judged(&"n".repeat(MAX_NAME + 1), b"text".to_vec());
        assert!(matches!(long_name, Ok(Attachment::Text { name, .. }) if name.chars().count() == MAX_NAME));
        let long = vec![b'a'; usize::try_from(MAX_TEXT).unwrap() + 1];
        assert!(judged("a", long).unwrap_err().contains("larger than the 1048576 bytes allowed"));
    }

    #[test]
    fn too_many_files_and_files_that_are_too_large_together_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let mut image = b"GIF89a".to_vec();
        image.resize(MAX_TOTAL / 3 + 1, 0);
        std::fs::write(&path, &image).unwrap();
        let attach = |count: usize| content(Some("go"), None, &vec![path.clone(); count]);
        assert!(attach(2).is_ok());
        assert!(attach(3).unwrap_err().to_string().contains("together are larger than the 25165824 bytes allowed"));
        let error = attach(MAX_FILES + 1).unwrap_err().to_string();
        assert!(error.contains("--attach is given 17 times, more than the 16 allowed"), "{error}");
        image.resize(usize::try_from(MAX_IMAGE).unwrap() + 1, 0);
        std::fs::write(&path, &image).unwrap();
        assert!(attach(1).unwrap_err().to_string().contains("larger than the 10485760 bytes allowed"));
    }
}
