//! Retries: the conditions for another request to a server.

use std::time::{Duration, Instant};

use super::place::*;
use crate::answering::Answer;
use serde_json::{Value, json};

fn refuses(status: u16, text: &str) -> Answer {
    Answer::new(status).json(json!({ "error": { "message": text } }))
}

#[test]
fn passing_failures_are_asked_again_under_one_key() {
    for status in [408, 429, 500, 502, 503, 529] {
        let server = server([refuses(status, "later"), refuses(status, "later"), says("hello")]);
        let end = Place::new().ask(&base(&server), &["go"]).ended(0);
        assert_eq!(end.stdout, "hello\n");
        let keys = headers(&server, "idempotency-key");
        assert_eq!(keys.len(), 3);
        assert!(keys[0].len() > 16 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }
}

#[test]
fn each_request_has_a_key_of_its_own() {
    let server = server([calls(&[("echo", "a", "{}")]), says("done")]);
    Place::new().ask(&base(&server), &["go"]).ended(0);
    let keys = headers(&server, "idempotency-key");
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
}

#[test]
fn giving_up_names_the_status_the_words_and_the_attempts() {
    let server = server([refuses(503, "over\u{1b}[31mloaded")]);
    let end = Place::new().ask(&base(&server), &["go"]).ended(1);
    for wanted in ["503 Service Unavailable", "loaded", "3 attempts"] {
        assert!(end.stderr.contains(wanted), "{wanted}: {}", end.stderr);
    }
    assert!(!end.stderr.contains('\u{1b}'), "{}", end.stderr);
    assert_eq!(bodies(&server).len(), 3);
}

#[test]
fn a_refusal_that_stays_names_the_next_step() {
    let key: &[&str] = &["--api-key", "k"];
    for (status, key, hint) in [
        (429, key, "hint: the server limits this key's requests: wait, or check your account's limits and credit"),
        (503, key, "hint: the server failed: try again later, or look at its log"),
        (403, key, "hint: the server refuses the key: `toolcrib run --print-config` shows where it comes from"),
        (
            403,
            &[],
            "hint: the server denies access, and no key is set: if it needs one, set `OAI_API_KEY` or \
             `OPENAI_API_KEY`, or give `--api-key`",
        ),
        (413, key, "hint: the request is too large: attach less, or begin a new run"),
    ] {
        let server = server([refuses(status, "no")]);
        let end = Place::new().ask(&base(&server), &[&["go", "--set", "model.http_retries=0"], key].concat()).ended(1);
        assert_eq!(end.stderr.matches(hint).count(), 1, "{status}: {}", end.stderr);
    }
}

#[test]
fn a_conversation_that_no_context_holds_is_named_as_the_cause() {
    for (status, words) in [
        (400, "This model's maximum context length is 8192 tokens"),
        (413, "Prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "the request exceeds the available context size"),
    ] {
        let server = server([refuses(status, words)]);
        let end = Place::new().ask(&base(&server), &["go"]).ended(1);
        assert!(
            end.stderr.contains("hint: the conversation is longer than the context of the model"),
            "{}",
            end.stderr
        );
        assert_eq!(bodies(&server).len(), 1);
    }
}

#[test]
fn other_refusals_are_final() {
    for status in [400, 401, 403, 404, 307, 422] {
        let server = server([refuses(status, "no"), says("hello")]);
        let end = Place::new().ask(&base(&server), &["go"]).ended(1);
        assert!(end.stderr.contains(&status.to_string()) && end.stderr.contains("1 attempt"), "{}", end.stderr);
        assert_eq!(bodies(&server).len(), 1);
    }
}

#[test]
fn retries_are_as_many_as_asked_for() {
    for (retries, attempts) in [("0", 1), ("4", 5)] {
        let server = server([refuses(500, "no")]);
        Place::new().ask(&base(&server), &["go", "--http-retries", retries]).ended(1);
        assert_eq!(bodies(&server).len(), attempts);
    }
}

#[test]
fn a_server_may_ask_for_a_wait_and_an_absurd_one_is_not_believed() {
    for (header, least) in [("1", 1), ("-7", 0), ("86400", 0), ("99999999999999999999", 0), ("tomorrow", 0)] {
        let server = server([refuses(429, "slow down").header("retry-after", header), says("hello")]);
        let began = Instant::now();
        Place::new().ask(&base(&server), &["go"]).ended(0);
        assert!(began.elapsed() >= Duration::from_secs(least), "{header}");
        assert!(began.elapsed() < Duration::from_secs(30), "{header}");
    }
}

#[test]
fn a_refused_temperature_is_left_out_from_then_on() {
    let refusal = refuses(400, "Unsupported value: 'Temperature' does not support 0.3");
    let server = server([refusal, calls(&[("echo", "a", "{}")]), says("hello")]);
    let end = Place::new()
        .ask(&base(&server), &["go", "--set", "model.temperature=0.3", "--set", "model.http_retries=0"])
        .ended(0);
    assert_eq!(end.stdout, "hello\n");
    let temperatures: Vec<_> = bodies(&server).iter().map(|body| body["temperature"].clone()).collect();
    assert_eq!(temperatures, [json!(0.3), Value::Null, Value::Null]);
}

#[test]
fn a_temperature_is_blamed_once_and_only_if_it_was_sent() {
    let server = server([refuses(400, "temperature")]);
    Place::new().ask(&base(&server), &["go", "--set", "model.temperature=1"]).ended(1);
    assert_eq!(bodies(&server).len(), 2);
    Place::new().ask(&base(&server), &["go"]).ended(1);
    assert_eq!(bodies(&server).len(), 3);
}

#[test]
fn a_server_that_refuses_the_usage_of_a_stream_is_asked_once_more_without_it() {
    for status in [400, 422] {
        let refusal = refuses(status, "Extra inputs are not permitted: body.stream_options");
        let server = server([refusal, calls(&[("echo", "a", "{}")]), says("hello")]);
        let end = Place::new().ask(&base(&server), &["go", "--stream", "--set", "model.http_retries=0"]).ended(0);
        assert!(end.stdout.contains("hello"), "{end:?}");
        assert_eq!(end.stderr.matches("the server refuses `stream_options`").count(), 1, "{}", end.stderr);
        let options: Vec<_> = bodies(&server).iter().map(|body| body.get("stream_options").is_some()).collect();
        assert_eq!(options, [true, false, false]);
    }
}

#[test]
fn what_only_its_server_knows_goes_back_to_it_and_to_no_other() {
    let thinking = json!({ "choices": [{ "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "reasoning_content": "a plan",
        "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "echo", "arguments": "{}" },
                         "extra_content": { "signature": "s" } }],
    } }] });
    let server = server([Answer::new(200).json(thinking), says("done")]);
    let place = Place::new();
    let end = place.ask(&base(&server), &["go"]).ended(0);
    assert!(!end.stdout.contains("a plan"), "{end:?}");
    let message = bodies(&server)[1]["messages"].as_array().expect("messages")[1].clone();
    assert_eq!((&message["reasoning_content"], message.get("made_by")), (&json!("a plan"), None), "{message}");
    assert_eq!(message["tool_calls"][0]["extra_content"], json!({ "signature": "s" }), "{message}");
    let other = self::server([says("again")]);
    place.ask(&base(&other), &["more", "--continue"]).ended(0);
    let body = bodies(&other)[0].to_string();
    assert!(body.contains("more") && body.contains("echo"), "{body}");
    for foreign in ["a plan", "signature", "made_by"] {
        assert!(!body.contains(foreign), "{foreign}: {body}");
    }
}

