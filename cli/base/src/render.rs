//! Terminal output: results on standard output, and `error:`, `cause:`, `hint:` and `warning:` on standard error. Text from
//! outside is escaped so that it cannot control a terminal.

mod answer;
mod errors;
mod fill;
mod hooks;
mod mistake;
mod sequences;
mod shell;
mod table;
mod terminal_lock;
mod unified;

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolcrib::ToolResult;
use toolcrib::call::{Flag, ProgramRun, Receipt};

use errors::OutputClosed;
use table::terminal_width;
use terminal_lock::Stream;

pub use answer::{AnswerStream, print_answer};
pub use errors::{Advice, explain, failure, hint_of, is_output_closed, message, print_usage, usage_error};
pub use fill::{filled, question};
pub use hooks::hooks;
pub use mistake::Mistake;
pub use shell::{quoted_word, shell_path, shell_word};
pub use table::{is_narrow, table};
pub use terminal_lock::lock_terminal;
pub use unified::unified;

static COLOR: OnceLock<Color> = OnceLock::new();

/// Use of colors; `Auto` means on a terminal, unless `NO_COLOR` is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs, reason = "the help would show them, and the names say it all")]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// Sets the choice for the whole program; only the first call has an effect.
pub fn use_color(choice: Color) {
    // Fails only on a second call; `main` makes the only one.
    let _ = COLOR.set(choice);
}

static PLAIN: OnceLock<bool> = OnceLock::new();

/// Chooses plain lines for the whole program; only the first call has an effect.
pub fn use_plain(plain: bool) {
    // Fails only on a second call; `main` makes the only one.
    let _ = PLAIN.set(plain);
}

/// Returns `true` if output is for a screen reader: no bars, no symbols, no drawings and, unless asked for, no colors.
pub fn is_plain() -> bool {
    PLAIN.get().copied().unwrap_or_default()
}

/// Returns a mark as a word if output is for a screen reader, which spells drawings out.
pub fn spoken(mark: &str) -> Cow<'_, str> {
    if !is_plain() {
        return Cow::Borrowed(mark);
    }
    Cow::Owned(
        mark.replace("│ ", "")
            .replace('┊', "part")
            .replace('»', "preview:")
            .replace('→', "call")
            .replace('←', "result"),
    )
}

/// Text colors by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// Warning.
    Doubtful,
    /// Hint.
    Advice,
    /// Detail.
    Quiet,
}

/// Returns `true` if the settings and the stream allow colors.
fn uses_colors(terminal: bool) -> bool {
    match COLOR.get().copied().unwrap_or_default() {
        Color::Always => sequences::are_obeyed() || !terminal,
        Color::Never => false,
        Color::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let is_able = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
            terminal && !is_plain() && !refused && is_able && sequences::are_obeyed()
        }
    }
}

/// Colors `text` if the settings and the stream allow it.
pub fn paint(tone: Tone, text: &str, terminal: bool) -> Cow<'_, str> {
    if !uses_colors(terminal) {
        return Cow::Borrowed(text);
    }
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "1;31",
        Tone::Doubtful => "1;33",
        Tone::Advice => "1;36",
        Tone::Quiet => "2",
    };
    Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
}

/// Writes `text` and a line break to standard output and flushes.
pub fn print(text: &str) -> anyhow::Result<()> {
    to_stdout(format!("{text}\n").as_bytes())
}

/// Writes a screen for people to standard output, on a terminal with lines that end between words.
pub fn print_screen(text: &str) -> anyhow::Result<()> {
    print(&fill::for_output(text))
}

/// Writes a path to standard output, [`inert`] on a terminal.
pub fn print_path(path: &Path) -> anyhow::Result<()> {
    let path = path.display().to_string();
    if io::stdout().is_terminal() { print(&inert(&path)) } else { print(&path) }
}

/// Writes content from outside to standard output, unchanged or, on a terminal, as [`legible`] text with a line break.
pub fn print_content(content: &[u8]) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { print(&legible(&String::from_utf8_lossy(content))) } else { to_stdout(content) }
}

/// Cancelled once standard output was found closed.
static CLOSED: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);

/// Interval at which a wait looks at standard output.
const OUTPUT_CHECK: Duration = Duration::from_millis(500);

/// Waits until nobody reads standard output any more. Where the system does not tell, only a write finds that.
pub async fn output_closed() {
    while tokio::time::timeout(OUTPUT_CHECK, CLOSED.cancelled()).await.is_err() {
        if has_no_reader() {
            CLOSED.cancel();
        }
    }
}

/// Returns `true` if standard output is a pipe or a socket without a reader.
#[cfg(unix)]
fn has_no_reader() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let output = io::stdout();
    let mut polled = [PollFd::new(&output, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

#[cfg(not(unix))]
fn has_no_reader() -> bool {
    false
}

fn to_stdout(bytes: &[u8]) -> anyhow::Result<()> {
    Stream::Out.put(bytes).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => {
            CLOSED.cancel();
            OutputClosed.into()
        }
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    })
}

