//! Comparison of a release with the installed one: everything that is new, and the reasons to refuse it. Pure: files, clocks and
//! registries are read elsewhere.

use std::cmp::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use toolcrib_base::render::shell_word;

use crate::servers::ServerSource;

use super::lock::{LockedBundle, LockedTool, signer_name};
use super::refusal::{Code, Refusal};
use super::version;

/// Release as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Entry of the release in a lock, without grants.
    pub bundle: LockedBundle,
    /// Requests of all its tools, sorted.
    pub requests: Vec<String>,
}

/// Operation that a release is compared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A named source is installed.
    Install,
    /// An installed bundle is replaced by the present release of its source.
    Update,
    /// Exactly the bundles of a lock are installed.
    Locked,
}

impl Operation {
    /// Returns the name of the operation for machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Update => "update",
            Self::Locked => "locked",
        }
    }
}

/// Everything that the verdict on a release depends on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Operation that installs the release.
    pub operation: Operation,
    /// The release.
    pub candidate: &'a Candidate,
    /// Bundle of this name that the user agreed to, from the user's own records.
    pub pinned: Option<&'a LockedBundle>,
    /// Bundle of this name in the lock.
    pub locked: Option<&'a LockedBundle>,
    /// Other bundles of the lock.
    pub others: &'a [LockedBundle],
    /// The user's bundles that are available in addition to a folder's bundles.
    pub beside: &'a [LockedBundle],
    /// Tool name conflict with another source that is available in the current directory.
    pub conflict: Option<&'a str>,
    /// `true` if somebody signed the release whom the user does not trust.
    pub has_other_signers: bool,
    /// Time at which this user first saw the release.
    pub first_seen: Timestamp,
    /// Current time.
    pub now: Timestamp,
    /// Minimum age of a release.
    pub min_age: Duration,
    /// Refusals that the user overrides.
    pub accepted: &'a [Code],
    /// `true` for the user's bundles instead of a folder's bundles.
    pub is_global: bool,
}

/// Difference of a release from the installed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "each field is a name, and says of what")]
pub enum Change {
    /// The version.
    Version {
        /// Version before.
        from: Option<String>,
        /// Version after.
        to: Option<String>,
    },
    /// A capability that no tool requested before.
    NewCapability { capability: String },
    /// A capability that no tool requests any more.
    DroppedCapability { capability: String },
    /// A tool asks for a permission that it did not have, and that is granted to another tool.
    NewUse { tool: String, capability: String },
    /// A tool was added.
    NewTool { tool: String },
    /// A tool was removed.
    RemovedTool { tool: String },
    /// A tool has another name.
    RenamedTool {
        /// Name before.
        from: String,
        /// Name after.
        tool: String,
    },
    /// The description of a tool.
    DescriptionChanged { tool: String },
    /// The schema of a tool.
    SchemaChanged { tool: String },
    /// Another fact of the definition, such as a fixed argument, a limit, a rule about approval or an import.
    DefinitionChanged { tool: String },
    /// A signer beside those that are pinned. It is not pinned.
    AddedSigner { signer: String },
}

impl Change {
    /// Returns `true` for a permission that the user did not decide about.
    pub fn is_new_capability(&self) -> bool {
        matches!(self, Self::NewCapability { .. })
    }

    /// Returns `true` if a person reviews it before the release is installed.
    pub(crate) fn needs_review(&self) -> bool {
        !matches!(
            self,
            Change::Version { .. }
                | Change::DroppedCapability { .. }
                | Change::RemovedTool { .. }
                | Change::AddedSigner { .. }
        )
    }
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Differences from the installed release.
    pub changes: Vec<Change>,
    /// Reasons to refuse the release.
    pub refusals: Vec<Refusal>,
    /// Refusals that were overridden.
    pub overridden: Vec<Code>,
    /// `true` if exactly this release is installed.
    pub is_installed: bool,
    /// `true` if nothing of the name was installed by this user.
    pub is_new: bool,
    /// `true` if nobody vouches for a release that replaces another, because a lock names it or no signer is pinned, or for
    /// the grants in a lock.
    pub(crate) is_unvouched: bool,
}

impl Verdict {
    /// Returns `true` if a person agrees before the release is installed.
    pub fn needs_review(&self) -> bool {
        self.is_new || self.is_unvouched || !self.overridden.is_empty() || self.changes.iter().any(Change::needs_review)
    }

