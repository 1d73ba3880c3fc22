//! Trace lines of a run on standard error, each cut to the terminal's width.

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use serde_json::Value;
use toolcrib_base::render::{self, Tone, filled, one_line, ours, paint, shortened};
use toolcrib_settings::permission::{DenyFlags, denial_hints};

use super::event::ToolResult;
use super::report::Detail;

/// Width of a trace line if standard error is not a terminal, in characters.
const DEFAULT_WIDTH: usize = 160;
/// Maximum characters of a display that are compared with an error message.
const MAX_REPEATED: usize = 400;
/// Minimum characters shown of a text.
const MIN_SHOWN: usize = 8;

/// Prints the result of a call: a line with its outcome, its time and its text, and what belongs below it.
pub(super) fn print_result(margin: &str, result: &ToolResult<'_>, detail: Detail, deny_flags: &DenyFlags) {
    let outcome = result.receipt.outcome.as_str();
    // The call's waiting time, for a person or for other calls, does not count as tool time.
    let mut took = format!(" {}", milliseconds((result.receipt.ms - result.receipt.waited_ms).max(0.0)));
    if let Some(worker) = &result.receipt.worker {
        took += &format!(" at {}", one_line(worker));
    }
    let words = words_of(result);
    let display = result.display.map(one_line).filter(|display| !(result.is_error && repeats(display, &words)));
    // A display that begins with the name says it already.
    let is_named = display.as_deref().is_some_and(|display| display.split(' ').next() == Some(result.name));
    let name = if result.alone || is_named { String::new() } else { format!("{} ", one_line(result.name)) };
    let tone = if result.is_error { Tone::Bad } else { Tone::Good };
    let painted = paint(tone, outcome, io::stderr().is_terminal());
    let width = outcome.len() + took.len() + name.chars().count() + 4;
    let text = match display {
        Some(display) => format!("{display} · {words}"),
        // Only the name is before the message.
        None if result.is_error && !result.alone => format!("· {words}"),
        None => words.into_owned(),
    };
    // The reason for a failure may take a second line of a terminal.
    let lines = if result.is_error && io::stderr().is_terminal() { 2 } else { 1 };
    let content = fitting_lines(lines, width, &text, detail);
    let line = format!("{} {painted}{took}  {name}{}", quiet(&render::spoken(&format!("{margin}←"))), quiet(&content));
    ours(&if detail == Detail::Verbose { line } else { filled(&line, line_width()) });
    render::executed(&result.receipt.executed);
    match (detail, result.log_end) {
        (Detail::Verbose, _) if !result.log.is_empty() => render::quoted("|", result.log),
        (Detail::Verbose, _) | (_, None) => {}
        (_, Some(end)) => render::quoted("|", end),
    }
    render::flags(&result.receipt.flags);
    let shows_all = result.is_error || detail == Detail::Verbose;
    render::hints(&denial_hints(result.receipt, shows_all, deny_flags));
    [result.limit, result.hint].into_iter().flatten().for_each(render::hint);
}

/// Returns `true` if a message begins with the display, but for its backticks.
fn repeats(display: &str, message: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| *c != '`').take(MAX_REPEATED).collect::<String>();
    let (display, message) = (letters(display), letters(message));
    !display.is_empty() && message.starts_with(&display)
}

/// Returns a result's text: for an error that is only a message, the message instead of its JSON.
fn words_of<'a>(result: &ToolResult<'a>) -> Cow<'a, str> {
    let message = || match serde_json::from_str(result.content) {
        Ok(Value::Object(mut error)) if error.len() == 1 => match error.remove("error") {
            Some(Value::String(message)) => Some(message),
            _ => None,
        },
        _ => None,
    };
    result.is_error.then(message).flatten().map_or(Cow::Borrowed(result.content), Cow::Owned)
}

/// Cuts `text` to one line beside `width` other characters.
pub(super) fn fitting(width: usize, text: &str, detail: Detail) -> String {
    fitting_lines(1, width, text, detail)
}

/// Cuts `text` to some lines beside `width` other characters.
fn fitting_lines(lines: usize, width: usize, text: &str, detail: Detail) -> String {
    let room = (lines * line_width()).saturating_sub(width).max(MIN_SHOWN);
    let most = if detail == Detail::Verbose { usize::MAX } else { room };
    // Cut first, since a result may be large.
    let line = one_line(&shortened(text, most));
    shortened(&line, most).into_owned()
}

fn line_width() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0))
}

/// Paints a detail for standard error.
pub(super) fn quiet(text: &str) -> Cow<'_, str> {
    paint(Tone::Quiet, text, io::stderr().is_terminal())
}

/// Paints a detail that may take several lines.
pub(super) fn quiet_lines(text: &str) -> String {
    quiet(&filled(text, line_width())).into_owned()
}

/// Formats a duration.
pub(super) fn milliseconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.1} ms") } else { format!("{:.1} s", ms / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_begins_like_its_display_is_told_once() {
        assert!(repeats("read a.md", "read `a.md`: no such file or folder"));
        assert!(!repeats("read a.md", "read `b.md`: no such file or folder"));
        assert!(!repeats("calculate 1 +", "`1 +`: a number is missing"));
        assert!(!repeats("", "anything"));
    }
}
