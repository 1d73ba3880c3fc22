//! Context of a prompt: piped text, attached files, the access of the tools and the instructions of the project.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::place::*;
use crate::crib::{Crib, Ran, toolbox};
use crate::screen::Page;

const DRY: [&str; 3] = ["--model", "m", "--dry-run"];

/// First request of a run with a text on its standard input.
fn request(place: &Place, args: &[&str], stdin: &[u8]) -> End {
    place.write("stdin.bin", stdin);
    let stdin = fs::File::open(place.path("stdin.bin")).expect("a file");
    end(place.command(&[&DRY, args].concat()).stdin(stdin))
}

/// Content of the last message of a request.
fn said(end: End) -> Value {
    let request: Value = serde_json::from_str(&end.ended(0).stdout).expect("JSON");
    request["messages"].as_array().and_then(|messages| messages.last()).expect("a message")["content"].clone()
}

#[test]
fn piped_text_is_the_prompt_or_is_added_to_it() {
    let page = Page::new();
    let place = Place::new();
    assert_eq!(said(request(&place, &[], b"piped\n")), "piped");
    assert_eq!(said(request(&place, &["go"], b" \n")), "go");
    assert_eq!(
        said(request(&place, &["go"], b"a\nb\n")),
        "go\n\n--- Standard input ---\na\nb\n--- End of standard input ---"
    );
    let none = request(&place, &[], b"").ended(2);
    page.show(&none);
    page.matches("run/no-prompt");
}

#[test]
fn piped_text_through_a_pipe_is_added_too() {
    use std::io::Write;
    let place = Place::new();
    let mut command = place.command(&[&DRY[..], &["go"]].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(b"diff").expect("room in the pipe");
    let output = child.wait_with_output().expect("an end");
    let request: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(request["messages"][0]["content"], "go\n\n--- Standard input ---\ndiff\n--- End of standard input ---");
}

#[test]
fn piped_text_is_bounded_and_must_be_text() {
    let page = Page::new();
    let place = Place::new();
    let largest = vec![b'x'; 1 << 20];
    assert_eq!(said(request(&place, &[], &largest)).as_str().map(str::len), Some(1 << 20));
    for stdin in [&[largest, b"x".to_vec()].concat()[..], b"caf\xe9".as_slice()] {
        let end = request(&place, &["go"], stdin).ended(2);
        page.show(&end);
    }
    page.matches("run/piped");
}

#[test]
fn files_are_attached_by_their_content() {
    let place = Place::new();
    place.write("notes.md", "one\ntwo\n");
    place.write("shot.txt", b"\x89PNG\r\n\x1a\n");
    let text = said(request(&place, &["go", "--attach", "notes.md"], b""));
    assert_eq!(text, "go\n\n--- File notes.md ---\none\ntwo\n--- End of file notes.md ---");
    let parts = said(request(&place, &["look", "--attach", "shot.txt", "--attach", "notes.md"], b""));
    assert_eq!(parts[0]["type"], "text");
    assert_eq!(parts[1], json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}));
    let sent = request(&place, &["look", "--api", "responses", "--attach", "shot.txt"], b"").ended(0);
    let sent: Value = serde_json::from_str(&sent.stdout).expect("JSON");
    assert_eq!(sent["input"][0]["content"][1]["type"], "input_image");
}

#[test]
fn a_file_that_is_neither_text_nor_an_image_is_refused() {
    let page = Page::new();
    let place = Place::new();
    place.write("data.png", b"\0\x01\x02");
    place.write("long.txt", vec![b'x'; (1 << 20) + 1]);
    fs::create_dir(place.path("folder")).expect("a folder");
    for file in ["data.png", "long.txt", "folder", "missing"] {
        let end = request(&place, &["go", "--attach", file], b"").ended(2);
        page.show(&end);
        assert!(file == "missing" || end.stderr.contains("`--allow-read=DIR`"), "{file}: {end:?}");
    }
    page.matches("run/attached");
}

