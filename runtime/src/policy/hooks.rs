//! Scope of script hooks: by default a hook handles only tools from its own source. The operator can allow more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::source;
use crate::tool::{HookScope, ScriptedHook, Tool};

use super::location::real_path;
use super::selection::ResolvedSelection;
use super::{Permission, Policy, ToolSelection};

/// Sources with hooks that may handle more than the tools of their own source.
#[derive(Debug, Default)]
pub(crate) struct HookAccess {
    /// Sources, each with a selection of its hooks if the permission is limited.
    allowed: Vec<(Selection, Option<ResolvedSelection>)>,
    denied: Vec<Selection>,
    /// Sources of all tools, each once.
    with_tools: Vec<Arc<Path>>,
}

/// Sources that a permission names.
#[derive(Debug)]
enum Selection {
    All,
    /// The source with this identifier, and its path as written.
    One(Arc<Path>, PathBuf),
}

impl Selection {
    fn includes(&self, source: &Path) -> bool {
        match self {
            Self::All => true,
            Self::One(one, _) => **one == *source,
        }
    }
}

/// Returns the identifier of a source: one absolute path, however the operator wrote it.
pub(crate) fn source_id(path: &Path) -> Arc<Path> {
    real_path(&source::root(path)).into()
}

impl HookAccess {
    /// Reads the permissions of hooks from a policy.
    pub(crate) fn new(policy: &Policy) -> Self {
        let selection = |permission: &Permission| match permission.unlimited() {
            Permission::Hooks(None) => Some(Selection::All),
            Permission::Hooks(Some(path)) => Some(Selection::One(source_id(path), path.clone())),
            _ => None,
        };
        let limit = |permission: &Permission| match permission {
            Permission::Limited(tools @ ToolSelection::Trusted(_), _) => Some(tools.resolve()),
            _ => None,
        };
        Self {
            allowed: policy.allowed.iter().filter_map(|it| Some((selection(it)?, limit(it)))).collect(),
            denied: policy.denied.iter().filter_map(selection).collect(),
            with_tools: Vec::new(),
        }
    }