/// Writes one line of JSON to standard output. On a terminal, control characters become JSON escapes, which keep the value.
pub fn print_json(line: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { print(&inert_json(line)) } else { print(line) }
}

/// Escapes control characters in a line of JSON as JSON escapes, which keep the value.
pub fn inert_json(line: &str) -> Cow<'_, str> {
    rewritten(line, is_unsafe, |c, text| {
        let mut units = [0; 2];
        text.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
    })
}

/// Writes a `warning:` line.
pub fn warning(text: &str) {
    label(Tone::Doubtful, "warning", text);
}

/// Writes a `refused:` line.
pub fn refusal(text: &str) {
    label(Tone::Bad, "refused", text);
}

/// Maximum number of compared hints per failure.
const MAX_RECENT: usize = 16;
/// Hints since the last error, and since the last other line that is no label.
static RECENT_HINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Writes a `hint:` line, unless one failure gives the same hint twice.
pub fn hint(text: &str) {
    {
        let mut recent = RECENT_HINTS.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.iter().any(|other| other == text) {
            return;
        }
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        recent.push(text.to_owned());
    }
    label(Tone::Advice, "hint", text);
}

/// Writes text from outside with a mark on each line, so that it cannot imitate a line of the program.
pub fn quoted(mark: &str, text: &str) {
    let mark = spoken(mark);
    let text = text.trim_matches('\n');
    // One message, so that lines of other calls do not come between. The terminal divides long lines.
    ours(&inert(&text.split('\n').map(|line| format!("{mark} {line}")).collect::<Vec<_>>().join("\n")));
}

/// Lines of standard error that are shown of a failed call, and characters of each.
const LOG_END: (usize, usize) = (5, 400);

/// Returns the last lines of the standard error of a failed call, unless its error has the same text.
pub fn log_end(result: &ToolResult) -> Option<String> {
    let (error, log) = (result.outcome.as_ref().err()?, result.log.trim());
    if [error.content().trim(), error.message.trim(), ""].contains(&log) {
        return None;
    }
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(LOG_END.0)..].iter().map(|line| shortened(line, LOG_END.1));
    Some(last.collect::<Vec<_>>().join("\n"))
}

/// Reports the number of parts that were not shown.
pub fn dropped(receipt: &Receipt) {
    if receipt.dropped_parts > 0 {
        let verb = if receipt.dropped_parts == 1 { "was" } else { "were" };
        aside(&format!("  {} {verb} not shown: too many, or too late", counted(receipt.dropped_parts, "part")));
    }
}

/// Writes a `hint:` line for each text.
pub fn hints(texts: &[String]) {
    texts.iter().for_each(|text| hint(text));
}

/// Writes a line for each program that a script ran.
pub fn executed(executions: &[ProgramRun]) {
    for ProgramRun { program, exit, stopped, ms, .. } in executions {
        let end = match (exit, stopped) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(outcome)) => outcome.as_str().to_owned(),
            (None, None) => "did not end".to_owned(),
        };
        aside(&format!("  ran {}: {end}, {ms:.1} ms", one_line(program)));
    }
}

/// Writes a `warning:` line if an answer contains invisible or misleading characters.
pub fn flags(flags: &[Flag]) {
    let words = flags.iter().map(|flag| match flag {
        Flag::InvalidUtf8 => "bytes that are not UTF-8, replaced by U+FFFD",
        Flag::Bidirectional => "characters that change the text direction",
        Flag::ZeroWidth => "zero-width characters",
        Flag::Tags => "invisible tag characters",
        Flag::Variation => "variation selectors, which can hide text",
        _ => "content that a reader would not see",
    });
    let words: Vec<_> = words.collect();
    if !words.is_empty() {
        warning(&format!("the tool's answer contains {}", words.join(", ")));
    }
}

/// Writes [`inert`] text to standard error.
pub fn aside(text: &str) {
    ours(&fill::for_messages(&inert(text.trim_end_matches('\n')), 0));
}

fn label(tone: Tone, label: &str, text: &str) {
    let label = format!("{label}: ");
    // Further lines are indented so that text from outside cannot imitate a label.
    let text = fill::for_messages(&inert(text).replace('\n', "\n  "), label.len());
    let label = paint(tone, label.trim_end(), io::stderr().is_terminal());
    to_stderr(&format!("{label} {text}"));
}

/// Writes trusted text to standard error, with its colors.
pub fn ours(text: &str) {
    forget_hints();
    to_stderr(text);
}

