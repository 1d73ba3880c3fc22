//! Effects that a call has held back, for the question at its end: each change in one line, and the lines that differ, after the
//! requests that wait and those that were sent.

use std::io::Read;
use std::time::{Duration, Instant};

use toolcrib::policy::{HeldRequest, StagedEffects};
use toolcrib::source::digest;
use toolcrib::staging::{Change, ChangeKind, EntryKind, Stage};
use toolcrib_base::render::{counted, legible, one_line};

use crate::differences::{Differences, counts, line};

/// Number of changes that need no list before their differences.
const MAX_UNLISTED: usize = 5;
/// Maximum number of listed changes, maximum bytes of the differences, and maximum time for them.
const MAX_LISTED: usize = 500;
const MAX_DIFFERENCES: usize = 256 << 10;
const MAX_TIME: Duration = Duration::from_secs(1);
/// Maximum bytes of the text about requests, and of one body.
const MAX_REQUESTS: usize = 64 << 10;
/// Begin of a line about what is left out of the requests; each line from outside begins otherwise.
const CUT: &str = "… not shown:";
/// Maximum bytes of the files that are read to recognize a repeated call.
const MAX_READ: u64 = 16 << 20;

/// Describes all effects.
pub(super) fn described(effects: &StagedEffects<'_>) -> String {
    // However many changes there are, the requests are not what is cut.
    requests(effects) + &changed(effects)
}

/// Describes the changes: of several, first all entries, then the lines that differ.
pub(super) fn changed(effects: &StagedEffects<'_>) -> String {
    let StagedEffects { stage, changes, .. } = effects;
    let mut text = match changes.len() > MAX_UNLISTED {
        true => format!("{}\n\n", listed(changes, stage)),
        false => String::new(),
    };
    let (until, start) = (Instant::now() + MAX_TIME, text.len());
    for (number, change) in by_weight(changes).into_iter().enumerate() {
        if text.len() - start > MAX_DIFFERENCES || Instant::now() >= until {
            let more = counted(changes.len() - number, "more change");
            text += &format!("… {more}: {}\n", elsewhere(stage));
            break;
        }
        let difference = Differences::of(stage, change).text(false);
        let room = (start + MAX_DIFFERENCES).saturating_sub(text.len());
        let end = difference[..difference.floor_char_boundary(room)].rfind('\n');
        match end.filter(|_| difference.len() > room) {
            None => text += &difference,
            Some(end) => {
                let more = counted(difference[end..].lines().count() - 1, "more line");
                text += &format!("{}\n… {more} of this change: {}", &difference[..end], elsewhere(stage));
            }
        }
        text.push('\n');
    }
    text
}

/// Describes all effects without the lines that differ.
pub(super) fn in_short(effects: &StagedEffects<'_>) -> String {
    let changes = match effects.changes {
        [] => String::new(),
        changes => format!("{}\n{}\n", listed(changes, effects.stage), elsewhere(effects.stage)),
    };
    format!("{}{changes}", requests(effects))
}

/// Returns the action that an agreement allows.
pub(super) fn action(effects: &StagedEffects<'_>) -> String {
    let requests = match effects.held {
        [] => None,
        held => Some(counted(held.len(), "request")),
    };
    let changes = Some(counts(effects.changes)).filter(|changes| !changes.is_empty());
    let all: Vec<String> = changes.into_iter().chain(requests).collect();
    format!("Make the changes of the call, which has ended: {}", all.join(", "))
}

/// Returns a digest of all changes with their contents; `None` if they cannot be read, or are too large for that.
pub(super) fn digest_of(effects: &StagedEffects<'_>) -> Option<String> {
    let StagedEffects { stage, changes, sent, held, .. } = effects;
    let mut room = MAX_READ;
    let held: Vec<_> = held.iter().map(|held| (&held.method, &held.url, &held.headers, digest(&held.body))).collect();
    let mut all = serde_json::to_vec(&(sent, held)).ok()?;
    for change in *changes {
        // The calls have other names each time.
        let mut about = Change::clone(change);
        about.calls.clear();
        serde_json::to_writer(&mut all, &(about, stage.link(change))).ok()?;
        for file in [stage.before(change).ok()?, stage.after(change).ok()?].into_iter().flatten() {
            let mut content = Vec::new();
            file.take(room + 1).read_to_end(&mut content).ok()?;
            room = room.checked_sub(content.len() as u64)?;
            all.extend(digest(&content).into_bytes());
        }
    }
    Some(digest(&all))
}

/// Lists changes.
fn listed(changes: &[Change], stage: &Stage) -> String {
    let sorted = by_weight(changes);
    let mut lines: Vec<String> = sorted.iter().take(MAX_LISTED).map(|change| line(change, false)).collect();
    if sorted.len() > MAX_LISTED {
        lines.push(format!("… {}: {}", counted(sorted.len() - MAX_LISTED, "more change"), elsewhere(stage)));
    }
    lines.join("\n")
}

/// Sorts changes, with those first that take something away, change it or lead elsewhere: new files are often many.
fn by_weight(changes: &[Change]) -> Vec<&Change> {
    let weight = |change: &&Change| match (change.kind, change.entry) {
        (ChangeKind::Removed, _) => 0,
        (ChangeKind::Modified, _) => 1,
        (ChangeKind::Moved, _) => 2,
        (_, EntryKind::Link) => 3,
        (_, EntryKind::File | EntryKind::Other) => 4,
        (_, EntryKind::Folder) => 5,
    };
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by_key(weight);
    sorted
}

fn elsewhere(stage: &Stage) -> String {
    format!("`toolcrib stage diff {}` shows the lines while the call waits", one_line(stage.name()))
}

/// Describes the requests: those that wait, then those that were sent.
pub(super) fn requests(effects: &StagedEffects<'_>) -> String {
    let mut text = String::new();
    if let [_, ..] = effects.held {
        let waiting = counted(effects.held.len(), "request");
        text += &format!("{waiting} to be sent after the changes, until one fails:\n");
    }
    for (number, held) in effects.held.iter().enumerate() {
        if text.len() > MAX_REQUESTS {
            text += &format!("{CUT} {}\n", counted(effects.held.len() - number, "more request"));
            break;
        }
        let HeldRequest { method, url, headers, body, .. } = held;
        text += &format!("{}, {}\n", one_line(&format!("{method} {url}")), counted(body.len(), "byte"));
        headers.iter().for_each(|(name, value)| text += &format!("  {}\n", one_line(&format!("{name}: {value}"))));
        let body = String::from_utf8_lossy(body);
        let kept = &body[..body.floor_char_boundary(MAX_REQUESTS)];
        kept.lines().for_each(|line| text += &format!("  | {}\n", legible(line)));
        if kept.len() < body.len() {
            text += &format!("{CUT} {}\n", counted(body.len() - kept.len(), "more byte"));
        }
    }
    if let [_, ..] = effects.sent {
        let sent: Vec<String> = effects.sent.iter().map(|sent| one_line(sent)).collect();
        text += &format!("requests that were sent, and are not held back: {}\n", sent.join(", "));
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// Returns `true` if the requests that wait are too long to be shown whole.
pub(super) fn has_long_requests(effects: &StagedEffects<'_>) -> bool {
    requests(effects).lines().any(|line| line.starts_with(CUT))
}
