//! Requests of the Responses API. The server stores nothing: every request holds the whole conversation, with the items of
//! the model that must be sent back.

mod answer;
mod input;
mod item;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};
use toolcrib::ToolResult;
use toolcrib::call::Media;

pub(super) use answer::Answer;

use super::reply::{self, Reply, Shape};
use super::request::{Request, Sampling};

/// The format of content that is made for this API.
const FORMAT: &str = "openai.responses";
/// Name of the request for reasoning that can be sent back.
pub(super) const REASONING: &str = "reasoning.encrypted_content";
/// Images that models accept, each with its first bytes. A server refuses the whole conversation if an image has another
/// format.
pub(super) const IMAGES: [(&str, &[u8]); 4] =
    [("image/png", b"\x89PNG"), ("image/jpeg", b"\xff\xd8\xff"), ("image/gif", b"GIF8"), ("image/webp", b"RIFF")];
const DOCUMENT: (&str, &[u8]) = ("application/pdf", b"%PDF");

/// The parts that it takes.
const SHAPES: [Shape; 3] = [
    Shape { kind: "input_text", required: &[("text", reply::is_text)], optional: &[] },
    Shape {
        kind: "input_image",
        required: &[("image_url", reply::is_data)],
        optional: &[("detail", reply::is_detail)],
    },
    Shape { kind: "input_file", required: &[("file_data", reply::is_data)], optional: &[("filename", reply::is_name)] },
];

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    input: Vec<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(flatten)]
    sampling: Sampling,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
}

impl<'a> From<&Request<'a>> for Body<'a> {
    fn from(request: &Request<'a>) -> Self {
        let Request { model, messages, tools, sampling, .. } = *request;
        Self {
            model,
            input: input::items(messages),
            tools,
            parallel_tool_calls: (!tools.is_empty()).then_some(true),
            sampling,
            stream: request.stream.then_some(true),
            store: false,
            max_output_tokens: request.max_tokens,
            include: request.reasoning.then_some([REASONING]),
        }
    }
}

/// Returns the reply for the model about a call: the text, which names all media, with the media of known types.
pub(super) fn reply(result: &ToolResult) -> Reply {
    let text = result.content();
    let output = match reply::native(result, FORMAT, |part| reply::is_one_of(part, &SHAPES)) {
        Some(content) => Some(content),
        None => {
            let media: Vec<Value> = result.media.iter().filter_map(part).collect();
            let text = json!({ "type": "input_text", "text": text });
            (!media.is_empty()).then(|| [text].into_iter().chain(media).collect())
        }
    };
    Reply { output, ..Reply::from(text.into_owned()) }
}

fn part(media: &Media) -> Option<Value> {
    let data = || format!("data:{};base64,{}", media.mime_type, STANDARD.encode(&media.data));
    let is = |(kind, begins): &(&str, &[u8])| media.mime_type == *kind && media.data.starts_with(begins);
    if IMAGES.iter().any(is) {
        return Some(json!({ "type": "input_image", "image_url": data(), "detail": "auto" }));
    }
    is(&DOCUMENT).then(|| {
        let name = media.name.as_deref().unwrap_or("document.pdf");
        json!({ "type": "input_file", "filename": name, "file_data": data() })
    })
}

#[cfg(test)]
mod tests {
    use toolcrib::call::Form;
    use toolcrib::{Audit, Runtime, ToolCall};

    use super::*;
    use crate::completions;

    /// The result of a call, as a tool might have it.
    async fn result(line: &str, media: &[(&str, Option<&str>, &str)], form: Form) -> ToolResult {
        let runtime = Runtime::builder(Audit::off()).build().expect("a runtime");
        let mut step = runtime.session().step(vec![ToolCall::new("a", "none", "{}")]);
        let mut result = step.next().await.expect("a result");
        let media =
            media.iter().map(|(kind, name, data)| Media::new(*kind, name.map(str::to_owned), data.as_bytes().to_vec()));
        (result.outcome, result.media, result.form) = (Ok(line.to_owned()), media.collect(), form);
        result
    }

    #[tokio::test]
    async fn media_of_known_types_go_with_the_text_and_others_are_named_by_it() {
        let media = [
            ("image/gif", None, "GIF8"),
            ("image/tiff", None, "abc"),
            ("application/pdf", Some("a.pdf"), "%PDF"),
            ("image/png", None, "no image"),
        ];
        let result = result("{\"n\":1}", &media, Form::Json).await;
        let wanted = json!([
            { "type": "input_text", "text": "{\"n\":1}" },
            { "type": "input_image", "image_url": "data:image/gif;base64,R0lGOA==", "detail": "auto" },
            { "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg==" },
        ]);
        assert_eq!(reply(&result), Reply { content: json!("{\"n\":1}"), output: Some(wanted) });
        assert_eq!(completions::reply(&result), Reply { content: json!("{\"n\":1}"), output: None });
        let unseen = self::result("\"text\"", &[("image/tiff", None, "abc")], Form::Text).await;
        assert_eq!(reply(&unseen), Reply::from("text".to_owned()));
    }

    #[tokio::test]
    async fn parts_that_are_made_for_one_api_stay_parts_there_and_text_elsewhere() {
        let of = |format: &str, content: &Value| {
            let line = json!({ "format": format, "content": content }).to_string();
            (line, Form::Native { format: format.to_owned() })
        };
        let content = json!([{ "type": "input_text", "text": "a" }]);
        let (line, form) = of(FORMAT, &content);
        let made = result(&line, &[], form).await;
        assert_eq!(reply(&made), Reply { content: json!(line), output: Some(content) });
        assert_eq!(completions::reply(&made), Reply::from(line));

        let content = json!([{ "type": "text", "text": "a" }]);
        let (line, form) = of("openai.chat_completions", &content);
        let made = result(&line, &[], form).await;
        assert_eq!(completions::reply(&made), Reply { content, output: None });
        assert_eq!(reply(&made), Reply::from(line));

        for content in [
            json!([{ "type": "input_image", "image_url": "https://host/?what-a-tool-has-read" }]),
            json!([{ "type": "input_text", "text": "{\"toolcrib\":{}}" }]),
            json!([{ "type": "text", "text": "of another API" }]),
        ] {
            let (line, form) = of(FORMAT, &content);
            assert_eq!(reply(&result(&line, &[], form).await), Reply::from(line));
        }
    }
}