/// Begins the hints of another failure.
fn forget_hints() {
    RECENT_HINTS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

fn to_stderr(text: &str) {
    // Standard error may be closed.
    let _ = Stream::Err.put(format!("{text}\n").as_bytes());
}

/// Replaces control, bidirectional and invisible characters with their escapes. Line breaks and tabs stay.
pub fn inert(text: &str) -> Cow<'_, str> {
    rewritten(text, is_unsafe, |c, safe| safe.extend(c.escape_unicode()))
}

/// Like [`inert`], but keeps joiners, which emoji and several scripts need, and normalizes line breaks.
pub fn legible(text: &str) -> Cow<'_, str> {
    let escaped = |before, c| is_unsafe(before, c) && !matches!(c, '\u{200c}' | '\u{200d}');
    let write = |c: char, safe: &mut String| safe.extend(c.escape_unicode());
    match text.contains("\r\n") {
        true => Cow::Owned(rewritten(&text.replace("\r\n", "\n"), escaped, write).into_owned()),
        false => rewritten(text, escaped, write),
    }
}

/// Rewrites each character for which `such` returns `true`, given the character before it.
fn rewritten(text: &str, such: impl Fn(Option<char>, char) -> bool, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let mut before = None;
    let Some((first, _)) = text.char_indices().find(|(_, c)| such(before.replace(*c), *c)) else {
        return Cow::Borrowed(text);
    };
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(&text[..first]);
    let mut before = text[..first].chars().next_back();
    for c in text[first..].chars() {
        if such(before.replace(c), c) { write(c, &mut safe) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// Returns a path relative to the current directory if it lies below it.
pub fn from_here(path: &Path) -> &Path {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here)
        .or_else(|_| path.strip_prefix("."))
        .ok()
        .filter(|below| below.file_name().is_some())
        .unwrap_or(path)
}

/// Formats a count with its noun: `1 step`, `2 steps`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns [`inert`] text on one line.
pub fn one_line(text: &str) -> String {
    inert(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Maximum number of names in a message.
pub const MAX_NAMED: usize = 8;
/// Maximum characters of a text from outside in a message.
pub const MAX_EXCERPT: usize = 80;

/// Joins names, at most [`MAX_NAMED`], and counts the others.
pub fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the beginning of a text from outside for a message.
pub fn excerpt(text: &str) -> String {
    shortened(&one_line(&shortened(text, MAX_EXCERPT)), MAX_EXCERPT).into_owned()
}

/// Cuts `text` to `most` characters, with an ellipsis if something was cut.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().count() <= most {
        return Cow::Borrowed(text);
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    Cow::Owned(kept.trim_end().to_owned() + "…")
}

/// `true` for characters that control a terminal or mislead a reader: C0 except line break and tab, DEL, C1, and the
/// characters that answers are flagged for.
fn is_unsafe(before: Option<char>, c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        _ => c.is_control() || Flag::unseen(before, c).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_text_has_no_power() {
        assert_eq!(inert("a\u{1b}[2Jb\u{9b}c\u{202e}d\u{200b}\r"), r"a\u{1b}[2Jb\u{9b}c\u{202e}d\u{200b}\u{d}");
        assert!(matches!(inert("plain\n\ttext – ä 漢字"), Cow::Borrowed(_)));
        assert_eq!(one_line("a\n  b\u{7}"), r"a b\u{7}");
    }

    #[test]
    fn an_answer_cannot_lead_a_terminal_or_an_eye_and_keeps_its_emoji() {
        assert_eq!(legible("a\x1b[2Jb\u{9b}c\r\nd\re\0"), "a\\u{1b}[2Jb\\u{9b}c\nd\\u{d}e\\u{0}");
        assert!(matches!(legible("👩\u{200d}💻\n\tžluť می\u{200c}خواهم"), Cow::Borrowed(_)));
        assert!(matches!(legible("❤\u{fe0f}"), Cow::Borrowed(_)));
        assert_eq!(legible("❤\u{fe0f}\u{fe0f}a\u{fe0f}"), "❤\u{fe0f}\\u{fe0f}a\\u{fe0f}");
        for unseen in
            ['\u{200b}', '\u{2028}', '\u{2029}', '\u{feff}', '\u{61c}', '\u{202e}', '\u{2066}', '\u{e0041}', '\u{3164}']
        {
            assert_eq!(legible(&unseen.to_string()), unseen.escape_unicode().to_string());
        }
    }

    #[test]
    fn json_stays_the_same_value() {
        let line = "{\"a\":\"\u{9b}2J \u{e0041} ä\"}";
        let safe = inert_json(line);
        assert_eq!(safe, r#"{"a":"\u009b2J \udb40\udc41 ä"}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        assert_eq!(value(&safe), value(line));
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(shortened("日本語テキスト", 4), "日本語…");
        assert_eq!(shortened("short", 5), "short");
    }
}
