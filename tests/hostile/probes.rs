//! Defects that were seen in other runtimes, tested here.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib::policy::Permission;
use toolcrib::tool::Limits;
use toolcrib::{Outcome, Policy, Runtime, ToolCall};

use crate::crib::{Crib, guest};

fn threads(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

#[test]
fn as_many_endless_loops_as_cores_leave_room_for_others() {
    let limits = Limits::with_deadline(Duration::from_secs(20));
    let builder = Runtime::builder(toolcrib::Audit::off())
        .source(guest("spin"))
        .source(guest("echo"))
        .source(guest("nap"))
        .limits(limits);
    let runtime = builder.build().unwrap();
    threads(2).block_on(async {
        for name in ["spin", "echo", "nap"] {
            runtime.prepare(name).await.unwrap();
        }
        let spinning: Vec<_> = (0..4)
            .map(|_| {
                let runtime = runtime.clone();
                tokio::spawn(async move { runtime.call(ToolCall::new("", "spin", "{}")).await })
            })
            .collect();
        let began = Instant::now();
        for name in ["echo", "nap"].repeat(10) {
            let runtime = runtime.clone();
            let call = tokio::spawn(async move { runtime.call(ToolCall::new("", name, r#"{"ms":1}"#)).await });
            assert!(!call.await.unwrap().is_error());
        }
        assert!(began.elapsed() < Duration::from_secs(15), "they waited for {:?}", began.elapsed());
        for call in &spinning {
            assert!(!call.is_finished(), "the loops ran all the while");
            call.abort();
        }
    });
}

#[test]
fn every_limit_is_on_by_default() {
    let runtime = Runtime::builder(toolcrib::Audit::off()).source(guest("echo")).build().unwrap();
    let limits = *runtime.limits("echo").unwrap();
    assert_eq!((limits.deadline, limits.memory), (Duration::from_secs(30), 128 << 20));
    assert_eq!((limits.stdout, limits.stderr), (1 << 20, 64 << 10));
    assert_eq!((limits.handles, limits.host_call), (128, 16 << 20));
}

#[test]
fn a_tool_that_trapped_runs_again() {
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .source(guest("checked"))
        .source(guest("exit_code"))
        .source(guest("panic"));
    let runtime = runtime.build().unwrap();
    threads(1).block_on(async {
        for _ in 0..3 {
            let trapped = runtime.call(ToolCall::new("", "panic", "{}")).await;
            assert_eq!(trapped.receipt.outcome, Outcome::Trap);
            let failed = runtime.call(ToolCall::new("", "exit_code", r#"{"code":1}"#)).await;
            assert_eq!(failed.receipt.outcome, Outcome::Failed);
            assert!(!runtime.call(ToolCall::new("", "exit_code", r#"{"code":0,"stdout":"1"}"#)).await.is_error());
        }
    });
}

#[test]
fn a_long_argument_is_cut_between_characters() {
    let crib = Crib::with_guests(&["echo"]);
    // Characters of one to four bytes, shifted so that each border falls inside one.
    for (index, lead) in ["", "a", "ab", "abc"].iter().enumerate() {
        for c in ['é', '漢', '😀'] {
            let text = format!("{lead}{}", c.to_string().repeat(30_000));
            let arguments = json!({ "text": text }).to_string();
            let name = format!("call-{index}-{}", c.to_string().repeat(300));
            std::fs::write(crib.path("arguments.json"), &arguments).unwrap();
            let ran = crib.run(&[
                "call",
                "echo",
                "@arguments.json",
                "--records",
                "records",
                "--set=results.max_inline=1000000",
            ]);
            assert_eq!((ran.code, ran.stdout.trim_end()), (Some(0), arguments.as_str()), "{}", ran.stderr);
            assert_eq!(crib.run(&["call", &name]).code, Some(1));
        }
    }
    assert_eq!(crib.records().len(), 24);
}

#[test]
fn many_large_calls_at_once_are_all_answered() {
    let runtime = Runtime::builder(toolcrib::Audit::off()).source(guest("echo")).build().unwrap();
    threads(2).block_on(async {
        let calls = (0..200).map(|number: usize| {
            let runtime = runtime.clone();
            let arguments = json!({"n": number, "text": "x".repeat(3000 + number * 50)}).to_string();
            tokio::spawn(async move {
                let result = runtime.call(ToolCall::new(number.to_string(), "echo", arguments.as_str())).await;
                assert_eq!((result.call_id.as_str(), &*result.content()), (number.to_string().as_str(), &*arguments));
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    });
}

#[test]
fn no_call_changes_a_grant() {
    let crib = Crib::with_guests(&["file_io"]);
    let write = Policy::default().allow(Permission::Write(crib.path("work")));
    let runtime =
        Runtime::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).policy(write).build().unwrap();
    let granted = || runtime.grant("file_io").unwrap().granted();
    let before = granted();
    threads(1).block_on(async {
        for arguments in [
            json!({"op": "write", "path": "tools.json", "text": "{\"tools\":[]}"}),
            json!({"op": "write", "path": "toolcrib.toml", "text": "[permissions]\nallow = [\"*\"]\n"}),
            json!({"op": "symlink", "path": "out", "to": "../tools"}),
            json!({"op": "list", "path": "out"}),
            json!({"op": "list", "path": "..", "allow-read": "/", "capabilities": {"files": "write"}}),
        ] {
            runtime.call(ToolCall::new("", "file_io", arguments.to_string())).await;
            assert_eq!(granted(), before, "{arguments}");
        }
        let outside = json!({"op": "list", "path": "out"}).to_string();
        let outside = runtime.call(ToolCall::new("", "file_io", outside)).await;
        assert!(outside.content().contains("error"), "{outside:?}");
    });
    assert!(!crib.path("toolcrib.toml").exists());
}
