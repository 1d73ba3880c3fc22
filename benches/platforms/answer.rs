//! Answer of a case on one platform: named parts, in which only what differs from run to run is masked. Two answers are
//! compared byte by byte.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use ring::digest::{SHA256, digest};
use serde_json::Value;

/// Times, and identifiers of calls, of runs and of stored results.
static MASKED: LazyLock<[(Regex, &str); 6]> = LazyLock::new(|| {
    [
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "$$TIME"),
        (r"\b\d+(\.\d+)? (ms|s)\b", "$$DURATION"),
        (r"\b(call|inv|run|ses|res)_[0-9a-f]{12,32}(_\d+)?\b", "${1}_$$ID"),
        // The system's own words for an error.
        (r"[A-Z][^:\n]*\(os error \d+\)", "$$SYSTEM_ERROR"),
        // The head of the chain covers the times in its records.
        (r"\bhead [0-9a-f]{64}\b", "head $$DIGEST"),
        (r"\.toolcrib-[0-9A-Za-z]+\.tmp", ".toolcrib-$$ID.tmp"),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).expect("a pattern"), with))
});

/// Members of audit records and receipts that hold times, identifiers, or digests over those; `source` is a digest of the path
/// of the source.
const MASKED_MEMBERS: [&str; 10] =
    ["ts", "callId", "invocation", "waitedMs", "ms", "cpuMs", "chain", "session", "run", "source"];
/// Members of results that hold the time of the call, or of the files that the case created, or a duration.
const TIMES: [&str; 7] = ["iso", "utc", "unix", "modified", "accessed", "created", "ms"];

/// Named parts, in the order of the runs of a case.
#[derive(Debug, Default)]
pub(crate) struct Answer(Vec<(String, String)>);

impl Answer {
    pub(crate) fn add(&mut self, part: &str, text: String) {
        self.0.push((part.to_owned(), text));
    }

    /// All parts: name and text.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Sorts the lines of each part and the parts of each name, for calls that run at once. Records lose their number.
    pub(crate) fn sort(&mut self) {
        let number = Regex::new(r#""seq":\d+,"#).expect("a pattern");
        for (_, text) in &mut self.0 {
            *text = number.replace_all(text, "").into_owned();
            let mut lines: Vec<_> = text.lines().collect();
            lines.sort_unstable();
            *text = lines.join("\n");
        }
        self.0.sort();
    }

    /// Answer of a case that is left out on a platform.
    pub(crate) fn left_out() -> Self {
        Self(vec![("left out".to_owned(), String::new())])
    }

    pub(crate) fn is_left_out(&self) -> bool {
        self.0.first().is_some_and(|(name, _)| name == "left out")
    }

    /// Adds the names and the digests of all files below a folder, if there are any.
    pub(crate) fn add_files(&mut self, part: &str, folder: &Path) {
        let mut lines = Vec::new();
        list(folder, "", &mut lines);
        lines.sort();
        self.add(part, lines.join("\n"));
    }

    /// Returns each part that differs, with both texts. With `has_backslashes`, the other platform joins the names of a path by
    /// backslashes, which equal slashes.
    pub(crate) fn differences<'a>(
        &'a self,
        other: &'a Self,
        has_backslashes: bool,
    ) -> Vec<(&'a str, &'a str, &'a str)> {
        let differ = |one: &str, two: &str| one != two && !(has_backslashes && with_slashes(one) == with_slashes(two));
        let missing =
            |at: usize, answer: &'a Self| answer.0.get(at).map_or("(no such part)", |(_, text)| text.as_str());
        let longest = if self.0.len() < other.0.len() { other } else { self };
        let names = longest.0.iter().map(|(name, _)| name.as_str()).enumerate();
        names
            .map(|(at, name)| (name, missing(at, self), missing(at, other)))
            .filter(|(_, one, two)| differ(one, two))
            .collect()
    }
}

