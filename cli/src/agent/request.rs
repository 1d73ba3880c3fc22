//! A request for one answer, by whichever API. It knows nothing of how it travels.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::api::Api;
use super::conversation::Message;
use super::{chat, responses};

/// What is asked. What is not wished for is not in the body: servers refuse an empty `tools` and settings that their
/// model does not have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) api: Api,
    pub(crate) model: &'a str,
    pub(crate) messages: &'a [Message],
    pub(crate) tools: &'a [Value],
    pub(crate) sampling: Sampling,
    /// Whether the answer shall come in parts.
    pub(crate) stream: bool,
    /// Whether the model's reasoning is wished for in a form that can be given back, where the API has one.
    pub(crate) reasoning: bool,
    /// The most tokens of the answer, where there is such a bound.
    pub(crate) max_tokens: Option<u32>,
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.api {
            Api::Chat => chat::Body::from(self).serialize(serializer),
            Api::Responses => responses::Body::from(self).serialize(serializer),
        }
    }
}

/// How the model picks its words. At most one of the two is set.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Sampling {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<f64>,
}
