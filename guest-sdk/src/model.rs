//! The host's model, asked once and without tools. A tool asks for it with `#[tool(model)]`.

use crate::{Error, Result, host};

pub use crate::bindings::tool::toolcrib::tool::model::{Completion, Question};

/// What the model says to a prompt.
///
/// # Errors
///
/// Where there is no answer.
pub fn ask(prompt: impl Into<String>) -> Result<String> {
    Ok(Question::new(prompt).ask()?.text)
}

impl Question {
    /// A question of this prompt alone.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { system: None, prompt: prompt.into(), max_tokens: None }
    }

    /// The same question to a model that behaves so.
    #[must_use]
    pub fn system(self, words: impl Into<String>) -> Self {
        Self { system: Some(words.into()), ..self }
    }

    /// The same question, answered in at most so many tokens.
    #[must_use]
    pub fn max_tokens(self, most: u32) -> Self {
        Self { max_tokens: Some(most), ..self }
    }

    /// Asks it.
    ///
    /// # Errors
    ///
    /// Where there is no answer.
    pub fn ask(&self) -> Result<Completion> {
        host::model::complete(self).map_err(Error::unavailable)
    }
}
