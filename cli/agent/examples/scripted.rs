//! An agent with the tools of a crib and a scripted model: two calls in one step, and the answer. With `Model::Server`,
//! the same loop talks to a server.
//!
//! ```console
//! $ cargo run -p toolcrib-agent --example scripted -- target/crib
//! ```

use std::path::Path;
use std::sync::Arc;

use toolcrib::{Audit, Runtime};
use toolcrib_agent::api::Api;
use toolcrib_agent::budget::Budget;
use toolcrib_agent::conversation::Conversation;
use toolcrib_agent::message::{Message, Role};
use toolcrib_agent::model::Model;
use toolcrib_agent::report::{Audience, Detail, Report};
use toolcrib_agent::request::Sampling;
use toolcrib_agent::script::Script;
use toolcrib_agent::{Agent, ConversationLimits, RequestOptions};

const SCRIPT: &str = r#"{"turns": [
    {"tool_calls": [
        {"name": "calculate", "arguments": {"expression": "6*7"}},
        {"name": "get_time", "arguments": {"timezone": "UTC"}}
    ]},
    {"content": "It is 42."}
]}"#;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "target/crib".into());
    let state = tempfile::tempdir()?;
    let runtime = Runtime::builder(Audit::folder(state.path().join("audit")))
        .source(source)
        .compile_cache(state.path().join("cache"))
        .build()?;
    let options = RequestOptions {
        api: Api::Chat,
        custom_tools: false,
        model: "script".into(),
        sampling: Sampling::default(),
        stream: false,
        max_steps: 8,
        budget: Arc::new(Budget::default()),
        limits: ConversationLimits::default(),
    };
    let question =
        Conversation::new(vec![Message::text(Role::User, "How much is six times seven, and what time is it?")]);
    let model = Model::Script(Script::parse(SCRIPT, Path::new("script.json"))?);
    let report = Report::new(Audience::Person(Detail::Trace), false, Vec::new());
    let (ending, answer) = Agent::new(runtime.session(), model, options, question, report).run().await?;
    anyhow::ensure!(ending.exit_code() == 0 && answer.as_deref() == Some("It is 42."), "{answer:?}");
    Ok(())
}
