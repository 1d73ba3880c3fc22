//! The run's model as a service for tools: one prompt, one answer, without tools, in a separate conversation. The tool gets
//! the text or a short error; server errors are reported only to the user.

use futures::future::BoxFuture;
use toolcrib::HandlerError;
use toolcrib::model::{Completion, CompletionRequest};

use super::RequestOptions;
use super::conversation::Conversation;
use super::delegate::Agents;
use super::event::Event;
use super::hooks::{self, Blocked, ReviewedText};
use super::message::{Message, Role};

impl toolcrib::Model for Agents {
    fn complete(&self, question: CompletionRequest) -> BoxFuture<'_, Result<Completion, HandlerError>> {
        Box::pin(self.asked(question))
    }
}

impl Agents {
    async fn asked(&self, question: CompletionRequest) -> Result<Completion, HandlerError> {
        let (model, options, mut report) = self.request_context().ok_or("the run has not started")?;
        options.budget.check_counted().map_err(|uncounted| uncounted.to_string())?;
        if let Some(used_up) = options.budget.used_up(0) {
            return Err(used_up.to_string().into());
        }
        let mut model = model.for_another_agent()?;
        let options = RequestOptions { stream: false, ..options.clone() };
        let system = question.system.clone().map(|system| Message::text(Role::System, system));
        let messages = system.into_iter().chain([Message::text(Role::User, &question.prompt)]).collect();
        let conversation = Conversation::new(messages);
        // Hooks run for all model requests of the run.
        let session = self.session().ok_or("the run has ended")?;
        let blocked = |blocked: Blocked| blocked.to_string();
        hooks::asking(&session, &options, &conversation, 1).await.map_err(blocked)?;
        let request = options.question(&conversation, question.max_tokens);
        match model.answer(request, 1, &mut report).await {
            Ok(turn) => {
                let tokens = turn.usage.map_or(0, |usage| usage.total_tokens);
                options.budget.add_tokens(turn.usage);
                if turn.text.is_empty() {
                    return Err("the model returned no text".into());
                }
                let ReviewedText { text, hooks } = hooks::answered(&session, 1, &turn).await.map_err(blocked)?;
                if !hooks.is_empty() {
                    // A failure to report does not affect the request.
                    let _ = report.emit(&Event::TextHooks { event: "model.post", hooks: &hooks });
                }
                Ok(Completion::new(text, tokens))
            }
            Err(error) => {
                // Reported only to the user.
                let _ = report.warn(&format!("a tool's request to the model failed: {error:#}"));
                Err("the model did not answer".into())
            }
        }
    }
}
