//! A model: a server or a script.

use super::report::Report;
use super::request::Request;
use super::script::Script;
use super::server::Server;
use super::turn::Turn;

/// A model.
#[derive(Debug, Clone)]
pub enum Model {
    /// A server with a model API.
    Server(Box<Server>),
    /// A script that replaces the model.
    Script(Script),
}

impl Model {
    /// Returns the model for a subagent with its own conversation.
    ///
    /// # Errors
    ///
    /// Fails with a message for the delegating script if there is no further agent.
    pub(crate) fn for_another_agent(&self) -> Result<Self, String> {
        match self {
            Model::Server(server) => Ok(Model::Server(server.clone())),
            Model::Script(script) => {
                let next = script.next_agent().map(Model::Script);
                next.ok_or_else(|| "the model script has no more `agents`".to_owned())
            }
        }
    }

    /// The model's next answer. Text is reported as it arrives where the request options for a stream.
    pub(crate) async fn answer(
        &mut self,
        request: Request<'_>,
        step: u32,
        report: &mut Report,
    ) -> anyhow::Result<Turn> {
        match self {
            Model::Server(server) => server.answer(request, step, report).await,
            Model::Script(script) => {
                report.asked(step, None);
                let end = script.answer(request, step, report);
                report.answered(end.as_ref().map_err(|_| "script"));
                end
            }
        }
    }
}
