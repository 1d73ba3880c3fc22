//! Ends of requests and of calls: an answer also after a panic, and a bounded wait for the calls that still run.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use rmcp::model::ErrorData;
use tokio_util::task::TaskTracker;

/// Answers a request also if the code that does so panics: the library would leave its client without an answer.
pub(super) async fn answered<T>(answer: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    let failed = |_| Err(ErrorData::internal_error("the call failed inside the server", None));
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(failed)
}

/// Waits until all tasks have ended, at most for a time.
pub(super) async fn ended(running: &TaskTracker, tasks: impl Future<Output = ()>, max: Duration) {
    running.close();
    let ended = async {
        running.wait().await;
        tasks.await;
    };
    // A record that cannot be written for so long is lost with the program.
    let _ = tokio::time::timeout(max, ended).await;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let answer = answered::<()>(async { panic!("planned") }).await;
        assert_eq!(answer.unwrap_err().message, "the call failed inside the server");
        assert_eq!(answered(async { Ok(1) }).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_call_that_does_not_stop_delays_the_end_for_a_bounded_time_only() {
        let running = TaskTracker::new();
        running.spawn(async {});
        let (long, short) = (Duration::from_secs(60), Duration::from_millis(50));
        ended(&running, async {}, long).await;
        assert!(running.is_empty(), "the task has ended");
        running.spawn(std::future::pending::<()>());
        let start = Instant::now();
        tokio::time::timeout(long, ended(&running, async {}, short)).await.expect("a bounded time");
        assert!(start.elapsed() >= short, "{:?}", start.elapsed());
    }
}
