//! Results, and the information about a call afterwards: scenarios 12 to 15 and 17.

use serde_json::{Value, json};
use toolcrib::policy::{Permission, Policy};
use toolcrib::source::fingerprint;
use toolcrib::{Audit, Results};

use super::crib;
use crate::crib::toolbox;
use crate::records::watched::{Watched, call};

#[test]
fn scenario_12_a_large_result_becomes_a_preview_and_a_reference() {
    let (watched, crib) = (Watched::new(), crib(&[("big", "big_result", json!({}))]));
    let results = Results::folder(crib.path("results"));
    let runtime = watched.builder(&crib).results(results.clone()).max_inline(1000).build().unwrap();
    let output = call(&runtime, "big", &json!({"bytes": 50_000}));
    assert!(output.content().len() < 2000, "{}", output.content().len());
    drop(runtime);
    let run = watched.close();
    let (kept, result) = (run.only("result-persistence"), run.only("results"));
    assert_eq!((&kept["strategy"], &kept["original_size_bytes"]), (&json!("preview_and_persist"), &json!(50_002)));
    let reference = kept["persisted_ref"]["ref"].as_str().unwrap();
    assert_eq!(results.open(reference, ..).unwrap().content.len(), 50_002);
    assert_eq!(result["persistence_refs"], json!([kept["decision_id"]]));
    assert_eq!(result["resource_refs"][0]["ref"], reference);
}

#[test]
fn scenario_13_an_empty_success_differs_from_a_missing_output() {
    let note = json!({"interface": {"empty_result_policy": "note"}});
    let (watched, crib) = (Watched::new(), crib(&[("said", "echo", json!({})), ("silent", "empty", note)]));
    let runtime = watched.builder(&crib).build().unwrap();
    assert_eq!(call(&runtime, "said", &json!({})).content(), "{}");
    assert!(call(&runtime, "silent", &json!({})).content().contains("wrote no answer"));
    drop(runtime);
    let run = watched.close();
    assert_eq!(
        (&run.of("results", "said")["written"], &run.of("results", "silent")["written"]),
        (&json!("empty"), &json!("missing"))
    );
    assert!(run.values("results", "status").iter().all(|status| status == "succeeded"));
}

#[test]
fn scenario_14_a_result_links_to_an_artifact() {
    let (watched, crib) = (Watched::new(), crib(&[("draw", "echo", json!({}))]));
    let policy = Policy::default().allow(Permission::Write(crib.path("work")));
    let runtime = watched.builder(&crib).source(toolbox()).policy(policy).build().unwrap();
    assert!(!call(&runtime, "fs_write_file", &json!({"path": "plan.md", "content": "# Plan"})).is_error());
    let drawing = json!([{"artifact_id": "drawing", "kind": "image"}]);
    call(&runtime, "draw", &json!({ "artifact_refs": drawing }));
    drop(runtime);
    let run = watched.close();
    let made = json!([{"ref": "plan.md", "use": "write", "argument": "/path"}]);
    assert_eq!(run.of("results", "fs_write_file")["artifact_refs"], made, "its record says which argument it makes");
    assert_eq!(run.of("results", "draw")["artifact_refs"], drawing, "its answer says it");
}

#[test]
fn scenario_15_the_record_shows_which_tool_ran_under_which_native_id_and_why_its_result_is_trusted() {
    let native = json!({"interface": {"tool_id": "vendor.say", "native_ids": {"mcp": "server/say"}}});
    let (watched, crib) = (Watched::new(), crib(&[("say", "echo", native)]));
    let runtime = watched.builder(&crib).audit(Audit::folder(crib.path("audit"))).build().unwrap();
    call(&runtime, "say", &json!({"a": 1}));
    drop(runtime);
    let run = watched.close();
    let (invocation, audited) = (run.only("invocations"), &crib.records()[0]);
    assert_eq!((&invocation["tool_id"], &invocation["native_call_id"]), (&json!("vendor.say"), &json!("say")));
    assert_eq!(invocation["native_ids"], json!({"mcp": "server/say"}));
    let program = fingerprint(&crib.path("tools/bin/echo.wasm")).unwrap().digest;
    let evidence = invocation["evidence_refs"].as_array().unwrap();
    assert!(evidence.contains(&json!(format!("program:{program}"))), "{evidence:?}");
    assert!(evidence.contains(&json!(format!("audit:{}", audited["invocation"].as_str().unwrap()))), "{evidence:?}");
    assert_eq!(audited["digest"], json!(program), "the log says the same");
    assert_eq!(run.only("permission-decisions")["reason"]["code"], "default");
}

#[test]
fn scenario_17_tools_keep_their_native_ids() {
    let natives = json!({"mcp": {"server_id": "files", "tool_name": "read"}, "openai": "fn_read", "cli": "cat"});
    let crib = crib(&[("read", "echo", json!({"interface": { "native_ids": natives }}))]);
    let exported: Value = serde_json::from_str(&crib.run(&["export", "--format", "agent-tool"]).stdout).unwrap();
    let mappings = exported["declarations"][0]["external_mappings"].as_array().unwrap();
    for (system, id) in natives.as_object().unwrap() {
        assert!(mappings.contains(&json!({"native_source": system, "native_id": id})), "{system}: {mappings:?}");
    }
    assert_eq!(exported["interfaces"][0]["native_ids"], natives);
    let watched = Watched::new();
    let runtime = watched.builder(&crib).build().unwrap();
    call(&runtime, "read", &json!({}));
    drop(runtime);
    let run = watched.close();
    assert_eq!(run.only("invocations")["native_ids"], natives);
    assert_eq!(run.only("results")["telemetry_refs"][0]["tool_call_id"], "read", "the provider's own call id");
}
