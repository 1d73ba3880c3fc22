//! Commands that repair a mistake in a settings file.

use std::path::Path;

use toolcrib_base::render::{Advice, Mistake, one_line, shell_path, shell_word};
use toolcrib_base::suggestion;

use super::key::find;
use super::layer_kind::LayerKind;
use super::profile::profile;

/// Table of the profiles, and its prefix in a key.
const PROFILE: &str = "profile";
const PROFILES: &str = "profile.";
/// Sections with keys that restrict.
const RESTRICTING: [&str; 2] = ["deny", "permissions"];

/// Adds the commands that repair the file to an error about its content.
pub(super) fn with_repair(error: anyhow::Error, kind: LayerKind, path: &Path) -> anyhow::Error {
    match error.downcast::<Mistake>() {
        Ok(Mistake { message, key, suggestion }) => {
            let repair = repair(kind, path, key.as_deref());
            let hint = match suggestion {
                Some(question) if question.ends_with('?') => format!("{question} {repair}"),
                Some(suggestion) => format!("{suggestion}; {repair}"),
                None => repair,
            };
            Advice::new(message, hint).into()
        }
        Err(error) => error,
    }
}

/// Names the commands that correct a key of a file, or its text. Of a key that restricts, and of one that is probably meant
/// as such, no command that removes it: the file would no longer ask or deny.
pub(crate) fn repair(kind: LayerKind, path: &Path, key: Option<&str>) -> String {
    let target = match kind {
        LayerKind::Set => return "correct the value of `--set`".to_owned(),
        LayerKind::Named => return format!("correct the file {}", shell_path(path)),
        LayerKind::Project => " --project",
        LayerKind::System => " --system",
        LayerKind::Profile | LayerKind::User => "",
    };
    let edit = format!("`toolcrib config edit{target}` opens the file");
    let Some(key) = key.filter(|key| !key.is_empty()) else { return edit };
    let of_profile = key.strip_prefix(PROFILES).and_then(|rest| rest.split_once('.'));
    let (profile, key) = match (of_profile, kind) {
        (Some((name, key)), LayerKind::User) => (Some(name), key),
        (None, LayerKind::Profile) => (profile(), key),
        _ => (None, key),
    };
    if key == PROFILE || is_restriction(key) {
        return edit;
    }
    let profile = profile.map(|name| format!(" --profile={}", shell_word(&one_line(name)))).unwrap_or_default();
    let key = shell_word(&one_line(key));
    format!("`toolcrib config unset{target}{profile} {key}` removes the key, and {edit}")
}

/// Returns `true` for a key, or a misspelt key, of a section whose keys restrict.
fn is_restriction(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    match find(key) {
        Some(key) => key.restricts(),
        None => suggestion::nearest(section, RESTRICTING).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repair_of_each_file_names_its_option() {
        let repair = |kind, key| repair(kind, Path::new("x.toml"), key);
        assert_eq!(repair(LayerKind::User, None), "`toolcrib config edit` opens the file");
        assert_eq!(
            repair(LayerKind::Project, Some("limits.memry")),
            "`toolcrib config unset --project limits.memry` removes the key, and `toolcrib config edit --project` opens the file"
        );
        let of_profile = repair(LayerKind::User, Some("profile.ci.limits.memry"));
        assert!(
            of_profile.starts_with("`toolcrib config unset --profile=ci limits.memry` removes the key"),
            "{of_profile}"
        );
        assert_eq!(repair(LayerKind::Named, Some("a.b")), "correct the file x.toml");
        for key in ["deny.net", "deny.nte", "permissions.deny", "permissions.dney", "permission.ask", "dney", "profile"]
        {
            assert_eq!(repair(LayerKind::User, Some(key)), "`toolcrib config edit` opens the file", "{key}");
        }
        let of_profile = repair(LayerKind::User, Some("profile.ci.deny.net"));
        assert_eq!(of_profile, "`toolcrib config edit` opens the file");
        assert!(repair(LayerKind::User, Some("permissions.allow")).contains("config unset permissions.allow"));
    }
}
