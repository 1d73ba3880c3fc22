//! The host's model as a service for tools: one prompt, one completion, no tools.

use futures::future::BoxFuture;

use crate::error::HandlerError;

/// Maximum number of completions per call.
pub const MAX_COMPLETIONS: u64 = 8;
/// Maximum bytes of one prompt with its system text.
pub const MAX_PROMPT_LEN: usize = 256 << 10;
/// Maximum bytes of one completion.
pub const MAX_COMPLETION_LEN: usize = 256 << 10;
/// Tokens of a completion for which the tool sets no limit.
pub const DEFAULT_TOKENS: u32 = 1024;
/// Maximum tokens of a completion that a tool can request.
pub const MAX_TOKENS: u32 = 4096;

/// Request of a tool for a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// System text for the model.
    pub system: Option<String>,
    /// Prompt for the model.
    pub prompt: String,
    /// Maximum tokens of the completion.
    pub max_tokens: u32,
}

/// Completion of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// Text of the completion.
    pub text: String,
    /// Tokens of prompt and completion together, or 0 if unknown.
    pub tokens: u64,
}

impl Completion {
    /// Creates a completion.
    pub fn new(text: impl Into<String>, tokens: u64) -> Self {
        Self { text: text.into(), tokens }
    }
}

/// Model that completes the prompts of tools.
pub trait Model: Send + Sync {
    /// Completes one prompt. Dropping the future abandons the request.
    ///
    /// # Errors
    ///
    /// A message for the tool.
    fn complete(&self, question: CompletionRequest) -> BoxFuture<'_, Result<Completion, HandlerError>>;
}
