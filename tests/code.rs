//! Programs of a model: `run_code` computes over the results of tools, and each call in a program is a call.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;

mod embedded;
mod hostile;
mod judged;
mod mode;
pub(crate) mod nested;
mod sessions;
mod sourced;
mod together;
mod waiting;

/// Tool flags: the shipped tools over the folder `work`.
const TOOLS: [&str; 2] = ["--tools=builtin", "--allow-write=work"];

/// Runs a program, and returns the line of its call.
fn program(crib: &Crib, code: &str, flags: &[&str]) -> Value {
    crib.call("run_code", &json!({ "code": code }), &[&TOOLS[..], flags].concat())
}

/// Result of a program that succeeds.
#[track_caller]
fn answer(crib: &Crib, code: &str, flags: &[&str]) -> Value {
    let line = program(crib, code, flags);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    line["result"].clone()
}

/// Records of the calls that programs made.
fn nested(crib: &Crib) -> Vec<Value> {
    crib.records().into_iter().filter(|record| record["parent"].is_string()).collect()
}

#[test]
fn a_program_computes_over_whole_results() {
    let crib = Crib::new();
    let rows = (1..=5000).map(|n| format!("{n},{}\n", n * 3)).collect::<String>();
    fs::write(crib.path("work/sales.csv"), format!("id,total\n{rows}")).unwrap();
    let code = "text, offset = '', 0\n\
        while offset is not None:\n\
        \x20   part = tools.fs_read_file(path='sales.csv', offset=offset)\n\
        \x20   text += part['content']\n\
        \x20   offset = part.get('next_offset')\n\
        rows = [line.split(',') for line in text.split('\\n')[1:] if line]\n\
        print(len(rows))\n\
        {'sum': sum(int(row[1]) for row in rows), 'last': rows[-1]}";
    let answer = answer(&crib, code, &["--set=results.max_inline=500"]);
    assert_eq!(answer["value"], json!({"sum": 37_507_500, "last": ["5000", "15000"]}));
    assert_eq!(answer["printed"], "5000\n");
    assert_eq!(answer["calls"], json!([{"tool": "fs_read_file", "outcome": "ok", "count": 2}]));
}

#[test]
fn each_call_of_a_program_is_recorded_with_its_parent() {
    let crib = Crib::new();
    let code = "for name in ['a', 'b']:\n    tools.fs_write_file(path=name + '.txt', content=name)\n\
        tools.fs_stat(path='a.txt')['type']";
    assert_eq!(answer(&crib, code, &[])["value"], "file");
    let (all, nested) = (crib.records(), nested(&crib));
    let names: Vec<&str> = nested.iter().map(|record| record["tool"].as_str().unwrap()).collect();
    assert_eq!(names, ["fs_write_file", "fs_write_file", "fs_stat"]);
    let parent = all.iter().find(|record| record["tool"] == "run_code").unwrap();
    assert!(nested.iter().all(|record| record["parent"] == parent["invocation"]), "{all:?}");
    assert_eq!(fs::read_to_string(crib.path("work/b.txt")).unwrap(), "b");
}

#[test]
fn a_program_is_checked_before_it_runs() {
    let crib = Crib::new();
    for (code, message) in [
        (
            "tools.fs_write_file(path='a', content='')\ntools.fs_raed_file(path='a')",
            "line 2, column 7: there is no tool `fs_raed_file`: did you mean `fs_read_file`?",
        ),
        ("tools.fs_write_file(path='a', contents='')", "line 1"),
        ("tools.fs_write_file(path=1, content='')", "line 1"),
        ("tools.fs_write_file(path='a', content='')\nx = (", "line 2"),
        ("tools.run_code(code='1')", "there is no tool `run_code`"),
    ] {
        let line = program(&crib, code, &[]);
        assert_eq!(line["receipt"]["outcome"], "bad-arguments", "{line}");
        let error = line["error"].as_str().unwrap();
        assert!(error.starts_with("the program was not run: ") && error.contains(message), "{error}");
    }
    assert!(nested(&crib).is_empty() && !crib.path("work/a").exists(), "nothing has run");
}

#[test]
fn calls_that_are_gathered_run_together_and_keep_their_order() {
    let crib = Crib::new();
    for n in 0..20 {
        fs::write(crib.path(format!("work/{n}.txt")), format!("{n}")).unwrap();
    }
    let code = "import asyncio\n\
        files = await asyncio.gather(*[tools.fs_read_file(path=str(n) + '.txt') for n in range(20)])\n\
        [int(file['content']) for file in files]";
    assert_eq!(answer(&crib, code, &[])["value"], json!((0..20).collect::<Vec<_>>()));
    assert_eq!(nested(&crib).len(), 20);
}

