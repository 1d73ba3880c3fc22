//! Text of a review: what a subject requests, the most far-reaching first, and what has changed since it was trusted.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use crate::render::{self, one_line};
use crate::trust::{Item, State, Subject, TrustRecord, phrases};

/// Difference of a part of a subject from the reviewed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    /// Name of the tool, hook or setting.
    name: String,
    /// Kind of the difference.
    kind: ChangeKind,
    /// Requests that were not reviewed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<String>,
}

/// Kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ChangeKind {
    New,
    Removed,
    Program,
    Definition,
    /// Nothing that trust grants.
    Text,
}

/// Formats a review.
pub(super) fn text(path: &Path, subject: &Subject, state: &State) -> String {
    let mut text = String::new();
    let shown = one_line(&render::from_here(path).display().to_string());
    let heading = match state {
        State::Trusted => "is trusted".to_owned(),
        State::Changed(record) => format!("has changed since it was trusted on {:.0}", record.given),
        State::Unknown => "is not trusted".to_owned(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{shown} {heading}.");
    if let State::Changed(record) = state {
        let _ = writeln!(text, "\nChanges:");
        for change in changes(record, subject) {
            let _ = writeln!(text, "  {}", change.line());
            phrases(&change.requests).iter().for_each(|phrase| {
                let _ = writeln!(text, "    new: {phrase}");
            });
        }
    }
    let _ = writeln!(text, "\nTrust would allow:");
    text += &subject.requests();
    let _ = write!(text, "\nDigest: {}", subject.digest);
    text
}

/// Lists the differences of a subject from the record of an earlier review.
pub(super) fn changes(record: &TrustRecord, subject: &Subject) -> Vec<Change> {
    let find = |items: &[Item], name: &str| items.iter().find(|item| item.name == name).cloned();
    let present = subject.items.iter().filter_map(|item| {
        let Some(before) = find(&record.items, &item.name) else {
            return Some(Change { name: item.name.clone(), kind: ChangeKind::New, requests: item.requests.clone() });
        };
        let kind = match () {
            () if before.definition != item.definition => ChangeKind::Definition,
            () if before.program != item.program => ChangeKind::Program,
            () => return None,
        };
        let added = item.requests.iter().filter(|request| !before.requests.contains(request));
        Some(Change { name: item.name.clone(), kind, requests: added.cloned().collect() })
    });
    let removed = record.items.iter().filter(|item| find(&subject.items, &item.name).is_none());
    let removed =
        removed.map(|item| Change { name: item.name.clone(), kind: ChangeKind::Removed, requests: Vec::new() });
    let mut changes: Vec<Change> = present.chain(removed).collect();
    if changes.is_empty() {
        let name = subject.path.file_name().unwrap_or(subject.path.as_os_str()).to_string_lossy().into_owned();
        changes.push(Change { name, kind: ChangeKind::Text, requests: Vec::new() });
    }
    changes
}

impl Change {
    fn line(&self) -> String {
        let name = one_line(&self.name);
        match self.kind {
            ChangeKind::New => format!("{name} is new"),
            ChangeKind::Removed => format!("{name} was removed"),
            ChangeKind::Program => format!("{name} has another program"),
            ChangeKind::Text => {
                format!(
                    "the text of {name} changed, and nothing in it that trust allows: no setting, no tool, no program"
                )
            }
            ChangeKind::Definition => {
                format!("{name} has another definition: description, schema, arguments or requests")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_text_that_changed_alone_is_named() {
        let items = vec![item("a", "1", &["net:a:443"])];
        let record = TrustRecord {
            path: "/p/toolcrib.toml".into(),
            digest: "sha256:0".into(),
            given: Timestamp::UNIX_EPOCH,
            items: items.clone(),
        };
        let subject = Subject { path: record.path.clone(), digest: "sha256:1".into(), items };
        let changes = changes(&record, &subject);
        assert_eq!((changes.len(), changes[0].kind), (1, ChangeKind::Text));
        assert!(changes[0].line().starts_with("the text of toolcrib.toml changed"), "{}", changes[0].line());
    }

    fn item(name: &str, definition: &str, requests: &[&str]) -> Item {
        let requests = requests.iter().map(ToString::to_string).collect();
        let (name, definition, program) = (name.to_owned(), definition.to_owned(), Some("p".to_owned()));
        Item { name, definition, program, requests, ceilings: Vec::new() }
    }

    #[test]
    fn every_difference_is_named_with_the_requests_that_are_new() {
        let items = vec![item("a", "1", &["net:a:443"]), item("b", "1", &[]), item("gone", "1", &[])];
        let record = TrustRecord {
            path: "/p/tools.json".into(),
            digest: "sha256:0".into(),
            given: Timestamp::UNIX_EPOCH,
            items,
        };
        let mut items = vec![item("a", "2", &["net:a:443", "env:TOKEN"]), item("b", "1", &[]), item("c", "1", &[])];
        items[1].program = Some("q".to_owned());
        let subject = Subject { path: record.path.clone(), digest: "sha256:1".into(), items };
        let text = text(Path::new("/p/tools.json"), &subject, &State::Changed(Box::new(record)));
        for line in [
            "/p/tools.json has changed since it was trusted on 1970-01-01T00:00:00Z.",
            "  a has another definition: description, schema, arguments or requests",
            "    new: read the environment variable TOKEN",
            "  b has another program",
            "  c is new",
            "  gone was removed",
            "    send requests to a:443",
            "Digest: sha256:1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
