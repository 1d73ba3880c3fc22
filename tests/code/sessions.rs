//! Sessions of programs: a program sees the variables of the programs before it in its session.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::crib::Crib;

/// Runs programs with a session one after another in one run, and returns their answers.
fn ran(crib: &Crib, programs: &[(&str, &str)], flags: &[&str]) -> Vec<Value> {
    ran_in("python", crib, programs, flags)
}

/// Runs programs of a language like [`ran`].
fn ran_in(language: &str, crib: &Crib, programs: &[(&str, &str)], flags: &[&str]) -> Vec<Value> {
    let results = all_results(language, crib, programs, flags);
    assert_eq!(results.len(), programs.len(), "{results:?}");
    results
}

/// Runs programs like [`ran_in`], and returns all answers of the run, also that of an earlier call.
fn all_results(language: &str, crib: &Crib, programs: &[(&str, &str)], flags: &[&str]) -> Vec<Value> {
    let arguments = |session: &str, code: &str| json!({"language": language, "code": code, "session": session});
    let call = |(session, code): &(&str, &str)| json!({"tool_calls": [{"name": "run_code", "arguments": arguments(session, code)}]});
    let turns: Vec<Value> = programs.iter().map(call).chain([json!({"content": "done"})]).collect();
    fs::write(crib.path("script.json"), json!({"turns": turns}).to_string()).unwrap();
    let ran =
        crib.run(&[&["run", "go", "--json", "--code", "--script=script.json", "--max-steps=100"], flags].concat());
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let results = events.filter(|event| event["type"] == "tool_result");
    let results: Vec<Value> =
        results.map(|event| serde_json::from_str(event["content"].as_str().unwrap()).unwrap()).collect();
    assert!(!results.is_empty(), "{}{}", ran.stdout, ran.stderr);
    results
}

/// Output of a command as JSON.
fn printed(crib: &Crib, args: &[&str]) -> Value {
    let ran = crib.run(args);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr))
}

/// Identifier of the last run.
fn last_run(crib: &Crib) -> String {
    printed(crib, &["runs", "list", "--json"])[0]["id"].as_str().expect("a run").to_owned()
}

#[test]
fn a_program_sees_the_variables_of_its_session_alone() {
    let crib = Crib::with_guests(&["echo"]);
    let programs = [
        ("a", "rows = [1, 2, 3]\ndef total(): return sum(rows)"),
        ("a", "rows.append(4)\ntotal()"),
        ("b", "try:\n    seen = rows\nexcept NameError:\n    seen = 'none'\nseen"),
        ("a", "1 / 0"),
        ("a", "len(rows)"),
    ];
    let results = ran(&crib, &programs, &[]);
    assert_eq!(results[0]["session"], json!({"name": "a", "new": true}), "{results:?}");
    assert_eq!((&results[1]["value"], &results[1]["session"]["new"]), (&json!(10), &json!(false)));
    assert_eq!((&results[2]["value"], &results[2]["session"]["new"]), (&json!("none"), &json!(true)));
    assert_eq!(results[3]["session"]["new"], false, "a program that fails leaves its variables: {}", results[3]);
    assert_eq!(results[4]["value"], 4);
}

