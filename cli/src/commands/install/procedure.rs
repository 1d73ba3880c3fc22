//! Procedure of `install` and `update` for one bundle: fetch, compare, show, ask, and install. Nothing is locked while a
//! registry or a person is waited for; before the installation everything is compared again.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use serde_json::json;
use toolcrib::check_names;
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_packages::install::{AgreementOptions, ReleaseOptions};
use toolcrib_packages::install::{
    BundleSource, Case, Change, Code, Installation, Installer, LockFile, LockedBundle, Operation, Refusal, Release,
    fetch, installation, name,
};
use toolcrib_sources::options::sources_beside;

use super::agreement;
use super::review::Review;

/// Bundle that is to be installed.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) operation: Operation,
    pub(crate) source: BundleSource,
    /// Text of the source in the lock.
    pub(crate) text: String,
    /// Name in the lock; `None` for the release's own name.
    pub(crate) name: Option<String>,
    /// `true` if nothing may differ from the lock.
    pub(crate) is_frozen: bool,
}

/// Place, stores and options of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Procedure<'a> {
    pub(crate) place: &'a LockFile,
    /// Lock of bundles that are available in addition to the place's own bundles.
    pub(crate) other: Option<&'a LockFile>,
    pub(crate) installer: &'a Installer,
    pub(crate) options: &'a AgreementOptions,
    pub(crate) releases: &'a ReleaseOptions,
    pub(crate) min_age: Duration,
}

/// Entries of a name that the comparison depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entries {
    pinned: Option<Installation>,
    locked: Option<LockedBundle>,
    others: Vec<LockedBundle>,
    beside: Vec<LockedBundle>,
}

impl Entries {
    /// Lists the pinned signers.
    fn signers(&self) -> Vec<String> {
        // The signers in the lock are only claimed by its author.
        self.pinned.iter().flat_map(|pinned| pinned.bundle.signers.clone()).collect()
    }
}

/// End of a procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The release is installed now.
    Installed,
    /// The release was installed before.
    Unchanged,
    /// The release was refused, or the person did not agree.
    Refused,
}

