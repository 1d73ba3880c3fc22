//! A run in a few facts, for a list of many runs: from the beginning and the end of its file, so that long
//! conversations do not slow the list.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, bail};
use toolcrib::owner_only;

use crate::message::{Message, Role};

use super::file::complete;
use super::line::{Header, Line, RUN_VERSION, RunFigures};
use super::reading::{KeptRun, RunState, header_of};

/// Bytes that are read at an end of a file, and then as long as these do not suffice.
const PARTS: [u64; 3] = [8 << 10, 64 << 10, 1 << 20];
/// Maximum length of a file that is read whole.
const MAX_WHOLE: u64 = 2 * PARTS[0];

/// A run in a few facts.
#[derive(Debug)]
pub struct RunSummary {
    /// Start of the file.
    pub header: Header,
    /// Beginning of the first prompt; empty if it is not known.
    pub title: String,
    /// Figures; `None` if the parts that are read do not hold them.
    pub figures: Option<RunFigures>,
    /// State of the run.
    pub state: RunState,
}

impl From<&KeptRun> for RunSummary {
    fn from(run: &KeptRun) -> Self {
        let KeptRun { header, figures, state, .. } = run;
        Self::new(header.clone(), Some(figures.clone()), state.clone(), None)
    }
}

impl RunSummary {
    /// Creates a summary; `prompt` is the title if the figures do not state one.
    fn new(header: Header, figures: Option<RunFigures>, state: RunState, prompt: Option<String>) -> Self {
        let title = figures.as_ref().and_then(|figures| figures.title.clone()).or(prompt).unwrap_or_default();
        Self { header, title, figures, state }
    }

    /// Reads the summary of a run from its file; `name` is the file's name in messages. Of a long file, only the
    /// beginning and the end are read, whether or not the run has ended.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or what is read of it is damaged.
    pub(super) fn read(file: &mut (impl Read + Seek), name: &str) -> anyhow::Result<Self> {
        let cannot_read = || format!("cannot read the run `{name}`");
        let length = file.seek(SeekFrom::End(0)).with_context(cannot_read)?;
        if length <= MAX_WHOLE {
            let bytes = part(file, 0, length).with_context(cannot_read)?;
            return Ok((&KeptRun::read(&bytes[..complete(&bytes)], name, false)?).into());
        }
        let (Some(header), beginning) = header(file, name)? else { bail!("`{name}`: line 1 is not complete") };
        if header.version != RUN_VERSION {
            bail!("`{name}`: format {} of a later version; this one reads {RUN_VERSION}", header.version);
        }
        let mut end = End::default();
        for size in PARTS {
            let start = length.saturating_sub(size);
            let bytes = part(file, start, size).with_context(cannot_read)?;
            // The first line of a part is not complete.
            let skipped = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            end = End::of(&bytes[if start == 0 { 0 } else { skipped }..complete(&bytes).max(skipped)])
                .with_context(|| format!("`{name}` is damaged near its end"))?;
            if end.figures.is_some() || start == 0 {
                break;
            }
        }
        // The first prompt may have been taken back, unless the figures state that nothing was.
        let is_there = end.figures.as_ref().is_some_and(|figures| figures.undone == Some(false));
        let prompt = first_prompt(&beginning).filter(|_| is_there);
        Ok(Self::new(header, end.figures, end.state.unwrap_or(RunState::Killed), prompt))
    }
}

/// Facts from the last lines of a file.
#[derive(Debug, Default)]
struct End {
    figures: Option<RunFigures>,
    state: Option<RunState>,
}

impl End {
    /// Reads the last line, and the lines before it back to one with figures.
    fn of(lines: &[u8]) -> anyhow::Result<Self> {
        let mut end = Self::default();
        let mut later = Vec::new();
        for line in lines.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line: Line = serde_json::from_slice(line)?;
            end.state.get_or_insert_with(|| match &line {
                Line::End { reason, .. } => RunState::Ended(reason.clone()),
                _ => RunState::Killed,
            });
            if let Some(figures) = line.figures() {
                let mut figures = figures.clone();
                // After an undo without figures, nobody knows whether the first prompt is still there, or which one took its
                // place.
                let is_undone = later.iter().any(|line| matches!(line, Line::Undo { .. }));
                later.into_iter().rev().try_for_each(|line| add(&mut figures, line))?;
                if is_undone {
                    (figures.undone, figures.title) = (Some(true), None);
                }
                end.figures = Some(figures);
                break;
            }
            later.push(line);
        }
        Ok(end)
    }
}

/// Adds a line to the figures before it.
fn add(figures: &mut RunFigures, line: Line) -> anyhow::Result<()> {
    match line {
        Line::Message { message, .. } => figures.add_message(&serde_json::from_value(message)?),
        Line::Usage(usage) => figures.add_usage(usage),
        _ => {}
    }
    Ok(())
}

/// Returns the first prompt, if the beginning of a file holds it.
fn first_prompt(beginning: &[u8]) -> Option<String> {
    let mut lines = beginning[..complete(beginning)].split(|byte| *byte == b'\n');
    lines.find_map(|line| match serde_json::from_slice(line).ok()? {
        Line::Message { message, .. } => {
            let message: Message = serde_json::from_value(message).ok()?;
            (message.role == Role::User).then(|| RunFigures::title_of(&message))
        }
        _ => None,
    })
}

/// Reads the header of the file at a path; `None` if its first line was never completed.
///
/// # Errors
///
/// The file cannot be read, or is no run.
pub(super) fn header_at(path: &Path) -> anyhow::Result<Option<Header>> {
    let name = path.display().to_string();
    let file = owner_only::options().read(true).open(path).with_context(|| format!("cannot read the run `{name}`"));
    Ok(header(&mut file?, &name)?.0)
}

/// Reads a file's header, and returns it with the beginning of the file that was read; no header if the first line was
/// never completed.
fn header(file: &mut (impl Read + Seek), name: &str) -> anyhow::Result<(Option<Header>, Vec<u8>)> {
    let mut beginning = Vec::new();
    for size in PARTS {
        beginning = part(file, 0, size).with_context(|| format!("cannot read the run `{name}`"))?;
        match beginning.iter().position(|byte| *byte == b'\n') {
            Some(end) => return Ok((Some(header_of(&beginning[..end], name)?), beginning)),
            None if (beginning.len() as u64) < size => return Ok((None, beginning)),
            None => {}
        }
    }
    header_of(&beginning, name).map(|header| (Some(header), beginning))
}

/// Reads at most `size` bytes of a file from a position on.
fn part(file: &mut (impl Read + Seek), start: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.by_ref().take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