#[test]
fn a_session_outlives_the_process_of_its_run_and_is_listed_and_ended() {
    let crib = Crib::with_guests(&["echo"]);
    ran(&crib, &[("sales", "x = 41"), ("other", "y = 1")], &[]);
    let id = last_run(&crib);
    let resume = format!("--resume={id}");
    let results = ran(&crib, &[("sales", "x + 1")], &[&resume]);
    assert_eq!((&results[0]["value"], &results[0]["session"]["new"]), (&json!(42), &json!(false)));
    let listed = printed(&crib, &["runs", "sessions", &id, "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!((&listed[0]["name"], &listed[0]["language"]), (&json!("sales"), &json!("python")), "{listed}");
    assert_eq!(crib.run(&["runs", "sessions", &id, "--end=sales"]).code, Some(0));
    assert_eq!(crib.run(&["runs", "sessions", &id, "--end=sales"]).code, Some(1), "it has ended");
    let results = ran(&crib, &[("sales", "try:\n    x\nexcept NameError:\n    pass")], &[&resume]);
    assert_eq!(results[0]["session"]["new"], true, "{}", results[0]);
    // Another run has none of them.
    let fork = format!("--fork={id}");
    assert_eq!(ran(&crib, &[("other", "1")], &[&fork])[0]["session"]["new"], true);
    crib.run(&["runs", "remove", &id]);
    let left: Vec<_> = walk(&crib).into_iter().filter(|path| path.contains(&id)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Paths below the folder of kept runs.
fn walk(crib: &Crib) -> Vec<String> {
    let mut folders = vec![crib.path("home/.local/state/toolcrib/runs")];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            paths.push(path.display().to_string());
            folders.extend(path.is_dir().then_some(path));
        }
    }
    paths
}

#[test]
fn a_state_of_another_version_of_the_interpreter_is_refused() {
    let crib = Crib::with_guests(&["echo"]);
    ran(&crib, &[("a", "x = 1")], &[]);
    let id = last_run(&crib);
    let file = walk(&crib).into_iter().find(|path| path.ends_with(".session")).expect("a saved session");
    let bytes = fs::read(&file).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[..end]).unwrap();
    header["interpreter"] = json!("sha256:0");
    fs::write(&file, [header.to_string().as_bytes(), &bytes[end..]].concat()).unwrap();
    let results = ran(&crib, &[("a", "x"), ("b", "1")], &[&format!("--resume={id}")]);
    assert!(results[0]["error"].as_str().unwrap().contains("another version of the interpreter"), "{}", results[0]);
    assert_eq!(results[1]["value"], 1);
    fs::write(&file, b"garbage").unwrap();
    let results = ran(&crib, &[("a", "x")], &[&format!("--resume={id}")]);
    assert!(results[0]["error"].as_str().unwrap().contains("is no saved session"), "{}", results[0]);
}

/// Kills a run of programs that each add a number to a list, after this many events of a kind. Returns the number of results that
/// were seen.
fn killed(crib: &Crib, kind: &str, count: usize) -> usize {
    let code = |number: usize| match number {
        0 => "rows = [0]".to_owned(),
        _ => format!("rows.append({number})\nlen(rows)"),
    };
    let call =
        |number| json!({"tool_calls": [{"name": "run_code", "arguments": {"code": code(number), "session": "a"}}]});
    let turns: Vec<Value> = (0..20).map(call).chain([json!({"content": "done"})]).collect();
    fs::write(crib.path("script.json"), json!({"turns": turns}).to_string()).unwrap();
    let mut command = crib.toolcrib(&["run", "go", "--json", "--code", "--script=script.json", "--max-steps=100"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut events: Vec<Value> = Vec::new();
    while events.iter().filter(|event| event["type"] == kind).count() < count {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the run has ended: {events:?}");
        events.push(serde_json::from_str(&line).unwrap());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    events.extend(rest.lines().filter_map(|line| serde_json::from_str(line).ok()));
    events.iter().filter(|event| event["type"] == "tool_result").count()
}

#[test]
fn a_kill_at_any_of_twenty_places_loses_no_program_that_has_ended() {
    for (kind, count) in (1..=10).flat_map(|count| [("tool_call", 2 * count), ("tool_result", 2 * count - 1)]) {
        let crib = Crib::with_guests(&["echo"]);
        let seen = killed(&crib, kind, count);
        let resume = format!("--resume={}", last_run(&crib));
        let code = "try:\n    found = rows\nexcept NameError:\n    found = []\nfound";
        let results = all_results("python", &crib, &[("a", code)], &[&resume]);
        let rows: Vec<u64> = serde_json::from_value(results.last().unwrap()["value"].clone()).unwrap();
        let made: Vec<u64> = (0..rows.len() as u64).collect();
        assert_eq!(rows, made, "each program ran once, in order: {kind} {count}");
        assert!(rows.len() == seen || rows.len() == seen + 1, "{} after {seen} results: {kind} {count}", rows.len());
    }
}

#[test]
fn a_session_that_grows_too_large_keeps_its_variables_from_before() {
    let crib = Crib::with_guests(&["echo"]);
    let programs = [("a", "x = 1"), ("a", "x = 2\nlong = 'x' * (9 << 20)"), ("a", "x")];
    let results = ran(&crib, &programs, &[]);
    assert!(results[1]["session"]["not_saved"].as_str().unwrap().contains("more than the 8388608"), "{}", results[1]);
    assert_eq!(results[2]["value"], 1);
}

#[test]
fn the_oldest_session_ends_for_a_ninth() {
    let crib = Crib::with_guests(&["echo"]);
    let names: Vec<String> = (0..9).map(|n| format!("s{n}")).collect();
    let programs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x = 1")).collect();
    let results = ran(&crib, &programs, &[]);
    assert_eq!(results[8]["session"]["ended"], json!(["s0"]), "{}", results[8]);
}

#[test]
fn a_call_outside_a_conversation_has_no_sessions() {
    let crib = Crib::with_guests(&["echo"]);
    let line = crib.call("run_code", &json!({"code": "1", "session": "a"}), &[]);
    assert_eq!(line["receipt"]["outcome"], "bad-arguments", "{line}");
    let line = crib.call("run_code", &json!({"code": "1", "session": "../a"}), &[]);
    assert_eq!(line["receipt"]["outcome"], "bad-arguments", "{line}");
}

#[test]
fn a_program_in_javascript_sees_the_variables_of_its_session_alone() {
    let crib = Crib::with_guests(&["echo"]);
    let first = "const known = new Map([['k', 41]]); let n = 0; function step() { n += 1; return known.get('k') + n }\n\
        class Box { #x = 7; get x() { return this.#x } } const box = new Box();\n\
        function* parts() { yield 1; yield 2 } const part = parts(); part.next(); const pattern = /b+/g;\n\
        const text = 'x'.repeat(100000); const awaited = tools.echo({ n: 5 }); await awaited";
    let results = ran_in(
        "javascript",
        &crib,
        &[
            ("a", first),
            ("a", "[step(), box.x, part.next().value, 'abb'.match(pattern)[0], text.length, await awaited]"),
            ("b", "typeof step"),
            ("a", "n = 10; throw new Error('no')"),
            ("a", "step()"),
            ("a", "JSON.stringify(await tools.echo({ n: step() }))"),
        ],
        &[],
    );
    assert_eq!(results[0]["session"], json!({"name": "a", "new": true}), "{results:?}");
    assert_eq!(results[1]["value"], json!([42, 7, 2, "bb", 100_000, {"n": 5}]), "{results:?}");
    assert_eq!((&results[2]["value"], &results[2]["session"]["new"]), (&json!("undefined"), &json!(true)));
    assert_eq!(results[4]["value"], 52, "a program that fails leaves its variables: {results:?}");
    assert_eq!(results[5]["value"], r#"{"n":53}"#, "{results:?}");
    // Another process continues it, and a session has one language.
    let id = last_run(&crib);
    let results = all_results("javascript", &crib, &[("a", "step()")], &["--resume", &id]);
    assert_eq!(results.last().unwrap()["value"], 54, "{results:?}");
    let results = all_results("python", &crib, &[("a", "1")], &["--resume", &id]);
    assert!(results.last().unwrap()["error"].to_string().contains("its programs are in `javascript`"), "{results:?}");
}

#[test]
fn a_session_in_javascript_that_grows_too_large_keeps_its_variables_from_before() {
    let crib = Crib::new();
    let grow = "const many = Array.from({ length: 200 }, (_, n) => `${n}`.padStart(50000, 'x')); many.length";
    let results = ran_in("javascript", &crib, &[("a", "let n = 1"), ("a", grow), ("a", "[n, typeof many]")], &[]);
    assert!(
        results[1]["session"]["not_saved"].as_str().unwrap().contains("is more than 8388608 bytes"),
        "{}",
        results[1]
    );
    assert_eq!(results[2]["value"], json!([1, "undefined"]), "{}", results[2]);
}

#[test]
fn many_programs_of_a_session_in_javascript_need_no_more_memory_than_few() {
    let crib = Crib::new();
    let mut programs = vec![("a", "let n = 0; const all = []")];
    programs.extend([("a", "n += 1; all.push(`${n}`); n"); 40]);
    let results = ran_in("javascript", &crib, &programs, &["--set=limits.max_memory=32MiB"]);
    assert_eq!(results[40]["value"], 40, "{}", results[40]);
}