    /// Adds the sources of tools. The host's own tools have none.
    pub(crate) fn with_tools<'a>(mut self, tools: impl Iterator<Item = &'a Tool>) -> Self {
        for source in tools.filter_map(|tool| tool.origin.source.as_ref()) {
            // The tools of a source follow one another.
            if self.with_tools.last() != Some(source) && !self.with_tools.contains(source) {
                self.with_tools.push(source.clone());
            }
        }
        self
    }

    /// Returns the scope of a hook by its source. Nothing else decides about it: any other reason to trust the hooks of a
    /// source is tested here.
    fn scope_of(&self, hook: &Tool) -> HookScope {
        let Some(source) = hook.origin.source.as_deref() else { return HookScope::OwnSource };
        let applies = |(selection, limit): &(Selection, Option<ResolvedSelection>)| {
            selection.includes(source) && limit.as_ref().is_none_or(|limit| limit.allows(hook))
        };
        match self.allowed.iter().any(applies) && !self.denies(source) {
            true => HookScope::AllSources,
            false => HookScope::OwnSource,
        }
    }

    /// Returns `true` if a permission names the source of a hook as long as it is trusted, and it is not trusted as it is now. Left
    /// out, such a hook would guard nothing any more.
    pub(crate) fn has_lost_trust(&self, hook: &Tool) -> bool {
        let names_it = |(selection, limit): &(Selection, Option<ResolvedSelection>)| {
            let is_named = matches!(selection, Selection::One(one, _) if hook.origin.source.as_ref() == Some(one));
            is_named && limit.as_ref().is_some_and(|limit| !limit.allows(hook))
        };
        let is_denied = hook.origin.source.as_deref().is_some_and(|source| self.denies(source));
        self.allowed.iter().any(names_it) && !is_denied && self.scope_of(hook) == HookScope::OwnSource
    }

    /// Returns `true` if the hooks of a source may handle events without a tool, and the host's tools: these concern
    /// the tools from all sources.
    pub(crate) fn may_handle_run(&self, hook: &ScriptedHook) -> bool {
        let source = hook.tool.origin.source.as_ref();
        hook.scope == HookScope::AllSources || self.with_tools.iter().all(|other| Some(other) == source)
    }

    /// Sets the scope of a hook by its source.
    pub(crate) fn give_scope(&self, hook: &mut ScriptedHook) {
        hook.scope = self.scope_of(&hook.tool);
    }

    /// Returns `true` if a denial names a source, or all.
    pub(crate) fn denies(&self, source: &Path) -> bool {
        self.denied.iter().any(|selection| selection.includes(source))
    }

    /// Returns the permissions that name none of these sources, each with its flag and its path as written.
    pub(crate) fn without_source<'a>(
        &'a self,
        sources: &'a [Arc<Path>],
    ) -> impl Iterator<Item = (&'static str, &'a Path)> {
        let allowed = self.allowed.iter().map(|(selection, _)| ("--allow-hooks", selection));
        let denied = self.denied.iter().map(|selection| ("--deny-hooks", selection));
        allowed.chain(denied).filter_map(|(flag, selection)| match selection {
            Selection::One(id, path) if !sources.contains(id) => Some((flag, path.as_path())),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::plain;
    use crate::tool::{HookPoint, Trust, When};

    fn hooks(path: &Path) -> Permission {
        Permission::Hooks(Some(path.to_path_buf()))
    }

    #[test]
    fn only_a_permission_widens_the_scope_and_a_denial_overrides_it() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        [&one, &other].into_iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let scopes = |policy: Policy| {
            let access = HookAccess::new(&policy);
            [&one, &other].map(|path| {
                let mut hook = plain("hook");
                hook.origin.source = Some(source_id(path));
                hook.origin.trust = if *path == other { Trust::Reviewed } else { Trust::Stranger };
                access.scope_of(&hook) == HookScope::AllSources
            })
        };
        let all = || Permission::Hooks(None);
        let lasting =
            |named: &[&PathBuf]| ToolSelection::Trusted(named.iter().map(|path| path.to_path_buf()).collect());
        assert_eq!(scopes(Policy::default().allow(all().limited_to(lasting(&[])))), [false, true]);
        assert_eq!(scopes(Policy::default().allow(all().limited_to(lasting(&[&one])))), [true, true]);
        assert_eq!(scopes(Policy::default().allow(hooks(&one).limited_to(lasting(&[])))), [false, false]);
        assert_eq!(scopes(Policy::default()), [false, false]);
        assert_eq!(scopes(Policy::default().allow(all())), [true, true]);
        assert_eq!(scopes(Policy::default().allow(hooks(&one))), [true, false]);
        assert_eq!(scopes(Policy::default().allow(hooks(&folder.path().join("other/../one/.")))), [true, false]);
        assert_eq!(
            scopes(Policy::default().allow(hooks(folder.path()))),
            [false, false],
            "a folder is no source below it"
        );
        assert_eq!(scopes(Policy::default().allow(all()).deny(hooks(&one))), [false, true]);
        assert_eq!(scopes(Policy::default().allow(hooks(&one)).deny(all())), [false, false]);
    }

    #[test]
    fn a_project_is_one_source_by_either_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let harness = folder.path().join(".harness");
        std::fs::create_dir(&harness).unwrap();
        assert_eq!(source_id(folder.path()), source_id(&harness));
        assert_ne!(source_id(folder.path()), source_id(&folder.path().join("tools.json")));
        let access =
            HookAccess::new(&Policy::default().allow(hooks(&harness)).deny(hooks(&folder.path().join("none"))));
        let unknown: Vec<_> = access.without_source(&[source_id(folder.path())]).map(|(flag, _)| flag).collect();
        assert_eq!(unknown, ["--deny-hooks"]);
    }

    #[test]
    fn events_without_a_tool_are_those_of_an_only_source() {
        let tool = |source: &str| {
            let mut tool = plain("t");
            tool.origin.source = Some(Path::new(source).into());
            tool
        };
        let hook = |scope: HookScope| {
            let (event, when) = (HookPoint::RunStart, When::default());
            ScriptedHook { tool: tool("/a"), event, priority: 0, when, scope }
        };
        let (own, all) = (hook(HookScope::OwnSource), hook(HookScope::AllSources));
        let access = |tools: &[Tool]| HookAccess::default().with_tools(tools.iter());
        assert!(access(&[]).may_handle_run(&own));
        assert!(access(&[tool("/a"), tool("/a"), plain("host")]).may_handle_run(&own));
        let two = access(&[tool("/a"), tool("/b"), tool("/a")]);
        assert_eq!(two.with_tools.len(), 2);
        assert!(!two.may_handle_run(&own) && two.may_handle_run(&all));
        assert!(!access(&[tool("/b")]).may_handle_run(&own), "the run is not of a source that has only hooks");
    }
}