    /// Returns the name of the verdict for machines.
    pub fn as_str(&self) -> &'static str {
        match () {
            () if !self.refusals.is_empty() => "refused",
            () if self.is_installed => "installed",
            () if self.needs_review() => "review",
            () => "ready",
        }
    }
}

impl Case<'_> {
    /// Compares the release.
    pub fn verdict(&self) -> Verdict {
        let base = self.pinned.or(self.locked);
        let changes = match self.pinned {
            Some(pinned) if pinned.digest == self.candidate.bundle.digest => Vec::new(),
            pinned => changes(pinned, self.candidate),
        };
        let found = [
            self.wrong_digest(),
            self.name_taken(base),
            self.tool_taken(),
            base.and_then(|base| self.signer(base)),
            base.and_then(|base| self.version(base)),
            self.too_young(),
        ];
        let (overridden, refusals): (Vec<Refusal>, Vec<Refusal>) =
            found.into_iter().flatten().partition(|refusal| self.accepted.contains(&refusal.code));
        let is_same =
            |entry: Option<&LockedBundle>| entry.is_some_and(|entry| entry.digest == self.candidate.bundle.digest);
        Verdict {
            changes,
            refusals,
            overridden: overridden.into_iter().map(|refusal| refusal.code).collect(),
            is_installed: is_same(self.pinned) && is_same(self.locked),
            is_new: self.pinned.is_none(),
            is_unvouched: self.pinned.is_some_and(|pinned| {
                let is_locked = self.operation == Operation::Locked;
                let is_edited = |locked: &LockedBundle| !locked.has_grants_of(pinned);
                match pinned.digest == self.candidate.bundle.digest {
                    true => is_locked && self.locked.is_some_and(is_edited),
                    false => is_locked || pinned.signers.is_empty(),
                }
            }),
        }
    }

    /// Returns the entry for the lock once `granted` is agreed. Pins of signers are never widened without a refusal that the
    /// user overrode.
    pub fn entry(&self, granted: &[String]) -> LockedBundle {
        let Candidate { bundle, requests, .. } = self.candidate;
        let signers = match self.pinned.or(self.locked) {
            // The user agreed to these signers before.
            Some(_) if self.pinned.is_some_and(|it| it.digest == bundle.digest && !it.signers.is_empty()) => {
                self.pinned.map(|pinned| pinned.signers.clone()).unwrap_or_default()
            }
            Some(base) => {
                let both = bundle.signers.iter().filter(|signer| base.signers.contains(signer)).cloned();
                Some(both.collect()).filter(|both: &Vec<String>| !both.is_empty()).unwrap_or(bundle.signers.clone())
            }
            None => bundle.signers.clone(),
        };
        let (granted, declined) = requests.iter().cloned().partition(|request| granted.contains(request));
        LockedBundle { signers, granted, declined, ..bundle.clone() }
    }

    /// Returns the command that repeats the operation.
    fn command(&self) -> String {
        let LockedBundle { name, source, .. } = &self.candidate.bundle;
        let global = if self.is_global { " --global" } else { "" };
        match self.operation {
            Operation::Install => format!("toolcrib install {}{global}", shell_word(source)),
            Operation::Update => format!("toolcrib update {name}{global}"),
            Operation::Locked => format!("toolcrib install{global}"),
        }
    }

    fn wrong_digest(&self) -> Option<Refusal> {
        let LockedBundle { name, digest, .. } = &self.candidate.bundle;
        let locked = self.locked?;
        let global = if self.is_global { " --global" } else { "" };
        match self.operation {
            Operation::Locked if locked.digest != *digest => Some(Refusal::new(
                Code::WrongDigest,
                format!("the lock pins `{name}` to {}, and its source has {digest}", locked.digest),
                format!("toolcrib update {name}{global}"),
            )),
            Operation::Update | Operation::Install => {
                let pinned = self.pinned.filter(|pinned| pinned.digest != locked.digest)?;
                Some(Refusal::new(
                    Code::WrongDigest,
                    format!("the lock pins `{name}` to {}, and {} is installed", locked.digest, pinned.digest),
                    match locked.digest == *digest {
                        true => format!("toolcrib install{global}"),
                        false => format!("{} --accept={}", self.command(), Code::WrongDigest),
                    },
                ))
            }
            Operation::Locked => None,
        }
    }

    fn name_taken(&self, base: Option<&LockedBundle>) -> Option<Refusal> {
        let LockedBundle { name, source, .. } = &self.candidate.bundle;
        let base = base.filter(|base| repository(&base.source) != repository(source))?;
        // Two bundles with tools of the same names cannot be installed side by side.
        let fits = without(&self.candidate.bundle.tools, &base.tools).len() == self.candidate.bundle.tools.len();
        let cure = match self.operation {
            Operation::Install if fits => format!("{} --name={name}-2", self.command()),
            _ => format!("{} --accept={}", self.command(), Code::NameTaken),
        };
        let message = format!("`{name}` is installed from `{}`, and this release is from `{source}`", base.source);
        Some(Refusal::new(Code::NameTaken, message, cure))
    }

    fn tool_taken(&self) -> Option<Refusal> {
        let LockedBundle { name, tools, .. } = &self.candidate.bundle;
        let here = self.others.iter().map(|other| (other, self.is_global));
        // A bundle of the user with the same name is replaced in the folder.
        let beside = self.beside.iter().filter(|other| other.name != *name).map(|other| (other, true));
        let mut all =
            here.chain(beside).flat_map(|(other, global)| other.tools.iter().map(move |it| (it, other, global)));
        let taken = all.find(|(tool, ..)| tools.iter().any(|own| own.name == tool.name));
        let Some((tool, other, is_global)) = taken else {
            let conflict = self.conflict?;
            return Some(Refusal::new(Code::ToolTaken, conflict.to_owned(), "toolcrib list".to_owned()));
        };
        let (tool, other, global) = (&tool.name, &other.name, if is_global { " --global" } else { "" });
        let message = format!("its tool `{tool}` has the name of a tool of the installed bundle `{other}`");
        Some(Refusal::new(Code::ToolTaken, message, format!("toolcrib remove {other}{global}")))
    }

    fn signer(&self, base: &LockedBundle) -> Option<Refusal> {
        let LockedBundle { name, signers, version, .. } = &self.candidate.bundle;
        // The user agreed to this content, or is asked for agreement to what a lock names.
        let is_agreed = match (self.pinned, self.operation) {
            (Some(pinned), _) => pinned.digest == self.candidate.bundle.digest,
            (None, operation) => operation == Operation::Locked,
        };
        if is_agreed || base.signers.is_empty() || signers.iter().any(|signer| base.signers.contains(signer)) {
            return None;
        }
        let release = release(version.as_deref());
        let names = |signers: &[String]| signers.iter().map(|it| signer_name(it)).collect::<Vec<_>>().join("`, `");
        let before = names(&base.signers);
        let (code, found) = match signers.is_empty() {
            // An unverified signature proves nothing: anybody can attach one.
            true if self.has_other_signers => {
                (Code::SignatureMissing, "is signed, but by no signer whom you trust".to_owned())
            }
            true => (Code::SignatureMissing, "has no verified signature".to_owned()),
            false => (Code::SignerChanged, format!("is signed by `{}`", names(signers))),
        };
        let message = format!("the installed `{name}` is signed by `{before}`, and {release} {found}");
        Some(Refusal::new(code, message, format!("{} --accept={code}", self.command())))
    }

    fn version(&self, base: &LockedBundle) -> Option<Refusal> {
        let LockedBundle { name, digest, version, .. } = &self.candidate.bundle;
        let (before, after) = (base.version.as_deref(), version.as_deref());
        // A server has no releases: each list of its tools is the present one.
        if base.digest == *digest || ServerSource::is_named(&base.source) {
            return None;
        }
        let cure = |code: Code| format!("{} --accept={code}", self.command());
        if before == after {
            let message = format!(
                "{} of `{name}` was published again with other content: {digest} instead of {}",
                release(after),
                base.digest
            );
            return Some(Refusal::new(Code::TagMoved, message, cure(Code::TagMoved)));
        }
        let (before, after) = (before?, after?);
        match version::compare(after, before) {
            Some(Ordering::Less) => {
                let message = format!("version {after} of `{name}` is lower than the installed {before}");
                Some(Refusal::new(Code::Downgrade, message, cure(Code::Downgrade)))
            }
            _ => None,
        }
    }

    fn too_young(&self) -> Option<Refusal> {
        let LockedBundle { name, digest, version, .. } = &self.candidate.bundle;
        let LockedBundle { source, .. } = &self.candidate.bundle;
        // The tools of a server that changed can be used no more until they are agreed to.
        let is_served = ServerSource::is_named(source);
        if is_served || self.pinned.is_some_and(|pinned| pinned.digest == *digest) || self.min_age.is_zero() {
            return None;
        }
        // Every other time is the publisher's word: a release can be signed long before it is published.
        let seen = self.first_seen;
        let ready = seen.checked_add(self.min_age).unwrap_or(Timestamp::MAX);
        if self.now >= ready {
            return None;
        }
        let message = format!(
            "{} of `{name}` is younger than the minimum age: you first saw it at {seen:.0}, and it can be installed from {ready:.0}",
            release(version.as_deref())
        );
        Some(Refusal::new(Code::TooYoung, message, format!("{} --min-age=0", self.command())))
    }
}

