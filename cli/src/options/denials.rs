//! Denials of settings files, parsed as the options that they stand for.

use anyhow::Context;
use clap::Parser;
use toolcrib::policy::Permission;

use crate::config::{Config, ConfiguredDenial};

use super::permissions::Permissions;

/// Permissions without the rest of a command line.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Denials {
    #[command(flatten)]
    permissions: Permissions,
}

/// Returns the denials of settings files, each with its key and its file.
///
/// # Errors
///
/// An option refuses a value that the settings accept.
pub(super) fn denials(config: &Config) -> anyhow::Result<Vec<(Permission, String)>> {
    let mut all = Vec::new();
    for ConfiguredDenial { options, origin } in &config.denials {
        let parsed = Denials::try_parse_from(options).with_context(|| format!("cannot apply {origin}"))?;
        all.extend(parsed.permissions.denied().map(|permission| (permission, origin.clone())));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_of_a_file_is_that_of_its_option() {
        let options = ["--deny-read=*", "--deny-net=*", "--deny-exec=fs_*", "--deny-model"].map(str::to_owned).to_vec();
        let denial = ConfiguredDenial { options, origin: "`deny` in `t:1`".to_owned() };
        let config = Config { denials: vec![denial], ..Config::default() };
        let all = denials(&config).unwrap();
        assert_eq!(all.len(), 4);
        assert!(
            matches!(&all[0], (Permission::Read(folder), origin) if folder.as_os_str() == "/" && origin.ends_with("`t:1`"))
        );
    }
}
