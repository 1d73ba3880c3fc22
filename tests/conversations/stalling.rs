//! Servers that stop in the middle of an answer: the text stays in the run, which goes on.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::json;

use super::model::{Model, Pause, Turn};
use super::place::*;
use crate::crib::Ran;
use crate::screen::Page;

const BROKEN_OFF: &str = "\n[The answer was interrupted here.]";

#[test]
fn a_stall_after_text_ends_the_request_and_the_text_stays() {
    let page = Page::new();
    let place = Place::new();
    let turn = Turn { parts: vec!["Half of ", "an answer"], calls: Vec::new() };
    let model = Model::start(vec![turn], Some(Pause::AfterText(0)));
    let ran = page.command(&mut place.command(&model, &["run", "go", "--stream", "--set", "model.http_timeout=1s"]));
    assert_eq!(model.bodies().len(), 1, "it is not requested again: {ran:?}");
    let id = place.id();
    assert_eq!(ran.stderr.matches("--resume").count(), 1, "one way to go on: {ran:?}");
    assert_eq!(place.listed()[0]["state"], "failed");
    let text = format!("Half of an answer{BROKEN_OFF}");
    assert_eq!(place.messages(&id)[1], json!({ "role": "assistant", "content": text }));
    page.command(&mut place.command(&model, &["run", "--continue"]));
    let sent = model.last_messages();
    assert_eq!((&sent[1]["content"], &sent[2]["content"]), (&json!(text), &json!("Go on.")), "{sent:#?}");
    page.matches("runs/stalled");
}

#[test]
fn an_error_comes_before_the_way_to_go_on() {
    let place = Place::new();
    let model = Model::start(vec![says("It is done.")], Some(Pause::Busy(0)));
    let ran = place.run(&model, &["run", "go", "--set", "model.http_retries=0"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let hint = format!("hint: run saved; continue: `toolcrib run --resume {}` (repeat your options)", place.id());
    let (error, way) = (ran.stderr.find("error: "), ran.stderr.find(&hint));
    assert!(error.is_some() && error < way, "{ran:?}");
}

#[test]
fn a_chat_names_one_way_to_go_on_after_a_stall() {
    let place = Place::new();
    let turn = Turn { parts: vec!["Half of ", "an answer"], calls: Vec::new() };
    let model = Model::start(vec![turn], Some(Pause::AfterText(0)));
    let mut child = place.start(&model, &["chat", "--stream", "--quiet", "--set", "model.http_timeout=1s"]);
    child.stdin.take().expect("standard input").write_all(b"go\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(ran.stderr.contains("the answer stopped") && ran.stderr.contains("`/go` asks the model again"), "{ran:?}");
    assert!(!ran.stderr.contains("--resume"), "{ran:?}");
}

#[test]
fn a_stall_before_any_text_is_requested_again() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(vec![says("It is done.")], Some(Pause::BeforeTurn(0)));
    page.command(&mut place.command(&model, &["run", "go", "--stream", "--set", "model.http_timeout=1s"]));
    assert_eq!(model.bodies().len(), 2);
    page.matches("runs/stalled-before");
}

#[test]
fn white_space_is_no_text_and_a_stall_after_it_is_requested_again() {
    let place = Place::new();
    let model = Model::start(vec![Turn { parts: vec![" \n"], calls: Vec::new() }], Some(Pause::AfterText(0)));
    let ran = place.run(&model, &["run", "go", "--stream", "--set", "model.http_timeout=1s"]);
    assert_eq!((ran.code, model.bodies().len()), (Some(0), 2), "{ran:?}");
}

/// Sends the beginning of an answer and closes the connection; nobody is at the address then.
fn cut_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        let (mut connection, _): (TcpStream, _) = listener.accept().expect("a connection");
        drop(listener);
        let _ = connection.read(&mut [0; 1 << 16]);
        let part = json!({ "choices": [{ "index": 0, "delta": { "content": "Half of" }, "finish_reason": null }] });
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let _ = connection.write_all(format!("{head}data: {part}\n\n").as_bytes());
    });
    address
}

#[test]
fn text_that_was_cut_stays_if_all_further_attempts_fail() {
    let place = Place::new();
    let address = cut_server();
    let args =
        ["run", "go", "--stream", "--base-url", &address, "--model", "m", "--set", "model.http_retry_backoff=1ms"];
    let ran = Ran::from(place.crib.toolcrib(&args).output().unwrap());
    assert!(ran.code == Some(1) && ran.stderr.contains("after 3 attempts"), "{ran:?}");
    let messages = place.messages(&place.id());
    assert_eq!(messages.last().unwrap()["content"], format!("Half of{BROKEN_OFF}"), "{messages:#?}");
}
