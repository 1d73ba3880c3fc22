//! Requests of a run, and the flag, variable or default of each value.

use serde_json::{Value, json};

use super::place::*;
use crate::answering::Answer;

const BASE: &str = "http://127.0.0.1:9/v1";

fn dry_run(args: &[&str], variables: &[(&str, &str)]) -> Value {
    let place = Place::new();
    let mut command = place.command(&[&["--dry-run"], args].concat());
    command.envs(variables.iter().copied());
    let end = end(&mut command).ended(0);
    serde_json::from_str(&end.stdout).expect("JSON")
}

fn config(args: &[&str], variables: &[(&str, &str)]) -> Value {
    let place = Place::new();
    let mut command = place.command(&[&["--print-config"], args].concat());
    command.envs(variables.iter().copied());
    let end = end(&mut command).ended(0);
    assert!(!end.stdout.contains("sk-secret"), "{}", end.stdout);
    serde_json::from_str(&end.stdout).expect("JSON")
}

#[test]
fn a_dry_run_prints_what_would_be_sent_and_sends_nothing() {
    let server = server([says("hello")]);
    let args = [
        "go",
        "--system",
        "be kind",
        "--developer",
        "one",
        "--developer",
        "two",
        "--base-url",
        &base(&server),
        "--model",
        "m",
    ];
    let printed = dry_run(&args, &[]);
    assert!(bodies(&server).is_empty());
    let place = Place::new();
    place.run(&args).ended(0);
    assert_eq!(bodies(&server), std::slice::from_ref(&printed));
    assert_eq!(headers(&server, "content-type"), ["application/json"]);
    assert_eq!(headers(&server, "authorization"), [""]);
    let wanted = json!([
        { "role": "system", "content": "be kind" },
        { "role": "developer", "content": "one" },
        { "role": "developer", "content": "two" },
        { "role": "user", "content": "go" },
    ]);
    assert_eq!(printed["messages"], wanted);
    assert_eq!(
        printed["tools"][0],
        json!({ "type": "function", "function": {
        "name": "echo", "description": "the tool echo",
        "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } } } })
    );
    let keys: Vec<_> = printed.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["model", "messages", "tools"], "nothing is sent that was not asked for");
}

#[test]
fn a_stream_and_a_temperature_are_sent_when_wished_for() {
    let request = dry_run(&["go", "--model", "m", "--stream", "--set", "model.temperature=0.5"], &[]);
    assert_eq!(request["stream"], true);
    assert_eq!(request["stream_options"], json!({ "include_usage": true }));
    assert_eq!(request["temperature"], 0.5);
}

#[test]
fn the_nucleus_wins_over_the_temperature_with_one_warning() {
    let place = Place::new();
    let end = place
        .run(&["go", "--model", "m", "--dry-run", "--set", "model.temperature=0.5", "--set", "model.top_p=0.9"])
        .ended(0);
    let request: Value = serde_json::from_str(&end.stdout).expect("JSON");
    assert_eq!((request["top_p"].as_f64(), request.get("temperature")), (Some(0.9), None));
    assert_eq!(end.stderr.matches("--top-p overrides --temp").count(), 1, "{}", end.stderr);
}

#[test]
fn a_flag_wins_over_a_variable_and_a_variable_over_a_default() {
    let variables = [
        ("OAI_BASE_URL", "http://variable/v1"),
        ("OAI_MODEL", "variable"),
        ("OAI_API_KEY", "sk-secret-1"),
        ("OPENAI_API_KEY", "sk-secret-2"),
        ("OAI_HTTP_TIMEOUT", "7"),
    ];
    let from = |config: &Value, name: &str| config["from"][name].as_str().expect("a source").to_owned();
    let defaults = config(&[], &[]);
    assert_eq!(defaults["baseUrl"], "https://api.openai.com/v1");
    assert_eq!(
        (&defaults["apiKey"], &defaults["model"], &defaults["maxSteps"]),
        (&Value::Null, &Value::Null, &json!(100))
    );
    assert_eq!(
        (&defaults["toolTimeout"], &defaults["httpRetries"], &defaults["httpRetryBackoff"]),
        (&json!("30s"), &json!(2), &json!("500ms"))
    );

    let set = config(&[], &variables);
    assert_eq!(
        (&set["baseUrl"], &set["model"], &set["httpTimeout"]),
        (&json!("http://variable/v1"), &json!("variable"), &json!("7s"))
    );
    assert_eq!((from(&set, "apiKey"), from(&set, "model")), ("OAI_API_KEY".into(), "OAI_MODEL".into()));

    let flags = [
        "--base-url",
        "http://u:sk-secret-4@flag/v1",
        "--model",
        "flag",
        "--api-key",
        "sk-secret-3",
        "--http-timeout",
        "2m",
        "--timeout",
        "9s",
    ];
    let given = config(&flags, &variables);
    assert_eq!(
        (&given["model"], &given["httpTimeout"], &given["toolTimeout"]),
        (&json!("flag"), &json!("120s"), &json!("9s"))
    );
    assert_eq!((from(&given, "apiKey"), from(&given, "toolTimeout")), ("--api-key".into(), "--timeout".into()));

    let second = config(
        &["--timeout", "9s"],
        &[("OAI_API_KEY", ""), ("OPENAI_API_KEY", "sk-secret-2"), ("OAI_HTTP_TIMEOUT", "")],
    );
    assert_eq!(from(&second, "apiKey"), "OPENAI_API_KEY", "an empty variable is none");
    assert_eq!((second["httpTimeout"].as_str(), second["apiKey"].as_str()), (Some("9s"), Some("***")));
}

#[test]
fn the_key_is_sent_and_shown_nowhere() {
    let leaky = Answer::new(401).json(json!({ "error": { "message": "wrong key sk-secret-1" } }));
    let server = server([says("you said sk-other"), leaky]);
    let place = Place::new();
    for code in [0, 1] {
        let mut command = place.command(&["go", "--base-url", &base(&server), "--model", "m", "--debug", "--verbose"]);
        let end = end(command.env("OAI_API_KEY", "sk-secret-1")).ended(code);
        assert!(!end.stdout.contains("sk-secret") && !end.stderr.contains("sk-secret"), "{end:?}");
        assert!(end.stderr.contains("debug: POST"), "{}", end.stderr);
    }
    assert_eq!(headers(&server, "authorization"), ["Bearer sk-secret-1", "Bearer sk-secret-1"]);
    let help = end(place.command(&["--help"]).env("OAI_API_KEY", "sk-secret-1")).ended(0);
    assert!(!help.stdout.contains("sk-secret"));
}

#[test]
fn wrong_use_is_told_apart_from_failure() {
    let place = Place::new();
    place.write("prompt.txt", "go");
    place.write("empty.txt", " \n");
    let both = "are mutually exclusive";
    for (args, wanted) in [
        (&["--prompt", "a", "--prompt-file", "prompt.txt"][..], "--prompt and --prompt-file are mutually exclusive"),
        (&["a", "--prompt", "b"], "PROMPT and --prompt are mutually exclusive"),
        (&["a", "--system", "b", "--system-file", "prompt.txt"], "--system and --system-file are mutually exclusive"),
        (&["a", "--system", "b", "--load-messages", "x"], both),
        (&["-", "--system-file", "-"], "standard input can be read only once"),
        (&[], "no prompt"),
        (&["--prompt-file", "absent.txt"], "absent.txt"),
        (&["--prompt-file", "empty.txt"], "the prompt is empty"),
        (&["a", "--base-url", "localhost:8080"], "neither http nor https"),
        (&["a", "--max-steps", "0"], "--max-steps"),
        (&["a", "--temp", "2.1"], "--temp"),
        (&["a", "--top-p", "nan"], "--top-p"),
        (&["a", "--http-timeout", "soon"], "--http-timeout"),
        (&["a", "--http-retries", "many"], "--http-retries"),
        (&["a", "--no-such-flag"], "--no-such-flag"),
    ] {
        let end = place.run(&[&["--model", "m", "--dry-run"], args].concat()).ended(2);
        assert!(
            end.stderr.starts_with("error:") && end.stderr.contains(wanted) && end.stdout.is_empty(),
            "{args:?}: {end:?}"
        );
    }
    let end = place.run(&["a"]).ended(2);
    assert!(end.stderr.contains("no model"), "{}", end.stderr);
    let end = end_of(&place, "OAI_HTTP_TIMEOUT", "soon");
    assert!(end.stderr.contains("OAI_HTTP_TIMEOUT"), "{}", end.stderr);
}

#[test]
fn a_key_in_the_address_is_shown_nowhere() {
    let echo = Answer::new(503).text("not for CANARY, nor for CAN/ARY");
    let server = server([echo]);
    let address = format!("{}?api-key=CANARY&v=CAN%2FARY", base(&server));
    let place = Place::new();
    let end = place.run(&["--print-config", "--base-url", &address]).ended(0);
    assert!(end.stdout.contains("?api-key=***&v=***"), "{}", end.stdout);
    assert!(!end.stdout.contains("CAN"), "{}", end.stdout);
    let end = place.ask(&address, &["go", "--debug"]).ended(1);
    assert!(end.stderr.contains("not for ***, nor for ***") && !end.stderr.contains("CAN"), "{}", end.stderr);
    for wrong in ["ftp://host/?api-key=CANARY", "host/?api-key=CANARY", "http://:x@/?CANARY"] {
        let end = place.ask(wrong, &["go"]).ended(2);
        assert!(end.stderr.contains("--base-url") && !end.stderr.contains("CANARY"), "{}", end.stderr);
    }
    let sent = server.received();
    assert_eq!(sent[0].query, "api-key=CANARY&v=CAN%2FARY", "the server gets it");
}

#[test]
fn a_server_that_echoes_the_key_does_not_show_it() {
    let place = Place::new();
    for (status, body) in
        [(200, "you sent Bearer sk-secret-1"), (200, "data: Bearer sk-secret-1\n\n"), (403, "sk-secret-1")]
    {
        let server = server([Answer::new(status).text(body)]);
        let end = place
            .ask(&base(&server), &["go", "--api-key", "sk-secret-1", "--debug", "--set", "model.http_retries=0"])
            .ended(1);
        assert!(!end.stderr.contains("sk-secret"), "{status}: {}", end.stderr);
        assert_eq!(headers(&server, "authorization"), ["Bearer sk-secret-1"]);
    }
}

fn end_of(place: &Place, variable: &str, value: &str) -> End {
    end(place.command(&["a", "--model", "m", "--base-url", BASE]).env(variable, value)).ended(2)
}

#[test]
fn a_prompt_is_taken_from_where_it_is_said_to_be() {
    let place = Place::new();
    place.write("prompt.txt", "from a file\n");
    let asked = |args: &[&str], stdin: &str| {
        place.write("stdin.txt", stdin);
        let mut command = place.command(&[&["--model", "m", "--dry-run"], args].concat());
        let end = end(command.stdin(std::fs::File::open(place.path("stdin.txt")).expect("a file"))).ended(0);
        let request: Value = serde_json::from_str(&end.stdout).expect("JSON");
        request["messages"]
            .as_array()
            .and_then(|messages| messages.last()?["content"].as_str().map(str::to_owned))
            .expect("text")
    };
    assert_eq!(asked(&["said"], ""), "said");
    assert_eq!(asked(&["--prompt", "- said"], ""), "- said");
    assert_eq!(asked(&["--prompt-file", "prompt.txt"], ""), "from a file");
    assert_eq!(asked(&["-"], "piped\nin\n\n"), "piped\nin");
    assert_eq!(asked(&["--prompt-file", "-"], "piped"), "piped");
    assert_eq!(asked(&["x", "--system-file", "-"], "piped"), "x");
}

#[test]
fn tools_are_listed_sorted_without_a_key_or_a_prompt() {
    let end = Place::new().run(&["--capabilities"]).ended(0);
    let names: Vec<_> = end.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["echo", "nap", "peek", "spin"]);
    let end = Place::new().run(&["--capabilities", "--json"]).ended(0);
    assert_eq!(end.events()[0][0]["name"], "echo");
}

#[test]
fn a_model_without_tools_just_talks() {
    let server = server([says("hello")]);
    let place = Place::new();
    std::fs::write(place.path("tools.json"), r#"{"tools": []}"#).unwrap();
    let end = place.ask(&base(&server), &["go"]).ended(0);
    assert_eq!(end.stdout, "hello\n", "{end:?}");
    assert_eq!(bodies(&server)[0].get("tools"), None);
}

#[test]
fn a_model_in_an_empty_folder_has_the_built_in_tools_that_need_nothing() {
    let server = server([says("hello")]);
    let place = Place::new();
    std::fs::remove_file(place.path("tools.json")).expect("a file");
    let end = place.ask(&base(&server), &["go"]).ended(0);
    assert!(end.stdout == "hello\n" && end.stderr.contains("the tools are the built-in ones"), "{end:?}");
    let bodies = bodies(&server);
    let sent: Vec<&str> =
        bodies[0]["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(sent.contains(&"calculate") && !sent.contains(&"fs_rm"), "{sent:?}");
}

#[test]
fn a_tool_with_a_name_that_servers_refuse_has_another_in_the_whole_conversation() {
    for name in ["notes.echo", "t".repeat(70).as_str(), "echo it"] {
        let place = Place::new();
        let mut manifest = place.json("tools.json");
        manifest["tools"][0]["name"] = json!(name);
        place.write("tools.json", manifest.to_string());
        let printed = dry_run_in(&place);
        let sent = printed["tools"][0]["function"]["name"].as_str().unwrap().to_owned();
        let is_accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(sent != name && sent.len() <= 64 && sent.chars().all(is_accepted), "{sent}");
        let server = server([calls(&[(&sent, "c1", "{\"n\":1}"), ("echo", "c2", "{}")]), says("done")]);
        let ended = place.ask(&base(&server), &["go", "--json", "--allow-read=tools"]).ended(0);
        let second = bodies(&server).remove(1);
        assert!(!second.to_string().contains(name), "{second}");
        let results: Vec<&Value> = second["messages"].as_array().unwrap().iter().rev().take(2).collect();
        assert_eq!((&results[1]["name"], &results[1]["content"]), (&json!(sent), &json!("{\"n\":1}")), "{second}");
        let mut outcomes = place.audited();
        outcomes.sort();
        assert_eq!(outcomes, ["bad-arguments", "ok"], "{ended:?}");
        let log = std::fs::read_dir(place.path("audit")).unwrap().map(|it| it.unwrap().path());
        let text: String = log.map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect();
        assert!(text.contains(&format!("\"tool\":{}", json!(name))), "the record has its own name: {text}");
    }
}

fn dry_run_in(place: &Place) -> Value {
    let end = end(&mut place.command(&["go", "--dry-run", "--model=m", "--base-url", BASE])).ended(0);
    serde_json::from_str(&end.stdout).expect("JSON")
}
