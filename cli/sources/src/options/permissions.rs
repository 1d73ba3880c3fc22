//! Options for permissions of tools. They are given for all clients on the command line, and for one with its token.

use std::path::{Path, PathBuf};

use toolcrib::Runtime;
use toolcrib::policy::{Permission, Policy, ToolSelection};
use toolcrib::tool::{Access, Service};
use toolcrib_base::headings::PERMISSIONS;
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_base::suggestion;
use toolcrib_settings::config::SET;
use toolcrib_settings::selection::ALL;
use toolcrib_settings::selection::{Limited, folders, texts};

use super::hooks::HookOptions;
use super::network::Destinations;
use super::secrets::SecretPermissions;
use super::services::{Services, allow_flag};

/// Permissions of tools: allowances, and denials that override them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Permissions {
    /// Allow tools to read these files, or folders and everything below them; `fs_*:docs` and `@SOURCE:docs` are for these tools alone, and
    /// each permission with a value can begin so
    #[arg(long, value_name = "DIR", value_parser = folders, help_heading = PERMISSIONS)]
    allow_read: Vec<Limited<PathBuf>>,
    /// Allow tools to read and write these files, or folders and everything below them
    #[arg(long, value_name = "DIR", value_parser = folders, help_heading = PERMISSIONS)]
    allow_write: Vec<Limited<PathBuf>>,
    /// Allow tools to read these environment variables
    #[arg(long, value_name = "NAME", value_parser = texts, help_heading = PERMISSIONS)]
    allow_env: Vec<Limited<String>>,
    /// Deny reading in these folders, or everywhere; overrides any --allow-* flag
    #[arg(long, value_name = "DIR", value_parser = folders, help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_read: Vec<Limited<PathBuf>>,
    /// Deny writing in these folders, or everywhere; overrides any --allow-* flag
    #[arg(long, value_name = "DIR", value_parser = folders, help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_write: Vec<Limited<PathBuf>>,
    /// Deny these environment variables, or all; overrides any --allow-* flag
    #[arg(long, value_name = "NAME", value_parser = texts, help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_env: Vec<Limited<String>>,
    #[command(flatten)]
    pub(super) secrets: SecretPermissions,
    #[command(flatten)]
    destinations: Destinations,
    #[command(flatten)]
    services: Services,
    #[command(flatten)]
    hooks: HookOptions,
}

impl Permissions {
    /// Returns the permissions of the `--allow-*` flags.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        (self.allow_read.iter().flat_map(|list| list.permissions(Permission::Read)))
            .chain(self.allow_write.iter().flat_map(|list| list.permissions(Permission::Write)))
            .chain(self.allow_env.iter().flat_map(|list| list.permissions(Permission::Env)))
            .chain(self.destinations.allowed())
            .chain(self.services.allowed())
            .chain(self.hooks.allowed())
            .chain(self.secrets.allowed())
    }

    /// Adds the permissions of the `--allow-*` flags to a policy, each as `located` returns it, if it returns one. `project_of` returns the folder of the project whose file gave
    /// the value of a flag: no link below it is followed, since its file may be older than the link.
    pub(super) fn allow_in(
        &self,
        policy: Policy,
        project_of: impl Fn(&'static str) -> Option<&'static Path>,
        located: impl Fn(Permission) -> Option<Permission>,
    ) -> Policy {
        self.allowed().filter_map(located).fold(policy, |policy, permission| {
            let project = match permission.unlimited() {
                Permission::Read(path) => project_of("allow-read").filter(|project| path.starts_with(project)),
                Permission::Write(path) => project_of("allow-write").filter(|project| path.starts_with(project)),
                _ => None,
            };
            match project {
                Some(project) => policy.allow_below(project, permission),
                None => policy.allow(permission),
            }
        })
    }

    /// Returns the permissions of the `--deny-*` flags.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        let read = |path: PathBuf| Permission::Read(denied_folder(&path));
        let write = |path: PathBuf| Permission::Write(denied_folder(&path));
        (self.deny_read.iter().flat_map(move |list| list.permissions(read)))
            .chain(self.deny_write.iter().flat_map(move |list| list.permissions(write)))
            .chain(self.deny_env.iter().flat_map(|list| list.permissions(Permission::Env)))
            .chain(self.destinations.denied())
            .chain(self.services.denied())
            .chain(self.hooks.denied())
            .chain(self.secrets.denied())
    }

    /// Warns about each denied path that does not exist.
    pub(super) fn warn_about_missing_folders(&self) {
        for (flag, lists) in [("--deny-read", &self.deny_read), ("--deny-write", &self.deny_write)] {
            let paths = lists.iter().flat_map(Limited::values);
            for path in paths.filter(|path| path.as_os_str() != ALL && !path.exists()) {
                warn_about_missing_folder(flag, path);
            }
        }
    }

    /// Warns about each flag for calls of other tools with a name that is probably misspelt.
    pub(super) fn warn_about_unknown_tools(&self, runtime: &Runtime) {
        self.services.allowed().for_each(|permission| warn_about_unknown_tool("--allow-call", &permission, runtime));
        self.services.denied().for_each(|permission| warn_about_unknown_tool("--deny-call", &permission, runtime));
    }

    /// Returns `true` if scripts may add tools, which a rule may be about.
    pub(super) fn lets_add_tools(&self) -> bool {
        self.services
            .allowed()
            .any(|permission| matches!(permission.unlimited(), Permission::Service(Service::Meta, _)))
    }

    /// Allows one more folder.
    pub(super) fn also_allow(&mut self, folder: PathBuf, access: Access) {
        let list = if access == Access::Write { &mut self.allow_write } else { &mut self.allow_read };
        list.insert(0, Limited::for_all(folder));
    }

    /// Returns `true` if a flag or a settings file allows or denies a folder.
    pub(super) fn names_folders(&self) -> bool {
        let is_folder =
            |permission: Permission| matches!(permission.unlimited(), Permission::Read(_) | Permission::Write(_));
        self.allowed().chain(self.denied()).any(is_folder)
    }
}

