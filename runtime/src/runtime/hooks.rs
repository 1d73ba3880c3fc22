//! Preparation of script hooks when a runtime is built: their scope, their checks and their grants.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use toolcrib_foundation::text::listed;

use crate::call::pasted;
use crate::error::Error;
use crate::pipeline::ScriptHook;
use crate::policy::{self, Allowed, HookAccess};
use crate::source::{Diagnostic, Severity};
use crate::tool::{HookPoint, HookScope, ScriptedHook, Tool};

use super::builder::Builder;
use super::prepare::ReservedPlace;

/// Maximum number of patterns times tools that are matched for the warning about one source. Further hooks count as matching.
const MAX_MATCHES: usize = 1 << 20;

impl Builder {
    /// Prepares a script hook.
    ///
    /// # Errors
    ///
    /// The first problem of the hook. A hook may guard calls, so the runtime does not start without it.
    pub(super) fn prepare_hook(
        &self,
        mut definition: ScriptedHook,
        tools: &[Tool],
        access: &HookAccess,
        allowed: &Allowed,
        reserved: &[ReservedPlace],
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<ScriptHook, Error> {
        let fault = |tool: &Tool, why: String| {
            let message = format!("hook {:?}: {why}", tool.name);
            Err(Error::Source { path: tool.origin.path.to_path_buf(), message })
        };
        if !definition.tool.requested.secrets.is_empty() {
            return fault(&definition.tool, "capabilities.secrets: hooks cannot use secrets".to_owned());
        }
        if access.has_lost_trust(&definition.tool) {
            let why = "its source may handle the tools of other sources only while it is trusted, and it has changed or was \
                       never trusted; review it, or deny its hooks";
            return fault(&definition.tool, why.to_owned());
        }
        if let Some(why) = policy::dead_condition(&definition, tools) {
            return fault(&definition.tool, format!("when.args: {why}"));
        }
        let mut prepared = self.prepare_tool(&mut definition.tool, allowed, reserved, false)?;
        prepared.places = self.limits_of_calls().new_places();
        if self.policy.rules().restrict_hook(&definition.tool, &prepared.grant) {
            warnings.push(reads_only(&definition.tool));
            prepared = prepared.reading();
        }
        match &definition.tool.unusable {
            Some(unusable) => Err(unusable.fault.clone()),
            None => Ok(ScriptHook::new(definition, prepared, access)),
        }
    }

    /// Returns a warning for each source with hooks that ask for more than their scope, and for each permission of hooks
    /// that names no source. A denial that names a source is a decision about it, and silences the warning.
    pub(super) fn scope_warnings(
        &self,
        ids: &[Arc<Path>],
        hooks: &[ScriptedHook],
        tools: &[Tool],
        access: &HookAccess,
    ) -> Vec<Diagnostic> {
        let warning = |path: &Path, message: String| Diagnostic {
            severity: Severity::Warning,
            path: path.to_path_buf(),
            place: None,
            message,
        };
        let mut seen = HashSet::new();
        let sources = self.sources.iter().zip(ids).filter(|(_, id)| !access.denies(id) && seen.insert((*id).clone()));
        let mut warnings: Vec<_> = sources
            .filter_map(|(path, id)| {
                let own = hooks.iter().filter(|hook| hook.tool.origin.source.as_ref() == Some(id));
                let mut left = MAX_MATCHES;
                let limited = own.filter(|hook| is_limited(hook, tools, &mut left));
                let names: Vec<_> = limited.map(|hook| hook.tool.name.as_str()).collect();
                Some(warning(path, scope_warning(path, &names)?))
            })
            .collect();
        let unknown = access.without_source(ids);
        warnings.extend(unknown.map(|(flag, path)| warning(path, format!("`{flag}` matches no loaded source"))));
        warnings
    }
}

/// Returns `true` if a hook asks for tools of other sources, or for events that concern them, and does not get them. `left` is
/// the remaining number of matches.
fn is_limited(hook: &ScriptedHook, tools: &[Tool], left: &mut usize) -> bool {
    if hook.scope == HookScope::AllSources {
        return false;
    }
    let of_calls = matches!(hook.event, HookPoint::ToolPre | HookPoint::ToolPost);
    let rest = left.checked_sub(hook.when.tools.len().saturating_mul(tools.len()));
    *left = rest.unwrap_or_default();
    let asks_for = |tool: &Tool| !of_calls || rest.is_none() || hook.matches(Some(tool));
    tools.iter().any(|tool| !hook.reaches(tool) && asks_for(tool))
}

/// Returns the warning about a hook that may not write.
fn reads_only(hook: &Tool) -> Diagnostic {
    let path = hook.origin.path.to_path_buf();
    let message = format!(
        "hook {:?} is read-only: its source is not trusted, calls of untrusted tools that write need approval, and hooks \
         cannot ask for it",
        hook.name
    );
    Diagnostic { severity: Severity::Warning, path, place: None, message }
}

/// Returns the warning about the hooks of a source that ask for more than their scope; `None` if there are none.
fn scope_warning(path: &Path, names: &[&str]) -> Option<String> {
    let named = listed(names.iter().map(|name| format!("{name:?}")));
    let [noun, matches, handle, their, them] = match names {
        [] => return None,
        [_] => ["hook", "matches", "handles", "its", "it"],
        _ => ["hooks", "match", "handle", "their", "them"],
    };
    let flag = pasted("--allow-hooks", &path.to_string_lossy()).unwrap_or_else(|| "--allow-hooks".to_owned());
    Some(format!(
        "{noun} {named} {matches} tools of other sources or events of the whole run, but {handle} only the tools of {their} own \
         source; use {flag} to let {them} handle all"
    ))
}

#[cfg(test)]
mod tests {
    use toolcrib_foundation::text::MAX_LISTED;

