//! What is settled for a tool before its first call: its checks, its grant, its limits, and whether it can be called at all.

use std::collections::BTreeSet;

use crate::audit::Redactions;
use crate::call::{Behavior, Decision, Reason};
use crate::error::Error;
use crate::keyvalue::KeyValue;
use crate::pipeline::Ready;
use crate::policy::{self, Allowed, Grant};
use crate::results::Results;
use crate::schema::Input;
use crate::tool::{Enablement, Tool, Visibility};

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
    /// Settles what is known of a tool before its first call.
    pub(super) fn ready(&self, tool: &mut Tool, allowed: &Allowed, defers: bool) -> Result<Ready, Error> {
        let wrong = |message: String| Error::Source {
            path: tool.origin.path.to_path_buf(),
            message: format!("tool {:?}: {message}", tool.name),
        };
        let input = Input::compile(tool).map_err(wrong)?;
        let mut masks = Redactions::default();
        for name in &tool.interface.result.redaction_policy_refs.value {
            let pattern = self.masks.get(name).ok_or_else(|| {
                wrong(format!(
                    "interface.redaction_policy_refs: no mask is named `{name}`; define it, or remove it here"
                ))
            })?;
            masks.add([pattern.clone()]);
        }
        let grant = Grant::new(tool, allowed, &self.environment)?;
        self.refuse_reach(&grant)?;
        if grant.is_read_only() {
            tool.interface.infer_read_only();
        }
        let limits = tool.limits.within(&self.ceiling, self.limits, tool.origin.is_operators());
        let discovery = &tool.interface.discovery;
        let deferred = discovery.should_defer.value
            || discovery.schema_visibility.value == Visibility::Deferred
            || (defers && !discovery.always_load.value);
        let closed = self.closed(tool, &grant);
        let slots = (self.concurrency as usize).div_ceil(2);
        let mut ready = Ready::new(input, grant, limits, slots);
        (ready.closed, ready.deferred, ready.masks) = (closed, deferred, masks);
        Ok(ready)
    }

    /// Why a tool cannot be called, whatever the arguments.
    fn closed(&self, tool: &Tool, grant: &Grant) -> Option<(Decision, String)> {
        if let Some(rule) = self.policy.rules().blocks(tool) {
            let decision = Decision::new(Behavior::Deny, Reason::Rule, rule.to_string());
            return Some((decision, "refused by a rule of the operator's".to_owned()));
        }
        let by_record = |field: &str, why: String| Some((Decision::new(Behavior::Deny, Reason::Record, field), why));
        if let Some(closed) = &tool.closed {
            return by_record(closed.by, closed.why.clone());
        }
        if let Some((field, why)) = self.audience.excludes(&tool.enablement) {
            return by_record(field, why);
        }
        let availability = &tool.interface.availability;
        if !availability.is_enabled.value {
            return by_record("is_enabled", "the tool is switched off".to_owned());
        }
        if let Some(setup) = &availability.requires_setup.value {
            return by_record("requires_setup", format!("the tool has to be set up first: {setup}"));
        }
        let gate = availability.feature_gate_refs.value.iter().find(|name| !self.features.contains(*name));
        if let Some(name) = gate {
            return by_record("feature_gate_refs", format!("the tool waits for the feature `{name}`, which is not on"));
        }
        let missing = |name: &&String| !grant.env_keys().any(|key| key == name.as_str());
        if let Some(name) = availability.required_credentials.value.iter().find(missing) {
            return by_record(
                "required_credentials",
                format!("the tool needs the variable `{name}`, which it is not granted"),
            );
        }
        None
    }

    /// No guest may reach the audit log or the compile cache: with the one it could forge records, with the other code. Nor
    /// may it reach what others have kept.
    fn refuse_reach(&self, grant: &Grant) -> Result<(), Error> {
        let own = [
            ("audit log", self.audit.place()),
            ("compile cache", self.compile_cache.as_deref()),
            ("kept results", self.results.as_ref().map(Results::path)),
            ("kept values", self.keyvalue.as_ref().map(KeyValue::path)),
        ];
        for (what, place) in own {
            let Some(place) = place else { continue };
            let place = policy::real_path(place);
            if let Some(folder) = grant.folders().iter().find(|folder| policy::overlap(&folder.host, &place)) {
                return Err(Error::Permission {
                    permission: format!("{}:{}", folder.access.as_str(), folder.host.display()),
                    reason: format!("would let a tool reach the {what} in {}; keep the two apart", place.display()),
                });
            }
        }
        Ok(())
    }
}
