//! What a tool returns, and how it becomes an answer: for the model, for people, or for both in words of their own.

use serde::Serialize;
use serde_json::Value;

use crate::{Answer, Error, Link, Media, Native, Part, Presentation, Result};

/// What a tool may return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return text, `()`, `Value`, `Json(…)`, a `Part`, an `Answer`, or a `Result` of one of them"
)]
pub trait IntoAnswer {
    /// The answer.
    ///
    /// # Errors
    ///
    /// Where the tool failed, or what it returned is no JSON.
    fn into_answer(self) -> Result<Answer>;
}

/// An answer in JSON.
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

/// Nothing to say is an empty object.
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
    /// The model is told this text.
    pub fn text(text: impl Into<String>) -> Self {
        Part::text(text).into()
    }

    /// The model is told this value.
    ///
    /// # Errors
    ///
    /// Where it is no JSON.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Part::json(value)?.into())
    }

    /// Tells the model this part too.
    #[must_use]
    pub fn and(mut self, part: Part) -> Self {
        self.content.push(part);
        self
    }

    /// Shows this part to people; the model is not told it.
    #[must_use]
    pub fn show(mut self, part: Part) -> Self {
        self.display.push(part);
        self
    }
}

impl Part {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A value.
    ///
    /// # Errors
    ///
    /// Where it is no JSON.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Self::Json(text_of(value)?))
    }

    /// Bytes of a kind, such as `image/png` or `audio/wav`.
    pub fn media(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::Media(Media { mime_type: mime_type.into(), name: None, data: data.into() })
    }

    /// Something that lies elsewhere.
    pub fn link(uri: impl Into<String>) -> Self {
        Self::Link(Link { uri: uri.into(), name: None, mime_type: None })
    }

    /// Content for one provider alone: the format of its API, and a list of its content items. It stands alone in its answer.
    pub fn native(format: impl Into<String>, content: &[Value]) -> Self {
        Self::Native(Native { format: format.into(), content: Value::from(content).to_string() })
    }

    /// The same medium or link under a name.
    #[must_use]
    pub fn named(mut self, given: impl Into<String>) -> Self {
        if let Self::Media(Media { name, .. }) | Self::Link(Link { name, .. }) = &mut self {
            *name = Some(given.into());
        }
        self
    }
}

impl Presentation {
    /// Nothing in any words.
    pub fn new() -> Self {
        Self { content: None, display: Vec::new(), summary: None, transcript: None }
    }

    /// What a call came to, as its answer has it.
    pub fn of(outcome: Result<Answer>) -> Self {
        Self { display: outcome.map(|answer| answer.display).unwrap_or_default(), ..Self::new() }
    }

    /// Tells the model this part, and nothing of the answer's own content.
    #[must_use]
    pub fn tell(mut self, part: Part) -> Self {
        self.content.get_or_insert_default().push(part);
        self
    }

    /// Shows this part to people.
    #[must_use]
    pub fn show(mut self, part: Part) -> Self {
        self.display.push(part);
        self
    }

    /// The line of a collapsed view.
    #[must_use]
    pub fn summary(self, line: impl Into<String>) -> Self {
        Self { summary: Some(line.into()), ..self }
    }

    /// The words under which a transcript finds the call.
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

/// The JSON text of a value.
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
