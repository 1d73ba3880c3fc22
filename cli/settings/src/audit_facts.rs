//! Records of the audit log for every command that shows them: their selection, their arguments as text, and a verified
//! log's summary.

use std::time::SystemTime;

use serde_json::Value;
use toolcrib::Outcome;
use toolcrib::audit::{Day, InvalidDay, LogEntry, Summary};
use toolcrib::policy::Pattern;
use toolcrib_base::render::{self, counted};

/// Selected records; `None` selects all.
#[derive(Debug, Default)]
pub struct CallSelection {
    /// Pattern of the name that was called.
    pub tool: Option<Pattern>,
    /// Outcome of the calls.
    pub outcome: Option<Outcome>,
    /// Identifier of the run.
    pub run: Option<String>,
    /// Text in the record, in lower case.
    pub text: Option<String>,
}

impl CallSelection {
    /// Returns `true` if a record is selected.
    pub fn includes(&self, entry: &LogEntry) -> bool {
        self.tool.as_ref().is_none_or(|pattern| pattern.matches_tool(&entry.tool))
            && self.outcome.is_none_or(|outcome| entry.outcome == outcome.as_str())
            && self.run.as_ref().is_none_or(|run| entry.run == *run)
            && self.text.as_ref().is_none_or(|text| entry.text.to_lowercase().contains(text))
    }
}

/// Returns the arguments of a record as text: their size if the record has no content, nothing if it has neither.
pub fn arguments(logged: &Value) -> String {
    let text = |name: &str| Some(logged.get(name)?.as_str()?.to_owned());
    let json = logged.get("json").map(Value::to_string);
    let content = json.or_else(|| text("text")).or_else(|| Some(text("cut")? + "…"));
    let size = || Some(format!("({})", render::counted(logged.get("bytes")?.as_u64()?, "byte")));
    content.or_else(size).unwrap_or_default()
}

/// Describes a verified log.
pub fn describe(summary: Summary) -> String {
    let Summary { files, records, first, last, head, .. } = summary;
    let mut text = format!("{}, {}", counted(files, "file"), counted(records, "record"));
    if let (Some(first), Some(last), Some(head)) = (first, last, head) {
        text += &format!(", seq {first} to {last}, head {head}");
        if first > 1 {
            text += &format!("\nthe log starts with record {first}; earlier records are not in this folder");
        }
    }
    text
}

/// Parses a UTC day: a date, `today` or `yesterday`.
pub fn day(text: &str) -> Result<Day, String> {
    let today = Day::of(SystemTime::now());
    match text {
        "today" => Ok(today),
        "yesterday" => Ok(today.before().unwrap_or(today)),
        _ => text.parse().map_err(|error: InvalidDay| format!("{error}, nor `today` or `yesterday`")),
    }
}
