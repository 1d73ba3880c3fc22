//! Runtimes that are prepared for calls of one tool (`Builder::only`): the others are left out where they do not matter, and
//! loaded where they do.

use std::fs;

use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::policy::{Policy, Rule};
use toolcrib::tool::Trust;
use toolcrib::{Audit, Builder, Error, Runtime};

use crate::crib::{Crib, guest};

/// Entry of a tool of a program.
fn entry(name: &str, program: &str) -> Value {
    json!({"name": name, "command": [format!("./tools/bin/{program}")], "capabilities": {}})
}

/// Creates a crib with two tools, `echo` with the alias `say`, and `other`.
fn two() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    let mut echo = entry("echo", "echo");
    echo["interface"] = json!({"aliases": ["say"]});
    crib.manifest(&json!({"tools": [echo, entry("other", "echo")]}));
    crib
}

fn build(crib: &Crib, name: &str, with: impl FnOnce(Builder) -> Builder) -> Result<Runtime, Error> {
    with(Runtime::builder(Audit::off()).source(crib.path("tools.json"))).only(name).build()
}

/// Returns `true` if `other` is left out of a runtime in which `echo` is usable.
fn leaves_out(crib: &Crib, name: &str, with: impl FnOnce(Builder) -> Builder) -> bool {
    let runtime = build(crib, name, with).expect("a runtime");
    assert!(runtime.tool("echo").expect("the tool").unusable.is_none());
    runtime.tool("other").expect("the other tool").unusable.is_some()
}

#[test]
fn the_others_are_left_out_for_a_name_an_alias_and_a_route() {
    let crib = two();
    for name in ["echo", "say"] {
        assert!(leaves_out(&crib, name, |builder| builder), "{name}");
    }
    assert!(leaves_out(&crib, "talk", |builder| builder.route("talk", "echo")));
    // The names of components are in their programs.
    crib.install(&guest("spin"), "other");
    let programs = Runtime::builder(Audit::off()).source(crib.path("tools/bin")).only("echo").build().unwrap();
    assert!(programs.tool("echo").unwrap().unusable.is_none());
    assert!(programs.tool("other").unwrap().unusable.is_some());
}

#[test]
fn everything_is_loaded_where_the_others_matter() {
    let crib = two();
    assert!(!leaves_out(&crib, "unknown", |builder| builder), "an unknown name");
    assert!(!leaves_out(&crib, "echo", |builder| builder.strict(true)), "a strict builder");
    let rule = |text: &str| Policy::default().rule(Rule::new(Behavior::Deny, text.parse().unwrap(), "test"));
    assert!(leaves_out(&crib, "echo", |builder| builder.policy(rule("other"))), "a rule without arguments");
    assert!(!leaves_out(&crib, "echo", |builder| builder.policy(rule("other(a=1)"))), "a rule over arguments");
    let hook = "---\nevent: tool.pre\nscript: |\n  def handle(event, payload):\n      return None\n---\nPass.\n";
    fs::create_dir_all(crib.path("hooked/.harness/hooks")).unwrap();
    fs::write(crib.path("hooked/.harness/hooks/pass.md"), hook).unwrap();
    assert!(!leaves_out(&crib, "echo", |builder| builder.source(crib.path("hooked"))), "a hook of a source");
    // A name that two tools have.
    fs::write(crib.path("more.json"), json!({"tools": [entry("echo", "echo")]}).to_string()).unwrap();
    let both = build(&crib, "echo", |builder| builder.source(crib.path("more.json")));
    assert!(matches!(both, Err(Error::Duplicate { .. })));
}

#[test]
fn of_the_others_in_a_manifest_only_names_and_programs_are_read() {
    let crib = Crib::with_guests(&["echo"]);
    let mut faulty = entry("other", "echo");
    faulty["capabilities"] = json!({"nonsense": true});
    crib.manifest(&json!({"tools": [entry("echo", "echo"), faulty]}));
    let warnings = |name: &str| build(&crib, name, |builder| builder).unwrap().warnings().len();
    assert_eq!((warnings("echo"), warnings("unknown")), (0, 1), "faults are reported where the others are loaded");
    // Faults of names and of programs are found.
    for other in [json!([entry("other", "echo"), entry("other", "echo")]), json!([entry("echo", "echo")])] {
        let tools: Vec<Value> = [entry("echo", "echo")].into_iter().chain(other.as_array().unwrap().clone()).collect();
        crib.manifest(&json!({ "tools": tools }));
        assert!(build(&crib, "echo", |builder| builder).is_err(), "{tools:?}");
    }
    crib.manifest(&json!({"tools": [entry("echo", "echo"), entry("other", "../escaped")]}));
    assert_eq!(warnings("echo"), 1);
}

