//! Language that an interpreter runs: a JSON object in the custom section `toolcrib:language`, at the top level of its component or
//! in a part, with the fields of the record that its `describe` returns. So the language is known without running the interpreter.

use serde::Deserialize;

use crate::descriptor::named;
use crate::error::{Error, Result};

/// Name of the section.
const SECTION: &str = "toolcrib:language";
/// Maximum bytes of the section.
const MAX_BYTES: usize = 16 << 10;
/// Maximum length of a language's name.
const MAX_NAME: usize = 32;
/// Maximum characters of a guide.
const MAX_GUIDE: usize = 2_000;

/// Language of an interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    /// Name in lower case, such as `python`.
    pub language: String,
    /// Version of the language that programs may assume.
    pub version: String,
    /// Name and version of the interpreter.
    pub implementation: String,
    /// Part of the language that programs may use, for a model.
    pub guide: String,
}

/// Returns the language of a program; `None` if it states none.
///
/// # Errors
///
/// The program or the section cannot be read.
pub fn language(program: &[u8]) -> Result<Option<Language>> {
    match named(program, SECTION)?[..] {
        [] => Ok(None),
        [text] => read(text).map(Some),
        _ => Err(Error::Invalid(format!("`{SECTION}` occurs twice, and only one is allowed"))),
    }
}

fn read(text: &[u8]) -> Result<Language> {
    if text.len() > MAX_BYTES {
        return Err(Error::Limit(format!("`{SECTION}` has more than {MAX_BYTES} bytes")));
    }
    let invalid = |reason: String| Error::Invalid(format!("`{SECTION}`: {reason}"));
    let language: Language = serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))?;
    let name = &language.language;
    let is_word = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_word || name.len() > MAX_NAME {
        return Err(invalid(format!("`language` must be a word of lower-case letters, found {name:?}")));
    }
    if language.guide.chars().count() > MAX_GUIDE {
        return Err(invalid(format!("`guide` has more than {MAX_GUIDE} characters")));
    }
    Ok(language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::with_section;

    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn stated(text: &str) -> Result<Option<Language>> {
        language(&with_section(COMPONENT, SECTION, Some(text.as_bytes())).unwrap())
    }

    fn text(name: &str, guide: &str) -> String {
        let guide = serde_json::Value::from(guide);
        format!(r#"{{"language":"{name}","version":"1","implementation":"x 1","guide":{guide}}}"#)
    }

    #[test]
    fn a_language_is_read_from_its_section() {
        assert_eq!(language(COMPONENT).unwrap(), None);
        assert_eq!(stated(&text("lua", "tables")).unwrap().unwrap().guide, "tables");
        assert!(language(b"no program").is_err());
    }

    #[test]
    fn a_section_that_is_wrong_or_too_long_is_refused() {
        let long = "x".repeat(MAX_GUIDE);
        assert!(stated(&text("lua", &long)).is_ok());
        let names = ["", "Lua", "a b", "-a", "1a", &"a".repeat(MAX_NAME + 1)].map(|name| text(name, ""));
        let wrong = [text("lua", &format!("{long}x")), text("lua", &"x".repeat(MAX_BYTES)), "{}".into(), "[]".into()];
        for text in names.iter().chain(&wrong) {
            assert!(stated(text).is_err(), "{text:.200}");
        }
        let once = with_section(COMPONENT, SECTION, Some(text("lua", "").as_bytes())).unwrap();
        let twice = [&once[..], &once[8..]].concat();
        assert!(language(&twice).is_err());
    }
}
