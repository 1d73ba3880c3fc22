//! Return values of tools and their conversion into answers: for the model, for people, or different parts for each.

use serde::Serialize;
use serde_json::Value;

use crate::{Answer, Error, Link, Media, Native, Part, Presentation, Result};

/// Type that a tool may return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return text, `()`, `Value`, `Json(…)`, a `Part`, an `Answer`, or a `Result` of one of them"
)]
pub trait IntoAnswer {
    /// Converts the value into an answer.
    ///
    /// # Errors
    ///
    /// If the tool failed, or the value cannot be written as JSON.
    fn into_answer(self) -> Result<Answer>;
}

/// Answer as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl IntoAnswer for Answer {
    fn into_answer(self) -> Result<Answer> {
        Ok(self)
    }
}

impl IntoAnswer for Part {
    fn into_answer(self) -> Result<Answer> {
        Ok(self.into())
    }
}

impl IntoAnswer for String {
    fn into_answer(self) -> Result<Answer> {
        Ok(Part::Text(self).into())
    }
}

impl IntoAnswer for &str {
    fn into_answer(self) -> Result<Answer> {
        Ok(Part::text(self).into())
    }
}

impl IntoAnswer for Value {
    fn into_answer(self) -> Result<Answer> {
        Ok(Part::Json(self.to_string()).into())
    }
}

/// An empty object.
impl IntoAnswer for () {
    fn into_answer(self) -> Result<Answer> {
        Ok(Part::Json("{}".into()).into())
    }
}

impl<T: Serialize> IntoAnswer for Json<T> {
    fn into_answer(self) -> Result<Answer> {
        Answer::json(&self.0)
    }
}

impl<T: IntoAnswer, E: Into<Error>> IntoAnswer for Result<T, E> {
    fn into_answer(self) -> Result<Answer> {
        self.map_err(E::into)?.into_answer()
    }
}

impl From<Part> for Answer {
    fn from(part: Part) -> Self {
        Self { content: vec![part], display: Vec::new() }
    }
}

impl Answer {
    /// Answers with text for the model.
    pub fn text(text: impl Into<String>) -> Self {
        Part::text(text).into()
    }

    /// Answers with a JSON value for the model.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Part::json(value)?.into())
    }

    /// Adds a part for the model.
    #[must_use]
    pub fn and(mut self, part: Part) -> Self {
        self.content.push(part);
        self
    }

    /// Adds a part for people, which the model does not receive.
    #[must_use]
    pub fn show(mut self, part: Part) -> Self {
        self.display.push(part);
        self
    }
}

impl Part {
    /// Part with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Part with a JSON value.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Self::Json(text_of(value)?))
    }

    /// Part with bytes of a media type, such as `image/png` or `audio/wav`.
    pub fn media(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::Media(Media { mime_type: mime_type.into(), name: None, data: data.into() })
    }

    /// Part with a link to content that is stored elsewhere.
    pub fn link(uri: impl Into<String>) -> Self {
        Self::Link(Link { uri: uri.into(), name: None, mime_type: None })
    }

    /// Part for one provider's API: the format of the API, and its content items. It must be the only part of its
    /// answer.
    pub fn native(format: impl Into<String>, content: &[Value]) -> Self {
        Self::Native(Native { format: format.into(), content: Value::from(content).to_string() })
    }

    /// Names a medium or a link.
    #[must_use]
    pub fn named(mut self, given: impl Into<String>) -> Self {
        if let Self::Media(Media { name, .. }) | Self::Link(Link { name, .. }) = &mut self {
            *name = Some(given.into());
        }
        self
    }
}

impl Presentation {
    /// Empty presentation.
    pub fn new() -> Self {
        Self { content: None, display: Vec::new(), summary: None, transcript: None }
    }

    /// Presentation with the display parts of an answer.
    pub fn of(outcome: Result<Answer>) -> Self {
        Self { display: outcome.map(|answer| answer.display).unwrap_or_default(), ..Self::new() }
    }

    /// Adds a part for the model. The parts replace the content of the answer.
    #[must_use]
    pub fn tell(mut self, part: Part) -> Self {
        self.content.get_or_insert_default().push(part);
        self
    }

    /// Adds a part for people.
    #[must_use]
    pub fn show(mut self, part: Part) -> Self {
        self.display.push(part);
        self
    }

    /// Sets the summary, one line for a collapsed view.
    #[must_use]
    pub fn summary(self, line: impl Into<String>) -> Self {
        Self { summary: Some(line.into()), ..self }
    }

    /// Sets the search text of the call in a transcript.
    #[must_use]
    pub fn transcript(self, words: impl Into<String>) -> Self {
        Self { transcript: Some(words.into()), ..self }
    }
}

impl Default for Presentation {
    fn default() -> Self {
        Self::new()
    }
}

/// JSON text of a value.
pub(crate) fn text_of(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::new(format!("result: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn what_a_tool_returns_becomes_one_part() {
        let content = |returned: Result<Answer>| returned.expect("an answer").content;
        assert_eq!(content("a".into_answer()), [Part::text("a")]);
        assert_eq!(content(().into_answer()), [Part::Json("{}".into())]);
        assert_eq!(content(json!([1]).into_answer()), [Part::Json("[1]".into())]);
        assert_eq!(content(Json("a").into_answer()), [Part::Json("\"a\"".into())]);
        assert_eq!(content(Ok::<_, Error>(Part::link("x:y")).into_answer()), [Part::link("x:y")]);
        let failed = Err::<(), _>(Error::conflict("taken")).into_answer();
        assert_eq!(failed, Err(Error::conflict("taken")));
    }

    #[test]
    fn the_model_and_people_are_told_apart() {
        let image = Part::media("image/png", [1]).named("a.png");
        let answer = Answer::json(&[1]).expect("JSON").and(Part::text("b")).show(image.clone());
        assert_eq!(answer.content, [Part::Json("[1]".into()), Part::text("b")]);
        assert_eq!(answer.display, [image]);
    }
}
