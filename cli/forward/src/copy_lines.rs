//! Records in a copy of the log: lines as they were forwarded, alone or at the end of a syslog line, or within requests that a
//! collector has written as lines of JSON. Everything else is counted and left out.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use toolcrib::audit::{Chain, sealed};

/// Maximum length of a line of a copy: a request with many records is one line.
pub(crate) const MAX_LINE: u64 = 64 << 20;
/// Member that a collector's lines have.
const REQUEST: &str = "\"resourceLogs\"";

/// A record in a copy.
#[derive(Debug)]
pub(crate) struct CopiedRecord<'a> {
    /// The record's line.
    pub(crate) text: &'a str,
    pub(crate) seq: u64,
    pub(crate) chain: Chain,
    /// Index of the file, and line in it, counted from 1.
    pub(crate) position: (usize, u64),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    resource_logs: Vec<ResourceLogs>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs {
    #[serde(default)]
    scope_logs: Vec<ScopeLogs>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs {
    #[serde(default)]
    log_records: Vec<LogRecord>,
}

#[derive(Deserialize)]
struct LogRecord {
    #[serde(default)]
    body: Body,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    string_value: String,
}

/// Lists the files of copies, and the files of a folder by name. Hidden files are left out.
///
/// # Errors
///
/// A copy does not exist, or has no file.
pub(crate) fn files(copies: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for copy in copies {
        let unread = || format!("cannot read the copy `{}`", copy.display());
        if !copy.metadata().with_context(unread)?.is_dir() {
            files.push(copy.clone());
            continue;
        }
        let mut inside = Vec::new();
        for entry in copy.read_dir().with_context(unread)? {
            let entry = entry.with_context(unread)?;
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !is_hidden && entry.path().is_file() {
                inside.push(entry.path());
            }
        }
        inside.sort();
        files.extend(inside);
    }
    if files.is_empty() {
        bail!("the copy has no file");
    }
    Ok(files)
}

/// Passes each record of the files to `take`, in their order, and returns the number of lines without one.
///
/// # Errors
///
/// A file cannot be read, or has a line of more than 64 MiB.
pub(crate) fn each(files: &[PathBuf], mut take: impl FnMut(CopiedRecord<'_>)) -> anyhow::Result<u64> {
    let mut others = 0;
    for (index, path) in files.iter().enumerate() {
        let unread = || format!("cannot read the copy `{}`", path.display());
        let mut reader = BufReader::new(File::open(path).with_context(unread)?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if reader.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line).with_context(unread)? == 0 {
                break;
            }
            if line.len() as u64 > MAX_LINE {
                bail!("`{}`, line {number}: more than {} MiB", shown(path), MAX_LINE >> 20);
            }
            others += u64::from(!records(&line, (index, number), &mut take));
        }
    }
    Ok(others)
}

/// Passes the records of a line to `take`; `false` if there is none in a line that is not empty.
fn records(line: &[u8], position: (usize, u64), take: &mut impl FnMut(CopiedRecord<'_>)) -> bool {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    let Some(start) = text.find('{') else { return text.is_empty() };
    let text = &text[start..];
    let mut take = |text: &str| match sealed(text.as_bytes()) {
        Some((seq, chain)) => {
            take(CopiedRecord { text, seq, chain, position });
            true
        }
        None => false,
    };
    if take(text) {
        return true;
    }
    let request = text.contains(REQUEST).then(|| serde_json::from_str::<Request>(text).ok()).flatten();
    let scopes = request.into_iter().flat_map(|request| request.resource_logs).flat_map(|logs| logs.scope_logs);
    let mut has_any = false;
    for record in scopes.flat_map(|scope| scope.log_records) {
        has_any |= take(&record.body.string_value);
    }
    has_any
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