/// Replaces each backslash, and each pair, which JSON needs for one, by a slash.
fn with_slashes(text: &str) -> String {
    text.replace(r"\\", "/").replace('\\', "/")
}

fn list(folder: &Path, below: &str, lines: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_dir() => {
                lines.push(format!("{name}/"));
                list(&path, &format!("{name}/"), lines);
            }
            Ok(about) if about.is_file() => {
                let digest = digest(&SHA256, &fs::read(&path).unwrap_or_default());
                let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                lines.push(format!("{name} {} bytes, sha256:{digest}", about.len()));
            }
            _ => lines.push(format!("{name} (not a file)")),
        }
    }
}

/// Masks of the folders of a case.
pub(crate) struct Masks {
    /// Spellings of the folders, each with its mask, the longest first.
    folders: Vec<(String, &'static str)>,
    /// `true` if the platform separates names by backslashes: they become slashes in paths below the folders.
    has_backslashes: bool,
    /// Path below a masked folder.
    paths: Regex,
}

impl Masks {
    pub(crate) fn of(folders: Vec<(String, &'static str)>, has_backslashes: bool) -> Self {
        let paths = Regex::new(r"\$(FOLDER|AROUND)([/\\]+[\w.-]+)+").expect("a pattern");
        Self { folders, has_backslashes, paths }
    }

    /// Masks an output of the program: a line with a record or a receipt by its members.
    pub(crate) fn output(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let masked = |line: &str| match serde_json::from_str::<Value>(line) {
            Ok(value) if value.get("receipt").is_some() || value.get("chain").is_some() => self.record(&value),
            _ => self.text(line.as_bytes()),
        };
        // Whole lines, so that an end of a line that differs is seen.
        text.split('\n').map(masked).collect::<Vec<_>>().join("\n")
    }

    /// Masks the folder, times and identifiers in a text.
    pub(crate) fn text(&self, bytes: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        for (spelling, mask) in &self.folders {
            text = text.replace(spelling.as_str(), mask);
        }
        if self.has_backslashes {
            text = self
                .paths
                .replace_all(&text, |path: &Captures<'_>| path[0].replace('\\', "/").replace("//", "/"))
                .into_owned();
        }
        for (pattern, with) in MASKED.iter() {
            text = pattern.replace_all(&text, *with).into_owned();
        }
        text
    }

    /// Masks the members of a record, and its texts.
    pub(crate) fn record(&self, record: &Value) -> String {
        self.text(without(record, &MASKED_MEMBERS).to_string().as_bytes())
    }

    /// Masks the times in the result of a tool. A text that is JSON is masked as such.
    pub(crate) fn result(&self, result: &Value) -> String {
        let nested = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
        let result = match result {
            Value::String(text) => nested(text).map_or_else(|| result.clone(), |inner| without(&inner, &TIMES)),
            other => without(other, &TIMES),
        };
        self.text(result.to_string().as_bytes())
    }
}

/// Returns a value in which these members have a mask instead of their value, at any depth.
fn without(value: &Value, members: &[&str]) -> Value {
    let masked = |key: &String, value: &Value| match members.contains(&key.as_str()) && !value.is_null() {
        true => format!("${key}").into(),
        false => without(value, members),
    };
    match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), masked(key, value))).collect(),
        Value::Array(items) => items.iter().map(|item| without(item, members)).collect(),
        other => other.clone(),
    }
}

/// Adds the records of the audit log in a folder.
pub(crate) fn add_records(answer: &mut Answer, folder: &Path, masks: &Masks) {
    let entries = fs::read_dir(folder.join("audit")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<_> = entries.filter(|path| path.extension().is_some_and(|found| found == "log")).collect();
    logs.sort();
    for log in logs {
        for line in fs::read_to_string(log).unwrap_or_default().lines() {
            let record = serde_json::from_str(line).map_or_else(|_| line.to_owned(), |record| masks.record(&record));
            answer.add("record", record);
        }
    }
}