#[test]
fn silence_is_a_passing_failure() {
    let silent = says("late").late(Duration::from_secs(30));
    let server = server([silent, says("hello")]);
    let end = Place::new().ask(&base(&server), &["go", "--set", "model.http_timeout=500ms"]).ended(0);
    assert!(end.stdout == "hello\n" && end.stderr.contains("no answer within 500ms"), "{end:?}");
}

#[test]
fn silence_that_goes_on_names_the_limit_and_the_option() {
    let server = server([says("late").late(Duration::from_secs(30))]);
    let args = ["go", "--set", "model.http_timeout=300ms", "--set", "model.http_retries=1"];
    let end = Place::new().ask(&base(&server), &args).ended(1);
    for words in ["after 2 attempts", "no answer within 300ms, the limit of `model.http_timeout`"] {
        assert!(end.stderr.contains(words), "{words}: {}", end.stderr);
    }
    let hint = "hint: set a longer limit with `--set model.http_timeout=5m`";
    assert!(end.stderr.contains(&format!("{hint}, and continue with `toolcrib run --resume ")), "{}", end.stderr);
    let end = Place::new().ask(&base(&server), &[&args[..], &["--no-keep"]].concat()).ended(1);
    assert!(end.stderr.contains(&format!("{hint}\n")), "{}", end.stderr);
}

