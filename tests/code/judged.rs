//! Each call of a program is judged as a direct call is.

use serde_json::json;

use super::{answer, nested, program};
use crate::crib::Crib;

/// Program that catches the refusal of a write.
const CAUGHT: &str = "try:\n    tools.fs_write_file(path='a', content='')\n    done = 'written'\n\
    except PermissionError as error:\n    done = str(error)\ndone";

#[test]
fn a_rule_denies_a_call_of_a_program() {
    let crib = Crib::new();
    let direct = crib.call(
        "fs_write_file",
        &json!({"path": "a", "content": ""}),
        &["--tools=builtin", "--allow-write=work", "--deny-tool=fs_write_file"],
    );
    let caught = answer(&crib, CAUGHT, &["--deny-tool=fs_write_file"]);
    assert_eq!(caught["value"], direct["error"], "the program sees the message of a direct call");
    assert_eq!(caught["calls"], json!([{"tool": "fs_write_file", "outcome": "denied", "count": 1}]));
    assert!(!crib.path("work/a").exists());
    let [record] = &nested(&crib)[..] else { panic!("one call") };
    assert_eq!(record["outcome"], "denied");
    // A rule about arguments is one too.
    let other = answer(&crib, CAUGHT, &["--deny-tool=fs_write_file(path=b)"]);
    assert_eq!(other["value"], "written");
}

#[test]
fn a_call_that_needs_approval_is_refused_where_nobody_can_answer() {
    let crib = Crib::new();
    let caught = answer(&crib, CAUGHT, &["--ask-tool=fs_write_file"]);
    assert!(caught["value"].as_str().unwrap().contains("approval"), "{caught}");
    assert!(!crib.path("work/a").exists());
}

#[test]
fn a_program_has_the_grants_of_the_tools_and_none_of_its_own() {
    let crib = Crib::new();
    std::fs::write(crib.path("outside"), "secret").unwrap();
    let code = "def tried(call):\n    try:\n        return call()\n    except OSError as error:\n        return str(error)\n\
        [tried(lambda: tools.fs_read_file(path='../outside')), tried(lambda: open('outside').read())]";
    let line = program(&crib, code, &[]);
    assert!(!line.to_string().contains("secret"), "{line}");
}

#[test]
fn a_failed_call_is_an_exception_and_one_that_is_not_caught_ends_the_program() {
    let crib = Crib::new();
    let line = program(&crib, "tools.fs_read_file(path='missing')", &[]);
    assert_eq!(line["receipt"]["outcome"], "failed", "{line}");
    assert_eq!(line["error"]["calls"][0]["outcome"], "failed", "{line}");
    let caught = answer(&crib, "try:\n    tools.fs_read_file(path='missing')\nexcept ToolError:\n    x = 1\nx", &[]);
    assert_eq!(caught["value"], 1);
}

#[test]
fn a_budget_that_is_used_up_refuses_the_calls_of_a_program() {
    let crib = Crib::with_guests(&["echo"]);
    let code = "made = 0\ntry:\n    for n in range(10):\n        tools.echo(n=n)\n        made += 1\n\
        except PermissionError as error:\n    made = [made, str(error)]\nmade";
    let call = json!({"name": "run_code", "arguments": {"code": code}});
    let turns = json!([{"tool_calls": [call]}, {"content": "done"}]);
    std::fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let ran = crib.run(&["run", "--json", "--code", "--script=script.json", "--set=budgets.calls=4"]);
    assert!(ran.stdout.contains(r#"[4,\"the budget of 4 calls is used up\"]"#), "{}", ran.stdout);
    assert_eq!(nested(&crib).iter().filter(|record| record["outcome"] == "denied").count(), 1);
}
