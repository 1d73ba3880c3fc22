//! The open questions of a run, by their identifiers `q1`, `q2` and so on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, Receiver, Sender};
use toolcrib::policy::ApprovalAnswer;
use toolcrib_base::render::excerpt;

use super::line::Word;

/// Questions that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Number of questions so far.
    asked: u64,
    open: HashMap<String, (Vec<Word>, Sender<ApprovalAnswer>)>,
    /// `true` after the end of the input.
    ended: bool,
}

/// A question that waits for its answer. Dropping it closes it.
pub(super) struct OpenQuestion {
    id: String,
    receiver: Receiver<ApprovalAnswer>,
    questions: Arc<OpenQuestions>,
}

impl OpenQuestions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a question with the answers that it takes; `None` after the end of the input.
    pub(super) fn open(self: &Arc<Self>, words: Vec<Word>) -> Option<OpenQuestion> {
        let mut state = self.state();
        if state.ended {
            return None;
        }
        state.asked += 1;
        let id = format!("q{}", state.asked);
        let (sender, receiver) = oneshot::channel();
        state.open.insert(id.clone(), (words, sender));
        Some(OpenQuestion { id, receiver, questions: self.clone() })
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// A message if the question is not open or does not take the answer, which leaves it open.
    pub(super) fn close(&self, id: &str, (word, answer): (Word, ApprovalAnswer)) -> Result<(), String> {
        let mut state = self.state();
        let Some((words, _)) = state.open.get(id) else {
            let number = id.strip_prefix('q').filter(|digits| !digits.starts_with(['0', '+']));
            let was_asked = number.and_then(|digits| digits.parse().ok()).is_some_and(|n: u64| n <= state.asked);
            return Err(match was_asked {
                true => format!("`{id}` is closed: it has an answer, or its call has ended"),
                false => format!("`{}` was not asked", excerpt(id)),
            });
        };
        if !words.contains(&word) {
            let offered: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
            return Err(format!("`{id}` does not take `{}`: answer one of {}", word.as_str(), offered.join(", ")));
        }
        if let Some((_, sender)) = state.open.remove(id) {
            // The call may just have ended.
            let _ = sender.send(answer);
        }
        Ok(())
    }

    /// Ends the input: nobody answers the open questions and those that follow.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.open.clear();
    }
}

impl OpenQuestion {
    /// Identifier of the question.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the answer.
    pub(super) async fn answer(mut self) -> ApprovalAnswer {
        (&mut self.receiver).await.unwrap_or(ApprovalAnswer::Nobody)
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.questions.state().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_takes_only_the_answers_that_it_offers_and_no_more_after_its_call() {
        let questions = Arc::new(OpenQuestions::default());
        let question = questions.open(Word::offered(false, true)).expect("an open question");
        let once = || (Word::Once, ApprovalAnswer::Once);
        let message = questions.close("q1", (Word::Always, ApprovalAnswer::Always)).unwrap_err();
        assert_eq!(message, "`q1` does not take `always`: answer one of once, no");
        for id in ["q01", "q+1", "q2", "q", "1", "", "q18446744073709551616"] {
            let message = questions.close(id, once()).unwrap_err();
            assert_eq!(message, format!("`{id}` was not asked"));
        }
        drop(question);
        assert!(questions.close("q1", once()).unwrap_err().contains("is closed"));
        let next = questions.open(Word::offered(false, false)).expect("an open question");
        assert_eq!(next.id(), "q2", "an identifier is never given again");
    }
}
