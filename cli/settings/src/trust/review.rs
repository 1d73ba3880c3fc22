//! Text of a review: what a subject requests, the most far-reaching first, and what has changed since it was trusted.

use std::collections::HashSet;
use std::fmt::Write;

use serde::Serialize;
use toolcrib_base::render::one_line;

use super::{Item, State, Subject, TrustRecord, phrases};

/// Prefix of a settings file's requests.
const SETTING: &str = "setting:";

/// Difference between a part of a subject and the reviewed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewChange {
    /// Name of the tool, hook or setting.
    name: String,
    /// Kind of the difference.
    kind: ChangeKind,
    /// Requests that were not reviewed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<String>,
    /// Settings that asked or denied, and no longer do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lifted: Vec<String>,
    /// Changed files of a skill, each with its change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
}

/// Kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ChangeKind {
    New,
    Removed,
    Program,
    Definition,
    /// Value of a setting.
    Value,
    /// No part.
    Text,
}

/// Formats a review.
pub fn text(shown: &str, subject: &Subject, state: &State) -> String {
    let mut text = String::new();
    let shown = one_line(shown);
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
            for file in &change.files {
                let _ = writeln!(text, "    file {}", one_line(file));
            }
            for lifted in &change.lifted {
                let _ = writeln!(text, "    no longer: {}", one_line(lifted));
            }
        }
    }
    let verb = if let State::Trusted = state { "allows" } else { "would allow" };
    let _ = writeln!(text, "\nTrust {verb}:");
    text += &subject.requests();
    let _ = write!(text, "\nDigest: {}", subject.digest);
    text
}

/// Lists the differences of a subject from an earlier review's record.
pub fn changes(record: &TrustRecord, subject: &Subject) -> Vec<ReviewChange> {
    let find = |items: &[Item], name: &str| items.iter().find(|item| item.name == name).cloned();
    let present = subject.items.iter().filter_map(|item| {
        let Some(before) = find(&record.items, &item.name) else {
            return Some(ReviewChange::new(&item.name, ChangeKind::New, item.requests.clone(), Vec::new()));
        };
        let kind = match () {
            () if before.definition != item.definition && is_setting(item) => ChangeKind::Value,
            () if before.definition != item.definition => ChangeKind::Definition,
            () if before.program != item.program => ChangeKind::Program,
            () => return None,
        };
        let added = missing(&item.requests, &before.requests);
        let lifted = missing(&before.restrictions, &item.restrictions);
        let files = changed_files(&before, item);
        Some(ReviewChange { files, ..ReviewChange::new(&item.name, kind, added, lifted) })
    });
    let removed = record.items.iter().filter(|item| find(&subject.items, &item.name).is_none());
    let removed =
        removed.map(|item| ReviewChange::new(&item.name, ChangeKind::Removed, Vec::new(), item.restrictions.clone()));
    let mut changes: Vec<ReviewChange> = present.chain(removed).collect();
    if changes.is_empty() {
        let name = subject.path.file_name().unwrap_or(subject.path.as_os_str()).to_string_lossy().into_owned();
        changes.push(ReviewChange::new(&name, ChangeKind::Text, Vec::new(), Vec::new()));
    }
    changes
}

/// Returns the texts of `all` that `others` lacks.
fn missing(all: &[String], others: &[String]) -> Vec<String> {
    let others: HashSet<&String> = others.iter().collect();
    all.iter().filter(|text| !others.contains(text)).cloned().collect()
}

/// Lists the changed files of a skill. A record from an older program has none.
fn changed_files(before: &Item, item: &Item) -> Vec<String> {
    if before.files.is_empty() {
        return Vec::new();
    }
    let present = item.files.iter().filter_map(|(path, digest)| match before.files.get(path) {
        None => Some(format!("{path} is new")),
        Some(other) => (other != digest).then(|| format!("{path} changed")),
    });
    let removed = before.files.keys().filter(|path| !item.files.contains_key(*path));
    present.chain(removed.map(|path| format!("{path} was removed"))).collect()
}

