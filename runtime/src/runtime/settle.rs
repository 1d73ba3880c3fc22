//! What is settled for a tool before its first call: its checks, its grant, its limits, and whether it can be called at all.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::audit::Redactions;
use crate::call::{Behavior, Decision, Reason};
use crate::error::Error;
use crate::keyvalue::KeyValue;
use crate::pipeline::{Programs, Ready};
use crate::policy::{Allowed, Folder, Grant, Location, Mounts, Protected, Rule};
use crate::registry::Registry;
use crate::results::Results;
use crate::schema::Input;
use crate::source::{self, Diagnostic, Severity};
use crate::tool::{Access, Body, Enablement, FileRequest, Format, Origin, Tool, Unusable, Visibility};

use super::builder::Builder;

/// For whom a runtime is: its tags, and the model that is shown its tools, as far as they are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Audience {
    /// The tags of the run.
    pub(super) tags: BTreeSet<String>,
    /// The model's name, where there is a model.
    pub(super) model: Option<String>,
    /// What the model's server can do, where that is known.
    pub(super) provider: Option<BTreeSet<String>>,
}

impl Audience {
    /// Why a tool is not for it: the field of the tool's record that says so, and the reason in words.
    fn excludes(&self, enablement: &Enablement) -> Option<(&'static str, String)> {
        let Enablement { required_tags, forbidden_tags, models, provider, .. } = enablement;
        if let Some(tag) = required_tags.iter().find(|tag| !self.tags.contains(*tag)) {
            return Some(("required_tags", format!("the tool needs the tag `{tag}`, which this run does not have")));
        }
        if let Some(tag) = forbidden_tags.iter().find(|tag| self.tags.contains(*tag)) {
            return Some(("forbidden_tags", format!("the tool is not for runs with the tag `{tag}`")));
        }
        if let Some(model) = self.model.as_ref().filter(|_| !models.is_empty())
            && !models.iter().any(|pattern| pattern.is_match(model))
        {
            let wanted: Vec<_> = models.iter().map(|pattern| format!("`{}`", pattern.as_str())).collect();
            return Some(("models", format!("the tool is for the models {}, not for `{model}`", wanted.join(", "))));
        }
        let can = self.provider.as_ref()?;
        let missing = provider.iter().find(|ability| !can.contains(*ability))?;
        Some(("provider", format!("the tool needs a server with `{missing}`")))
    }
}

impl Builder {
    /// Keeps a folder or file of the host's apart from every grant: no tool gets `least` access to a folder that is, holds
    /// or lies in it, under any name. `what` it is stands in the error. The audit log, the compile cache, kept results and
    /// kept values are kept apart without it.
    #[must_use]
    pub fn reserve(mut self, what: impl Into<String>, path: impl Into<PathBuf>, least: Access) -> Self {
        self.reserved.push((what.into(), path.into(), least));
        self
    }

