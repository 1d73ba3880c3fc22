//! `toolcrib config explain`, `get` and `schema`.

use serde_json::json;

use super::{disagreeing, json as parsed, write_system, write_user};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

#[test]
fn each_value_is_shown_with_its_layer_file_line_and_state() {
    let page = Page::new();
    let crib = disagreeing();
    let mut command = crib.toolcrib(&["config", "explain", "model.name", "--json", "--profile=ci"]);
    let ran = Ran::from(command.env("OPENAI_MODEL", "from-openai").output().unwrap());
    let explained = parsed(&ran);
    let setting = &explained["settings"][0];
    assert_eq!((&setting["key"], &setting["value"]), (&json!("model.name"), &json!("from-openai")));
    let rows: Vec<_> = setting["from"].as_array().unwrap().iter().collect();
    let row = |at: usize| (rows[at]["layer"].as_str().unwrap(), rows[at]["state"].as_str().unwrap());
    assert_eq!(row(0), ("environment", "used"));
    assert_eq!(row(1), ("project", "not trusted, ignored"));
    assert_eq!((row(2), row(3), row(4)), (("profile", "overridden"), ("user", "overridden"), ("system", "overridden")));
    assert_eq!((&rows[2]["line"], &rows[2]["column"]), (&json!(5), &json!(8)));
    assert!(rows[4]["file"].as_str().unwrap().ends_with("etc/config.toml"), "{setting}");
    assert_eq!(explained["files"][0]["state"], "not trusted, ignored except what asks or denies");
    page.run(&crib, &["config", "explain", "--profile=ci"]);
    page.matches("config/explain");
}

#[test]
fn get_prints_the_value_that_counts() {
    let crib = disagreeing();
    let ran = crib.run(&["config", "get", "model.name"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "from-user\n"), "{ran:?}");
    write_user(&crib, "[permissions]\ndeny = [\"a\"]\n");
    write_system(&crib, "[permissions]\ndeny = [\"b\"]\n");
    assert_eq!(crib.run(&["config", "get", "permissions.deny"]).stdout, "a\nb\n", "denials add up");
    let ran = crib.run(&["config", "get", "limits.fuel"]);
    assert!(ran.code == Some(1) && ran.stderr.starts_with("error: `limits.fuel` is not set\nhint: "), "{ran:?}");
    let ran = crib.run(&["config", "get", "limits.feul"]);
    assert_eq!(ran.stderr, "error: unknown key `limits.feul`\nhint: did you mean `limits.fuel`?\n");
}

#[test]
fn every_value_of_a_run_is_printed_with_its_origin() {
    let crib = Crib::new();
    write_user(&crib, "[model]\nmax_steps = 3\ncustom_tools = false\nhttp_retries = 4\n");
    let mut command = crib.toolcrib(&["run", "--print-config", "--temp=0.5", "--max-steps=5", "--script=x.json"]);
    let shown = parsed(&Ran::from(command.env("OAI_HTTP_TIMEOUT", "9s").output().unwrap()));
    let (values, from) = (shown.as_object().unwrap(), shown["from"].as_object().unwrap());
    for name in values.keys().filter(|name| *name != "from") {
        assert!(from.get(name).is_some_and(|origin| origin.is_string()), "{name}: {shown}");
    }
    assert_eq!(
        (&from["maxSteps"], &from["temperature"], &from["script"]),
        (&json!("--max-steps"), &json!("--temp"), &json!("--script"))
    );
    assert_eq!((&from["httpTimeout"], &from["httpRetryBackoff"]), (&json!("OAI_HTTP_TIMEOUT"), &json!("default")));
    assert_eq!(
        (&values["customTools"], &values["httpRetries"], &values["maxSteps"]),
        (&json!(false), &json!(4), &json!(5))
    );
    for (name, line) in [("customTools", 3), ("httpRetries", 4)] {
        let origin = from[name].as_str().unwrap();
        assert!(origin.starts_with("user settings, ") && origin.ends_with(&format!("config.toml:{line}")), "{origin}");
    }
    let shown = parsed(&crib.run(&["run", "--print-config"]));
    assert_eq!(shown["maxSteps"], 3);
    assert!(shown["from"]["maxSteps"].as_str().unwrap().ends_with("config.toml:2"), "{shown}");
}

#[test]
fn the_schema_accepts_the_settings_of_the_book_and_no_unknown_key() {
    let crib = Crib::new();
    let schema = parsed(&crib.run(&["config", "schema"]));
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(
        validator.is_valid(&json!({"permissions": {"deny": ["fs_rm"]}, "profile": {"ci": {"limits": {"fuel": 1}}}}))
    );
    for wrong in [json!({"permissons": {}}), json!({"limits": {"fuel": "1"}}), json!({"profile": {"ci": {"x": 1}}})] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