/// Names a release by its version.
fn release(version: Option<&str>) -> String {
    version.map_or_else(|| "the release".to_owned(), |version| format!("version {version}"))
}

/// Returns the part of a source that stays when its tag changes: the reference without tag and digest, or the path.
fn repository(source: &str) -> &str {
    if !source.starts_with(crate::registries::SCHEME) {
        return source;
    }
    let source = source.split('@').next().unwrap_or(source);
    match source.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => source,
    }
}

fn changes(base: Option<&LockedBundle>, candidate: &Candidate) -> Vec<Change> {
    let release = &candidate.bundle;
    let mut changes = Vec::new();
    let known =
        |request: &String| base.is_some_and(|base| base.granted.contains(request) || base.declined.contains(request));
    let new = candidate.requests.iter().filter(|request| !known(request)).cloned();
    changes.extend(new.map(|capability| Change::NewCapability { capability }));
    let before = base.map_or(&[][..], |base| &base.tools);
    let (mut gone, mut added) = (without(before, &release.tools), without(&release.tools, before));
    added.retain(|tool| {
        let same = |old: &&LockedTool| old.description == tool.description && old.schema == tool.schema;
        let Some(at) = gone.iter().position(same) else { return true };
        let old = gone.remove(at);
        changes.push(Change::RenamedTool { from: old.name.clone(), tool: tool.name.clone() });
        if old.definition != tool.definition {
            changes.push(Change::DefinitionChanged { tool: tool.name.clone() });
        }
        false
    });
    changes.extend(added.into_iter().map(|tool| Change::NewTool { tool: tool.name.clone() }));
    for tool in &release.tools {
        let old = before.iter().find(|old| old.name == tool.name);
        let is_granted = |request: &&String| base.is_some_and(|base| base.granted.contains(request));
        let uses = tool.requests.iter().filter(is_granted);
        let uses = uses.filter(|request| old.is_none_or(|old| !old.requests.contains(request)));
        changes.extend(uses.map(|request| Change::NewUse { tool: tool.name.clone(), capability: request.clone() }));
        let Some(old) = old else { continue };
        if old.description != tool.description {
            changes.push(Change::DescriptionChanged { tool: tool.name.clone() });
        }
        if old.schema != tool.schema {
            changes.push(Change::SchemaChanged { tool: tool.name.clone() });
        }
        if old.definition != tool.definition {
            changes.push(Change::DefinitionChanged { tool: tool.name.clone() });
        }
    }
    changes.extend(gone.into_iter().map(|tool| Change::RemovedTool { tool: tool.name.clone() }));
    let Some(base) = base else { return changes };
    let dropped = base.granted.iter().filter(|request| !candidate.requests.contains(request)).cloned();
    changes.extend(dropped.map(|capability| Change::DroppedCapability { capability }));
    if !base.signers.is_empty() {
        let added = release.signers.iter().filter(|signer| !base.signers.contains(signer)).cloned();
        changes.extend(added.map(|signer| Change::AddedSigner { signer }));
    }
    if base.version != release.version {
        changes.push(Change::Version { from: base.version.clone(), to: release.version.clone() });
    }
    changes
}

/// Returns the tools of the first list with names that the second does not have.
fn without<'a>(tools: &'a [LockedTool], others: &[LockedTool]) -> Vec<&'a LockedTool> {
    tools.iter().filter(|tool| others.iter().all(|other| other.name != tool.name)).collect()
}
