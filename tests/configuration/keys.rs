//! The API key of a model goes only to an address that the user or the administrator has set.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::{json, write_project, write_user};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

/// Settings of a run, and what it says about them.
fn printed(crib: &Crib, flags: &[&str], variables: &[(&str, &str)]) -> (serde_json::Value, String) {
    let mut command = crib.toolcrib(&[&["run", "--print-config"], flags].concat());
    let ran = Ran::from(command.envs(variables.iter().copied()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    (json(&ran), ran.stderr)
}

/// Head of the request that a run sends to a server, which the file of a trusted project names.
fn head_of(flags: &[&str], by_project: bool) -> (String, Ran) {
    let crib = Crib::with_guests(&["echo"]);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let received = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            head.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap().to_lowercase()
    });
    let text = format!("[model]\nname = \"x\"\nbase_url = \"{url}\"\n");
    if by_project {
        write_project(&crib, &text)
    } else {
        write_user(&crib, &text)
    }
    let mut command = crib.toolcrib(&[&["run", "go", "--http-retries=0"], flags].concat());
    let ran = Ran::from(command.env("OAI_API_KEY", "sk-of-the-user").output().unwrap());
    (received.join().unwrap(), ran)
}

#[test]
fn no_key_is_sent_to_a_server_that_a_project_names() {
    for flags in [&[][..], &["--api-key=sk-of-the-user"], &["--api-key-env=OAI_API_KEY"]] {
        let (head, ran) = head_of(flags, true);
        assert!(!head.contains("sk-of-the-user") && !head.contains("authorization"), "{head}");
        assert!(
            ran.stderr.contains("the API key is not sent to this server, which the project settings name"),
            "{ran:?}"
        );
    }
    let (_, ran) = head_of(&[], true);
    assert!(ran.stderr.contains("remove `model.base_url` from `toolcrib.toml` and set it in your own file"), "{ran:?}");
    let (head, ran) = head_of(&[], false);
    assert!(head.contains("authorization: bearer sk-of-the-user"), "the user's own server: {head}");
    assert!(!ran.stderr.contains("the API key is not sent"), "{ran:?}");
}

#[test]
fn a_key_goes_with_the_address_of_its_layer() {
    let crib = Crib::with_guests(&["echo"]);
    let project = "[model]\nbase_url = \"http://127.0.0.1:9/project\"\n";
    write_project(&crib, project);
    write_user(&crib, "[model]\nbase_url = \"http://127.0.0.1:9/user\"\napi_key_env = \"MINE\"\n");
    let keys = [("MINE", "sk-mine"), ("OAI_API_KEY", "sk-oai")];
    let (shown, _) = printed(&crib, &[], &keys);
    assert_eq!((&shown["baseUrl"], &shown["apiKey"]), (&"http://127.0.0.1:9/project".into(), &serde_json::Value::Null));
    // An address of a stronger layer than the file has the key of the environment.
    let (shown, _) = printed(&crib, &["--base-url=http://127.0.0.1:9/flag"], &keys);
    assert_eq!((&shown["apiKey"], &shown["from"]["apiKey"]), (&"***".into(), &"OAI_API_KEY".into()));
    let (shown, _) = printed(&crib, &["--base-url=http://127.0.0.1:9/flag", "--api-key-env=MINE"], &keys);
    assert_eq!(shown["from"]["apiKey"], "--api-key-env");
    std::fs::remove_file(crib.path("toolcrib.toml")).unwrap();
    let (shown, _) = printed(&crib, &[], &keys);
    assert!(shown["from"]["apiKey"].as_str().unwrap().starts_with("user settings, "), "{shown}");
    // A file that the user names is their own.
    std::fs::write(crib.path("mine.toml"), project).unwrap();
    let (shown, _) = printed(&crib, &["--config=mine.toml"], &keys);
    assert_eq!((&shown["baseUrl"], &shown["apiKey"]), (&"http://127.0.0.1:9/project".into(), &"***".into()));
    assert!(shown["from"]["baseUrl"].as_str().unwrap().starts_with("named settings, mine.toml:"), "{shown}");
}

#[test]
fn both_names_of_a_variable_are_told_where_one_is_missing_or_set() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    page.run(&crib, &["run", "go"]);
    let args = ["run", "go", "--model=m", "--base-url=http://127.0.0.1:1/v1", "--http-retries=0"];
    page.run(&crib, &args);
    let mut doctor = crib.toolcrib(&["doctor"]);
    doctor
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .env("OPENAI_MODEL", "m")
        .env("OPENAI_API_KEY", "k-of-the-user");
    page.command(&mut doctor);
    page.matches("run/variables");
}