/// Returns `true` for a setting of a settings file.
fn is_setting(item: &Item) -> bool {
    !item.restrictions.is_empty() || item.requests.iter().any(|request| request.starts_with(SETTING))
}

impl ReviewChange {
    fn new(name: &str, kind: ChangeKind, requests: Vec<String>, lifted: Vec<String>) -> Self {
        Self { name: name.to_owned(), kind, requests, lifted, files: Vec::new() }
    }

    fn line(&self) -> String {
        let name = one_line(&self.name);
        match self.kind {
            ChangeKind::New => format!("{name} is new"),
            ChangeKind::Removed => format!("{name} was removed"),
            ChangeKind::Program => format!("{name}: the program changed"),
            ChangeKind::Text => {
                format!("the text of {name} changed, but no setting, tool or program in it")
            }
            ChangeKind::Value => format!("{name}: the value changed"),
            ChangeKind::Definition if !self.files.is_empty() => format!("{name}: files of the skill changed"),
            ChangeKind::Definition => {
                format!("{name}: the definition changed (description, schema, arguments or requests)")
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
            has_tools_alone: false,
        };
        let subject = Subject { path: record.path.clone(), digest: "sha256:1".into(), items, has_tools_alone: false };
        let changes = changes(&record, &subject);
        assert_eq!((changes.len(), changes[0].kind), (1, ChangeKind::Text));
        assert!(changes[0].line().starts_with("the text of toolcrib.toml changed"), "{}", changes[0].line());
    }

    fn item(name: &str, definition: &str, requests: &[&str]) -> Item {
        let requests = requests.iter().map(ToString::to_string).collect();
        let program = Some("p".to_owned());
        Item { program, requests, ..Item::new(name.to_owned(), definition.to_owned()) }
    }

    #[test]
    fn changed_files_of_a_skill_are_named() {
        let item = |definition: &str, files: &[(&str, &str)]| Item {
            files: files.iter().map(|(path, digest)| (path.to_string(), digest.to_string())).collect(),
            ..item("tally", definition, &[])
        };
        let before = item("1", &[("SKILL.md", "1"), ("a.py", "1"), ("gone.md", "1")]);
        let record = TrustRecord {
            path: "/p/tally".into(),
            digest: "sha256:0".into(),
            given: Timestamp::UNIX_EPOCH,
            items: vec![before],
            has_tools_alone: true,
        };
        let items = vec![item("2", &[("SKILL.md", "1"), ("a.py", "2"), ("b.md", "1")])];
        let subject = Subject { path: record.path.clone(), digest: "sha256:1".into(), items, has_tools_alone: true };
        let text = text("/p/tally", &subject, &State::Changed(Box::new(record)));
        let lines = "  tally: files of the skill changed\n    file a.py changed\n    file b.md is new\n    file gone.md was removed\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn every_difference_is_named_with_the_requests_that_are_new() {
        let items = vec![item("a", "1", &["net:a:443"]), item("b", "1", &[]), item("gone", "1", &[])];
        let record = TrustRecord {
            path: "/p/tools.json".into(),
            digest: "sha256:0".into(),
            given: Timestamp::UNIX_EPOCH,
            items,
            has_tools_alone: true,
        };
        let mut items = vec![item("a", "2", &["net:a:443", "env:TOKEN"]), item("b", "1", &[]), item("c", "1", &[])];
        items[1].program = Some("q".to_owned());
        let subject = Subject { path: record.path.clone(), digest: "sha256:1".into(), items, has_tools_alone: true };
        let text = text("/p/tools.json", &subject, &State::Changed(Box::new(record)));
        for line in [
            "/p/tools.json has changed since it was trusted on 1970-01-01T00:00:00Z.",
            "  a: the definition changed (description, schema, arguments or requests)",
            "    new: read the environment variable TOKEN",
            "  b: the program changed",
            "  c is new",
            "  gone was removed",
            "    send requests to a:443",
            "Digest: sha256:1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
