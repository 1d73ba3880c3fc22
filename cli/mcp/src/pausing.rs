//! Pauses of programs between two requests: a question about a call is the answer of the first request, and the program goes on
//! with the answer that the second brings. It does not run again.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData};
use rmcp::service::RequestContext;

use super::caller::Answer;
use super::dialogue::Question;
use super::handler::{Handler, invalid};
use super::running::RunningCall;
use super::state::{MAX_AGE, PausedProgram, Questions};
use super::tool_calls::{can_ask, repeats};

/// Request that a question is an answer to.
pub(super) struct Asked<'a> {
    /// Text that names the caller and the request.
    pub(super) binding: &'a str,
    /// Holder of the client's token.
    pub(super) client: &'a Arc<str>,
}

impl Handler {
    /// Pauses a program, and creates the answer that asks its question. Returns the call if the client cannot be asked: the question
    /// then has that answer.
    pub(super) fn pause(
        &self,
        mut call: RunningCall,
        question: Question,
        asked: &Asked<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Box<RunningCall>> {
        let comes_back = can_ask(context) && repeats(context) && !self.closing().is_cancelled();
        let place = match call.place() {
            _ if !comes_back => None,
            Some(place) => Some(place.id.clone()),
            None => self.paused.place(asked.client).map(|place| call.detach(place)),
        };
        let Some(place) = place else {
            question.answer(Answer::None);
            return Err(Box::new(call));
        };
        let program = Some(PausedProgram { place: place.clone(), calls: question.calls });
        let questions = Questions { program, ..Questions::default() };
        match self.input_required(question.message.clone(), questions, asked.binding) {
            Ok(answer) => {
                self.paused.keep(&place, call.waiting(question), MAX_AGE);
                Ok(answer)
            }
            Err(_) => {
                question.answer(Answer::None);
                Err(Box::new(call))
            }
        }
    }

    /// Takes the program that a request continues, and gives it the answer. Without one, the question is asked again.
    pub(super) fn resumed(&self, program: &PausedProgram, answer: Option<Answer>) -> Result<RunningCall, ErrorData> {
        let mut call = self.paused.take(&program.place).ok_or_else(|| has_ended(program.calls))?;
        if let Some(answer) = answer {
            call.answer(answer);
        }
        Ok(call)
    }
}

/// Creates the error of a request that continues a program which has ended.
fn has_ended(calls: Option<u32>) -> ErrorData {
    let calls = match calls {
        None => String::new(),
        Some(1) => " after 1 call".to_owned(),
        Some(calls) => format!(" after {calls} calls"),
    };
    invalid(format!(
        "the program that waited for this answer has ended{calls}, or runs in another server: calling the tool again \
         without the state starts it from the beginning, and makes its calls again"
    ))
}
