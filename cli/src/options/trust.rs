//! Options for trust in sources and settings: digests for this run, and the records of `toolcrib trust`.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use toolcrib::tool::Trust;
use toolcrib::{Builder, Runtime};

use crate::render;
use crate::trust::{Item, TrustRecords, Trusted, is_missed, summary};

use super::{PERMISSIONS, state_folder};

/// File of the records in the state directory.
const RECORDS: &str = "trusted.json";

/// Trusted content.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TrustOptions {
    /// Grant everything that the source or settings file with this digest requests; `toolcrib trust PATH` shows requests
    /// and the digest, which is not that of a bundle; repeatable
    #[arg(long = "trust", value_name = "DIGEST", value_delimiter = ',', help_heading = PERMISSIONS)]
    digests: Vec<String>,
}

impl TrustOptions {
    /// Returns the records of `toolcrib trust`; `None` if the user has no home directory.
    pub(crate) fn records() -> Option<TrustRecords> {
        state_folder(RECORDS).map(TrustRecords::file)
    }

    /// Returns the content that is trusted in this run.
    ///
    /// # Errors
    ///
    /// The records cannot be read.
    pub(crate) fn trusted(&self) -> anyhow::Result<Trusted> {
        Trusted::read(&self.digests, Self::records().as_ref())
    }

    /// Passes the trusted content to a builder. `called` is the one tool that is called.
    pub(super) fn apply(&self, builder: Builder, trusted: &Trusted, called: Option<&str>) -> Builder {
        let builder = trusted.digests.iter().fold(builder, |builder, digest| builder.trust(digest));
        trusted.records.iter().fold(builder, |builder, record| {
            let builder = builder.trust_at(&record.path, &record.digest);
            let is_called = |item: &&Item| record.has_tools_alone && called == Some(item.name.as_str());
            match record.items.iter().find(is_called) {
                Some(item) => builder.trust_tool_at(&record.path, &item.name, &item.definition, item.program.clone()),
                None => builder,
            }
        })
    }

    /// Prints one hint for each untrusted source that is granted less for that reason: requests of its own that the user would
    /// miss without a hint, or permissions that settings files do not grant its tools (`withheld`). A source that has changed since
    /// it was trusted is named in any case. With a tool, only its requests count.
    pub(super) fn hint(&self, runtime: &Runtime, tool: Option<&str>, withheld: impl Fn(&Path) -> bool) {
        let trusted = LazyCell::new(|| self.trusted().unwrap_or_default());
        let pending: Vec<_> = runtime.untrusted().collect();
        // A digest that is that of no source is a mistake.
        let has_wrong_digest =
            !self.digests.is_empty() && !runtime.tools().any(|tool| tool.origin.trust == Trust::Reviewed);
        for source in untrusted_sources(runtime, tool) {
            let requests =
                pending.iter().filter(|pending| pending.path == *source).flat_map(|pending| &pending.requests);
            let mut of_tools: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (name, request) in requests.filter(|(name, _)| tool.is_none_or(|tool| tool == name)) {
                of_tools.entry(name).or_default().push(request);
            }
            let has_changed = trusted.is_on_record(&source);
            let misses_some = of_tools.values().any(|requests| is_missed(requests, tool.is_some()));
            let requests: Vec<&str> = of_tools.into_values().flatten().collect();
            let withheld = withheld(&source);
            if !has_changed && !misses_some && !withheld && !has_wrong_digest {
                continue;
            }
            let path = render::one_line(&render::from_here(&source).to_string_lossy());
            let word = render::shell_path(&source);
            let reason = match (has_changed, has_wrong_digest) {
                (true, _) => "has changed since it was trusted",
                (false, true) => "is not trusted, and its digest is none of `--trust`",
                (false, false) => "is not trusted",
            };
            let pending =
                format!("nothing is granted that only its trust grants ({})", summary(requests.iter().copied()));
            let effects = [
                withheld.then_some("settings files grant its tools nothing"),
                (!requests.is_empty()).then_some(pending.as_str()),
            ];
            let effects: Vec<&str> = effects.into_iter().flatten().collect();
            let effects =
                if effects.is_empty() { "its statements do not count".to_owned() } else { effects.join(", and ") };
            render::hint(&format!("`{path}` {reason}, so {effects}; review it with `toolcrib trust {word}`"));
        }
    }
}

/// Returns the sources of untrusted tools, or of one tool.
fn untrusted_sources(runtime: &Runtime, tool: Option<&str>) -> BTreeSet<Arc<Path>> {
    let tools = runtime.tools().filter(|it| tool.is_none_or(|tool| it.name == tool));
    tools.filter(|tool| tool.origin.trust == Trust::Stranger).filter_map(|tool| tool.origin.source.clone()).collect()
}
