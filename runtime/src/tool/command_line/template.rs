//! Text with placeholders, `{name}`, for arguments of a call. `{{` and `}}` stand for braces.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(String),
}

/// Error in the text of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError {
    /// A brace that is neither doubled nor a part of a placeholder.
    Brace,
    /// A placeholder without a name.
    Unnamed,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Brace => {
                "a brace that belongs to no placeholder `{name}`: double a brace of the text, as `{{` or `}}`"
            }
            Self::Unnamed => "a placeholder without a name: write `{name}`, or `{{}}` for braces",
        })
    }
}

impl std::error::Error for TemplateError {}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let (name, after) = after.split_once('}').filter(|_| brace == "{").ok_or(TemplateError::Brace)?;
            if name.contains('{') {
                return Err(TemplateError::Brace);
            }
            if name.is_empty() {
                return Err(TemplateError::Unnamed);
            }
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Placeholder(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self { pieces })
    }
}

impl Template {
    /// Creates a template that is a placeholder alone.
    pub fn placeholder(name: &str) -> Self {
        Self { pieces: vec![Piece::Placeholder(name.to_owned())] }
    }

    /// Returns the names of its placeholders.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(Piece::name)
    }

    /// Returns the name if the template is a placeholder alone.
    pub fn as_placeholder(&self) -> Option<&str> {
        match &*self.pieces {
            [piece] => piece.name(),
            _ => None,
        }
    }

    /// Returns the text if the template has no placeholder.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the name of the placeholder that the template begins with.
    pub(super) fn first_if_placeholder(&self) -> Option<&str> {
        self.pieces.first()?.name()
    }

    /// Replaces each placeholder: strings as they are, nothing for an absent value, other values as JSON.
    pub(super) fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v Value>) -> String {
        let mut filled = String::new();
        self.pieces.iter().for_each(|piece| filled.push_str(&piece.text(&value)));
        filled
    }

    /// Returns the length of the filled template in bytes.
    pub(super) fn length<'v>(&self, value: impl Fn(&str) -> Option<&'v Value>) -> usize {
        self.pieces.iter().map(|piece| piece.text(&value).len()).fold(0, usize::saturating_add)
    }
}

impl Piece {
    fn text<'t, 'v: 't>(&'t self, value: impl Fn(&str) -> Option<&'v Value>) -> Cow<'t, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Placeholder(name) => match value(name) {
                None => "".into(),
                Some(Value::String(text)) => text.into(),
                Some(other) => other.to_string().into(),
            },
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Placeholder(name) => Some(name),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Piece::Placeholder(name) => write!(f, "{{{name}}}"),
        })
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_placeholders_are_told_apart() {
        for text in ["", "plain", "{a}", "--x={a}", "{a}{b}", "{{x}}", ".[] | {{a: {b}}}", "}}{{"] {
            assert_eq!(text.parse::<Template>().unwrap().to_string(), text);
        }
        for text in ["{", "}", "{a", "a}", "{a{b}}", "{{}"] {
            assert_eq!(text.parse::<Template>(), Err(TemplateError::Brace), "{text}");
        }
        assert_eq!("{}".parse::<Template>(), Err(TemplateError::Unnamed));
    }

    #[test]
    fn a_value_is_never_read_as_a_template() {
        let values = json!({"a": "{b}", "b": [1, {"c": true}], "n": 0.5});
        let fill = |text: &str| text.parse::<Template>().unwrap().fill(|name| values.get(name));
        assert_eq!(fill("{{{a}}}"), "{{b}}");
        assert_eq!(fill("{b} {n} {gone}"), "[1,{\"c\":true}] 0.5 ");
    }
}