    use super::*;
    use crate::tool::When;
    use crate::tool::tests::plain;

    #[test]
    fn the_patterns_of_a_source_are_matched_up_to_a_limit() {
        let of = |source: &str, name: &str| {
            let mut tool = plain(name);
            tool.origin.source = Some(Path::new(source).into());
            tool
        };
        let hook = |patterns: usize| {
            let when = When { tools: vec!["x*".parse().unwrap(); patterns], ..When::default() };
            let scope = HookScope::OwnSource;
            ScriptedHook { tool: of("/a", "h"), event: HookPoint::ToolPre, priority: 0, when, scope }
        };
        let tools = [of("/a", "own"), of("/b", "other")];
        let mut left = 6;
        assert!(!is_limited(&hook(1), &tools, &mut left), "it matches none");
        assert!(!is_limited(&hook(2), &tools, &mut left) && left == 0);
        assert!(is_limited(&hook(1), &tools, &mut left), "too many to match");
        assert!(is_limited(&hook(0), &tools, &mut left), "it is for every tool");
        assert!(!is_limited(&hook(0), &tools[..1], &mut left), "there is no other source");
        let all = ScriptedHook { scope: HookScope::AllSources, ..hook(0) };
        assert!(!is_limited(&all, &tools, &mut left));
        let started = ScriptedHook { event: HookPoint::RunStart, ..hook(1) };
        assert!(is_limited(&started, &tools, &mut left) && !is_limited(&started, &tools[..1], &mut left));
    }

    #[test]
    fn a_warning_names_the_flag_and_a_bounded_number_of_hooks() {
        let path = Path::new("./down loads");
        assert_eq!(scope_warning(path, &[]), None);
        assert_eq!(
            scope_warning(path, &["guard"]).unwrap(),
            "hook \"guard\" matches tools of other sources or events of the whole run, but handles only the tools of its own \
             source; use --allow-hooks='./down loads' to let it handle all"
        );
        let several = scope_warning(path, &["h"; MAX_LISTED + 3]).unwrap();
        assert_eq!(several.matches("\"h\"").count(), MAX_LISTED);
        assert!(several.starts_with("hooks ") && several.contains(" and 3 more match tools"), "{several}");
        let unquotable = scope_warning(Path::new("./a'b"), &["h"]).unwrap();
        assert!(unquotable.contains("use --allow-hooks to let it"), "{unquotable}");
    }
}
