//! Denials of settings files: each value is the permission that the same value of its option denies.

use std::path::Path;

use anyhow::{Context, Error, anyhow};
use toolcrib::policy::Permission;
use toolcrib::tool::{Service, ServiceKind};
use toolcrib_settings::config::{Config, ConfiguredDenial};
use toolcrib_settings::selection::{self, Limited, one_folder};

use super::hooks;
use super::permissions::denied_folder;

/// Returns the denials of settings files, each with its key and its file.
///
/// # Errors
///
/// A value that the settings accept is no permission.
pub(super) fn denials(config: &Config) -> anyhow::Result<Vec<(Permission, String)>> {
    permissions(&config.denials)
}

/// Returns the denials of `--set`, which are about this run as those of flags are.
///
/// # Errors
///
/// As for [`denials`].
pub(super) fn given_denials(config: &Config) -> anyhow::Result<Vec<Permission>> {
    let given = permissions(config.denials.iter().filter(|denial| denial.is_given))?;
    Ok(given.into_iter().map(|(permission, _)| permission).collect())
}

fn permissions<'c>(
    denials: impl IntoIterator<Item = &'c ConfiguredDenial>,
) -> anyhow::Result<Vec<(Permission, String)>> {
    let mut all = Vec::new();
    for ConfiguredDenial { name, values, origin, .. } in denials {
        for value in values {
            let denied = denied(name, value).with_context(|| format!("cannot apply {origin}"))?;
            all.extend(denied.into_iter().map(|permission| (permission, origin.clone())));
        }
    }
    Ok(all)
}

/// Returns the permissions that a value of a key denies.
fn denied(name: &str, value: &str) -> anyhow::Result<Vec<Permission>> {
    match name {
        "read" => all(one_folder(value), |path| Permission::Read(denied_folder(&path))),
        "write" => all(one_folder(value), |path| Permission::Write(denied_folder(&path))),
        "env" => all(selection::texts(value), Permission::Env),
        "secret" => all(selection::texts(value), Permission::Secret),
        "hooks" => Ok(vec![hooks::permission(Path::new(value))]),
        "net" => all(selection::destinations(value), Permission::Net),
        service => {
            let known = Service::ALL.into_iter().find(|known| known.as_str() == service);
            let service = known.ok_or_else(|| anyhow!("unknown permission `{service}`"))?;
            match service.kind() {
                ServiceKind::Switch => Ok(vec![Permission::service(service)]),
                ServiceKind::Names => all(selection::globs(value), |name| Permission::Service(service, name)),
            }
        }
    }
}

/// Returns the permissions of the values in a list.
fn all<T: Clone>(
    list: Result<Limited<T>, String>,
    permission: impl Fn(T) -> Permission,
) -> anyhow::Result<Vec<Permission>> {
    Ok(list.map_err(Error::msg)?.permissions(permission).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::options::permissions::Permissions;
    use toolcrib_settings::config::Key;

    use super::*;

    /// Permissions without the rest of a command line.
    #[derive(Debug, Parser)]
    #[command(no_binary_name = true, disable_help_flag = true)]
    struct Denials {
        #[command(flatten)]
        permissions: Permissions,
    }

    fn of_settings(name: &'static str, value: &str) -> Vec<Permission> {
        let (values, origin) = (vec![value.to_owned()], "`deny` in `t:1`".to_owned());
        let denial = ConfiguredDenial { name, values, origin, is_given: false };
        let config = Config { denials: vec![denial], ..Config::default() };
        let denied = denials(&config).unwrap().into_iter();
        denied.inspect(|(_, origin)| assert!(origin.ends_with("`t:1`"))).map(|(permission, _)| permission).collect()
    }

    #[test]
    fn a_denial_of_a_file_is_that_of_its_option() {
        for key in Key::all_keys().filter(|key| key.section == "deny") {
            let values: &[&str] = match key.name {
                "delegate" | "meta" | "model" => &["true"],
                "hooks" => &["*", "one", "/srv"],
                "net" => &["*", "api.example.com", "GET,HEAD one.example", "10.0.0.0/8:443", "fetch_*:a.example"],
                "exec" | "call" => &["*", "fs_*", "report:fs_*"],
                "secret" => &["*", "maps@maps.example.com#query:key"],
                _ => &["*", "one", "/srv", "fs_*:one", "@builtin:/srv"],
            };
            for value in values {
                let option = match *value {
                    "true" => format!("--deny-{}", key.name),
                    value => format!("--deny-{}={value}", key.name),
                };
                let by_option = Denials::try_parse_from([&option]).unwrap();
                let by_option: Vec<Permission> = by_option.permissions.denied().collect();
                assert!(!by_option.is_empty(), "{option}");
                assert_eq!(of_settings(key.name, value), by_option, "{option}");
            }
        }
        assert_eq!(of_settings("read", "/srv/a,b"), [Permission::Read("/srv/a,b".into())], "one folder");
    }
}
