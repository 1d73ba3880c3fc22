//! Search for matching lines in one text. Knows no files.

use regex::{Regex, RegexBuilder};
use serde::Serialize;
use toolcrib_guest::{Error, error};

const MAX_LINE_CHARS: usize = 400;
/// Maximum memory of a compiled pattern, in bytes, which limits its repetitions.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

pub(crate) struct Matcher {
    regex: Regex,
    context: usize,
}

/// Matching line.
#[derive(Serialize)]
pub(crate) struct Match {
    line: usize,
    /// Character at which the match starts, counted from 1.
    column: usize,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

impl Match {
    /// Approximate size of this match in the result.
    pub(crate) fn bytes(&self) -> usize {
        let lines = self.before.iter().chain(&self.after).chain([&self.text]);
        lines.map(String::len).sum()
    }
}

impl Matcher {
    pub(crate) fn new(pattern: &str, literal: bool, ignore_case: bool, context: usize) -> Result<Self, Error> {
        let source = if literal { regex::escape(pattern) } else { pattern.to_string() };
        let regex = RegexBuilder::new(&source)
            .case_insensitive(ignore_case)
            .size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|error| error!("pattern `{pattern}`: {error}"))?;
        Ok(Self { regex, context })
    }

    pub(crate) fn matches<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Match> + 'a {
        let lines: Vec<_> = text.lines().collect();
        (0..lines.len()).filter_map(move |index| {
            let found = self.regex.find(lines[index])?;
            let before = index.saturating_sub(self.context)..index;
            let after = index + 1..lines.len().min(index + 1 + self.context);
            Some(Match {
                line: index + 1,
                column: lines[index][..found.start()].chars().count() + 1,
                text: cut(lines[index]),
                before: lines[before].iter().map(|line| cut(line)).collect(),
                after: lines[after].iter().map(|line| cut(line)).collect(),
            })
        })
    }
}

/// Cuts a long line, and marks that it is cut.
fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