#[test]
fn an_exception_is_told_with_its_line_and_what_was_printed() {
    let crib = Crib::new();
    let line = program(&crib, "print('before')\nvalue = {}\nvalue['missing']", &[]);
    assert_eq!(line["receipt"]["outcome"], "failed", "{line}");
    let error = &line["error"];
    assert!(error["error"].as_str().unwrap().starts_with("KeyError: "), "{line}");
    assert_eq!(error["printed"], "before\n", "{line}");
    assert!(error["traceback"][0].as_str().unwrap().starts_with("line 3"), "{line}");
    assert_eq!(error.get("result_keys"), None, "no tool was called");
}

#[test]
fn a_missing_key_is_told_with_the_keys_of_the_results() {
    let crib = Crib::new();
    fs::write(crib.path("work/a.txt"), "a").unwrap();
    let line = program(&crib, "found = tools.fs_list_dir(path='.')\nfound['entries'][0]['name']", &[]);
    let error = &line["error"];
    assert!(error["error"].as_str().unwrap().starts_with("KeyError: "), "{line}");
    let keys = error["result_keys"]["fs_list_dir"].as_array().unwrap_or_else(|| panic!("{line}"));
    assert!(["entries", "entries[0].path"].iter().all(|key| keys.contains(&json!(key))), "{line}");
    // Another failure says nothing of them.
    let line = program(&crib, "tools.fs_list_dir(path='.')\n1 / 0", &[]);
    assert_eq!(line["error"].get("result_keys"), None, "{line}");
}

#[test]
fn people_see_the_charts_of_a_program_and_its_model_a_list_of_them() {
    let crib = Crib::new();
    let code = "for n in range(22):\n    tools.chart(kind='line', title='Sales', series=[{'name': 'a', 'values': [1, 2, n]}], labels=['x', 'y', 'z'])\n'drawn'";
    let line = program(&crib, code, &[]);
    let picture = json!({"tool": "chart", "type": "image/svg+xml", "name": "chart.svg"});
    assert_eq!(line["result"]["shown"], Value::from(vec![picture; 20]), "{line}");
    assert_eq!((&line["result"]["value"], &line["result"]["more_shown"]), (&json!("drawn"), &json!(2)), "{line}");
    assert_eq!(line["shown"].as_array().map(Vec::len), Some(22), "{line}");
    // A program that fails shows what its calls showed before.
    let line = program(&crib, &format!("{code}\n1 / 0").replace("22", "1"), &[]);
    assert_eq!(line["shown"].as_array().map(Vec::len), Some(1), "{line}");
    assert_eq!(line["error"]["shown"][0]["tool"], "chart", "{line}");
}

#[test]
fn the_tool_is_offered_on_request_alone() {
    let crib = Crib::with_guests(&["echo"]);
    let call = json!({"name": "run_code", "arguments": {"code": "tools.echo(n=20 + 22)"}});
    let turns = json!([{"tool_calls": [call]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let ran = |flags: &[&str]| crib.run(&[&["run", "--json", "--script=script.json"], flags].concat()).stdout;
    let computed = r#"\"n\":42"#;
    assert!(!ran(&[]).contains(computed));
    assert!(ran(&["--code"]).contains(computed));
    assert!(ran(&["--set=sources.code=true"]).contains(computed));
    // A tool of a source keeps its name, also in a call that needs no `--code`.
    let mut own = crib.entry("echo");
    own["name"] = json!("run_code");
    crib.manifest(&json!({ "tools": [own] }));
    assert_eq!(crib.call("run_code", &json!({"code": "1"}), &[])["result"], json!({"code": "1"}));
}

#[test]
fn a_value_is_exact_or_shown_as_text_and_never_ends_the_host() {
    let crib = Crib::new();
    let ran = crib.run(&["call", "run_code", r#"{"code": "2**64 + 1"}"#, "--tools=builtin"]);
    assert_eq!(ran.stdout.trim(), r#"{"value":18446744073709551617}"#);
    for code in ["10**400", "[1, -(10**310)]", "x = []\nfor n in range(126):\n    x = [x]\nx"] {
        let answer = answer(&crib, code, &[]);
        assert!(answer["value"].is_string() && answer["note"].is_string(), "{code}: {answer}");
    }
}

#[test]
fn results_that_are_too_long_together_fail_and_the_program_goes_on() {
    let crib = Crib::new();
    fs::write(crib.path("work/long.txt"), "x".repeat(128 << 10)).unwrap();
    let code = "import asyncio\nasync def read(n):\n    try:\n        part = await tools.fs_read_file(path='long.txt', limit=131072)\n\
        \x20       return len(part['content'])\n    except ToolError as error:\n        return str(error)\n\
        sizes = await asyncio.gather(*[read(n) for n in range(16)])\n\
        [len([s for s in sizes if s == 131072]), len([s for s in sizes if 'too long' in str(s)])]";
    let value = answer(&crib, code, &["--max-memory=8MiB"])["value"].clone();
    let [read, failed] = [0, 1].map(|at| value[at].as_u64().unwrap());
    assert!(read == 7 && failed == 9, "an eighth of 8 MiB: {value}");
}
