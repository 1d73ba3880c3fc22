//! Sources of a command: the named ones, or else the current folder's source or the built-in tools, and the installed
//! bundles.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use toolcrib::policy::{Permission, ToolSelection, real_path};
use toolcrib::source::Diagnostic;
use toolcrib::{Builder, Runtime};
use toolcrib_base::render::{self, Advice};
use toolcrib_packages::builtin;
use toolcrib_packages::install::available_here;
use toolcrib_packages::install::{AvailableBundles, LOCK_FILE, signer_name};
use toolcrib_settings::config::{is_lasting, is_of_file, repair_of};

use super::permissions::option_of;
use super::{CODE_TOOLS, MAX_WARNINGS, ProgramUse, Sources};

/// Source used if none is named.
const DEFAULT_SOURCE: &str = "./tools.json";
/// Paths that make the current folder the source if [`DEFAULT_SOURCE`] does not exist.
const HARNESS: [&str; 2] = ["./.harness", "./harness.md"];
/// End of the warning of a source about a tool that it disables.
const DISABLED: &str = "; the tool is disabled";
/// Hint about the built-in tools, once for all runtimes of a server.
static BUILTIN_HINT: Once = Once::new();

/// Missing folders of settings files that were warned about, each once for all runtimes of a server.
static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl Sources {
    /// Returns the named sources, or else the default source and the installed bundles. The built-in tools are the default source
    /// of a folder without a project.
    pub fn paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        self.paths_with(&self.installed()?)
    }

    pub(super) fn paths_with(&self, installed: &AvailableBundles) -> anyhow::Result<Vec<PathBuf>> {
        if !self.tools.is_empty() {
            return Ok(self.tools.clone());
        }
        let bundles = installed.bundles.iter().map(|bundle| bundle.file.clone());
        let first = match default_source() {
            Ok(source) => Some(source),
            // The files of a project are here, although none of its tools can be loaded.
            Err(error) if project_file(Path::new("")).is_some_and(|file| !file.ends_with(LOCK_FILE)) => {
                match installed.bundles.is_empty() {
                    true => return Err(error),
                    false => None,
                }
            }
            Err(_) => Some(self.builtin_copy()?.to_owned()),
        };
        Ok(first.into_iter().chain(bundles).collect())
    }

    /// Looks for the copy of the built-in tools if a source names them.
    pub(super) fn hold_builtin(&self) -> anyhow::Result<()> {
        let is_used = self.tools.iter().any(|source| builtin::is_named(source));
        if is_used { self.builtin_copy().map(drop) } else { Ok(()) }
    }

    /// Returns the copy of the built-in tools.
    fn builtin_copy(&self) -> anyhow::Result<&'static Path> {
        let copy = if self.called.is_some() { builtin::copy_for_call } else { builtin::copy };
        copy(self.compiling.cache())
    }

    /// Replaces a damaged copy of the built-in tools, if they are used. Returns `true` if it was damaged.
    pub fn mend_builtin(&self) -> anyhow::Result<bool> {
        builtin::mend(self.compiling.cache())
    }

    /// Adds a source to a builder. The built-in tools are trusted, and yield to installed ones unless they are named.
    pub(super) fn add_source(&self, builder: Builder, source: PathBuf) -> Builder {
        match (builtin::holds(&source), self.tools.is_empty()) {
            (true, true) => builder.yielding_source(source),
            (true, false) => builder.trusted_source(source),
            (false, _) => builder.source(source),
        }
    }

    /// Names the path of the source in a permission that is limited to the built-in tools, or to an installed bundle by its name.
    pub(super) fn located(&self, permission: Permission) -> Permission {
        let Permission::Limited(ToolSelection::Source(source), permission) = permission else { return permission };
        let installed = || {
            let bundles = self.installed().ok()?.bundles;
            Some(bundles.into_iter().find(|bundle| Path::new(&bundle.name) == source)?.file)
        };
        let path = match builtin::is_named(&source) {
            true => self.builtin_copy().ok().map(Path::to_path_buf),
            false => installed(),
        };
        permission.limited_to(ToolSelection::Source(path.unwrap_or(source)))
    }

    /// Limits a permission of a settings file that applies by itself, and so lasts while sources change, to the tools of sources that
    /// are trusted as they are now, or that the command line names.
    pub(super) fn bound_to_content(&self, permission: Permission) -> Permission {
        if !is_lasting(option_of(permission.unlimited())) {
            return permission;
        }
        let named = if !is_of_file("tools") { self.tools.clone() } else { Vec::new() };
        permission.limited_to(ToolSelection::Trusted(named))
    }

    /// Returns a hook permission for each source that was trusted before, if settings files allow the hooks of all
    /// sources. The hooks of a source that has changed since are then an error, so that no guard is left out.
    pub(super) fn guards(&self) -> anyhow::Result<Vec<Permission>> {
        let allows_all = |permission: Permission| *permission.unlimited() == Permission::Hooks(None);
        if !is_lasting(option_of(&Permission::Hooks(None))) || !self.permissions.allowed().any(allows_all) {
            return Ok(Vec::new());
        }
        let trusted = self.trust.trusted()?;
        let sources = self.paths()?.into_iter().filter(|source| trusted.is_on_record(&real_path(source)));
        Ok(sources.map(|source| self.bound_to_content(Permission::Hooks(Some(source)))).collect())
    }

    /// Returns the folders that settings files allow and that are missing, each in words and with the commands that repair it.
    pub fn missing_folders(&self) -> Vec<(String, &'static str)> {
        self.permissions.allowed().filter_map(|permission| missing_folder(&permission)).collect()
    }

    /// Returns `false` for a missing folder of a settings file, with a warning: it would make every command fail, and nothing needs
    /// to be granted for it.
    pub(super) fn is_there(permission: &Permission) -> bool {
        let Some((missing, repair)) = missing_folder(permission) else { return true };
        if MISSING.lock().unwrap_or_else(PoisonError::into_inner).insert(missing.clone()) {
            render::warning(&format!("{missing}, so it grants nothing; {repair}"));
        }
        false
    }

    /// Prints a hint for each untrusted source that is granted less for that reason, or has changed since it was trusted. With a
    /// tool, only its requests count.
    pub fn hint_untrusted(&self, runtime: &Runtime, tool: Option<&str>) {
        let settings_grant = self.permissions.allowed().any(|it| is_lasting(option_of(it.unlimited())));
        let is_named = |source: &Path| self.tools.iter().any(|named| source.starts_with(real_path(named)));
        let reaches = |source: &Path| !is_of_file("tools") && is_named(source);
        self.trust.hint(runtime, tool, |source| settings_grant && !reaches(source));
    }

    /// Returns the programs of a model that are offered, or called by name.
    pub(super) fn programs(&self) -> ProgramUse {
        let calls_code = self.called.as_deref().is_some_and(|called| CODE_TOOLS.contains(&called));
        match (self.code || calls_code, self.offers_programs) {
            (true, _) => ProgramUse::Alone,
            (false, true) => ProgramUse::Beside,
            (false, false) => ProgramUse::None,
        }
    }

    /// Returns `true` if the tools are the built-in ones alone.
    pub fn are_builtin(&self) -> bool {
        self.paths().is_ok_and(|paths| paths.iter().all(|path| builtin::holds(path)))
    }

    /// Prints a hint that the tools are the built-in ones, unless they are named: where the tools are listed, where a
    /// conversation begins, and where a tool is not found.
    pub fn hint_builtin(&self) {
        if !self.tools.is_empty() || !self.are_builtin() {
            return;
        }
        BUILTIN_HINT.call_once(|| {
            let harness = HARNESS[0];
            render::hint(&format!(
                "this directory has no `{DEFAULT_SOURCE}` and no `{harness}`: the tools are the built-in ones; \
                 `toolcrib init` creates a project with them"
            ));
        });
    }

    /// Prints the source warnings, except the fault that makes the call of the one tool fail anyway.
    pub(super) fn warn(&self, runtime: &Runtime) {
        let called = self.called.as_ref().and_then(|name| runtime.tool(name));
        let fault = called.and_then(|tool| Some((&*tool.origin.path, tool.unusable.as_ref()?.fault.to_string())));
        let is_error = |problem: &Diagnostic| {
            let reason = problem.message.strip_suffix(DISABLED);
            fault
                .as_ref()
                .zip(reason)
                .is_some_and(|((path, fault), reason)| is_same(path, &problem.path) && fault.contains(reason))
        };
        let warnings: Vec<_> = runtime.warnings().iter().filter(|problem| !is_error(problem)).collect();
        for problem in warnings.iter().take(MAX_WARNINGS) {
            render::warning(&format!("{}: {problem}", render::from_here(&problem.path).display()));
        }
        if let Some(more @ 1..) = warnings.len().checked_sub(MAX_WARNINGS) {
            render::warning(&format!("and {more} more: `toolcrib validate` lists them all"));
        }
    }

    /// Returns the names of the signers of the installed bundle that has a source; `None` if no installed bundle has it.
    pub fn signers(&self, source: &Path) -> Option<Vec<String>> {
        let bundles = self.installed().ok()?.bundles;
        let bundle = bundles.iter().find(|bundle| source.starts_with(&bundle.file))?;
        Some(bundle.signers.iter().map(|pin| signer_name(pin).to_owned()).collect())
    }

    /// Returns the installed bundles; none if sources are named.
    pub(super) fn installed(&self) -> anyhow::Result<AvailableBundles> {
        if self.tools.is_empty() { available_here() } else { Ok(AvailableBundles::default()) }
    }
}

