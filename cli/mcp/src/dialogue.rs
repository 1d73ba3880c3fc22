//! Questions about the calls of a running program. The program waits for the answer to each, because a client that repeats its
//! request would run the program again.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::caller::Answer;

/// Program's end of the questions: it asks one after another.
pub(super) struct Dialogue {
    questions: mpsc::Sender<Question>,
    /// Held while a question waits for its answer.
    turn: Mutex<()>,
    max_wait: Duration,
    /// Cancelled if the client does not come back: nobody would get the result of the program.
    abandoned: CancellationToken,
    /// `true` once a question got no answer in time.
    is_over: AtomicBool,
}

/// Question of a program that waits for its answer. Dropping it ends the dialogue.
pub(super) struct Question {
    /// Text for the user.
    pub(super) message: String,
    /// Number of calls that the program has made, with the one in question.
    pub(super) calls: Option<u32>,
    answer: oneshot::Sender<Answer>,
}

impl Dialogue {
    /// Creates a dialogue, and the receiver of its questions. Each waits at most `max_wait` for its answer; the token of the call
    /// is cancelled if there is none.
    pub(super) fn new(max_wait: Duration, abandoned: CancellationToken) -> (Self, mpsc::Receiver<Question>) {
        let (questions, receiver) = mpsc::channel(1);
        let is_over = AtomicBool::new(false);
        (Self { questions, turn: Mutex::default(), max_wait, abandoned, is_over }, receiver)
    }

    /// Asks a question once all earlier ones have their answers. Returns `None` if the client did not come back in time, now or
    /// earlier.
    pub(super) async fn ask(&self, message: String, calls: Option<u32>) -> Option<Answer> {
        let _turn = self.turn.lock().await;
        if self.is_over.load(Relaxed) {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let asked = async {
            self.questions.send(Question { message, calls, answer }).await.ok()?;
            answered.await.ok()
        };
        let answer = tokio::time::timeout(self.max_wait, asked).await.ok().flatten();
        if answer.is_none() {
            self.is_over.store(true, Relaxed);
            self.abandoned.cancel();
        }
        answer
    }
}

impl Question {
    /// Returns `true` while the call waits for the answer.
    pub(super) fn is_open(&self) -> bool {
        !self.answer.is_closed()
    }

    /// Gives the answer, unless it comes too late.
    pub(super) fn answer(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn ask(dialogue: &Dialogue) -> impl Future<Output = Option<Answer>> {
        dialogue.ask("?".to_owned(), Some(1))
    }

    #[tokio::test]
    async fn questions_are_asked_one_after_another() {
        let (dialogue, mut questions) = Dialogue::new(LONG, CancellationToken::new());
        let answers = async {
            for answer in [Answer::Denied, Answer::Allowed] {
                let question = questions.recv().await.unwrap();
                assert!(questions.try_recv().is_err(), "the other waits");
                question.answer(answer);
            }
        };
        let (first, second, ()) = tokio::join!(ask(&dialogue), ask(&dialogue), answers);
        assert_eq!((first, second), (Some(Answer::Denied), Some(Answer::Allowed)));
    }

    #[tokio::test]
    async fn a_question_without_an_answer_in_time_is_the_last_one() {
        let (dialogue, mut questions) = Dialogue::new(Duration::from_millis(1), CancellationToken::new());
        let (late, question) = tokio::join!(ask(&dialogue), questions.recv());
        assert_eq!(late, None);
        // An answer that comes too late changes nothing.
        question.unwrap().answer(Answer::Allowed);
        assert_eq!(ask(&dialogue).await, None);
        assert!(questions.try_recv().is_err(), "it was not asked");
        assert!(dialogue.abandoned.is_cancelled(), "nobody would get the result");
    }

    #[tokio::test]
    async fn a_question_that_is_dropped_ends_the_dialogue() {
        let (dialogue, mut questions) = Dialogue::new(LONG, CancellationToken::new());
        let (answer, ()) = tokio::join!(ask(&dialogue), async { drop(questions.recv().await) });
        assert_eq!((answer, ask(&dialogue).await), (None, None));
    }

    #[tokio::test]
    async fn a_call_that_ends_while_it_waits_lets_the_next_one_ask() {
        let (dialogue, mut questions) = Dialogue::new(LONG, CancellationToken::new());
        let ended = tokio::time::timeout(Duration::from_millis(1), ask(&dialogue)).await;
        assert!(ended.is_err());
        let stale = questions.recv().await.unwrap();
        let answers = async {
            stale.answer(Answer::Allowed);
            questions.recv().await.unwrap().answer(Answer::Denied);
        };
        assert_eq!(tokio::join!(ask(&dialogue), answers).0, Some(Answer::Denied));
    }
}
