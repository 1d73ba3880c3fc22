//! The host's model: single requests without tools. A tool requests it with `#[tool(model)]`.

use crate::{Error, Result, host};

pub use crate::bindings::tool::toolcrib::tool::model::{Completion, Question};

/// Sends a prompt and returns the text of the answer.
///
/// # Errors
///
/// If there is no answer.
pub fn ask(prompt: impl Into<String>) -> Result<String> {
    Ok(Question::new(prompt).ask()?.text)
}

impl Question {
    /// Creates a request with a prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { system: None, prompt: prompt.into(), max_tokens: None }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(self, words: impl Into<String>) -> Self {
        Self { system: Some(words.into()), ..self }
    }

    /// Sets the maximum tokens of the answer.
    #[must_use]
    pub fn max_tokens(self, most: u32) -> Self {
        Self { max_tokens: Some(most), ..self }
    }

    /// Sends the request.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub fn ask(&self) -> Result<Completion> {
        host::model::complete(self).map_err(Error::unavailable)
    }
}