#[test]
fn a_lost_connection_is_asked_again() {
    let body = json!({ "choices": [{ "message": { "content": "hello" } }] }).to_string();
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let half = whole[..whole.len() - 9].to_owned();
    let address = blunt_server(vec![String::new(), half, whole]);
    let end = Place::new().ask(&address, &["go"]).ended(0);
    assert_eq!(end.stdout, "hello\n");
}

#[test]
fn nobody_at_the_address_is_said_after_every_attempt() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://someone:hunter22@{}/v1", listener.local_addr().expect("an address"));
    drop(listener);
    let end = Place::new().ask(&address, &["go"]).ended(1);
    assert!(end.stderr.contains("3 attempts") && end.stderr.contains("refused"), "{}", end.stderr);
    assert!(!end.stderr.contains("hunter22"), "{}", end.stderr);
}

#[test]
fn a_stream_cut_amid_the_arguments_executes_nothing() {
    let call =
        json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "echo", "arguments": "{\"n\":" } }] });
    let whole =
        json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "echo", "arguments": "{\"n\":1}" } }] });
    for cut in [
        vec![delta(call.clone())],
        vec![delta(call.clone()), json!("[DONE]")],
        // Even complete arguments: more could have followed.
        vec![delta(whole)],
        vec![delta(call), json!("{\"choices\":[{\"del")],
    ] {
        let place = Place::new();
        let server = server([stream(&cut), says("hello")]);
        let end = place.ask(&base(&server), &["go", "--stream"]).ended(0);
        assert_eq!(end.stdout, "hello\n");
        assert!(end.stderr.contains("cut"), "{}", end.stderr);
        assert_eq!(bodies(&server).len(), 2);
        assert!(place.audited().is_empty());
    }
}

#[test]
fn a_stream_cut_before_its_first_event_is_asked_again() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let whole = format!("{head}: wait\n\ndata: {}\n\ndata: [DONE]\n\n", delta(json!({ "content": "hello" })));
    let address = blunt_server(vec![format!("{head}: wait\n\n"), whole]);
    let end = Place::new().ask(&address, &["go", "--stream"]).ended(0);
    assert_eq!(end.stdout, "hello\n");
}

#[test]
fn an_answer_beyond_all_bounds_is_refused() {
    let server = server([says(&"x".repeat(17 << 20))]);
    let end = Place::new().ask(&base(&server), &["go"]).ended(1);
    assert!(end.stderr.contains("larger than") && end.stdout.is_empty(), "{}", end.stderr);
    assert_eq!(bodies(&server).len(), 1);
}

#[test]
fn a_page_in_the_place_of_an_answer_is_named_as_such() {
    let server = server([Answer::new(200).raw("<html>welcome</html>", "text/html")]);
    let end = Place::new().ask(&base(&server), &["go"]).ended(1);
    assert!(end.stderr.contains("neither JSON nor an event stream") && end.stderr.contains("<html>"), "{}", end.stderr);
    let hint = "hint: the address is probably not the base of a model API: check `--base-url`, `OAI_BASE_URL` or `OPENAI_BASE_URL`\n";
    assert!(end.stderr.contains(hint), "{}", end.stderr);
    let empty = super::place::server([Answer::new(200).json(json!({}))]);
    let end = Place::new().ask(&base(&empty), &["go"]).ended(1);
    assert!(end.stderr.contains(hint), "{}", end.stderr);
}

#[test]
fn a_server_that_cannot_be_reached_is_named_with_its_settings() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let end = Place::new().ask(&format!("http://{free}/v1"), &["go", "--set=model.http_retries=0"]).ended(1);
    let error = format!("error: no answer from `http://{free}/v1/chat/completions` after 1 attempt\n");
    assert!(end.stderr.contains(&error), "{}", end.stderr);
    assert!(
        end.stderr.contains("hint: check the address, set by `--base-url`, `OAI_BASE_URL` or `OPENAI_BASE_URL`"),
        "{}",
        end.stderr
    );
}
