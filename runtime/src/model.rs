//! The host's model, as far as a tool may ask it: one question, one answer, no tools.

use futures::future::BoxFuture;

/// The most questions of one call.
pub const MAX_QUESTIONS: u64 = 8;
/// The most bytes of one question.
pub const MAX_QUESTION_LEN: usize = 256 << 10;
/// The most bytes of one answer.
pub const MAX_ANSWER_LEN: usize = 256 << 10;
/// The tokens of an answer where a tool names none.
pub const USUAL_TOKENS: u32 = 1024;
/// The most tokens of an answer that a tool may name.
pub const MAX_TOKENS: u32 = 4096;

/// What a tool asks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// How the model is to behave.
    pub system: Option<String>,
    /// What it is asked.
    pub prompt: String,
    /// The most tokens of its answer.
    pub max_tokens: u32,
}

/// What the model said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// Its text.
    pub text: String,
    /// The tokens of question and answer together, where they are known.
    pub tokens: u64,
}

/// Answers tools' questions.
pub trait Model: Send + Sync {
    /// Asks once. Dropping the future gives the question up.
    ///
    /// # Errors
    ///
    /// Why there is no answer, in words for the tool.
    fn complete(&self, question: CompletionRequest) -> BoxFuture<'_, Result<Completion, String>>;
}
