//! Notes of a receipt about hooks: their verdicts and their effects, never the content that they saw or changed.

use std::path::Path;

use serde::Serialize;
use toolcrib_foundation::text::{MAX_RECORDED, clipped};

use super::receipt::Receipt;

/// Maximum number of hooks that a receipt lists.
const MAX_NOTES: usize = 32;

/// Hook verdict about a call, or about an event of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HookNote {
    /// Name of the hook.
    pub hook: String,
    /// `allow`, `block`, `modify`, `delegate`, `replace` or `failed`; for a script also `pass`, since it has run.
    #[serde(rename = "said")]
    pub verdict: &'static str,
    /// `before` or `after` the call; `None` for an event without a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<&'static str>,
    /// Effect of the hook, if it had any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<HookAction>,
    /// File that defines a script hook. Of a long path, only the end is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// SHA-256 of a script hook, as `sha256:HEX`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Effect of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HookAction {
    /// The call runs with other arguments.
    ChangedArguments,
    /// The model gets another result.
    ChangedResult,
    /// An event without a tool continues with another payload.
    ChangedEvent,
    /// The call or event is refused, or the result is withheld. A hook that fails does that too.
    Blocked,
    /// Another agent takes over the call.
    Delegated,
    /// No person needs to approve the call. Only a hook of an embedder can do that.
    Allowed,
}

impl HookNote {
    /// Creates the note of a hook without an effect.
    pub(crate) fn new(hook: &str, verdict: &'static str) -> Self {
        Self { hook: clipped(hook), verdict, point: None, action: None, source: None, digest: None }
    }

    /// Sets the position of the hook in the call.
    #[must_use]
    pub(crate) fn point(self, point: &'static str) -> Self {
        Self { point: Some(point), ..self }
    }

    /// Sets the effect.
    #[must_use]
    pub(crate) fn action(self, action: Option<HookAction>) -> Self {
        Self { action, ..self }
    }

    /// Sets the file that defines the hook.
    #[must_use]
    pub(crate) fn source(self, path: &Path) -> Self {
        Self { source: Some(clipped_path(path)), ..self }
    }

    /// Sets the digest of the script.
    #[must_use]
    pub(crate) fn digest(self, digest: Option<String>) -> Self {
        Self { digest, ..self }
    }
}

impl Receipt {
    /// Adds the note of a hook. A full list keeps the hooks that had an effect.
    pub(crate) fn add_hook(&mut self, note: HookNote) {
        if self.hooks.len() < MAX_NOTES {
            self.hooks.push(note);
            return;
        }
        self.omitted_hooks += 1;
        let idle = self.hooks.iter().rposition(|known| known.action.is_none());
        if let Some(index) = idle.filter(|_| note.action.is_some()) {
            self.hooks.remove(index);
            self.hooks.push(note);
        }
    }
}

/// Shortens a path to the maximum length in a record, keeping its end.
fn clipped_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let surplus = text.chars().count().saturating_sub(MAX_RECORDED);
    match surplus {
        0 => text.into_owned(),
        surplus => std::iter::once('…').chain(text.chars().skip(surplus + 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, action: Option<HookAction>) -> HookNote {
        HookNote::new(name, "pass").action(action)
    }

    #[test]
    fn a_full_receipt_keeps_the_hooks_that_acted_and_counts_the_others() {
        let mut receipt = Receipt::begun("c".into(), "i".into(), "t".into());
        (0..MAX_NOTES + 5).for_each(|n| receipt.add_hook(note(&format!("idle{n}"), None)));
        assert_eq!((receipt.hooks.len(), receipt.omitted_hooks), (MAX_NOTES, 5));
        receipt.add_hook(note("late", Some(HookAction::Blocked)));
        assert_eq!((receipt.hooks.len(), receipt.omitted_hooks), (MAX_NOTES, 6));
        assert_eq!((receipt.hooks[0].hook.as_str(), receipt.hooks[MAX_NOTES - 1].hook.as_str()), ("idle0", "late"));
        (0..MAX_NOTES).for_each(|_| receipt.add_hook(note("more", Some(HookAction::ChangedResult))));
        assert!(receipt.hooks.iter().all(|note| note.action.is_some()) && receipt.hooks.len() == MAX_NOTES);
        assert_eq!(receipt.hooks[0].hook, "late");
    }

    #[test]
    fn names_and_paths_are_bounded_and_a_path_keeps_its_end() {
        let long = "x".repeat(5000);
        let noted = HookNote::new(&long, "block").source(Path::new(&format!("/{long}/guard.md")));
        assert_eq!(noted.hook.chars().count(), 256);
        let source = noted.source.unwrap();
        assert_eq!(source.chars().count(), MAX_RECORDED);
        assert!(source.starts_with('…') && source.ends_with("/guard.md"), "{source}");
        let whole = HookNote::new("h", "block").source(Path::new("/a/guard.md"));
        assert_eq!(whole.source.as_deref(), Some("/a/guard.md"));
    }

    #[test]
    fn an_effect_has_a_stable_name() {
        let noted = HookNote::new("h", "modify").point("before").action(Some(HookAction::ChangedArguments));
        let json = serde_json::to_string(&noted).unwrap();
        assert_eq!(json, r#"{"hook":"h","said":"modify","point":"before","action":"changed-arguments"}"#);
    }
}
