//! `toolcrib export`: Agent Tool records of a crib.

use std::collections::HashSet;
use std::fs;

use serde_json::{Value, json};

use super::standard::Standard;
use crate::crib::{Crib, toolbox};

/// Export of a crib with these flags.
fn export(crib: &Crib, flags: &[&str]) -> Value {
    let ran = crib.run(&[&["export", "--format", "agent-tool"], flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Creates a crib with tools of every availability.
fn varied() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    let tool =
        |name: &str, interface: Value| json!({"name": name, "command": ["./tools/bin/echo"], "interface": interface});
    crib.manifest(&json!({ "tools": [
        tool("plain", json!({})),
        tool("rich", json!({
            "tool_id": "vendor.rich", "namespace": "vendor", "aliases": ["old_rich"], "search_hint": "echo words back",
            "user_facing_name": "Rich", "native_ids": {"mcp": "server/rich", "openai": "fn_rich"}, "risk_level": "high",
            "requires_user_interaction": true, "approval_reason": "it is loud", "permission_matcher": "/path",
            "execution_profile_ref": "shared/runs", "permission_profile_ref": "shared/may",
            "rendering": {"ui_summary": "echo {words}"}, "output_schema": {"type": "object"},
            "io_preflight_validation": [{"field": "/path", "use": "read"}], "max_inline_chars": 1000,
        })),
        tool("shares", json!({"execution_profile_ref": "shared/runs", "permission_profile_ref": "shared/may"})),
        tool("hidden", json!({"should_defer": true, "search_hint": "seldom needed"})),
        tool("off", json!({"is_enabled": false})),
        tool("unready", json!({"requires_setup": "log in first"})),
        tool("poor", json!({"required_credentials": ["TOKEN"]})),
    ]}));
    crib
}

#[test]
fn every_exported_record_follows_the_standard() {
    let Some(mut standard) = Standard::find() else { return };
    let (shipped, varied) = (Crib::new(), varied());
    let shipped = export(&shipped, &["--tools", toolbox().to_str().unwrap(), "--allow-write=work"]);
    assert_eq!(shipped["declarations"].as_array().unwrap().len(), 23, "twenty-two tools, and what opens long answers");
    for crib in [shipped, export(&varied, &["--allow-env=TZ"])] {
        for (kind, records) in crib.as_object().unwrap() {
            standard.check(kind, records.as_array().unwrap());
        }
    }
    standard.settle("export");
}

#[test]
fn records_refer_to_one_another_and_no_identifier_is_given_twice() {
    let crib = export(&varied(), &[]);
    let ids = |kind: &str, field: &str| {
        let ids: Vec<_> = crib[kind].as_array().unwrap().iter().map(|record| record[field].clone()).collect();
        let unique: HashSet<_> = ids.iter().map(ToString::to_string).collect();
        assert_eq!(unique.len(), ids.len(), "{kind}: {ids:?}");
        ids
    };
    let tools = ids("declarations", "tool_id");
    let (interfaces, runs) = (ids("interfaces", "interface_id"), ids("execution_profiles", "execution_profile_id"));
    let may = ids("permission_profiles", "permission_profile_id");
    for (tool, interface) in crib["declarations"].as_array().unwrap().iter().zip(crib["interfaces"].as_array().unwrap())
    {
        assert!(interfaces.contains(&tool["interface_ref"]) && tool["tool_id"] == interface["tool_id"], "{tool}");
        assert!(
            runs.contains(&tool["execution_profile_ref"]) && may.contains(&tool["permission_profile_ref"]),
            "{tool}"
        );
        assert_eq!(tool["permission_profile_ref"], interface["permission_profile_ref"]);
    }
    assert_eq!(crib["surfaces"][0]["tool_refs"], Value::Array(tools));
    assert_eq!(runs.iter().filter(|id| **id == "shared/runs").count(), 1, "two tools that run alike share a profile");
    let shares = &crib["declarations"][2];
    assert_eq!(shares["permission_profile_ref"], "toolcrib.shares/permission", "a profile says one thing");
}

#[test]
fn a_fact_says_where_it_is_from_and_the_surface_why_a_tool_is_not_shown() {
    let crib = export(&varied(), &[]);
    let rich = &crib["declarations"][1];
    assert_eq!(rich["annotations"]["basis"]["risk_level"], "declared");
    assert_eq!(rich["annotations"]["basis"]["max_inline_chars"], "declared");
    assert_eq!(crib["declarations"][0]["annotations"]["basis"]["risk_level"], "inferred");
    assert_eq!(crib["declarations"][0]["annotations"]["basis"]["search_hint"], "default");
    assert_eq!((&rich["title"], &rich["aliases"]), (&json!("Rich"), &json!(["old_rich"])));
    let standings: Vec<_> = crib["declarations"].as_array().unwrap().iter().map(|tool| &tool["lifecycle"]).collect();
    assert_eq!(
        standings[..7],
        ["available", "available", "available", "deferred", "disabled", "requires_setup", "requires_setup"]
    );
    let surface = &crib["surfaces"][0];
    assert_eq!(surface["deferred_tools"], json!(["toolcrib.hidden"]));
    let reasons: Vec<_> = surface["excluded_tools"].as_array().unwrap().iter().map(|tool| &tool["reason"]).collect();
    assert_eq!(reasons, ["feature_disabled", "setup_required", "credential_missing"]);
    assert_eq!(crib["deferred_tools"][0]["selection_ref"], "select:hidden");
}

#[test]
fn an_export_tells_no_folder_of_the_host() {
    let crib = varied();
    let rules = crib.path("rules (mine).toml");
    fs::write(&rules, "[permissions]\ndeny = ['plain']\n").unwrap();
    let config = format!("--config={}", rules.display());
    let exported = export(&crib, &["--allow-write=work", "--deny-read=home", &config]);
    let blocked = &exported["surfaces"][0]["blocked_tools"][0];
    assert_eq!((&blocked["reason"], &blocked["rests_on"]), (&json!("policy_blocked"), &json!("deny plain")));
    let text = exported.to_string();
    let place = crib.dir.path().file_name().unwrap().to_str().unwrap();
    assert!(!text.contains(place) && text.contains("\"file\":\"tools.json\""), "{text}");
}

#[test]
fn an_export_into_a_folder_is_one_file_a_kind() {
    let crib = varied();
    for _ in 0..2 {
        let ran = crib.run(&["export", "--out", "out/records"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    }
    let mut names: Vec<_> = fs::read_dir(crib.path("out/records"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let kinds = [
        "declarations",
        "deferred-tools",
        "execution-profiles",
        "interfaces",
        "permission-profiles",
        "scheduler-policies",
        "surfaces",
    ];
    assert_eq!(names, kinds.map(|kind| format!("{kind}.ndjson")));
    let text = fs::read_to_string(crib.path("out/records/declarations.ndjson")).unwrap();
    assert_eq!(text.lines().count(), 9, "seven tools and two of the host's, exported once");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}
