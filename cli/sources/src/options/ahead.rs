//! Compilation of tools ahead of their first call.

use std::time::Duration;

use anyhow::Context;
use futures::stream::{Stream, StreamExt, TryStreamExt};
use toolcrib::{Availability, Runtime};
use toolcrib_base::progress::{self, Underway};
use toolcrib_base::render;

use crate::staleness;

use super::{MAX_WARNINGS, Sources};

/// Maximum time for all tools together, unless `--strict` needs each. The programs of a stranger's folder, each within its own limit,
/// could take hours.
const MAX_AHEAD: Duration = Duration::from_mins(2);

impl Sources {
    /// Compiles all tools concurrently that are not in the cache, and the hook interpreter, ahead of the first call.
    /// With `--strict` it also loads the cached tools. Shows a progress bar if that takes long, or with `is_announced`
    /// a line where there is no terminal. A tool with a program that cannot be compiled is disabled with a warning. A
    /// tool with a program older than its sources gets a warning too. After `MAX_AHEAD`, the other tools are left to
    /// their first calls.
    ///
    /// # Errors
    ///
    /// Fails if hooks have no interpreter or, with `--strict`, if a tool cannot be compiled.
    pub async fn prepare(&self, runtime: &Runtime, is_announced: bool) -> anyhow::Result<()> {
        // The options of one client change nothing about the programs.
        if self.client.is_none() {
            staleness::warn(runtime.tools());
        }
        let usable = runtime.tools().filter(|tool| tool.unusable.is_none());
        let names: Vec<String> = usable.map(|tool| tool.name.clone()).collect();
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        let bar = progress::counted("preparing tools", names.len());
        let underway = Underway::on(&bar);
        let is_strict = self.strict;
        let limit = if is_strict { Duration::MAX } else { MAX_AHEAD };
        let prepared = within(limit, at_once, names, |name| {
            let (runtime, bar, underway) = (runtime.clone(), bar.clone(), underway.clone());
            tokio::spawn(async move {
                let work = underway.during(render::one_line(&name), prepare_tool(&runtime, &name, is_strict));
                let prepared = work.await.inspect(|()| bar.inc(1));
                prepared.map_err(|error| (name, error))
            })
        })
        .map(|task| match task.context("cannot prepare a tool")? {
            Err((_, error)) if self.strict => Err(anyhow::Error::from(error)),
            prepared => Ok(prepared.err()),
        })
        .try_filter_map(|failed| std::future::ready(Ok(failed)))
        .try_collect::<Vec<_>>();
        let all = async {
            let failed = prepared.await?;
            underway.during("the interpreter of scripts".to_owned(), runtime.prepare_hooks()).await?;
            anyhow::Ok(failed)
        };
        let line = || {
            let (ready, all) = (bar.position(), render::counted(bar.length().unwrap_or_default(), "tool"));
            is_announced.then(|| format!("info: {}; {ready} of {all} ready", bar.message()))
        };
        let mut failed = progress::announced(&bar, all, line).await?;
        failed.sort_by(|(one, _), (other, _)| one.cmp(other));
        let left = bar.length().unwrap_or_default().saturating_sub(bar.position() + failed.len() as u64);
        if left > 0 {
            let (left, minutes) = (render::counted(left, "tool"), MAX_AHEAD.as_secs() / 60);
            render::hint(&format!("{left} not compiled within {minutes} minutes: each is compiled at its first call"));
        }
        for (name, error) in failed.iter().take(MAX_WARNINGS) {
            let then = match runtime.availability(name) {
                Some(Availability::Unusable { .. }) => "the tool is disabled",
                // The system failed, not the program.
                _ => "the next call retries",
            };
            render::warning(&format!("tool {name:?}: {error}; {then}"));
        }
        Ok(())
    }
}

/// Compiles a tool that is not in the cache, or loads any tool with `is_strict`, which tells whether its code can be used.
async fn prepare_tool(runtime: &Runtime, name: &str, is_strict: bool) -> Result<(), toolcrib::Error> {
    if is_strict { runtime.prepare(name).await } else { runtime.compile(name).await }
}

/// Performs a piece of work for each name, `at_once` at a time, until the time is over: then no further one begins, and those that
/// run are not awaited.
fn within<N, F: Future>(
    limit: Duration,
    at_once: usize,
    names: impl IntoIterator<Item = N>,
    work: impl Fn(N) -> F,
) -> impl Stream<Item = F::Output> {
    futures::stream::iter(names).map(work).buffer_unordered(at_once).take_until(tokio::time::sleep(limit))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn no_work_begins_after_the_time_is_over() {
        let begun = AtomicUsize::new(0);
        let work = |number: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            async move { if number < 3 { number } else { std::future::pending().await } }
        };
        let done: Vec<usize> = within(Duration::from_millis(200), 2, 0..100, work).collect().await;
        assert_eq!(done, [0, 1, 2]);
        assert_eq!(begun.load(Ordering::Relaxed), 5, "two at a time");
    }
}
