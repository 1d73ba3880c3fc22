//! Programs through the library: the tasks of conversations, without the command line.

use std::fs;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::{Audit, Outcome, Policy, Runtime, ToolCall};

use super::nested;
use crate::conversations::programs::{COMPARE, RENAME, assert_renamed, sales, write_files};
use crate::crib::{Crib, target, toolbox};
use crate::records::watched::on_threads;

/// Runs a program over the shipped tools with a folder that they can write, and returns its value.
fn value(crib: &Crib, code: &str) -> Value {
    let python = &toolcrib_embedded::LANGUAGES[0];
    let runtime = Runtime::builder(Audit::folder(crib.path("audit")))
        .trusted_source(toolbox())
        .compile_cache(target().join("test-cache"))
        .code_interpreter((python.name, ""), python.digest, python.read)
        .policy(Policy::default().allow(Permission::Write(crib.path("work"))))
        .build()
        .unwrap();
    let call = ToolCall::new("1", "run_code", json!({ "code": code }).to_string());
    let ended = on_threads(async { runtime.call(call).await });
    assert_eq!(ended.receipt.outcome, Outcome::Ok, "{}", ended.content());
    serde_json::from_str::<Value>(&ended.content()).unwrap()["value"].clone()
}

#[test]
fn a_file_of_five_megabytes_is_compared_by_one_call() {
    let crib = Crib::new();
    fs::write(crib.path("work/sales.csv"), sales()).unwrap();
    let first = ["customer-0000", "customer-0010", "customer-0020"];
    assert_eq!(value(&crib, COMPARE), json!({"rose": 100, "first": first}));
    assert!(nested(&crib).iter().all(|record| record["tool"] == "fs_read_file"));
}

#[test]
fn a_name_in_two_hundred_files_is_replaced_by_one_call() {
    let crib = Crib::new();
    write_files(&crib.path("work"));
    assert_eq!(value(&crib, RENAME), 200);
    assert_renamed(&crib.path("work"));
    assert_eq!(nested(&crib).len(), 401, "one search, 200 reads, 200 writes");
}
