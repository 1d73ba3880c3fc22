//! Options for trust in sources and settings: digests for this run, and the records of `toolcrib trust`.

use std::cell::LazyCell;

use toolcrib::{Builder, Runtime};

use crate::render;
use crate::trust::{Item, TrustRecords, Trusted, is_access, summary};

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

    /// Prints one hint for each source with requests that are not granted because nobody trusts it.
    /// With a tool, only its requests count. Sources that request no access to anything of the user are left out.
    pub(crate) fn hint(&self, runtime: &Runtime, tool: Option<&str>) {
        let trusted = LazyCell::new(|| self.trusted().unwrap_or_default());
        for source in runtime.untrusted() {
            let requests = source.requests.iter().filter(|(name, _)| tool.is_none_or(|tool| tool == name));
            let requests: Vec<&str> = requests.map(|(_, request)| request.as_str()).collect();
            if !requests.iter().any(|request| is_access(request)) {
                continue;
            }
            let pending = summary(requests);
            let path = render::one_line(&render::from_here(&source.path).to_string_lossy());
            let word = render::shell_path(&source.path);
            let reason = match trusted.is_on_record(&source.path) {
                true => "has changed since it was trusted",
                false => "is not trusted",
            };
            render::hint(&format!(
                "`{path}` {reason}, so nothing is granted that only its trust grants ({pending}); review it with \
                 `toolcrib trust {word}`"
            ));
        }
    }
}
