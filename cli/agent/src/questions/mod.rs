//! Approvals by a program: each question is an event on standard output, and its answer a line on standard input. An answer
//! names the question by its identifier, and answers it once. At the end of the input, nobody answers.

mod line;
mod open;

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;
use std::thread;

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approvals, Approver};
use toolcrib_base::render::{self, excerpt};
use toolcrib_settings::permission::{RequestDetails, store_approval};

use super::event::{Event, EventLine, PermissionAsked};

use line::{AnswerLine, MAX_LINE, Next, Word, next_line};
use open::OpenQuestions;

/// Version of the questions and answers. It changes if a program for an earlier version could misunderstand them.
const VERSION: u32 = 1;
/// Maximum number of lines that are rejected; after these, nobody answers.
const MAX_REJECTED: u64 = 1_000;

/// Asks the program that reads the events of the run.
pub struct ProgramApprover {
    /// File that stores permanent approvals.
    approvals: Option<Approvals>,
    questions: Arc<OpenQuestions>,
}

impl ProgramApprover {
    /// Creates an approver that stores permanent approvals in `approvals`, and starts to read standard input.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn start(approvals: Option<Approvals>) -> io::Result<Self> {
        let questions = Arc::new(OpenQuestions::default());
        let open = questions.clone();
        let read = move || read(&open, &mut BufReader::with_capacity(MAX_LINE, io::stdin()), &mut |event| emit(&event));
        thread::Builder::new().name("answers".to_owned()).spawn(read)?;
        Ok(Self { approvals, questions })
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let words = Word::offered(request.approval.is_some(), self.approvals.is_some());
        let Some(question) = self.questions.open(words.clone()) else { return ApprovalAnswer::Nobody };
        let RequestDetails { source, fixed, properties, changes } = RequestDetails::new(&request);
        let asked = Event::PermissionAsked(PermissionAsked {
            version: VERSION,
            id: question.id(),
            call_id: request.call_id,
            invocation: request.invocation,
            name: &request.tool.name,
            arguments: request.arguments,
            fixed: fixed.as_deref(),
            preview: request.preview,
            changes: changes.as_deref(),
            granted: request.granted,
            flow: request.flow,
            rests_on: request.rests_on,
            reason: request.tool.interface.permission.approval_reason.value.as_deref(),
            source: &source,
            properties: &properties,
            answers: words.iter().map(|word| word.as_str()).collect(),
        });
        if !emit(&asked) {
            return ApprovalAnswer::Nobody;
        }
        let answer = tokio::select! {
            answer = question.answer() => answer,
            // Whoever reads no events any more answers no question.
            () = render::output_closed() => ApprovalAnswer::Nobody,
        };
        match (answer, &self.approvals, request.approval) {
            (ApprovalAnswer::Always, Some(approvals), Some(approval)) => {
                store_approval(approvals.clone(), approval.clone()).await
            }
            (answer, ..) => answer,
        }
    }
}

impl Approver for ProgramApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }
}

/// Prints an event; `false` if nobody can have read it.
fn emit(event: &Event<'_>) -> bool {
    let line = serde_json::to_string(&EventLine { event, below: None });
    line.is_ok_and(|line| render::print_json(&line).is_ok())
}

/// Reads answers until the end of the input, or until too many lines were rejected. Reports each rejected line.
fn read(questions: &OpenQuestions, input: &mut dyn BufRead, report: &mut dyn FnMut(Event<'_>) -> bool) {
    let (mut number, mut rejected) = (0, 0);
    loop {
        number += 1;
        let taken = match next_line(input) {
            Next::End => break,
            Next::Line(line) if line.trim_ascii().is_empty() => continue,
            Next::Line(line) => AnswerLine::parse(&line).and_then(|answer| {
                let (id, answer) = answer.checked()?;
                questions.close(&id, answer).map_err(|message| (Some(excerpt(&id)), message))
            }),
            Next::TooLong => Err((None, format!("the line is longer than the {MAX_LINE} bytes allowed"))),
        };
        let Err((id, mut message)) = taken else { continue };
        rejected += 1;
        if rejected == MAX_REJECTED {
            message += &format!("; {MAX_REJECTED} lines were rejected, and no more are read");
        }
        report(Event::AnswerRejected { version: VERSION, line: number, id: id.as_deref(), message: &message });
        if rejected == MAX_REJECTED {
            break;
        }
    }
    questions.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text as answers, and returns the number and the message of each rejected line.
    fn rejected(questions: &OpenQuestions, text: &str) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        read(questions, &mut text.as_bytes(), &mut |event| {
            if let Event::AnswerRejected { line, message, .. } = event {
                all.push((line, message.to_owned()));
            }
            true
        });
        all
    }

    #[test]
    fn each_question_is_answered_once_and_the_rest_at_the_end_by_nobody() {
        let questions = Arc::new(OpenQuestions::default());
        let open = || questions.open(Word::offered(true, true)).expect("an open question");
        let (first, second, third) = (open(), open(), open());
        let text = [
            r#"{"type": "permission_answer", "id": "q2", "answer": "no", "reason": "later"}"#,
            "",
            r#"{"type": "permission_answer", "id": "q2", "answer": "once"}"#,
            r#"{"type": "permission_answer", "id": "q4", "answer": "once"}"#,
            r#"{"type": "permission_answer", "id": "q1", "answer": "session"}"#,
        ];
        let rejected = rejected(&questions, &text.join("\n"));
        assert_eq!(rejected.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4]);
        assert!(rejected[0].1.contains("`q2` is closed"), "{rejected:?}");
        assert!(rejected[1].1.contains("`q4` was not asked"), "{rejected:?}");
        let now = |question: open::OpenQuestion| question.answer().now_or_never();
        assert_eq!(now(first), Some(ApprovalAnswer::Session));
        assert_eq!(now(second), Some(ApprovalAnswer::NoBecause("later".to_owned())));
        assert_eq!(now(third), Some(ApprovalAnswer::Nobody));
        assert!(questions.open(Word::offered(true, true)).is_none(), "after the end nobody is asked");
    }

    #[test]
    fn too_many_rejected_lines_end_the_input() {
        let questions = Arc::new(OpenQuestions::default());
        let question = questions.open(Word::offered(false, false)).expect("an open question");
        let bad = "x\n".repeat(usize::try_from(MAX_REJECTED).unwrap());
        let late = r#"{"type": "permission_answer", "id": "q1", "answer": "once"}"#;
        let rejected = rejected(&questions, &(bad + late));
        assert_eq!(rejected.len() as u64, MAX_REJECTED);
        assert!(rejected.last().is_some_and(|(_, message)| message.ends_with("no more are read")));
        assert_eq!(question.answer().now_or_never(), Some(ApprovalAnswer::Nobody));
    }
}
