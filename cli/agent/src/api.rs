//! Differences between the model APIs: path, request body, tool definitions, replies and answers.

use serde::{Serialize, Serializer};
use serde_json::Value;
use toolcrib::{Session, Tool, ToolResult};
use toolcrib_sources::schemas::openai::{function, responses_tool};
use toolcrib_sources::schemas::{Names, openai};

use super::answer::AnswerBuilder;
use super::reply::Reply;
use super::request::Request;
use super::{completions, responses};

pub use super::request::Api;

/// Returns the names of a session's tools for the model. The whole conversation has these: servers refuse others.
pub(super) fn model_names(session: &Session) -> Names {
    Names::of(session.tools().into_iter().map(|tool| tool.name.as_str()), openai::NAME_RULE)
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.api {
            Api::Chat => completions::Body::from(self).serialize(serializer),
            Api::Responses => responses::Body::from(self).serialize(serializer),
        }
    }
}

impl Api {
    /// Returns the path below the base URL.
    pub(super) fn path(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &["chat", "completions"],
            Self::Responses => &["responses"],
        }
    }

    /// Returns the definition of a tool under its name for the model; a tool that takes text is a custom tool only with `custom_tools`.
    pub(super) fn definition(self, tool: &Tool, name: &str, custom_tools: bool) -> Value {
        match self {
            Self::Chat => function(tool, name),
            Self::Responses => responses_tool(tool, name, custom_tools),
        }
    }

    /// Returns the reply to the model for a call.
    pub(super) fn reply(self, result: &ToolResult) -> Reply {
        match self {
            Self::Chat => completions::reply(result),
            Self::Responses => responses::reply(result),
        }
    }

    /// Creates an empty answer builder.
    pub(super) fn answer(self) -> Box<dyn AnswerBuilder> {
        match self {
            Self::Chat => Box::<completions::Answer>::default(),
            Self::Responses => Box::<responses::Answer>::default(),
        }
    }

    /// Returns the hint for a 404.
    pub(super) fn not_found_hint(self) -> &'static str {
        match self {
            Self::Chat => "check `--base-url`, which often ends with `/v1`, and `--model`",
            Self::Responses => {
                "check `--base-url`, which often ends with `/v1`, and `--model`; many servers have only `--api chat`"
            }
        }
    }
}
