//! Forwarding to receivers that answer as a test wants: every record arrives, and the cursor never runs ahead.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::cursor::registered;
use crate::sample_log;

fn forwarding(log: &Path, target: &str) -> Forwarding {
    Forwarding {
        log: log.to_path_buf(),
        target: target.parse().unwrap(),
        cursor: None,
        is_following: false,
        has_arguments: true,
        host: "host".to_owned(),
        patience: Some(Duration::from_secs(60)),
    }
}

/// Forwards without long waits after failures.
async fn run(forwarding: Forwarding) -> anyhow::Result<ForwardSummary> {
    forwarding.run_with(Retries { backoff: Duration::from_millis(2), ..RETRIES }).await
}

/// Collector with one answer per request, which may be cut off. It notes the numbers of each request's records.
struct ScriptedCollector {
    listener: TcpListener,
    path: String,
    requests: Vec<Vec<u64>>,
}

impl ScriptedCollector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener, path: "/v1/logs".to_owned(), requests: Vec::new() }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    /// Receives a request and sends these bytes.
    async fn answer(&mut self, answer: &str) {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
        let body = loop {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&text));
            text.extend_from_slice(&buffer[..read]);
            let all = String::from_utf8_lossy(&text);
            let Some((head, body)) = all.split_once("\r\n\r\n") else { continue };
            assert!(head.starts_with(&format!("POST {} HTTP/1.1", self.path)), "{head}");
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() == length.unwrap_or(usize::MAX) {
                break serde_json::from_str::<Value>(body).unwrap();
            }
        };
        let records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
        let seq = |record: &Value| audit::sealed(record["body"]["stringValue"].as_str().unwrap().as_bytes()).unwrap().0;
        self.requests.push(records.iter().map(seq).collect());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    async fn answers(mut self, answers: &[&str]) -> Vec<Vec<u64>> {
        for answer in answers {
            self.answer(answer).await;
        }
        self.requests
    }
}

fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
}

fn sent_to(log: &Path) -> u64 {
    registered(log).unwrap().iter().filter_map(|cursor| cursor.place).map(|place| place.seq).max().unwrap_or(0)
}

