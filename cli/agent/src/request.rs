//! A request for one answer, independent of API and transport.

use serde::Serialize;
use serde_json::Value;

use super::message::Message;

/// Model API of OpenAI and compatible servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Api {
    /// Chat Completions, which most servers support
    #[default]
    Chat,
    /// Responses, with tools that take text, images in results, and reasoning
    Responses,
}

impl Api {
    /// Returns the name of the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }
}

/// A model request. Unset options are left out of the body: servers reject an empty `tools` and unsupported settings.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub(crate) api: Api,
    /// Server and model that get the request; empty until it is sent.
    pub(crate) origin: &'a str,
    pub(crate) model: &'a str,
    pub(crate) messages: &'a [Message],
    pub(crate) tools: &'a [Value],
    pub(crate) sampling: Sampling,
    /// `true` to stream the answer.
    pub(crate) stream: bool,
    /// `true` to request the usage at the end of a stream, if the API has to be asked for it.
    pub(crate) stream_usage: bool,
    /// `true` to request reasoning in a form that can be returned to the model, if the API supports it.
    pub(crate) reasoning: bool,
    /// Maximum tokens of the answer, if limited.
    pub(crate) max_tokens: Option<u32>,
}

/// Sampling settings. At most one is set.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Sampling {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<f64>,
}
