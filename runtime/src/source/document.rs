//! A file of JSON as a source: read whole, once, and told by its members which dialect it is in.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::parsed::Parsed;
use super::{agent_tool, tools_json};

/// The largest document that is read.
const MAX_BYTES: u64 = 8 << 20;

/// The tools of a document and every problem in it.
pub(super) fn read(path: &Path) -> Parsed {
    let named = agent_tool::is_named(path);
    let text = match read_text(path) {
        Ok(text) => Arc::<str>::from(text),
        Err(error) => {
            let what = if named { "record" } else { "manifest" };
            return Parsed::failed(path, &format!("read {what}: {error}"));
        }
    };
    let place = from_root(path);
    if named || is_record(&text) { agent_tool::read(path, &place, text) } else { tools_json::read(path, &place, text) }
}

/// Whether the text is an object that says of itself which tool it is.
fn is_record(text: &str) -> bool {
    let Ok(members) = serde_json::from_str::<HashMap<String, IgnoredAny>>(without_mark(text)) else { return false };
    agent_tool::MARKS.iter().any(|mark| members.contains_key(*mark)) && !members.contains_key("tools")
}

/// The path of a file of a source from the root: a relative one without a folder means the working directory, whose own
/// path keeps what lies beside the file absolute.
pub(super) fn from_root(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// A text without the byte order mark that some editors put before it.
pub(super) fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// The whole text of a file of a source.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    let bytes = std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64;
    if bytes > MAX_BYTES {
        return Err(std::io::Error::other(format!("larger than the {MAX_BYTES} bytes allowed")));
    }
    Ok(text)
}