/// First request of a run with the shipped tools.
fn with_toolbox(crib: &Crib, args: &[&str]) -> (Value, Ran) {
    let tools = toolbox();
    let ran = crib.run(&[&["run", "go", "--tools", tools.to_str().unwrap()], &DRY[..], args].concat());
    (serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")), ran)
}

fn names(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[test]
fn the_model_is_told_the_folders_by_the_paths_of_the_tools() {
    let crib = Crib::new();
    fs::create_dir(crib.path("docs")).unwrap();
    let (request, _) = with_toolbox(&crib, &["--allow-write=work", "--allow-read=docs", "--system", "be kind"]);
    let system = request["messages"][0]["content"].as_str().unwrap();
    assert_eq!(request["messages"].as_array().map(Vec::len), Some(2), "one system message: {request}");
    assert!(system.starts_with("be kind\n\n") && system.contains("by these paths in calls:\n"), "{system}");
    assert!(system.contains("`/docs`: `docs`, to read only\n"), "{system}");
    assert!(system.contains("`/work`: `work`, to read and write\n"), "{system}");
    assert!(!system.contains(crib.dir.path().to_str().unwrap()), "no path of the host: {system}");
    let (request, _) = with_toolbox(&crib, &[]);
    assert_eq!(request["messages"], json!([{ "role": "user", "content": "go" }]), "nothing is granted");
}

#[test]
fn what_the_model_is_told_about_the_tools_is_not_saved() {
    let crib = Crib::new();
    let turns = json!([{"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let tools = toolbox();
    let args = ["run", "--script", "script.json", "--tools", tools.to_str().unwrap(), "--allow-read=work"];
    let ran = crib.run(&[&args[..], &["--save-messages", "talk.json", "--quiet"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let saved: Value = serde_json::from_slice(&fs::read(crib.path("talk.json")).unwrap()).unwrap();
    assert_eq!(saved, json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}]));
}

#[test]
fn a_tool_of_which_nothing_is_granted_is_not_sent() {
    let crib = Crib::new();
    let (request, _) = with_toolbox(&crib, &[]);
    assert!(!names(&request).contains(&"fs_read_file") && names(&request).contains(&"calculate"), "{request}");
    let (request, _) = with_toolbox(&crib, &["--allow-read=work"]);
    assert!(names(&request).contains(&"fs_read_file"), "{request}");
    for purpose in ["fs_write_file", "fs_rm", "apply_patch", "fetch_page"] {
        assert!(!names(&request).contains(&purpose), "{purpose}: {request}");
    }
    let (request, _) = with_toolbox(&crib, &["--allow-write=work"]);
    for purpose in ["fs_read_file", "fs_write_file", "fs_rm", "apply_patch"] {
        assert!(names(&request).contains(&purpose), "{purpose}: {request}");
    }
    let turns = json!([{"tool_calls": [{"name": "fs_read_file", "arguments": {"path": "x"}}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let tools = toolbox();
    let args = ["run", "--script", "script.json", "--tools", tools.to_str().unwrap()];
    let ran = crib.run(&args);
    assert!(ran.stderr.contains("hidden from the model: missing permissions"), "{ran:?}");
    assert!(ran.stderr.contains("; use --allow-"), "{ran:?}");
    let ran = crib.run(&[&args[..], &["--quiet"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn the_instructions_of_a_project_count_once_they_are_trusted() {
    let crib = Crib::with_guests(&["echo"]);
    fs::write(crib.path("AGENTS.md"), "Answer in rhyme.\n").unwrap();
    let dry = |flags: &[&str]| {
        let ran = crib.run(&[&["run", "go"], &DRY[..], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let request: Value = serde_json::from_str(&ran.stdout).unwrap();
        (request["messages"][0]["content"].as_str().unwrap().to_owned(), ran.stderr)
    };
    let (first, stderr) = dry(&[]);
    assert_eq!(first, "go");
    assert!(stderr.contains("`AGENTS.md` is not trusted: 1 instruction file ignored"), "{stderr}");
    let review = crib.run(&["trust", "AGENTS.md", "--json"]);
    let review: Value = serde_json::from_str(&review.stdout).unwrap_or_else(|error| panic!("{error}: {review:?}"));
    let digest = format!("--trust={}", review["digest"].as_str().unwrap());
    let expected = "Instructions of the project (AGENTS.md):\nAnswer in rhyme.";
    assert_eq!(dry(&[&digest]), (expected.to_owned(), String::new()));
    fs::write(crib.path("AGENTS.md"), "Answer in riddles.\n").unwrap();
    assert_eq!(dry(&[&digest]).0, "go", "other content is not trusted");
    fs::write(crib.path("AGENTS.md"), vec![b'x'; (64 << 10) + 1]).unwrap();
    let (first, stderr) = dry(&[]);
    assert!(first == "go" && stderr.contains("larger than the 65536 bytes allowed; it is ignored"), "{stderr}");
}
