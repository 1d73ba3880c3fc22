//! Assignments of `--set NAME=VALUE`: settings for one command, above the environment and all files. Whoever types the command
//! gives them, so they may do the same as options.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::Context;
use toolcrib_base::render::{Advice, Mistake, message, usage_error};

use super::edit::Change;
use super::key::find;
use super::layer::{Layer, Setting, SettingsText};
use super::layer_kind::LayerKind;

/// Option of the assignments, and the name of their layer in messages.
pub const SET: &str = "--set";

/// Layer of the assignments of this process.
static LAYER: OnceLock<Layer> = OnceLock::new();

/// Assignment of one key.
#[derive(Debug, Clone)]
pub struct Assignment(Setting);

impl Assignment {
    /// Parses `NAME=VALUE`, with the value as `toolcrib config set` takes it.
    ///
    /// # Errors
    ///
    /// The key is unknown, the value is missing, or the key does not accept it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let key = text.split_once('=').and_then(|(name, _)| find(name));
        Self::read(text).map_err(|error| match (error.downcast::<Mistake>(), key) {
            (Ok(_), Some(key)) if key.is_sensitive => format!("`{key}` must be another value: {}", key.kind()),
            (Ok(Mistake { message, .. }), _) => message,
            (Err(error), _) => match error.downcast_ref::<Advice>() {
                Some(advice) => format!("{advice}; {}", advice.hint()),
                None => message(&error),
            },
        })
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        let (name, value) = text.split_once('=').context("a value is missing: write `NAME=VALUE`")?;
        let text = Change::Set(value).make("", &[], name)?.context("a change makes a text")?;
        // Without a name of a file, mistakes have no place.
        let parsed = SettingsText::parse(Path::new(""), "", text, LayerKind::Set)?;
        parsed.settings.into_iter().next().map(Self).context("a text with a key has a setting")
    }
}

/// Uses assignments for the whole program; only the first call has an effect. `arguments` are those of the program.
///
/// # Errors
///
/// A usage error if one is wrong, or if one before the name of the command was lost to those after it.
pub fn use_assignments(assignments: &[String], arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<()> {
    let is_set = |argument: &OsString| argument.to_str().is_some_and(|text| text.split('=').next() == Some(SET));
    let typed = arguments.into_iter().take_while(|argument| argument != "--").filter(is_set).count();
    if !assignments.is_empty() && typed > assignments.len() {
        return Err(usage_error("give every `--set` after the name of the command"));
    }
    let mut settings: Vec<Setting> = Vec::new();
    for text in assignments {
        let Assignment(setting) = Assignment::parse(text).map_err(|error| usage_error(format!("{SET}: {error}")))?;
        match settings.iter_mut().find(|known| known.name == setting.name) {
            Some(known) => known.add(setting),
            None => settings.push(setting),
        }
    }
    if !settings.is_empty() {
        let (kind, file) = (LayerKind::Set, SET.to_owned());
        // Fails only on a second call; `main` makes the only one.
        let _ = LAYER.set(Layer { kind, path: Path::new("").to_path_buf(), file, settings, is_trusted: true });
    }
    Ok(())
}

/// Returns the layer of the assignments, if there are any.
pub(super) fn layer() -> Option<&'static Layer> {
    LAYER.get()
}

/// Returns an environment variable, unless an assignment takes the place of its value.
pub fn variable(name: &str) -> Option<String> {
    let is_assigned = |layer: &Layer| layer.settings.iter().any(|setting| setting.key.variables.contains(&name));
    match layer().is_some_and(is_assigned) {
        true => None,
        false => std::env::var(name).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_assignment_is_read_as_a_settings_file_reads_it() {
        for (text, value) in [
            ("limits.max_memory=4MiB", json!("4MiB")),
            ("limits.concurrency=4", json!(4)),
            ("model.name=a=b", json!("a=b")),
            ("allow.read=docs", json!(["docs"])),
            ("allow.read=[\"a\", \"b\"]", json!(["a", "b"])),
            ("allow.read=[]", json!([])),
            ("deny.model=true", json!(true)),
            ("deny.net=[::1]:443", json!(["[::1]:443"])),
            ("config.summarize.style=brief", json!({"style": "brief"})),
            ("records.audit_dir=./log", json!("./log")),
        ] {
            assert_eq!(Assignment::parse(text).unwrap().0.value, value, "{text}");
        }
        for (text, message) in [
            ("limits.max_memory", "a value is missing: write `NAME=VALUE`"),
            ("limits.max_memry=1", "unknown key `limits.max_memry`; did you mean `limits.max_memory`?"),
            ("max-memory=1MiB", "unknown key `max-memory`; did you mean `limits.max_memory`?"),
            ("limits.max_memory=large", "`limits.max_memory`: `large` is not a size such as `64MiB`"),
            ("limits.concurrency=0", "`limits.concurrency` must be a whole number from 1 to 1000, found `0`"),
            ("allow.model=yes", "`allow.model` must be `true` or `false`, found `\"yes\"`"),
            ("records.otlp=ftp://user:hidden@host", "`records.otlp` must be another value: URL"),
            ("profile.ci.model.name=x", "unknown key `profile.ci.model.name`; "),
            (
                "deny.read=[\"desk\"",
                "`deny.read`: `[\"desk\"` is not a list; write `[\"a\", \"b\"]`, or one item alone",
            ),
            ("deny.read=[desk]", "`deny.read`: `[desk]` is not a list; "),
            ("deny.exec=[git]", "`deny.exec`: `[git]` is not a list; "),
            ("run.tags=[ci]", "`run.tags`: `[ci]` is not a list; "),
            ("permissions.deny=[fs_*]", "`permissions.deny`: `[fs_*]` is not a list; "),
            ("permissions.deny= ['fs_*'", "`permissions.deny`: `['fs_*'` is not a list; "),
        ] {
            let error = Assignment::parse(text).unwrap_err();
            assert!(error.starts_with(message) && !error.contains("hidden"), "{text}: {error}");
        }
    }

    #[test]
    fn lists_and_tables_of_a_repeated_key_add_up() {
        let value = |texts: [&str; 2]| {
            let [mut one, other] = texts.map(|text| Assignment::parse(text).unwrap().0);
            one.add(other);
            one.value
        };
        assert_eq!(value(["deny.net=a.example", "deny.net=[\"b.example\"]"]), json!(["a.example", "b.example"]));
        assert_eq!(value(["limits.fuel=1", "limits.fuel=2"]), json!(2));
        assert_eq!(value(["config.a.b.c=1", "config.a.b.d=2"]), json!({"b": {"c": 1, "d": 2}}));
    }
}
