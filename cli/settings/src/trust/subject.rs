//! Subject of trust: a tool source or a settings file, with its requests and its digest.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolcrib::policy::{ReviewedItem, SourceReview};
use toolcrib::source::digest;
use toolcrib_base::render::{counted, one_line};

use super::{ceilings, foremost, phrases, summary};

/// Maximum number of parts that are listed in full.
const MAX_ITEMS: usize = 200;

/// Content of a path that a person can trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Real path.
    pub path: PathBuf,
    /// Digest of everything that is reviewed, as `sha256:HEX`.
    pub digest: String,
    /// Parts with their requests, in the order of the file.
    pub items: Vec<Item>,
    /// `true` if the parts are tools, and everything that is reviewed.
    pub(crate) has_tools_alone: bool,
}

/// Tool, hook or setting of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Name of the tool, the hook with its event, or the setting.
    pub name: String,
    /// Digest of its definition.
    pub(crate) definition: String,
    /// Digest of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<String>,
    /// Capabilities, limits or values that trust grants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// Settings that ask or deny, each with one value. They count without trust, which grants none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) restrictions: Vec<String>,
    /// Digests of a skill's files, by their paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, String>,
    /// Requests without a name, in plain words. Trust grants none of them, so no record has them.
    #[serde(skip)]
    pub(crate) ceilings: Vec<String>,
}

impl Item {
    /// Creates a part without program, requests and restrictions.
    pub(crate) fn new(name: String, definition: String) -> Self {
        Self {
            name,
            definition,
            program: None,
            requests: Vec::new(),
            restrictions: Vec::new(),
            files: BTreeMap::new(),
            ceilings: Vec::new(),
        }
    }

    /// Creates a setting that counts once it is trusted.
    pub(crate) fn of_requests(name: String, requests: Vec<String>) -> Self {
        let definition = digest(requests.join("\n").as_bytes());
        Self { requests, ..Self::new(name, definition) }
    }

    /// Creates a setting that asks or denies.
    pub(crate) fn of_restrictions(name: String, restrictions: Vec<String>) -> Self {
        let definition = digest(restrictions.join("\n").as_bytes());
        Self { restrictions, ..Self::new(name, definition) }
    }

    fn asks(&self) -> bool {
        !self.requests.is_empty() || !self.ceilings.is_empty()
    }
}

impl Subject {
    /// Creates the subject of a settings file from its text and its settings.
    pub fn of_settings(path: PathBuf, text: &str, items: Vec<Item>) -> Self {
        Self { path, digest: digest(text.as_bytes()), items, has_tools_alone: false }
    }

    /// Lists the parts with their requests in plain words, one line each; parts with the same requests are named together.
    pub fn requests(&self) -> String {
        let (mut asking, quiet): (Vec<&Item>, Vec<&Item>) = self.items.iter().partition(|item| item.asks());
        asking.sort_by_key(|item| foremost(&item.requests));
        let mut groups: Vec<(Vec<String>, Vec<String>)> = Vec::new();
        for item in asking.iter().take(MAX_ITEMS) {
            let (name, mut requests) = (one_line(&item.name), phrases(&item.requests));
            requests.extend(item.ceilings.iter().cloned());
            match groups.iter_mut().find(|(_, others)| *others == requests) {
                Some((names, _)) => names.push(name),
                None => groups.push((vec![name], requests)),
            }
        }
        let mut lines = Vec::new();
        for (names, requests) in groups {
            lines.push(format!("  {}", names.join(", ")));
            lines.extend(requests.into_iter().map(|phrase| format!("    {phrase}")));
        }
        if let Some(more @ 1..) = asking.len().checked_sub(MAX_ITEMS) {
            let hidden = asking.iter().skip(MAX_ITEMS).flat_map(|item| &item.requests).map(String::as_str);
            lines.push(format!("  … and {more} more ({}), which --json lists", summary(hidden)));
        }
        if asking.is_empty() {
            lines.push("  nothing".to_owned());
        } else if !quiet.is_empty() {
            lines.push(format!("  {} without requests", counted(quiet.len() as u64, "other part")));
        }
        lines.join("\n") + "\n"
    }

    /// Returns `true` if the text of the requests names all of them.
    pub fn lists_all_requests(&self) -> bool {
        self.items.iter().filter(|item| item.asks()).count() <= MAX_ITEMS
    }

    /// Returns `true` if trust in the subject grants anything.
    pub fn has_requests(&self) -> bool {
        self.items.iter().any(|item| !item.requests.is_empty())
    }
}

impl From<SourceReview> for Subject {
    fn from(review: SourceReview) -> Self {
        let item = |item: ReviewedItem| {
            let ReviewedItem { name, event, definition, program, requests, files, requested, .. } = item;
            let name = event.map_or(name.clone(), |event| format!("hook {name} ({event})"));
            let ceilings = ceilings(&requested);
            Item { program, requests, files, ceilings, ..Item::new(name, definition) }
        };
        let SourceReview { path, digest, items, has_tools_alone, .. } = review;
        Self { path, digest, items: items.into_iter().map(item).collect(), has_tools_alone }
    }
}
