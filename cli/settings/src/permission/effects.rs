//! Effects that a call has held back, for the question at its end: each change in one line, the requests that wait and those
//! that were sent, and the lines that differ.

use std::io::Read;
use std::time::{Duration, Instant};

use toolcrib::policy::{HeldRequest, StagedEffects};
use toolcrib::source::digest;
use toolcrib::staging::{Change, ChangeKind, Stage};
use toolcrib_base::render::{counted, legible, one_line, shortened};

use crate::differences::{Differences, counts, line};

/// Maximum number of listed changes, maximum bytes of the differences, and maximum time for them.
const MAX_LISTED: usize = 500;
const MAX_DIFFERENCES: usize = 256 << 10;
const MAX_TIME: Duration = Duration::from_secs(5);
/// Maximum bytes of the text about requests, maximum lines per body, and maximum characters per line.
const MAX_REQUESTS: usize = 32 << 10;
const MAX_BODY_LINES: usize = 20;
const MAX_LINE: usize = 1000;
/// Maximum bytes of the files that are read to recognize a repeated call.
const MAX_READ: u64 = 16 << 20;

/// Describes all effects.
pub(super) fn described(effects: &StagedEffects<'_>) -> String {
    let StagedEffects { stage, changes, .. } = effects;
    let mut text = if changes.len() > 1 { format!("{}\n\n", listed(changes)) } else { String::new() };
    // However long the differences are, the requests are not what is cut.
    text += &requests(effects);
    let (until, start) = (Instant::now() + MAX_TIME, text.len());
    for (number, change) in changes.iter().enumerate() {
        if text.len() - start > MAX_DIFFERENCES || Instant::now() >= until {
            let more = counted(changes.len() - number, "more change");
            text += &format!("… {more}: {}\n", elsewhere(stage));
            break;
        }
        let difference = Differences::of(stage, change).text(false);
        let room = (start + MAX_DIFFERENCES).saturating_sub(text.len());
        match difference.len() <= room {
            true => text += &difference,
            false => {
                let kept: usize = difference
                    .split_inclusive('\n')
                    .map(str::len)
                    .scan(0, |all, one| {
                        *all += one;
                        (*all <= room).then_some(one)
                    })
                    .sum();
                let more = counted(difference[kept..].lines().count(), "more line");
                text += &format!("{}… {more} of this change: {}", &difference[..kept], elsewhere(stage));
            }
        }
        text.push('\n');
    }
    text
}

/// Describes all effects without the lines that differ.
pub(super) fn in_short(effects: &StagedEffects<'_>) -> String {
    format!("{}\n{}\n\n{}", listed(effects.changes), elsewhere(effects.stage), requests(effects))
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
    let held: Vec<_> = held.iter().map(|held| (&held.method, &held.url, digest(&held.body))).collect();
    let mut all = serde_json::to_vec(&(sent, held)).ok()?;
    for change in *changes {
        // The calls have other names each time.
        let mut about = Change::clone(change);
        about.calls.clear();
        serde_json::to_writer(&mut all, &(about, stage.link(change))).ok()?;
        let mut content = Vec::new();
        if let Some(file) = stage.after(change).ok()? {
            file.take(room + 1).read_to_end(&mut content).ok()?;
        }
        room = room.checked_sub(content.len() as u64)?;
        all.extend(digest(&content).into_bytes());
    }
    Some(digest(&all))
}

/// Lists changes, what is lost first.
fn listed(changes: &[Change]) -> String {
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by_key(|change| change.kind != ChangeKind::Removed);
    let mut lines: Vec<String> = sorted.iter().take(MAX_LISTED).map(|change| line(change, false)).collect();
    if sorted.len() > MAX_LISTED {
        lines.push(format!("… {}", counted(sorted.len() - MAX_LISTED, "more change")));
    }
    lines.join("\n")
}

fn elsewhere(stage: &Stage) -> String {
    format!("`toolcrib stage diff {}` shows the lines while the call waits", one_line(stage.name()))
}

/// Describes the requests: those that wait, then those that were sent.
fn requests(effects: &StagedEffects<'_>) -> String {
    let mut text = String::new();
    if let [_, ..] = effects.held {
        let waiting = counted(effects.held.len(), "request");
        text += &format!("{waiting} to be sent after the changes, until one fails:\n");
    }
    for (number, HeldRequest { method, url, body, .. }) in effects.held.iter().enumerate() {
        if text.len() > MAX_REQUESTS {
            text += &format!("… {}\n", counted(effects.held.len() - number, "more request"));
            break;
        }
        text += &format!("{}, {}\n", one_line(&format!("{method} {url}")), counted(body.len(), "byte"));
        let body = String::from_utf8_lossy(body);
        let mut lines = body.lines();
        lines
            .by_ref()
            .take(MAX_BODY_LINES)
            .for_each(|line| text += &format!("  {}\n", legible(&shortened(line, MAX_LINE))));
        if lines.next().is_some() {
            text += "  …\n";
        }
    }
    if let [_, ..] = effects.sent {
        let sent: Vec<String> = effects.sent.iter().map(|sent| one_line(sent)).collect();
        text += &format!("requests that were sent, and are not held back: {}\n", sent.join(", "));
    }
    if text.is_empty() { text } else { text + "\n" }
}
