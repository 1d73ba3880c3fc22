//! Preparation of tools when a runtime is built: checks, grants, limits and availability.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::audit::Redactions;
use crate::call::{Behavior, Decision, Reason};
use crate::error::Error;
use crate::pipeline::{PreparedTool, SharedPrograms, ToolPlaces};
use crate::policy::{Allowed, Folder, Grant, Location, Mounts, Protected, Rule};
use crate::schema::ToolValidator;
use crate::source::{self, Diagnostic, Severity};
use crate::store::keyvalue::KeyValue;
use crate::store::results::Results;
use crate::tool::{Access, Body, FileRequest, INTERPRETER, Tool, Unusable, Visibility};

use super::builder::Builder;

impl Builder {
    /// Prepares every tool, and adds a warning for each that turns out to be unusable.
    ///
    /// # Errors
    ///
    /// See [`prepare_tool`](Self::prepare_tool).
    pub(super) fn prepare_tools(
        &self,
        tools: &mut [Tool],
        allowed: &Allowed,
        reserved: &[ReservedPlace],
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<Vec<PreparedTool>, Error> {
        let defers = tools.iter().filter(|tool| tool.unusable.is_none()).count() > self.defer_above;
        let mut programs = SharedPrograms::default();
        let mut ready = Vec::with_capacity(tools.len() + 4);
        for tool in tools {
            let was_usable = tool.unusable.is_none();
            ready.push(self.prepare_tool(tool, allowed, reserved, defers)?.with_shared_program(tool, &mut programs));
            if let Some(unusable) = tool.unusable.as_ref().filter(|_| was_usable) {
                warnings.push(Diagnostic {
                    severity: Severity::Warning,
                    path: tool.origin.path.to_path_buf(),
                    place: None,
                    message: format!("tool {:?}: {}; the tool is disabled", tool.name, unusable.reason),
                });
            }
        }
        Ok(ready)
    }

    /// Compiles the checks of a tool and decides its grant, limits and availability. Nothing of it is compiled or run.
    ///
    /// # Errors
    ///
    /// An invalid grant; an invalid schema or mask if the builder is strict, which otherwise makes the tool unusable.
    pub(super) fn prepare_tool(
        &self,
        tool: &mut Tool,
        allowed: &Allowed,
        reserved: &[ReservedPlace],
        defers: bool,
    ) -> Result<PreparedTool, Error> {
        if tool.unusable.is_some() {
            return self.prepare_unusable(tool);
        }
        let (input, masks) = match self.checks(tool) {
            Ok(checks) => checks,
            Err(why) => {
                let message = format!("tool {:?}: {why}", tool.name);
                let fault = Error::Source { path: tool.origin.path.to_path_buf(), message };
                if self.strict {
                    return Err(fault);
                }
                tool.unusable = Some(Arc::new(Unusable { reason: why, fault }));
                return self.prepare_unusable(tool);
            }
        };
        let grant = Grant::new(tool, allowed, &self.environment)?.with_effects(self.stage.clone(), self.record.clone());
        refuse_reserved(&grant, reserved)?;
        let only_reads = tool.interface.safety.is_read_only.value;
        if grant.is_read_only() {
            tool.interface.infer_read_only();
        }
        let limits = tool.limits.resolve(&self.ceiling, self.limits, tool.origin.trust.is_operators());
        let discovery = &tool.interface.discovery;
        let deferred = discovery.should_defer.value
            || discovery.schema_visibility.value == Visibility::Deferred
            || (defers && !discovery.always_load.value);
        let disabled = self.disabled(tool, &grant);
        let places = self.limits_of_calls().places_of(&tool.name);
        let mut ready = PreparedTool::new(input, grant, limits, places);
        (ready.disabled, ready.deferred, ready.masks, ready.only_reads) = (disabled, deferred, masks, only_reads);
        ready.is_elsewhere = self.workers.is_some() && tool.body.has_program();
        Ok(ready)
    }

    /// Checks that every rule can match, and returns a warning for each that matches no loaded tool: the tool may come from
    /// another source in another run.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] for the first rule that matches a tool and can match none of its calls.
    pub(super) fn check_rules(&self, tools: &[Tool], ready: &[PreparedTool]) -> Result<Vec<Diagnostic>, Error> {
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
        let labels = self.policy.place_labels();
        let nameless = rules.without_label(labels).map(|(rule, name, meant)| {
            let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            let message = format!("`{rule}`: no place has the label `{name}`{hint}");
            Diagnostic { severity: Severity::Warning, path: PathBuf::from("rules"), place: None, message }
        });
        let staged = self.stage.iter().flat_map(|_| rules.all_at_end()).map(|rule| {
            let message =
                format!("`{rule}` changes nothing beside a stage for all calls: nobody is asked at the end of a call");
            Diagnostic { severity: Severity::Warning, path: PathBuf::from("rules"), place: None, message }
        });
        Ok(rules.without_tool(tools).map(warning).chain(nameless).chain(staged).collect())
    }

    /// Compiles the schemas and masks of a tool.
    ///
    /// # Errors
    ///
    /// The invalid schema or unknown mask, in words for the model.
    fn checks(&self, tool: &Tool) -> Result<(ToolValidator, Redactions), String> {
        let input = ToolValidator::compile(tool)?;
        let mut masks = Redactions::default();
        for name in &tool.interface.result.redaction_policy_refs.value {
            let unknown =
                || format!("interface.redaction_policy_refs: no mask is named `{name}`; define it, or remove it here");
            masks.add([self.masks.get(name).ok_or_else(unknown)?.clone()]);
        }
        Ok((input, masks))
    }

    /// Prepares an unusable tool: it is granted nothing, and every call is refused.
    fn prepare_unusable(&self, tool: &Tool) -> Result<PreparedTool, Error> {
        /// Checks of a tool without a schema, which are the same for all.
        static WITHOUT_SCHEMA: OnceLock<Arc<ToolValidator>> = OnceLock::new();
        let bare = Tool::new(&tool.name, Body::Absent, tool.origin.clone());
        let input = match WITHOUT_SCHEMA.get() {
            Some(input) => input.clone(),
            None => {
                let input = ToolValidator::compile(&bare).map_err(Error::Engine)?;
                WITHOUT_SCHEMA.get_or_init(|| Arc::new(input)).clone()
            }
        };
        let grant = Grant::new(&bare, &Allowed::default(), &HashMap::new())?;
        let mut ready = PreparedTool::new(input, grant, self.limits, ToolPlaces::new(1));
        let why = tool.unusable.as_ref().map(|unusable| unusable.reason.clone()).unwrap_or_default();
        ready.disabled = Some((Decision::new(Behavior::Deny, Reason::Record, "program"), why));
        Ok(ready)
    }

    /// Returns the decision and the reason that disable a tool, whatever the arguments.
    fn disabled(&self, tool: &Tool, grant: &Grant) -> Option<(Decision, String)> {
        if let Some(rule) = self.policy.rules().blocks(tool) {
            let decision = Decision::new(Behavior::Deny, Reason::Rule, rule.to_string());
            return Some((decision, "denied by an operator rule".to_owned()));
        }
        let by_record = |field: &str, why: String| Some((Decision::new(Behavior::Deny, Reason::Record, field), why));
        if let Some(disabled) = &tool.disabled {
            return by_record(disabled.field, disabled.reason.clone());
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

    /// Returns `true` if something else than its kind disables an interpreter, which no call reaches: a rule, its definition, or a
    /// request that is not granted.
    pub(super) fn disables_interpreter(&self, tool: &Tool, prepared: &PreparedTool) -> bool {
        let is_of_kind = tool.disabled.as_ref().is_some_and(|disabled| disabled.field == INTERPRETER);
        let otherwise = Tool { disabled: None, ..tool.clone() };
        !is_of_kind || self.disabled(&otherwise, &prepared.grant).is_some()
    }

    /// Lists the places that no grant may reach. With the audit log a guest could forge records, with the compile cache
    /// code. Nothing has to be found if none of the tools can be granted a folder.
    pub(super) fn reserved_places(&self, loaded: &[&Tool], mounts: &Mounts) -> Vec<ReservedPlace> {
        if !self.may_grant_folders(loaded) {
            return Vec::new();
        }
        let own = [
            ("audit log", self.audit.place()),
            ("compile cache", self.compile_cache.as_deref()),
            ("result store", self.results.as_ref().map(Results::path)),
            ("copies of skills", self.skill_copies.as_deref()),
            ("key-value store", self.keyvalue.as_ref().and_then(KeyValue::path)),
        ];
        let own = own.into_iter().filter_map(|(label, path)| Some((label, path?, Access::Read)));
        let named = self.reserved.iter().map(|(label, path, least)| (label.as_str(), path.as_path(), *least));
        let place = |(label, path, least): (&str, &Path, Access)| ReservedPlace {
            label: label.to_owned(),
            location: Location::of(path, mounts),
            least,
        };
        own.chain(named).map(place).collect()
    }

    /// Lists the paths that no tool may change inside its grants: sources, their programs, and paths named by
    /// [`Builder::protect`]. Nothing has to be found if none of the tools can be granted a folder for writing.
    pub(super) fn protected_paths(&self, reserved: &[ReservedPlace], loaded: &[&Tool], mounts: &Mounts) -> Protected {
        let unreadable = reserved.iter().filter(|place| place.least == Access::Read);
        let mut protected = Protected::new(unreadable.map(|place| place.location.path().to_path_buf()));
        let writable = self.writable(loaded);
        if writable.is_empty() {
            return protected;
        }
        let named = self.sources.iter().chain(&self.protected).map(PathBuf::as_path);
        let origins = loaded.iter().map(|tool| &*tool.origin.path);
        let programs: BTreeSet<&Path> = loaded.iter().filter_map(|tool| tool.body.program()).collect();
        let earlier: Vec<PathBuf> = programs.iter().filter_map(|program| source::portable(program)).collect();
        // Thousands of tools can share a file.
        let paths = named.chain(origins).chain(programs).chain(earlier.iter().map(PathBuf::as_path));
        let paths: BTreeSet<&Path> = paths.collect();
        // In the order of the paths, so that the files of a folder follow one another.
        protected.add_all(paths);
        for source in &self.sources {
            source::projects(source).iter().for_each(|folder| protected.add_below(folder));
            if source::is_listed(source) {
                protected.add_listed(&Location::of(source, mounts));
            }
        }
        source::program_folders(loaded).iter().for_each(|folder| protected.add_below(folder));
        writable.into_iter().for_each(|folder| protected.add_links(folder));
        protected
    }

    /// Returns `true` if a tool could be granted a folder: by a flag, or because it requests one by its path.
    fn may_grant_folders(&self, loaded: &[&Tool]) -> bool {
        self.policy.allows_folders()
            || loaded.iter().any(|tool| matches!(&tool.requested.files, FileRequest::Folders(_)))
    }

    /// Lists the folders that tools could be granted for writing.
    fn writable<'a>(&'a self, loaded: &[&'a Tool]) -> BTreeSet<&'a Path> {
        let requests = loaded.iter().filter_map(|tool| match &tool.requested.files {
            FileRequest::Folders(folders) => Some(folders),
            _ => None,
        });
        let by_name = requests.flatten().filter(|folder| folder.access == Access::Write);
        self.policy.writable().chain(by_name.map(|folder| folder.path.as_path())).collect()
    }
}

/// Place of the host that no grant may reach.
pub(super) struct ReservedPlace {
    label: String,
    location: Location,
    /// Least access that is refused.
    least: Access,
}

/// Refuses a grant that reaches a reserved place.
pub(super) fn refuse_reserved(grant: &Grant, reserved: &[ReservedPlace]) -> Result<(), Error> {
    for ReservedPlace { label, location, least } in reserved {
        let reaches = |folder: &&Folder| folder.access >= *least && folder.overlaps(location);
        if let Some(folder) = grant.folders().iter().find(reaches) {
            let place = location.path().display();
            return Err(Error::Permission {
                permission: format!("{}:{}", folder.access.as_str(), folder.host.display()),
                reason: format!(
                    "would let a tool reach the {label} in {place}; grant a narrower folder, or keep the two apart"
                ),
            });
        }
    }
    Ok(())
}

/// Returns a warning about each permission that is limited to tools but selects no loaded tool.
pub(super) fn limit_warnings(allowed: &Allowed, tools: &[Tool]) -> Vec<Diagnostic> {
    let warning = |(limit, meant): (String, Option<&str>)| {
        let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        let message = format!("`{limit}…` selects no loaded tool: it grants and denies nothing{hint}");
        Diagnostic { severity: Severity::Warning, path: PathBuf::from("permissions"), place: None, message }
    };
    allowed.unmatched(tools).map(warning).collect()
}