impl Procedure<'_> {
    /// Installs bundles one after the other, and prints `done` after each. A bundle that fails does not keep the others from
    /// being installed.
    ///
    /// # Errors
    ///
    /// The only bundle failed, or standard output is closed.
    pub(crate) async fn perform_all(&self, orders: &[Order], done: &str) -> anyhow::Result<ExitCode> {
        let mut code = ExitCode::SUCCESS;
        for order in orders {
            match self.perform(order).await {
                Ok(End::Installed) => render::aside(done),
                Ok(End::Unchanged) => {}
                Ok(End::Refused) => code = ExitCode::FAILURE,
                Err(error) if !self.options.json && orders.len() == 1 => return Err(error),
                Err(error) => {
                    code = ExitCode::FAILURE;
                    self.report_failure(order, error)?;
                }
            }
        }
        Ok(code)
    }

    /// Reports a bundle that could not be installed.
    fn report_failure(&self, order: &Order, error: anyhow::Error) -> anyhow::Result<()> {
        let name = order.name.as_deref().unwrap_or(&order.text);
        if self.options.json {
            let object = json!({
                "name": order.name,
                "operation": order.operation.as_str(),
                "source": order.text,
                "verdict": "failed",
                "error": render::message(&error),
                "installing": false,
            });
            return render::print_json(&object.to_string());
        }
        let advice = error.downcast_ref::<Advice>().map(|advice| advice.hint().to_owned());
        let failed = format!("`{}` was not installed: {}", one_line(name), render::message(&error));
        let hint = advice.unwrap_or_else(|| "the other bundles are not affected".to_owned());
        render::explain(&Advice::new(failed, hint).into());
        Ok(())
    }

    /// Installs a bundle, unless the release is refused or the person does not agree.
    ///
    /// # Errors
    ///
    /// The source, the lock or the records cannot be used.
    async fn perform(&self, order: &Order) -> anyhow::Result<End> {
        let mut fetched = fetch(&order.source, self.releases).await?;
        let now = Timestamp::now();
        let first_seen = self.installer.records.first_seen(&fetched.release.digest, now)?;
        let named = order.name.as_deref().unwrap_or(&fetched.release.name);
        let name = name(named).map_err(|reason| anyhow!("`{named}`: {reason}; choose another with `--name`"))?;
        let entries = self.entries(&name)?;
        match entries.pinned.as_ref().filter(|pinned| pinned.bundle.digest == fetched.release.digest) {
            // These signatures were verified when the user agreed to this content.
            Some(pinned) if self.releases.signers.is_empty() => {
                fetched.release.signers.clone_from(&pinned.bundle.signers);
            }
            _ => fetched.verify(self.releases, &entries.signers()).await?,
        }
        let release = &fetched.release;
        let candidate = release.candidate(&name, &order.text);
        let conflict = conflict(&name, &release.file).await?;
        let case = Case {
            operation: order.operation,
            candidate: &candidate,
            pinned: entries.pinned.as_ref().map(|pinned| &pinned.bundle),
            locked: entries.locked.as_ref(),
            others: &entries.others,
            beside: &entries.beside,
            conflict: conflict.as_deref(),
            has_other_signers: release.has_other_signers,
            first_seen,
            now,
            // The lock was agreed to, by somebody and at some time: a machine sees its releases for the first time.
            min_age: if order.is_frozen { Duration::ZERO } else { self.min_age },
            accepted: &self.options.accept,
            is_global: self.place.is_global,
        };
        let mut verdict = case.verdict();
        // Permissions that the command names replace those that were granted before.
        let decides_anew = order.operation != Operation::Update && !self.options.grant.is_empty() || verdict.is_new;
        let undecided: Vec<String> = match decides_anew {
            true => candidate.requests.clone(),
            false => verdict.changes.iter().filter_map(new_capability).collect(),
        };
        let decided: Vec<String> = match case.pinned.filter(|_| !decides_anew) {
            Some(pinned) => pinned.granted.clone(),
            None => Vec::new(),
        };
        let before = self.stored(entries.pinned.as_ref(), &release.digest);
        let needs_review = verdict.needs_review() || decides_anew;
        let agreed = agreement::machine(self.options, &case, &undecided, order.is_frozen)?;
        // A digest on the command line that differs from the release's digest is a mistake, not a reason to ask.
        let can_ask = self.options.digests.is_empty() && agreement::can_ask(self.options, order.is_frozen);
        let can_agree = agreed.is_some() || can_ask;
        let is_agreed = case.pinned.is_some_and(|pinned| pinned.digest == candidate.bundle.digest);
        if order.is_frozen && is_agreed && verdict.refusals.is_empty() {
            verdict.refusals.extend(differs(&case, &decided));
        }
        if needs_review && !can_agree && verdict.refusals.is_empty() {
            verdict.refusals.push(self.unanswered(order, &candidate.bundle));
        }
        if order.is_frozen && !is_agreed && verdict.refusals.is_empty() {
            let granted = [decided.clone(), agreed.clone().unwrap_or_default()].concat();
            verdict.refusals.extend(differs(&case, &granted));
        }
        let name_flag = order.name.as_ref().filter(|_| order.operation == Operation::Install);
        let name_flag = name_flag.map(|name| ("name", render::shell_word(name)));
        let flags: Vec<_> = name_flag.into_iter().chain(self.options.flags()).chain(self.releases.flags()).collect();
        verdict.refusals.iter_mut().for_each(|refusal| refusal.add_flags(&flags));
        let review = Review { release, case: &case, verdict: &verdict, before: before.as_ref(), undecided: &undecided };
        let is_whole = entries.locked.as_ref().is_some_and(|locked| order.is_frozen || *locked == case.entry(&decided));
        let is_stored = verdict.is_installed && self.installer.bundles.has(&release.digest);
        let is_complete = is_whole && is_stored && !decides_anew;
        if self.options.json {
            let mut object = review.json();
            object["installing"] = json!(verdict.refusals.is_empty() && !is_complete);
            render::print_json(&object.to_string())?;
        } else if !(is_complete && order.is_frozen) {
            render::print_screen(&review.text())?;
        }
        if !verdict.refusals.is_empty() {
            self.report(&verdict.refusals);
            return Ok(End::Refused);
        }
        if is_complete {
            return Ok(End::Unchanged);
        }
        let agreed = match (needs_review, agreed) {
            (false, _) => Vec::new(),
            (true, Some(granted)) => granted,
            (true, None) => match agreement::ask(&name, &undecided).await {
                Some(granted) => granted,
                None => {
                    render::aside("nothing was changed");
                    return Ok(End::Refused);
                }
            },
        };
        let entry = case.entry(&[decided, agreed].concat());
        if needs_review && !self.options.json {
            let granted: Vec<String> = entry.granted.iter().map(|request| one_line(request)).collect();
            let granted = if granted.is_empty() { "no permission".to_owned() } else { granted.join(", ") };
            render::aside(&format!("granted: {granted}"));
        }
        self.install(&entries, release, entry, order.is_frozen)
    }

    fn entries(&self, name: &str) -> anyhow::Result<Entries> {
        let lock = self.place.read()?;
        let locked = lock.bundle(name).cloned();
        let all = self.installer.records.read()?;
        let digest = locked.as_ref().map(|locked| locked.digest.as_str());
        let pinned = installation(&all, self.place, name, digest).cloned();
        let others = lock.bundles.into_iter().filter(|other| other.name != name).collect();
        let beside = self.other.map_or(Ok(Vec::new()), |other| anyhow::Ok(other.read()?.bundles))?;
        Ok(Entries { pinned, locked, others, beside })
    }

    /// Installs a release, unless the entries that it was compared with changed meanwhile.
    fn install(
        &self,
        entries: &Entries,
        release: &Release,
        entry: LockedBundle,
        keeps_lock: bool,
    ) -> anyhow::Result<End> {
        let lock = self.installer.records.lock()?;
        let now = self.entries(&entry.name)?;
        if now.locked.as_ref() == Some(&entry) && now.pinned.as_ref().is_some_and(|pinned| pinned.bundle == entry) {
            // Another process installed the same.
            self.installer.bundles.store(&release.file, &release.digest)?;
            return Ok(End::Installed);
        }
        let is_own = |name: &str| entry.tools.iter().any(|own| own.name == name);
        let beside = now.beside.iter().filter(|other| other.name != entry.name);
        let takes = now.others.iter().chain(beside).flat_map(|other| &other.tools).any(|tool| is_own(&tool.name));
        if now.pinned != entries.pinned || now.locked != entries.locked || takes {
            let message = format!("`{}` was changed by another process meanwhile; nothing was changed", entry.name);
            return Err(Advice::new(message, "run the command again").into());
        }
        self.installer.install(&lock, self.place, release, entry, keeps_lock)?;
        Ok(End::Installed)
    }

    /// Reads the installed release for a difference. Without it, the new texts are shown whole.
    fn stored(&self, pinned: Option<&Installation>, digest: &str) -> Option<Release> {
        let pinned = pinned.filter(|pinned| pinned.bundle.digest != digest)?;
        let file = self.installer.bundles.file(&pinned.bundle.digest);
        let stored = Release::read(&file, &BundleSource::File(file.clone())).ok()?;
        (stored.digest == pinned.bundle.digest).then_some(stored)
    }

    /// Refusal of a release that nobody agreed to.
    fn unanswered(&self, order: &Order, bundle: &LockedBundle) -> Refusal {
        let global = if self.place.is_global { " --global" } else { "" };
        let LockedBundle { name, digest, .. } = bundle;
        let command = match order.operation {
            Operation::Install => {
                format!("toolcrib install {}", render::shell_word(&order.text))
            }
            Operation::Update => format!("toolcrib update {name}"),
            Operation::Locked if order.is_frozen => "toolcrib install --frozen".to_owned(),
            Operation::Locked => "toolcrib install".to_owned(),
        };
        let reason = match () {
            () if !self.options.digests.is_empty() => "and no `--trust` digest matches this bundle",
            () if order.is_frozen => "and --frozen never asks",
            () => "and no terminal is available to ask",
        };
        let message = format!("`{name}` needs your agreement, {reason}");
        Refusal::new(Code::NeedsReview, message, format!("{command}{global} --trust={digest}"))
    }

    fn report(&self, refusals: &[Refusal]) {
        for refusal in refusals {
            render::refusal(&format!("{} ({})", refusal.message, refusal.code));
            render::hint(&format!("{}: {}", refusal.advice(), refusal.cure));
        }
    }
}

