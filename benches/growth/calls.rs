//! Costs by the number of calls at once, all together: further calls than the limit of concurrent ones wait for a permit.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tempfile::TempDir;
use toolcrib::{Audit, Runtime, Scheduler, ToolCall};

use super::curve::{Axis, Unit, least};
use super::{cache, guest, tokio};

const SIZES: [usize; 7] = [1, 10, 100, 1_000, 2_000, 4_000, 10_000];
/// Maximum number of calls of one step, unless an embedder raises it.
const MAX_STEP: usize = 128;
const STEPS: [usize; 6] = [1, 4, 12, 32, 64, MAX_STEP];

pub(crate) fn axis() -> Axis {
    let [plain, logged, step] = ["no log", "with their records", "in one step, with their records"];
    let mut axis = Axis::new("Calls at once", "calls at once, time of all", Unit::Count, [plain, logged, step]);
    let (tokio, folder) = (tokio(), TempDir::new().expect("a folder"));
    let scheduler = Scheduler { queue: SIZES[SIZES.len() - 1], ..Scheduler::default() };
    let build = |audit| {
        let builder = Runtime::builder(audit).source(guest("echo")).scheduler(scheduler);
        builder.compile_cache(cache()).build().expect("a runtime")
    };
    let (without, with) = (build(Audit::off()), build(Audit::folder(folder.path())));
    for calls in SIZES {
        axis.add(plain, calls, at_once(&tokio, &without, calls));
        axis.add(logged, calls, at_once(&tokio, &with, calls));
    }
    for calls in STEPS {
        axis.add(step, calls, in_one_step(&tokio, &with, calls));
    }
    axis
}

fn echo(number: usize) -> ToolCall {
    ToolCall::new(format!("call-{number}"), "echo", r#"{"text":"hello"}"#)
}

/// Measures this many calls, each a task.
fn at_once(tokio: &tokio::runtime::Runtime, runtime: &Runtime, calls: usize) -> Duration {
    let runtime = Arc::new(runtime.clone());
    least(|| {
        let tasks = (0..calls).map(|number| {
            let runtime = runtime.clone();
            tokio.spawn(async move { runtime.call(echo(number)).await.is_error() })
        });
        let failed = tokio.block_on(join_all(tasks.collect::<Vec<_>>()));
        assert!(failed.into_iter().all(|failed| !failed.expect("no panic")));
    })
}

/// Measures one step with this many calls.
fn in_one_step(tokio: &tokio::runtime::Runtime, runtime: &Runtime, calls: usize) -> Duration {
    let session = runtime.session();
    least(|| {
        tokio.block_on(async {
            let mut step = session.step((0..calls).map(echo).collect());
            while let Some(result) = step.next().await {
                assert!(!result.is_error(), "{}", result.line());
            }
        });
    })
}
