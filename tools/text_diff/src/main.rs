//! Tool `text_diff`: compares two texts.

use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};
use toolcrib_guest::{Error, error, files};

const MAX_TEXT_BYTES: usize = 1024 * 1024;
const MAX_RESULT_BYTES: usize = 128 * 1024;
const MAX_CONTEXT: usize = 100;
/// Time after which the comparison may be longer than the shortest one, but ends.
const MAX_TIME: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    old: Option<String>,
    new: Option<String>,
    old_path: Option<String>,
    new_path: Option<String>,
    #[serde(default = "default_context")]
    context: usize,
}

fn default_context() -> usize {
    3
}

#[derive(Serialize)]
struct Output {
    equal: bool,
    /// Number of added lines.
    added: usize,
    /// Number of removed lines.
    removed: usize,
    diff: String,
    truncated: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    if args.context > MAX_CONTEXT {
        return Err(error!("context `{}` is not between 0 and {MAX_CONTEXT}", args.context));
    }
    let (old_name, old) = side("old", args.old, args.old_path)?;
    let (new_name, new) = side("new", args.new, args.new_path)?;
    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(&old, &new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    let unified = diff.unified_diff().context_radius(args.context).header(&old_name, &new_name).to_string();
    let kept = cut(&unified);
    Ok(Output {
        equal: old == new,
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
        truncated: kept.len() < unified.len(),
        diff: kept.into(),
    })
}

/// Name and text of one side.
fn side(name: &str, text: Option<String>, path: Option<String>) -> Result<(String, String), Error> {
    match (text, path) {
        (Some(text), None) if text.len() > MAX_TEXT_BYTES => {
            Err(error!("`{name}` is over the limit of {MAX_TEXT_BYTES} bytes"))
        }
        (Some(text), None) => Ok((name.into(), text)),
        (None, Some(path)) => {
            let text = files::read_text(&path, MAX_TEXT_BYTES as u64)?;
            Ok((path, text))
        }
        _ => Err(error!("give exactly one of `{name}` and `{name}_path`")),
    }
}

/// Cuts a diff to the whole lines that a result may hold.
fn cut(diff: &str) -> &str {
    if diff.len() <= MAX_RESULT_BYTES {
        return diff;
    }
    let end = diff.as_bytes()[..MAX_RESULT_BYTES].iter().rposition(|byte| *byte == b'\n');
    &diff[..end.map_or(0, |at| at + 1)]
}
