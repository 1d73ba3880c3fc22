//! A run in a few facts, for a list of many runs: from the beginning and the end of its file if it has ended, so that the time
//! for the list does not grow with the conversations.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context;
use toolcrib::owner_only;

use crate::agent::message::{Message, Role};
use crate::agent::turn::Usage;

use super::line::{Header, Line, RUN_VERSION};
use super::reading::{KeptRun, RunState, header_of};

/// Maximum bytes that are read at the beginning and at the end of a file.
const MAX_PART: u64 = 64 << 10;

/// A run in a few facts.
#[derive(Debug)]
pub(crate) struct RunSummary {
    pub(crate) header: Header,
    /// First prompt.
    pub(crate) title: String,
    pub(crate) usage: Option<Usage>,
    pub(crate) steps: u32,
    pub(crate) calls: u64,
    pub(crate) state: RunState,
}

impl From<&KeptRun> for RunSummary {
    fn from(run: &KeptRun) -> Self {
        let KeptRun { header, usage, steps, calls, state, .. } = run;
        let (header, state) = (header.clone(), state.clone());
        Self { header, title: run.title(), usage: *usage, steps: *steps, calls: *calls, state }
    }
}

impl RunSummary {
    /// Reads the beginning and the end of a file; `None` if these do not suffice: the file is short, the run has not ended, its
    /// first prompt is long, or prompts may have been taken back.
    pub(super) fn of_parts(path: &Path) -> io::Result<Option<Self>> {
        let Some((beginning, end)) = parts(path)? else { return Ok(None) };
        Ok(Self::parsed(&beginning, &end))
    }

    fn parsed(beginning: &[u8], end: &[u8]) -> Option<Self> {
        let mut lines = beginning.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let header = header_of(lines.next()?, "").ok().filter(|header| header.version == RUN_VERSION)?;
        let title = lines.find_map(|line| match serde_json::from_slice(line).ok()? {
            Line::Message { message, .. } => serde_json::from_value(message).ok().filter(is_prompt),
            _ => None,
        })?;
        let last = end.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
        let Ok(Line::End { reason, whole: Some(whole), .. }) = serde_json::from_slice(last) else { return None };
        if whole.undone != Some(false) {
            return None;
        }
        let state = RunState::Ended(reason);
        Some(Self {
            header,
            title: title.shown_text(),
            usage: whole.usage,
            steps: whole.steps,
            calls: whole.calls,
            state,
        })
    }
}

fn is_prompt(message: &Message) -> bool {
    message.role == Role::User
}

/// Reads the header of a file; `None` if its first line was never completed.
///
/// # Errors
///
/// The file cannot be read, or is no run.
pub(super) fn header(path: &Path) -> anyhow::Result<Option<Header>> {
    let name = path.display().to_string();
    let file = owner_only::options().read(true).open(path).with_context(|| format!("cannot read the run `{name}`"))?;
    let mut bytes = Vec::new();
    file.take(MAX_PART).read_to_end(&mut bytes).with_context(|| format!("cannot read the run `{name}`"))?;
    match bytes.iter().position(|byte| *byte == b'\n') {
        None if (bytes.len() as u64) < MAX_PART => Ok(None),
        end => header_of(&bytes[..end.unwrap_or(bytes.len())], &name).map(Some),
    }
}

/// Reads the beginning and the end of a file; `None` if it is short enough to be read whole.
fn parts(path: &Path) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut file = owner_only::options().read(true).open(path)?;
    let length = file.metadata()?.len();
    if length <= 2 * MAX_PART {
        return Ok(None);
    }
    let (mut beginning, mut end) = (Vec::new(), Vec::new());
    file.by_ref().take(MAX_PART).read_to_end(&mut beginning)?;
    file.seek(SeekFrom::Start(length - MAX_PART))?;
    file.take(MAX_PART).read_to_end(&mut end)?;
    Ok(Some((beginning, end)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Lines of a run with a middle of this many bytes that is no JSON.
    fn run(middle: usize, last: &serde_json::Value) -> String {
        let first = json!({ "type": "run", "version": 1, "id": "7k3md-x0q9a", "created": "2026-01-31T12:00:00Z",
            "door": "run", "model": "m", "folder": "/work" });
        let message =
            |role: &str, text: &str| json!({ "type": "message", "message": { "role": role, "content": text } });
        let lines = [first, message("system", "be kind"), message("user", "go")];
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        format!("{lines}{}\n{last}\n", "x".repeat(middle))
    }

    #[test]
    fn a_long_run_is_summed_up_by_its_beginning_and_its_end() {
        let end = json!({ "type": "end", "at": "2026-01-31T12:00:00Z", "reason": "answer", "steps": 1, "calls": 0,
            "whole": { "steps": 7, "calls": 3, "usage": { "promptTokens": 1, "completionTokens": 2, "totalTokens": 3 }, "undone": false } });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            RunSummary::of_parts(&path).unwrap()
        };
        let long = usize::try_from(4 * MAX_PART).unwrap();
        let run_of = |last: &serde_json::Value| run(long, last);
        let found = read(&run_of(&end)).expect("a summary");
        assert_eq!((found.title.as_str(), found.steps, found.calls), ("go", 7, 3));
        assert_eq!((found.usage.unwrap().total_tokens, found.state), (3, RunState::Ended("answer".into())));
        assert_eq!(header(&path).unwrap().unwrap().folder, "/work");
        // Whatever the parts do not tell is read from the whole.
        assert!(read(&run(10, &end)).is_none(), "short");
        assert!(read(&run_of(&json!({ "type": "void" }))).is_none(), "open");
        let mut undone = end.clone();
        undone["whole"]["undone"] = json!(true);
        assert!(read(&run_of(&undone)).is_none(), "the first prompt may have been taken back");
        undone["whole"].as_object_mut().unwrap().remove("undone");
        assert!(read(&run_of(&undone)).is_none(), "nothing says that it was not");
        assert!(read(run_of(&end).trim_end()).is_none(), "torn");
        assert!(read(&run_of(&end).replacen("go", &"go ".repeat(long), 1)).is_none(), "a long prompt");
        std::fs::write(&path, "{\"type\":").unwrap();
        assert!(header(&path).unwrap().is_none(), "never begun");
        std::fs::write(&path, "x".repeat(long)).unwrap();
        assert!(header(&path).unwrap_err().to_string().contains("line 1"));
    }
}
