//! Options for trust in sources and settings: digests for this run, and the records of `toolcrib trust`.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib::tool::Trust;
use toolcrib::{Builder, Runtime};
use toolcrib_base::headings::PERMISSIONS;
use toolcrib_base::render;

use crate::config;
use crate::instructions;
use crate::subjects;
use crate::trust::{Item, TrustRecords, Trusted, is_missed, summary};

/// Prefix of a digest, and the number of hexadecimal digits.
const PREFIX: &str = "sha256:";
const DIGITS: usize = 64;

/// Trusted content.
#[derive(Debug, Clone, clap::Args)]
pub struct TrustOptions {
    /// Grant everything that the source or settings file with this digest requests; `toolcrib trust PATH` shows requests
    /// and the digest, which differs from the digest of a bundle; repeatable
    #[arg(long = "trust", value_name = "DIGEST", value_delimiter = ',', value_parser = digest, help_heading = PERMISSIONS)]
    digests: Vec<String>,
}

impl TrustOptions {
    /// Returns the content that is trusted in this run.
    ///
    /// # Errors
    ///
    /// The records cannot be read.
    pub fn trusted(&self) -> anyhow::Result<Trusted> {
        Trusted::read(&self.digests, TrustRecords::of_user().as_ref())
    }

    /// Warns about each digest that no source, no settings file and no instructions have.
    pub fn warn_about_unused(&self, sources: &[PathBuf]) {
        if self.digests.is_empty() {
            return;
        }
        let files = config::default_file().into_iter().chain(instructions::default_file());
        let paths = sources.iter().cloned().chain(files);
        let known: Vec<String> = paths.filter_map(|path| Some(subjects::read(&path).ok()?.digest)).collect();
        for digest in self.digests.iter().filter(|digest| !known.contains(digest)) {
            render::warning(&format!(
                "`--trust={digest}`: no source and no settings file here has this digest, so it trusts nothing"
            ));
        }
    }

    /// Passes the trusted content to a builder. `called` is the one tool that is called.
    pub fn apply(&self, builder: Builder, trusted: &Trusted, called: Option<&str>) -> Builder {
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
    pub fn hint(&self, runtime: &Runtime, tool: Option<&str>, withheld: impl Fn(&Path) -> bool) {
        let trusted = LazyCell::new(|| self.trusted().unwrap_or_default());
        let pending: Vec<_> = runtime.untrusted().collect();
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
            if !has_changed && !misses_some && !withheld {
                continue;
            }
            let path = render::one_line(&render::from_here(&source).to_string_lossy());
            let word = render::shell_path(&source);
            let reason = if has_changed { "has changed since it was trusted" } else { "is not trusted" };
            let pending =
                format!("requests that need its trust are not granted ({})", summary(requests.iter().copied()));
            let effects = [
                withheld.then_some("settings files grant its tools nothing"),
                (!requests.is_empty()).then_some(pending.as_str()),
            ];
            let effects: Vec<&str> = effects.into_iter().flatten().collect();
            let effects =
                if effects.is_empty() { "its declarations are ignored".to_owned() } else { effects.join(", and ") };
            render::hint(&format!("`{path}` {reason}, so {effects}; review it with `toolcrib trust {word}`"));
        }
    }
}

/// Parses a digest; its prefix may be missing.
fn digest(text: &str) -> Result<String, String> {
    let hex = text.strip_prefix(PREFIX).unwrap_or(text).to_lowercase();
    match hex.len() == DIGITS && hex.chars().all(|c| c.is_ascii_hexdigit()) {
        true => Ok(format!("{PREFIX}{hex}")),
        false => {
            Err(format!("a digest is `{PREFIX}` and {DIGITS} hexadecimal digits, as `toolcrib trust PATH` shows it"))
        }
    }
}

/// Returns the sources of all untrusted tools, or of one tool.
fn untrusted_sources(runtime: &Runtime, tool: Option<&str>) -> BTreeSet<Arc<Path>> {
    let tools = runtime.tools().filter(|it| tool.is_none_or(|tool| it.name == tool));
    tools.filter(|tool| tool.origin.trust == Trust::Stranger).filter_map(|tool| tool.origin.source.clone()).collect()
}
