//! Which API a server is asked through, and all that differs between the two: the address, the form of a request and of
//! what it holds, and how an answer is read.

use serde_json::Value;
use toolcrib::{Tool, ToolResult};

use super::answer::AnswerBuilder;
use super::reply::Reply;
use super::{chat, responses};
use crate::commands::schema::{openai_chat, openai_responses};

/// An API of OpenAI that other servers have, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Api {
    /// Chat Completions, which most servers speak
    #[default]
    Chat,
    /// Responses: tools that take text, images in results, and reasoning that is given back
    Responses,
}

impl Api {
    /// Its word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    /// What its address has after the server's own.
    pub(super) fn path(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &["chat", "completions"],
            Self::Responses => &["responses"],
        }
    }

    /// A tool as it is offered to a model; one that takes text as such only with `custom_tools`.
    pub(super) fn definition(self, tool: &Tool, custom_tools: bool) -> Value {
        match self {
            Self::Chat => openai_chat(tool),
            Self::Responses => openai_responses(tool, custom_tools),
        }
    }

    /// What a model is told of a call.
    pub(super) fn reply(self, result: &ToolResult) -> Reply {
        match self {
            Self::Chat => chat::reply(result),
            Self::Responses => responses::reply(result),
        }
    }

    /// An answer of which nothing has arrived.
    pub(super) fn answer(self) -> Box<dyn AnswerBuilder> {
        match self {
            Self::Chat => Box::<chat::Answer>::default(),
            Self::Responses => Box::<responses::Answer>::default(),
        }
    }

    /// What to do where a server knows no such address.
    pub(super) fn not_found_hint(self) -> &'static str {
        match self {
            Self::Chat => "check `--base-url`, which often ends with `/v1`, and `--model`",
            Self::Responses => {
                "check `--base-url`, which often ends with `/v1`, and `--model`; many servers have only `--api chat`"
            }
        }
    }
}