/// Describes the folder of a permission if a settings file allows it and it is missing, with the commands that repair this.
fn missing_folder(permission: &Permission) -> Option<(String, &'static str)> {
    let option = option_of(permission.unlimited());
    let (Permission::Read(path) | Permission::Write(path)) = permission.unlimited() else { return None };
    let (place, repair) = repair_of(option).filter(|_| is_lasting(option))?;
    let is_missing = path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let path = render::one_line(&path.to_string_lossy());
    is_missing.then(|| (format!("{place}: the folder `{path}` does not exist"), repair))
}

/// `true` if two paths are the same from the current folder.
fn is_same(one: &Path, other: &Path) -> bool {
    std::path::absolute(one).ok().zip(std::path::absolute(other).ok()).is_some_and(|(one, other)| one == other)
}

/// Returns the first default source that exists.
pub fn default_source() -> anyhow::Result<PathBuf> {
    if Path::new(DEFAULT_SOURCE).is_file() {
        return Ok(DEFAULT_SOURCE.into());
    }
    if HARNESS.iter().any(|path| Path::new(path).exists()) {
        return Ok(".".into());
    }
    let message = format!("no tools found: this directory has no `{DEFAULT_SOURCE}` and no `{}`", HARNESS[0]);
    let hint = "pass a `tools.json`, a Markdown file, a component, a folder of them or a bundle with `--tools PATH`, or \
                create a tool with `toolcrib new tool NAME --markdown`";
    Err(Advice::new(message, hint).into())
}

/// Returns the first file that makes a folder a project, if it has one.
pub fn project_file(folder: &Path) -> Option<PathBuf> {
    let names = [DEFAULT_SOURCE].into_iter().chain(HARNESS).map(|name| name.trim_start_matches("./"));
    names.chain([LOCK_FILE]).map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok())
}

/// Lists the sources that are available in the current folder beside a bundle of this name.
///
/// # Errors
///
/// A lock or the records cannot be read.
pub fn sources_beside(name: &str) -> anyhow::Result<Vec<PathBuf>> {
    let bundles = available_here()?.bundles.into_iter().filter(|bundle| bundle.name != name).map(|bundle| bundle.file);
    Ok(default_source().into_iter().chain(bundles).collect())
}