#[tokio::test]
async fn a_target_that_fails_for_a_while_gets_everything_and_the_answer_counts() {
    let log = tempfile::tempdir().unwrap();
    let (_, head) = sample_log::log(log.path(), 3);
    let collector = ScriptedCollector::start().await;
    let run = run(forwarding(log.path(), &collector.url()));
    let cut = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99\r\n\r\n{";
    let (busy, failed, ok) = (status("429 Too Many Requests"), status("500 Internal Server Error"), status("200 OK"));
    let answers = ["", cut, &busy, &failed, &ok];
    let (summary, requests) = tokio::join!(run, collector.answers(&answers));
    let summary = summary.unwrap();
    assert_eq!(requests, vec![vec![1, 2, 3]; 5]);
    assert_eq!((summary.sent, summary.seq, summary.problems, sent_to(log.path())), (3, Some(3), 0, 3));
    assert_eq!(summary.head.map(|head| head.to_string()), Some(head));
}

#[tokio::test]
async fn a_refusal_stops_without_a_loss_and_a_large_batch_is_divided() {
    let log = tempfile::tempdir().unwrap();
    sample_log::log(log.path(), 3);
    let (refused, large, ok) = (status("401 Unauthorized"), status("413 Content Too Large"), status("200 OK"));
    let collector = ScriptedCollector::start().await;
    let run = forwarding(log.path(), &collector.url()).run();
    let cases = [refused.as_str()];
    let (summary, _) = tokio::join!(run, collector.answers(&cases));
    let error = summary.unwrap_err().to_string();
    assert!(error.contains("did not accept record 1 and the following: 401 Unauthorized"), "{error}");
    assert_eq!(sent_to(log.path()), 0);

    let collector = ScriptedCollector::start().await;
    let run = forwarding(log.path(), &collector.url()).run();
    let answers = [large.as_str(), &ok, &large, &ok, &large];
    let (summary, requests) = tokio::join!(run, collector.answers(&answers));
    assert_eq!(requests, [vec![1, 2, 3], vec![1], vec![2, 3], vec![2], vec![3]]);
    assert!(summary.unwrap_err().to_string().contains("413"));
    assert_eq!(sent_to(log.path()), 2, "what was accepted is noted");

    // Rejected records do not count as sent, and the others go on. No collector rejects more than it got.
    for (rejected, expected) in [(1, (2, 1)), (9, (0, 3))] {
        let collector = ScriptedCollector::start().await;
        let partial = format!(r#"{{"partialSuccess":{{"rejectedLogRecords":"{rejected}","errorMessage":"too old"}}}}"#);
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", partial.len());
        let mut moved = forwarding(log.path(), &collector.url());
        moved.cursor = Some(log.path().join(format!("own-{rejected}.json")));
        let answers = [&*(head + &partial)];
        let (summary, _) = tokio::join!(moved.run(), collector.answers(&answers));
        assert_eq!(summary.map(|summary| (summary.sent, summary.problems)).unwrap(), expected);
    }
}

#[tokio::test]
async fn patience_ends_and_a_slow_target_that_was_given_up_gets_the_batch_again() {
    let log = tempfile::tempdir().unwrap();
    let end = sample_log::log(log.path(), 2);
    let failed = status("503 Service Unavailable");
    let mut collector = ScriptedCollector::start().await;
    let url = collector.url();
    let hurried = Forwarding { patience: Some(Duration::ZERO), ..forwarding(log.path(), &url) };
    let (summary, ()) = tokio::join!(hurried.run(), collector.answer(&failed));
    assert!(summary.is_err() && sent_to(log.path()) == 0);

    // The process ends after the target has received the batch, and before it has its answer.
    let killed = forwarding(log.path(), &url).run();
    tokio::select! {
        _ = killed => panic!("there was no answer"),
        () = collector.answer("") => {}
    }
    sample_log::append(log.path(), "20260302", end, 2);
    let ok = status("200 OK");
    let (summary, ()) = tokio::join!(forwarding(log.path(), &url).run(), collector.answer(&ok));
    assert_eq!((summary.unwrap().sent, collector.requests), (4, vec![vec![1, 2], vec![1, 2], vec![1, 2, 3, 4]]));
}

#[tokio::test]
async fn a_folder_gets_whole_files_in_order_and_goes_on_over_rotation() {
    let (log, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = out.path().to_str().unwrap();
    let end = sample_log::log(log.path(), 600);
    let run = || async { forwarding(log.path(), target).run().await.unwrap() };
    assert_eq!(run().await.sent, 600);
    assert_eq!(run().await.sent, 0);
    let end = sample_log::append(log.path(), "20260302", end, 5);
    fs::remove_file(log.path().join("20260301.log")).unwrap();
    assert_eq!((run().await.sent, sent_to(log.path())), (5, 605));
    let names: BTreeSet<_> = out.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let all: String = names.iter().map(|name| fs::read_to_string(out.path().join(name)).unwrap()).collect();
    let seqs: Vec<_> = all.lines().map(|line| audit::sealed(line.as_bytes()).unwrap().0).collect();
    assert_eq!((names.len(), seqs), (3, (1..=605).collect::<Vec<_>>()));

    // Records that were removed before they were sent are counted, and the others are sent.
    let (seq, chain) = sample_log::append(log.path(), "20260302", end, 3);
    sample_log::append(log.path(), "20260303", (seq, chain), 2);
    fs::remove_file(log.path().join("20260302.log")).unwrap();
    let summary = run().await;
    assert_eq!((summary.sent, summary.problems, summary.seq), (2, 1, Some(610)));
    fs::remove_dir_all(out.path()).unwrap();
    assert!(forwarding(log.path(), target).run().await.is_err(), "a folder that is not mounted");
    let mut reader = BatchReader::new(audit::tail(log.path(), None).unwrap(), BatchLimits::default(), true);
    let part = reader.read(|problem| panic!("{problem}")).unwrap();
    assert!(matches!(folder::send(out.path(), &part, false), Err(SendFailure::Refused(_))));
    assert!(matches!(folder::send(out.path(), &part, true), Err(SendFailure::Retry { .. })), "it may come back");
}

#[tokio::test]
async fn targets_that_are_displayed_alike_have_their_own_cursors() {
    let log = tempfile::tempdir().unwrap();
    sample_log::log(log.path(), 1);
    let ok = status("200 OK");
    for (query, has_arguments) in [("a", true), ("b", true), ("b", false)] {
        let mut collector = ScriptedCollector::start().await;
        collector.path = format!("/v1/logs?dataset={query}");
        let url = collector.url() + &format!("?dataset={query}");
        let forwarding = Forwarding { has_arguments, ..forwarding(log.path(), &url) };
        let answers = [ok.as_str()];
        let (summary, _) = tokio::join!(forwarding.run(), collector.answers(&answers));
        let summary = summary.unwrap();
        assert_eq!(summary.sent, 1);
        assert!(summary.target.ends_with("/v1/logs?dataset=***"), "{}", summary.target);
    }
    assert_eq!(registered(log.path()).unwrap().len(), 3);
}

#[test]
fn a_target_cannot_ask_for_a_shorter_wait_than_the_backoff() {
    for attempt in [1, 3] {
        let least = RETRIES.backoff.mul_f64(0.75) * 2_u32.pow(attempt - 1);
        assert!(wait(RETRIES, attempt, Some(Duration::ZERO)) >= least);
        assert!(wait(RETRIES, attempt, None) >= least);
    }
    assert_eq!(wait(RETRIES, 1, Some(Duration::from_secs(60))), Duration::from_secs(60));
}

#[tokio::test]
async fn one_process_at_a_time_forwards_to_a_target() {
    let (log, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    sample_log::log(log.path(), 2);
    let target = out.path().to_str().unwrap();
    let following = |is_following| Forwarding { is_following, ..forwarding(log.path(), target) };
    let mut first = Box::pin(following(true).run());
    let wait = async {
        while sent_to(log.path()) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = &mut first => panic!("it follows"),
        () = wait => {}
    }
    let error = following(false).run().await.unwrap_err().to_string();
    assert!(error.contains("another process forwards the log"), "{error}");
    drop(first);
    assert_eq!(following(false).run().await.unwrap().seq, Some(2));
}