/// Describes a tool name conflict with another source that is available in the current directory. A source that cannot be
/// loaded has no names.
async fn conflict(name: &str, file: &Path) -> anyhow::Result<Option<String>> {
    let (name, file) = (name.to_owned(), file.to_owned());
    let check = move || {
        let mut sources = sources_beside(&name)?;
        sources.retain(|source| check_names(&[source]).is_ok());
        if check_names(&sources).is_err() {
            // The conflict is not with this release.
            return Ok(None);
        }
        sources.push(file);
        Ok(check_names(&sources).err().map(|error| render::message(&error.into())))
    };
    tokio::task::spawn_blocking(check).await?
}

fn new_capability(change: &Change) -> Option<String> {
    match change {
        Change::NewCapability { capability } => Some(capability.clone()),
        _ => None,
    }
}

/// Returns a refusal if a release's entry differs from the lock entry. A machine may verify fewer signers than the lock
/// names.
fn differs(case: &Case<'_>, granted: &[String]) -> Option<Refusal> {
    let locked = case.locked?;
    let LockedBundle { name, .. } = locked;
    let entry = LockedBundle { signers: locked.signers.clone(), ..case.entry(granted) };
    if entry == *locked {
        return None;
    }
    let part = match () {
        () if entry.tools != locked.tools => "its tools",
        () if entry.version != locked.version => "its version",
        () if (&entry.granted, &entry.declined) != (&locked.granted, &locked.declined) => "its granted permissions",
        () => "its source",
    };
    let global = if case.is_global { " --global" } else { "" };
    let message = format!("the entry of `{name}` in the lock differs from the release in {part}");
    Some(Refusal::new(Code::LockDiffers, message, format!("toolcrib install{global}")))
}