#[test]
fn a_tool_of_the_same_component_is_loaded_from_each_source() {
    let crib = Crib::with_guests(&["echo"]);
    crib.install(&guest("rich"), "rich");
    let manifests = |tools: Value, more: Value| {
        crib.manifest(&json!({ "tools": tools }));
        fs::write(crib.path("more.json"), json!({ "tools": more }).to_string()).unwrap();
    };
    let others = || {
        let runtime = build(&crib, "echo", |builder| builder.source(crib.path("more.json"))).unwrap();
        runtime.tools().filter(|tool| tool.name != "echo" && tool.unusable.is_some()).count()
    };
    let (echo, raw, other) = (|| entry("echo", "rich"), || entry("raw", "rich"), || entry("other", "echo"));
    manifests(json!([echo(), other()]), json!([]));
    assert_eq!(others(), 1, "no other tool of the component");
    manifests(json!([echo(), other(), raw()]), json!([]));
    assert_eq!(others(), 0);
    manifests(json!([echo(), other()]), json!([raw()]));
    assert_eq!(others(), 0);
    let mut calls = echo();
    calls["capabilities"] = json!({"tools": ["other"]});
    manifests(json!([calls, other()]), json!([]));
    assert_eq!(others(), 0, "a tool that calls another");
}

#[test]
fn a_reviewed_source_is_reviewed_whole_and_its_other_tools_are_left_out() {
    let crib = two();
    let digest = toolcrib::policy::review(&crib.path("tools.json")).unwrap().digest;
    let reviewed = build(&crib, "echo", |builder| builder.trust(digest.clone())).unwrap();
    assert!(reviewed.tools().filter(|tool| tool.origin.trust == Trust::Reviewed).count() == 2);
    assert!(leaves_out(&crib, "echo", |builder| builder.trust(digest.clone())));
    // The digest covers the programs of all tools.
    crib.install(&guest("spin"), "changed");
    crib.manifest(&json!({"tools": [entry("echo", "echo"), entry("other", "changed")]}));
    let digest = toolcrib::policy::review(&crib.path("tools.json")).unwrap().digest;
    crib.install(&guest("sleep"), "changed");
    let changed = build(&crib, "echo", |builder| builder.trust(digest)).unwrap();
    assert!(changed.tools().all(|tool| tool.origin.trust != Trust::Reviewed));
}

#[test]
fn a_tool_that_is_reviewed_by_itself_is_trusted_without_the_others_and_no_longer_once_it_changes() {
    let crib = two();
    crib.install(&guest("spin"), "spin");
    let manifest = |limit: u64| {
        let mut echo = entry("echo", "echo");
        echo["timeoutSec"] = json!(limit);
        crib.manifest(&json!({"tools": [echo, entry("other", "spin")]}));
    };
    manifest(5);
    let path = crib.path("tools.json");
    let review = toolcrib::policy::review(&path).unwrap();
    assert!(review.has_tools_alone);
    let item = review.items.iter().find(|item| item.name == "echo").unwrap();
    let trusting = |builder: Builder| {
        builder.trust_at(&path, &review.digest).trust_tool_at(&path, "echo", &item.definition, item.program.clone())
    };
    let trust = || build(&crib, "echo", trusting).unwrap().tool("echo").unwrap().origin.trust;
    assert_eq!(trust(), Trust::Reviewed);
    assert!(leaves_out(&crib, "echo", trusting));
    fs::write(crib.path("tools/bin/spin.wasm"), "no program").unwrap();
    assert_eq!(trust(), Trust::Reviewed, "the program of another tool is not read");
    let whole = Runtime::builder(Audit::off()).source(&path);
    let whole = trusting(whole).build().unwrap();
    assert!(whole.tools().all(|tool| tool.origin.trust != Trust::Reviewed), "where all are loaded, all are reviewed");
    manifest(6);
    assert_ne!(trust(), Trust::Reviewed, "another definition");
    manifest(5);
    crib.install(&guest("sleep"), "echo");
    assert_ne!(trust(), Trust::Reviewed, "another program");
}

#[test]
fn a_name_that_looks_like_the_called_one_is_refused_as_without_the_option() {
    let crib = Crib::new();
    for (file, program) in [("echo", "echo"), ("Echo", "spin")] {
        crib.install(&guest(program), program);
        let record = json!({
            "schema_version": "0.2.0", "tool_id": format!("x.{file}"), "component": format!("{program}.wasm"),
        });
        fs::write(crib.path(format!("tools/bin/{file}.tool.json")), record.to_string()).unwrap();
    }
    let build = |only: bool| {
        let builder = Runtime::builder(Audit::off()).source(crib.path("tools/bin"));
        if only { builder.only("echo") } else { builder }.build()
    };
    for only in [false, true] {
        assert!(matches!(build(only), Err(Error::LookAlike { .. })), "{only}");
    }
    // A record that cannot be used takes no name from one that can.
    fs::remove_file(crib.path("tools/bin/spin.wasm")).unwrap();
    for only in [false, true] {
        let runtime = build(only).expect("a runtime");
        assert!(runtime.tool("echo").unwrap().unusable.is_none() && runtime.tool("Echo").is_none(), "{only}");
    }
}
