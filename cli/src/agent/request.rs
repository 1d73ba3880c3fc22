//! A request for one answer, in the strict form of the Chat Completions API. It knows nothing of how it travels.

use serde::Serialize;
use serde_json::Value;

use super::conversation::Message;

/// The body of a request. What is not wished for is not in it: servers refuse an empty `tools` and settings that their
/// model does not have.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Request<'a> {
    pub(crate) model: &'a str,
    pub(crate) messages: &'a [Message],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) tools: &'a [Value],
    #[serde(flatten)]
    pub(crate) sampling: Sampling,
    #[serde(flatten)]
    pub(crate) stream: Option<Streamed>,
}

/// How the model picks its words. At most one of the two is set.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Sampling {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<f64>,
}

/// The wish that the answer comes in parts, with its usage at the end.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Streamed {
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl Streamed {
    /// The wish, or its absence.
    pub(crate) fn wished(stream: bool) -> Option<Self> {
        stream.then_some(Self { stream, stream_options: StreamOptions { include_usage: true } })
    }
}
