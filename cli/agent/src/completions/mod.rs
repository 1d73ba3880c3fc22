//! Requests of the Chat Completions API, in its strict form.

mod answer;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolcrib::ToolResult;

pub(super) use answer::Answer;

use super::message::Message;
use super::reply::{self, Reply, Shape};
use super::request::{Request, Sampling};

/// The format of content that is made for this API.
const FORMAT: &str = "openai.chat_completions";

/// The parts that it takes. An image in a `tool` message is taken by some servers alone: who writes one knows his.
const SHAPES: [Shape; 2] = [
    Shape { kind: "text", required: &[("text", reply::is_text)], optional: &[] },
    Shape { kind: "image_url", required: &[("image_url", is_image)], optional: &[] },
];

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Cow<'a, [Message]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [Value],
    #[serde(flatten)]
    sampling: Sampling,
    /// Servers that do not know it pass it over; some models refuse the older `max_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(flatten)]
    stream: Option<Streamed>,
}

/// The wish that the answer comes in parts, with its usage at the end.
#[derive(Debug, Serialize)]
struct Streamed {
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> From<&Request<'a>> for Body<'a> {
    fn from(request: &Request<'a>) -> Self {
        let Request { origin, model, messages, tools, sampling, stream, stream_usage, max_tokens, .. } = *request;
        let messages = match messages.iter().any(Message::has_extensions) {
            true => Cow::Owned(messages.iter().map(|message| message.plain(origin)).collect()),
            false => Cow::Borrowed(messages),
        };
        let stream_options = stream_usage.then_some(StreamOptions { include_usage: true });
        let stream = stream.then_some(Streamed { stream, stream_options });
        Self { model, messages, tools, sampling, max_completion_tokens: max_tokens, stream }
    }
}

/// Returns the reply for the model about a call. The text names the media, because a `tool` message cannot hold them.
pub(super) fn reply(result: &ToolResult) -> Reply {
    let content = reply::native(result, FORMAT, |part| reply::is_one_of(part, &SHAPES));
    Reply { content: content.unwrap_or_else(|| Value::String(result.content().into_owned())), output: None }
}

fn is_image(image: &Value) -> bool {
    image.as_object().is_some_and(|image| {
        image.contains_key("url")
            && image.iter().all(|(name, value)| match name.as_str() {
                "url" => reply::is_data(value),
                "detail" => reply::is_detail(value),
                _ => false,
            })
    })
}
