//! Trust in the sources of a runtime: vouched for by the operator, or reviewed by a person and pinned by a digest. Without
//! either, a source is a stranger's, and its requests are granted only as far as the policy allows them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Severity;
use crate::policy::{ReviewedItem, SourceReview, named_requests, source_id, withhold};
use crate::source::{Diagnostic, LoadedSource};
use crate::tool::{Tool, Trust};

/// Requests of a source that is not trusted.
#[derive(Debug)]
pub(super) struct UntrustedSource {
    pub(super) path: PathBuf,
    /// Named requests, each with the tool or hook that has it.
    pub(super) requests: Vec<(String, String)>,
}

/// Digest of a reviewed tool's definition, and of its program if the definition does not contain it.
type ReviewedTool = (String, Option<String>);

/// Part of the requests of reviewed content that is granted: capabilities as [`named_requests`] lists them, or `None` for all.
type GrantedPart = Option<HashSet<String>>;

/// Sources that are trusted.
#[derive(Debug, Default)]
pub(super) struct TrustedSources {
    /// Paths that the operator vouches for, whatever their content.
    vouched: HashSet<PathBuf>,
    /// Digests of reviewed content, wherever it is.
    digests: HashSet<String>,
    /// Digests of reviewed content by the real path of its source, each with the granted part of its requests.
    pins: HashMap<PathBuf, HashMap<String, GrantedPart>>,
    /// Reviewed tools by the real path of their source and by their name.
    tools: HashMap<PathBuf, HashMap<String, ReviewedTool>>,
}

impl TrustedSources {
    /// Vouches for a source.
    pub(super) fn vouch(&mut self, path: PathBuf) {
        self.vouched.insert(path);
    }

    /// Trusts reviewed content, at one path or everywhere.
    pub(super) fn pin(&mut self, path: Option<&Path>, digest: String) {
        match path {
            Some(path) => {
                self.pins.entry(source_id(path).to_path_buf()).or_default().insert(digest, None);
            }
            None => {
                self.digests.insert(digest);
            }
        }
    }

    /// Trusts reviewed content at one path for a part of its requests. Content that is trusted as a whole stays so.
    pub(super) fn pin_part(&mut self, path: &Path, digest: String, granted: HashSet<String>) {
        self.pins.entry(source_id(path).to_path_buf()).or_default().entry(digest).or_insert(Some(granted));
    }

    /// Trusts a reviewed tool of the source at one path, where it is the only tool that is loaded.
    pub(super) fn pin_tool(&mut self, path: &Path, name: String, reviewed: ReviewedTool) {
        self.tools.entry(source_id(path).to_path_buf()).or_default().insert(name, reviewed);
    }

    /// Returns `true` if, with only this tool called, the trust in a source depends on the digest of all its content.
    pub(super) fn reviews_whole(&self, id: &Path, name: &str) -> bool {
        !self.digests.is_empty() || (self.pins.contains_key(id) && self.reviewed_tool(id, name).is_none())
    }

    /// Returns `true` if, with only this tool called, the trust in a source depends on the tool alone.
    pub(super) fn reviews_tool(&self, id: &Path, name: &str) -> bool {
        self.digests.is_empty() && self.reviewed_tool(id, name).is_some()
    }

    fn reviewed_tool(&self, id: &Path, name: &str) -> Option<&ReviewedTool> {
        self.tools.get(id)?.get(name)
    }

    /// Sets the trust in the tools and hooks of a loaded source, which may lack all tools but the `only` one. A source
    /// that cannot be reviewed is not trusted, with a warning.
    ///
    /// Returns the requests of a source that is not trusted, if it has any.
    pub(super) fn apply(
        &self,
        path: &Path,
        id: &Path,
        loaded: &mut LoadedSource,
        only: Option<&str>,
    ) -> Option<UntrustedSource> {
        if self.vouched.contains(path) {
            tools(loaded).for_each(|tool| tool.origin.trust = Trust::Operator);
            return None;
        }
        if only.is_some_and(|name| self.reviews_tool(id, name) && self.trust_tool(path, id, loaded, name)) {
            return None;
        }
        if let Some((review, granted)) = self.matching_review(path, id, loaded) {
            for tool in tools(loaded) {
                tool.origin.trust = Trust::Reviewed;
                tool.origin.pin = review.program(tool).map(Arc::from);
                granted.iter().for_each(|granted| withhold(tool, granted));
            }
            return None;
        }
        let requests = tools(loaded).flat_map(|tool| {
            named_requests(tool).into_iter().map(|request| (tool.name.clone(), request)).collect::<Vec<_>>()
        });
        let requests: Vec<_> = requests.collect();
        (!requests.is_empty()).then(|| UntrustedSource { path: id.to_path_buf(), requests })
    }

    /// Trusts a tool that is as it was reviewed; returns `false` if the source has none, or another.
    fn trust_tool(&self, path: &Path, id: &Path, loaded: &mut LoadedSource, name: &str) -> bool {
        let Some((definition, program)) = self.reviewed_tool(id, name) else { return false };
        let Some(at) = loaded.tools.iter().position(|tool| tool.name == name && tool.unusable.is_none()) else {
            return false;
        };
        let is_as_reviewed = ReviewedItem::of_tool(path, &loaded.tools[at], loaded)
            .is_ok_and(|found| found.definition == *definition && found.program == *program);
        if is_as_reviewed {
            let origin = &mut loaded.tools[at].origin;
            origin.trust = Trust::Reviewed;
            origin.pin = program.as_deref().map(Arc::from);
        }
        is_as_reviewed
    }

    /// Reviews a loaded source and returns the review if its digest is trusted, with the part that is granted.
    fn matching_review(
        &self,
        path: &Path,
        id: &Path,
        loaded: &mut LoadedSource,
    ) -> Option<(SourceReview, GrantedPart)> {
        let at_path = if self.pins.is_empty() { None } else { self.pins.get(id) };
        if self.digests.is_empty() && at_path.is_none() {
            return None;
        }
        let review = match SourceReview::of(path, loaded) {
            Ok(review) => review,
            Err(error) => {
                let message = format!("it is not trusted, because it cannot be reviewed: {error}");
                let path = path.to_path_buf();
                loaded.warnings.push(Diagnostic { severity: Severity::Warning, path, place: None, message });
                return None;
            }
        };
        let part = match self.digests.contains(&review.digest) {
            true => None,
            false => at_path?.get(&review.digest)?.clone(),
        };
        Some((review, part))
    }
}

/// Lists the tools and the hooks of a source.
fn tools(loaded: &mut LoadedSource) -> impl Iterator<Item = &mut Tool> {
    loaded.tools.iter_mut().chain(loaded.hooks.iter_mut().map(|hook| &mut hook.tool))
}
