//! Targets for sources: a manifest, an Agent Tool record, a server, a Markdown tool, a skill, a project and a component, with any
//! content. They
//! are read, checked and described; a component is also inspected and compiled. Nothing is executed.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use toolcrib::Runtime;
use toolcrib::policy::{Permission, Policy};
use toolcrib::source::{self, Severity};
use toolcrib_agent_tool::{Inventory, InventoryEntry, SchedulerPolicy};

use super::{Act, install};

/// Target for a `tools.json`.
pub(super) fn manifest(folder: &Path) -> Act {
    file(folder, "tools.json")
}

/// Target for an Agent Tool record.
pub(super) fn agent_tool(folder: &Path) -> Act {
    file(folder, "t.tool.json")
}

/// Target for the pinned tools of a remote server.
pub(super) fn server(folder: &Path) -> Act {
    file(folder, "t.mcp.json")
}

/// Target for a Markdown file with a script.
pub(super) fn markdown(folder: &Path) -> Act {
    file(folder, "t.md")
}

/// Target for a skill.
pub(super) fn skill(folder: &Path) -> Act {
    file(folder, "SKILL.md")
}

/// Target for the file of a project, with lists of tools and hooks.
pub(super) fn project(folder: &Path) -> Act {
    file(folder, "harness.md")
}

fn file(folder: &Path, name: &str) -> Act {
    install(folder);
    let (path, data) = (folder.join(name), folder.join("data"));
    fs::create_dir_all(&data).expect("a folder");
    Box::new(move |input| {
        fs::write(&path, input).expect("a source");
        if loads(&path) {
            let policy = Policy::default().allow(Permission::Write(data.clone()));
            describe(Runtime::builder(toolcrib::Audit::off()).source(&path).policy(policy).concurrency(1).build());
        }
    })
}

/// Target for a program: its imports are read, and then it is compiled.
pub(super) fn component(folder: &Path) -> Act {
    let (path, threads) = (folder.join("t.wasm"), super::threads());
    Box::new(move |input| {
        fs::write(&path, input).expect("a program");
        inspect(&path);
        if !loads(&path) {
            return;
        }
        let built = Runtime::builder(toolcrib::Audit::off()).source(&path).concurrency(1).build();
        if let Ok(runtime) = &built
            && let Err(refused) = threads.block_on(runtime.prepare("t"))
        {
            assert!(!refused.to_string().is_empty());
        }
        describe(built);
    })
}

/// Inspects a program. A program that is reported as pure imports no function.
fn inspect(path: &Path) {
    let about = match source::inspect(path) {
        Ok(about) => about,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let asks = about.asks.iter().flatten().flat_map(|asked| &asked.interfaces);
    let calls_nothing = asks.clone().all(|interface| interface.functions.is_empty());
    assert!(about.pure.is_none() || (about.asks.is_some() && calls_nothing));
    assert!(asks.count() <= 2000 && about.notes.len() < 30);
    assert!(serde_json::to_string(&about).is_ok());
}

/// Returns `true` if a source can be loaded. The load refuses only sources in which the check finds an error.
fn loads(path: &Path) -> bool {
    let problems = source::check(path);
    for problem in &problems {
        assert!(!problem.to_string().is_empty());
    }
    let sound = problems.iter().all(|problem| problem.severity == Severity::Warning);
    match source::load(path) {
        Ok(_) => true,
        Err(error) => {
            assert!(!sound, "the check passes a source that the load refuses: {error}");
            false
        }
    }
}

/// Describes the tools completely, as `inspect` and `export` do.
fn describe(built: Result<Runtime, toolcrib::Error>) {
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let entries = runtime.tools().map(|tool| {
        assert!(!tool.interface.rows().is_empty());
        let found = |what: &str| format!("`{}` has {what}", tool.name);
        let availability = runtime.availability(&tool.name).unwrap_or_else(|| panic!("{}", found("no availability")));
        let grant = runtime.grant(&tool.name).unwrap_or_else(|| panic!("{}", found("no grant")));
        let limits = runtime.limits(&tool.name).unwrap_or_else(|| panic!("{}", found("no limits")));
        let digest = tool.body.program().and_then(|program| source::fingerprint(program).ok());
        InventoryEntry { tool, grant, limits, digest: digest.map(|found| found.digest), availability }
    });
    let scheduler = runtime.scheduler();
    let policy =
        SchedulerPolicy { max_parallel: 1, max_calls: scheduler.calls, sibling_failure: scheduler.sibling_failure };
    let inventory = Inventory::new(entries, policy, SystemTime::UNIX_EPOCH);
    assert!(
        inventory.kinds().iter().all(|(_, records)| records.iter().all(|record| !record.to_string().contains('\n')))
    );
}
