//! Line about the hooks that changed or blocked a call.

use std::path::Path;

use toolcrib::call::{HookAction, HookNote};

use super::{MAX_EXCERPT, MAX_NAMED, aside, from_here, one_line, shortened};

/// Writes one line that names the hooks that changed or blocked a call, each with its source and its effect. `subject` is the
/// tool or the event, and `margin` the prefix of a subagent.
pub fn hooks(margin: &str, subject: &str, notes: &[HookNote]) {
    let clip = |text: &str| unambiguous(one_line(&shortened(text, MAX_EXCERPT)));
    let mut effects: Vec<_> = notes
        .iter()
        .take(MAX_NAMED)
        .map(|note| {
            let source = note.source.as_ref().map(|path| format!(" ({})", clip_start(from_here(Path::new(path)))));
            format!("hook {}{} {}", clip(&note.hook), source.unwrap_or_default(), effect(note))
        })
        .collect();
    let more = notes.len().saturating_sub(MAX_NAMED);
    effects.extend((more > 0).then(|| format!("and {more} more")));
    aside(&format!("{margin}↪ {}: {}", clip(subject), effects.join("; ")));
}

/// Shortens a path at its start, because its end names the file.
fn clip_start(path: &Path) -> String {
    let text = one_line(&path.to_string_lossy());
    unambiguous(match text.chars().count().checked_sub(MAX_EXCERPT) {
        None | Some(0) => text,
        Some(surplus) => std::iter::once('…').chain(text.chars().skip(surplus + 1)).collect(),
    })
}

/// Quotes a text that could pass for another part of the line.
fn unambiguous(text: String) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-…".contains(c);
    if text.chars().all(is_plain) { text } else { format!("{text:?}") }
}

fn effect(note: &HookNote) -> &'static str {
    match (note.action, note.point) {
        (Some(HookAction::ChangedArguments), _) => "changed the arguments",
        (Some(HookAction::ChangedResult), _) => "changed the result",
        (Some(HookAction::Blocked), Some("after")) => "withheld the result",
        (Some(HookAction::Blocked), _) if note.verdict == "failed" => "failed and blocked the call",
        (Some(HookAction::Blocked), _) => "blocked the call",
        (Some(HookAction::ChangedEvent), _) => "changed the text",
        (Some(HookAction::Delegated), _) => "handed the call to another agent",
        (Some(HookAction::Allowed), _) => "allowed the call",
        _ => "acted on the call",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_keeps_its_end() {
        assert_eq!(clip_start(Path::new("a/guard.md")), "a/guard.md");
        let long = clip_start(Path::new(&format!("{}/guard.md", "x".repeat(200))));
        assert!(long.starts_with('…') && long.ends_with("/guard.md"), "{long}");
        assert_eq!(long.chars().count(), MAX_EXCERPT);
    }

    #[test]
    fn no_name_passes_for_another_part_of_the_line() {
        assert_eq!(unambiguous("fs_read-2.md".to_owned()), "fs_read-2.md");
        assert_eq!(unambiguous("a\" (b.md) did".to_owned()), r#""a\" (b.md) did""#);
    }
}