    /// Keeps tools from writing, replacing or moving a file or folder inside what they are granted, such as settings that
    /// later sessions follow. The sources and their programs are protected without it, and so are the names of which
    /// [`settled_by`](crate::policy::settled_by) tells.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.push(path.into());
        self
    }

    /// Settles every tool, and warns of each that turns out to be unusable.
    ///
    /// # Errors
    ///
    /// See [`ready`](Self::ready).
    pub(super) fn settled(
        &self,
        tools: &mut [Tool],
        allowed: &Allowed,
        kept: &[Kept],
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<Vec<Ready>, Error> {
        let defers = tools.iter().filter(|tool| tool.unusable.is_none()).count() > self.defer_above;
        let mut programs = Programs::default();
        let mut ready = Vec::with_capacity(tools.len() + 4);
        for tool in tools {
            let was_usable = tool.unusable.is_none();
            ready.push(self.ready(tool, allowed, kept, defers)?.sharing_program(tool, &mut programs));
            if let Some(unusable) = tool.unusable.as_ref().filter(|_| was_usable) {
                warnings.push(Diagnostic {
                    severity: Severity::Warning,
                    path: tool.origin.path.to_path_buf(),
                    place: None,
                    message: format!("tool {:?}: {}; the tool is disabled", tool.name, unusable.why),
                });
            }
        }
        Ok(ready)
    }

    /// Settles what is known of a tool before its first call.
    pub(super) fn ready(
        &self,
        tool: &mut Tool,
        allowed: &Allowed,
        kept: &[Kept],
        defers: bool,
    ) -> Result<Ready, Error> {
        if tool.unusable.is_some() {
            return self.shut(tool);
        }
        let (input, masks) = match self.checks(tool) {
            Ok(checks) => checks,
            Err(why) => {
                let message = format!("tool {:?}: {why}", tool.name);
                let fault = Error::Source { path: tool.origin.path.to_path_buf(), message };
                if self.strict {
                    return Err(fault);
                }
                tool.unusable = Some(Arc::new(Unusable { why, fault }));
                return self.shut(tool);
            }
        };
        let grant = Grant::new(tool, allowed, &self.environment)?;
        refuse_reach(&grant, kept)?;
        if grant.is_read_only() {
            tool.interface.infer_read_only();
        }
        let limits = tool.limits.within(&self.ceiling, self.limits, tool.origin.is_operators());
        let discovery = &tool.interface.discovery;
        let deferred = discovery.should_defer.value
            || discovery.schema_visibility.value == Visibility::Deferred
            || (defers && !discovery.always_load.value);
        let disabled = self.disabled(tool, &grant);
        let slots = (self.concurrency as usize).div_ceil(2);
        let mut ready = Ready::new(input, grant, limits, slots);
        (ready.disabled, ready.deferred, ready.masks) = (disabled, deferred, masks);
        Ok(ready)
    }

    /// Checks that rules over calls can match: warns of those that match no tool, of which there may be more elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] for the first that matches a tool and can match none of its calls.
    pub(super) fn check_rules(&self, tools: &[Tool], ready: &[Ready]) -> Result<Vec<Diagnostic>, Error> {
        let rules = self.policy.rules();
        let with_roots: Vec<_> = tools.iter().zip(ready).map(|(tool, ready)| (tool, ready.grant.root())).collect();
        if let Some((rule, reason)) = rules.dead(&with_roots) {
            return Err(Error::Permission { permission: rule.to_string(), reason });
        }
        let warning = |(rule, meant): (&Rule, Option<&str>)| {
            let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            let message = format!("`{rule}` matches no loaded tool{hint}");
            Diagnostic { severity: Severity::Warning, path: PathBuf::from("rules"), place: None, message }
        };
        Ok(rules.about_none(tools).map(warning).collect())
    }

    /// What checks the arguments and answers of a tool, and what masks them.
    fn checks(&self, tool: &Tool) -> Result<(Input, Redactions), String> {
        let input = Input::compile(tool)?;
        let mut masks = Redactions::default();
        for name in &tool.interface.result.redaction_policy_refs.value {
            let unknown =
                || format!("interface.redaction_policy_refs: no mask is named `{name}`; define it, or remove it here");
            masks.add([self.masks.get(name).ok_or_else(unknown)?.clone()]);
        }
        Ok((input, masks))
    }

    /// What is settled for a tool that cannot be used: it is granted nothing, and no call passes.
    fn shut(&self, tool: &Tool) -> Result<Ready, Error> {
        let bare = Tool::new(&tool.name, Body::Absent, Origin::of(tool.origin.format, tool.origin.path.clone()));
        let input = Input::compile(&bare).map_err(Error::Engine)?;
        let grant = Grant::new(&bare, &Allowed::default(), &HashMap::new())?;
        let mut ready = Ready::new(input, grant, self.limits, 1);
        let why = tool.unusable.as_ref().map(|unusable| unusable.why.clone()).unwrap_or_default();
        ready.disabled = Some((Decision::new(Behavior::Deny, Reason::Record, "program"), why));
        Ok(ready)
    }

    /// Why a tool cannot be called, whatever the arguments.
    fn disabled(&self, tool: &Tool, grant: &Grant) -> Option<(Decision, String)> {
        if let Some(rule) = self.policy.rules().blocks(tool) {
            let decision = Decision::new(Behavior::Deny, Reason::Rule, rule.to_string());
            return Some((decision, "denied by an operator rule".to_owned()));
        }
        let by_record = |field: &str, why: String| Some((Decision::new(Behavior::Deny, Reason::Record, field), why));
        if let Some(disabled) = &tool.disabled {
            return by_record(disabled.by, disabled.why.clone());
        }
        if let Some((field, why)) = self.audience.excludes(&tool.enablement) {
            return by_record(field, why);
        }
        let availability = &tool.interface.availability;
        if !availability.is_enabled.value {
            return by_record("is_enabled", "the tool is disabled".to_owned());
        }
        if let Some(setup) = &availability.requires_setup.value {
            return by_record("requires_setup", format!("the tool requires setup: {setup}"));
        }
        let gate = availability.feature_gate_refs.value.iter().find(|name| !self.features.contains(*name));
        if let Some(name) = gate {
            return by_record("feature_gate_refs", format!("the tool requires the feature `{name}`, which is off"));
        }
        let missing = |name: &&String| !grant.env_keys().any(|key| key == name.as_str());
        if let Some(name) = availability.required_credentials.value.iter().find(missing) {
            return by_record(
                "required_credentials",
                format!("the tool requires the variable `{name}`, which is not granted"),
            );
        }
        None
    }

    /// Lists what the host keeps for itself, apart from what tools are granted: with the audit log a guest could
    /// forge records, with the compile cache code.
    pub(super) fn kept(&self, mounts: &Mounts) -> Vec<Kept> {
        let own = [
            ("audit log", self.audit.place()),
            ("compile cache", self.compile_cache.as_deref()),
            ("kept results", self.results.as_ref().map(Results::path)),
            ("kept values", self.keyvalue.as_ref().map(KeyValue::path)),
        ];
        let own = own.into_iter().filter_map(|(what, path)| Some((what, path?, Access::Read)));
        let reserved = self.reserved.iter().map(|(what, path, least)| (what.as_str(), path.as_path(), *least));
        let kept = |(what, path, least): (&str, &Path, Access)| Kept {
            what: what.to_owned(),
            location: Location::of(path, mounts),
            least,
        };
        own.chain(reserved).map(kept).collect()
    }

    /// Lists what no tool may change in its folders: the sources, their programs, and what else was named.
    pub(super) fn protected(&self, kept: &[Kept], loaded: &[&Tool], mounts: &Mounts) -> Protected {
        let unreadable = kept.iter().filter(|kept| kept.least == Access::Read);
        let mut protected = Protected::new(unreadable.map(|kept| kept.location.path().to_path_buf()));
        let named = self.sources.iter().chain(&self.protected).map(PathBuf::as_path);
        let origins = loaded.iter().map(|tool| &*tool.origin.path);
        let programs: BTreeSet<&Path> = loaded.iter().filter_map(|tool| tool.body.program()).collect();
        let earlier: Vec<PathBuf> = programs.iter().filter_map(|program| source::portable(program)).collect();
        // Thousands of tools can share a file.
        let paths = named.chain(origins).chain(programs).chain(earlier.iter().map(PathBuf::as_path));
        let paths: BTreeSet<&Path> = paths.collect();
        paths.into_iter().for_each(|path| protected.add(path));
        for source in &self.sources {
            source::projects(source).iter().for_each(|folder| protected.add_below(folder));
            if source::is_listed(source) {
                protected.add_listed(&Location::of(source, mounts));
            }
        }
        customary(loaded).iter().for_each(|folder| protected.add_below(folder));
        self.writable(loaded).into_iter().for_each(|folder| protected.add_links(folder));
        protected
    }

    /// The folders that tools could be granted for writing.
    fn writable<'a>(&'a self, loaded: &[&'a Tool]) -> BTreeSet<&'a Path> {
        let requests = loaded.iter().filter_map(|tool| match &tool.requested.files {
            FileRequest::Folders(folders) => Some(folders),
            _ => None,
        });
        let by_name = requests.flatten().filter(|folder| folder.access == Access::Write);
        self.policy.writable().chain(by_name.map(|folder| folder.path.as_path())).collect()
    }
}

/// The folders in which manifests keep their programs by custom. The program of an entry with a fault is not known, and the
/// fault may be mended; a folder that is not there matters for such an entry alone.
fn customary(loaded: &[&Tool]) -> BTreeSet<PathBuf> {
    let manifests = loaded.iter().filter(|tool| tool.origin.format == Format::ToolsJson);
    // Thousands of tools can share a manifest.
    let manifests: BTreeSet<_> =
        manifests.map(|tool| (&*tool.origin.path, matches!(tool.body, Body::Absent))).collect();
    let folders = manifests.into_iter().filter_map(|(manifest, is_faulty)| {
        let folder = manifest.parent()?.join(source::PROGRAMS);
        (is_faulty || folder.is_dir()).then_some(folder)
    });
    folders.collect()
}

/// The tools in their order, each with what is settled for it. A component or record that cannot be used and has no name but
/// that of its file takes none from a tool that works: it comes last, or is left out.
pub(super) fn registered(mut tools: Vec<(Tool, Ready)>) -> Result<(Registry, Vec<Ready>), Error> {
    let has_no_name = |tool: &Tool| match tool.origin.format {
        Format::Component => tool.unusable.is_some(),
        Format::AgentTool => tool.unusable.is_some() && source::is_named_by_file(tool),
        _ => false,
    };
    tools.sort_by_key(|(tool, _)| has_no_name(tool));
    let (mut registry, mut settled) = (Registry::default(), Vec::with_capacity(tools.len()));
    for (tool, ready) in tools {
        if has_no_name(&tool) && registry.admits(&tool).is_err() {
            continue;
        }
        registry.add(tool)?;
        settled.push(ready);
    }
    Ok((registry, settled))
}

/// Something that the host keeps for itself.
pub(super) struct Kept {
    what: String,
    location: Location,
    /// The least access that tools may not have to it.
    least: Access,
}

/// Refuses a grant that reaches what the host keeps for itself.
pub(super) fn refuse_reach(grant: &Grant, kept: &[Kept]) -> Result<(), Error> {
    for Kept { what, location, least } in kept {
        let reaches = |folder: &&Folder| folder.access >= *least && folder.location.overlaps(location);
        if let Some(folder) = grant.folders().iter().find(reaches) {
            let place = location.path().display();
            return Err(Error::Permission {
                permission: format!("{}:{}", folder.access.as_str(), folder.host.display()),
                reason: format!("would let a tool reach the {what} in {place}; keep the two apart"),
            });
        }
    }
    Ok(())
}
