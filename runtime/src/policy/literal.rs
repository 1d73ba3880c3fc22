//! Search for a text that is no stored secret, in the same encodings.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use zeroize::Zeroizing;

use crate::schema::step;

use super::scanner::Needle;

/// Search for a text that is no stored secret, such as a sensitive argument. Its expression is compiled once a text is long enough
/// to hold it, so that a call with short texts takes no longer for it.
#[derive(Clone)]
pub(crate) struct Literal(Arc<LiteralSearch>);

struct LiteralSearch {
    value: Zeroizing<String>,
    /// `None` for a text whose expression cannot be compiled; then only the plain text is found.
    needle: OnceLock<Option<Needle>>,
}

/// Shows nothing, because the text is secret.
impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Literal")
    }
}

impl Literal {
    /// Maximum length of a text's beginning that is searched, in bytes. The memory of its expression grows with it.
    pub(crate) const MAX_LEN: usize = 512;
    /// Steps for which the compilation of one byte counts.
    const STEPS_PER_BYTE: usize = 1 << 10;

    /// Creates the search for a text that is not empty.
    pub(crate) fn new(value: &str) -> Self {
        Self(Arc::new(LiteralSearch { value: Zeroizing::new(value.to_owned()), needle: OnceLock::new() }))
    }

    /// Text that is searched.
    pub(crate) fn value(&self) -> &str {
        &self.0.value
    }

    /// Beginning of the text that is searched in its encodings.
    fn beginning(&self) -> &str {
        let value = self.value();
        &value[..value.floor_char_boundary(Self::MAX_LEN)]
    }

    /// Finds the ranges of the text within another, in each encoding. Where the beginning of a long one is found, the
    /// range is all of the other text. The result of a stopped search is meaningless.
    pub(crate) fn found(&self, text: &str) -> Vec<Range<usize>> {
        let (value, beginning) = (self.value(), self.beginning());
        // Each character takes a byte at least.
        if text.len() < beginning.chars().count() || !step(1) {
            return Vec::new();
        }
        let needle = &self.0.needle;
        // A stopped compilation leaves the search as it was.
        if needle.get().is_none() && !step(beginning.len() * Self::STEPS_PER_BYTE) {
            return Vec::new();
        }
        let found = match needle.get_or_init(|| Needle::new("", beginning).ok()) {
            Some(needle) => needle.found_in(text.as_bytes()),
            None => text.match_indices(beginning).map(|(start, found)| start..start + found.len()).collect(),
        };
        match found.is_empty() || value.len() == beginning.len() {
            true => found,
            false => std::iter::once(0..text.len()).collect(),
        }
    }
}