/// Warns about each denial of `--set` that probably denies nothing: a path that does not exist, or a misspelt name of a tool.
pub(super) fn warn_about_assigned(denied: &[Permission], runtime: &Runtime) {
    for denied in denied {
        let (key, path) = match denied.unlimited() {
            Permission::Read(path) => ("deny.read", path),
            Permission::Write(path) => ("deny.write", path),
            _ => {
                warn_about_unknown_tool(&format!("{SET} deny.call"), denied, runtime);
                continue;
            }
        };
        if !path.exists() {
            warn_about_missing_folder(&format!("{SET} {key}"), path);
        }
    }
}

/// Warns if a permission about calls of other tools has a name that is probably misspelt. `option` is its spelling before `=`.
fn warn_about_unknown_tool(option: &str, permission: &Permission, runtime: &Runtime) {
    let Permission::Service(Service::Call, names) = permission.unlimited() else { return };
    let known = || runtime.tools().map(|tool| tool.name.as_str());
    if known().any(|name| names.is_match(name)) {
        return;
    }
    if let Some(nearest) = suggestion::nearest(names.as_str(), known()) {
        let (written, nearest) = (one_line(names.as_str()), one_line(nearest));
        render::warning(&format!("`{option}={written}` matches no loaded tool; did you mean `{nearest}`?"));
    }
}

fn warn_about_missing_folder(option: &str, path: &Path) {
    let path = one_line(&path.to_string_lossy());
    render::warning(&format!("`{option}={path}`: no such file or folder, so it denies nothing yet"));
}

/// Returns the name of the option that allows a permission.
pub(super) fn option_of(permission: &Permission) -> &'static str {
    match permission {
        Permission::Read(_) => "allow-read",
        Permission::Write(_) => "allow-write",
        Permission::Env(_) => "allow-env",
        Permission::Net(_) => "allow-net",
        Permission::Secret(_) => "allow-secret",
        Permission::Service(service, _) => allow_flag(*service),
        Permission::Hooks(_) => "allow-hooks",
        _ => "",
    }
}

/// Refuses a denial for tools that are not loaded: it would deny nothing.
///
/// # Errors
///
/// The denial is such a one.
pub(super) fn refuse_unmatched(denial: &Permission, runtime: &Runtime) -> anyhow::Result<()> {
    let Permission::Limited(selection, _) = denial else { return Ok(()) };
    if runtime.tools().any(|tool| selection.selects(tool)) {
        return Ok(());
    }
    let nearest = match selection {
        ToolSelection::Names(names) => {
            suggestion::nearest(names.as_str(), runtime.tools().map(|tool| tool.name.as_str()))
        }
        _ => None,
    };
    let nearest = nearest.map(|name| format!("; did you mean `{}`?", one_line(name))).unwrap_or_default();
    let message = format!("`{selection}…`: no such tool is loaded, so this denial denies nothing");
    let hint = format!("nothing was run; `toolcrib list` shows the names of the tools{nearest}");
    Err(Advice::new(one_line(&message), hint).into())
}

/// Returns the folder of a denial; `*` means every folder.
pub(super) fn denied_folder(path: &Path) -> PathBuf {
    if path.as_os_str() == ALL { PathBuf::from("/") } else { path.to_path_buf() }
}

#[cfg(all(test, unix))]
mod tests {
    use toolcrib::policy::canonical;
    use toolcrib::{Audit, Runtime};

    use super::*;
    use crate::options::ClientOptions;

    #[test]
    fn a_folder_that_a_project_grants_is_opened_without_links_below_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let project = canonical(folder.path()).unwrap().join("project");
        for name in ["project/docs", "outside"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let options = ["read", "write"].map(|access| {
            let option = format!("--allow-{access}={}", project.join("docs").display());
            ClientOptions::parse(&[option]).unwrap()
        });
        let builds = |options: &ClientOptions, project: Option<&'static Path>| {
            let policy = options.permissions.allow_in(Policy::default(), |_| project, Some);
            Runtime::builder(Audit::off()).policy(policy).build().map(drop).map_err(|error| error.to_string())
        };
        let shared: &'static Path = Box::leak(project.clone().into_boxed_path());
        for options in &options {
            assert_eq!(builds(options, Some(shared)), Ok(()));
        }
        std::fs::remove_dir(project.join("docs")).unwrap();
        std::os::unix::fs::symlink("../outside", project.join("docs")).unwrap();
        for options in &options {
            assert_eq!(builds(options, None), Ok(()), "an option may name a link");
            assert!(builds(options, Some(shared)).unwrap_err().contains("is a link"));
        }
    }
}
