//! How things are written: results to standard output, `error:`, `cause:`, `hint:` and `warning:` to standard error, and
//! nothing from outside in a form that a terminal would obey. It knows no command.

mod hold;
mod table;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use toolcrib::call::{Denial, Execution, Flag, Receipt};
use toolcrib::policy::settled_by;

use hold::Stream;

pub(crate) use hold::hold;
pub(crate) use table::table;

static COLOR: OnceLock<Color> = OnceLock::new();

/// When to colour; `Auto` means on a terminal, unless `NO_COLOR` is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// Sets the choice for the whole program, once.
pub(crate) fn use_color(choice: Color) {
    // A second choice is ignored: only `main` makes one.
    let _ = COLOR.set(choice);
}

/// The colours there are, by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Doubtful,
    Advice,
    Quiet,
}

/// `text` in a tone, for a stream that is a terminal or not.
pub(crate) fn paint(tone: Tone, text: &str, terminal: bool) -> Cow<'_, str> {
    let wanted = match COLOR.get().copied().unwrap_or_default() {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    };
    if !wanted {
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

/// Standard output was closed by its reader, who has seen enough: a quiet end, no failure.
#[derive(Debug)]
struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl Error for OutputClosed {}

/// Writes `text` and a line break to standard output, at once.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    to_stdout(format!("{text}\n").as_bytes())
}

/// Writes a path to standard output: as it is, or [`inert`] on a terminal.
pub(crate) fn print_path(path: &Path) -> anyhow::Result<()> {
    let path = path.display().to_string();
    if io::stdout().is_terminal() { print(&inert(&path)) } else { print(&path) }
}

/// Writes content from outside to standard output, byte for byte. On a terminal it is [`legible`] text and ends its line.
pub(crate) fn print_content(content: &[u8]) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { print(&legible(&String::from_utf8_lossy(content))) } else { to_stdout(content) }
}

fn to_stdout(bytes: &[u8]) -> anyhow::Result<()> {
    Stream::Out.put(bytes).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => OutputClosed.into(),
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    })
}

/// Writes one line of JSON to standard output. On a terminal, characters that it would obey become JSON escapes: the
/// same value, without effect.
pub(crate) fn print_json(line: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { print(&inert_json(line)) } else { print(line) }
}

/// A line of JSON in which every character that a terminal would obey is a JSON escape: the same value.
pub(crate) fn inert_json(line: &str) -> Cow<'_, str> {
    rewritten(line, obeyed, |c, text| {
        let mut units = [0; 2];
        text.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
    })
}

/// A message with what a person can do about it.
#[derive(Debug)]
pub(crate) struct Advice {
    message: String,
    hint: String,
}

impl Advice {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }

    /// What a person can do.
    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Advice {}

/// Tells a person why the program failed, and gives the exit code for it. Wrong use, raised by a command as a
/// [`clap::Error`], is 2; an output that nobody reads any more is no failure.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    if error.is::<OutputClosed>() {
        return ExitCode::SUCCESS;
    }
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        // Nothing is left to tell it to.
        let _ = usage.print();
        return ExitCode::from(2);
    }
    explain(error);
    ExitCode::FAILURE
}

/// The whole of an error as one message, as programs are told it.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let message = format!("{error:#}");
    // Wrong use comes with a label of its own.
    message.trim().strip_prefix("error: ").unwrap_or(message.trim()).to_owned()
}

/// Writes `error:`, each `cause:` and the `hint:`s of an error.
pub(crate) fn explain(error: &anyhow::Error) {
    let mut said = error.to_string();
    label(Tone::Bad, "error", &said);
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors repeat their source in their own message.
        if !said.contains(&cause) {
            label(Tone::Bad, "cause", &cause);
            said = cause;
        }
    }
    let advice = error.downcast_ref::<Advice>().map(|advice| advice.hint.clone());
    let known = error.downcast_ref::<toolcrib::Error>().and_then(toolcrib::Error::hint);
    for text in advice.into_iter().chain(known) {
        hint(&text);
    }
}

/// Writes a `warning:` line.
pub(crate) fn warning(text: &str) {
    label(Tone::Doubtful, "warning", text);
}

/// Writes a `hint:` line.
pub(crate) fn hint(text: &str) {
    label(Tone::Advice, "hint", text);
}

/// Writes text from outside, marked line by line so that it cannot pass for a line of ours.
pub(crate) fn quoted(mark: &str, text: &str) {
    let text = format!("{mark} {}", text.trim_matches('\n'));
    aside(&text.replace('\n', "\n  "));
}

/// Says how many parts of a call nobody was shown.
pub(crate) fn dropped(receipt: &Receipt) {
    if receipt.dropped_parts > 0 {
        aside(&format!("  {} parts were not shown: too many, or too late", receipt.dropped_parts));
    }
}

/// Writes a `hint:` line for each flag that would have allowed what was denied.
pub(crate) fn denials(denials: &[Denial]) {
    for (at, Denial { capability, flag }) in denials.iter().enumerate() {
        match flag {
            Some(flag) if denials[..at].iter().any(|earlier| earlier.flag.as_ref() == Some(flag)) => {}
            Some(flag) => hint(&format!("`{capability}` is not allowed; use {flag}")),
            None => match settled(capability) {
                Some((path, settles)) => hint(&format!("`{path}` controls {settles}; tools cannot write it")),
                None => hint(&format!("`{capability}` is not allowed")),
            },
        }
    }
}

/// The path that a denied capability is about, and what it settles, where it is one that no tool may write.
fn settled(capability: &str) -> Option<(&str, &'static str)> {
    let path = capability.strip_prefix("write:")?;
    Some((path, settled_by(Path::new(path))?))
}

/// Writes a line for each program that a call's script ran.
pub(crate) fn executed(executions: &[Execution]) {
    for Execution { program, exit, stopped, ms, .. } in executions {
        let end = match (exit, stopped) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(outcome)) => outcome.as_str().to_owned(),
            (None, None) => "did not end".to_owned(),
        };
        aside(&format!("  ran {}: {end}, {ms:.1} ms", one_line(program)));
    }
}

/// Writes a `warning:` line where an answer holds what a person who looks at it would miss.
pub(crate) fn flags(flags: &[Flag]) {
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

/// Writes text from outside to standard error as it is, but inert.
pub(crate) fn aside(text: &str) {
    ours(&inert(text.trim_end_matches('\n')));
}

fn label(tone: Tone, label: &str, text: &str) {
    let label = format!("{label}:");
    let label = paint(tone, &label, io::stderr().is_terminal());
    // Further lines are indented, so that no text from outside can pass for a label.
    ours(&format!("{label} {}", inert(text).replace('\n', "\n  ")));
}

/// Writes words of our own to standard error, with our own colours.
pub(crate) fn ours(text: &str) {
    // Where standard error is closed there is nowhere to say so.
    let _ = Stream::Err.put(format!("{text}\n").as_bytes());
}

/// Text from outside without power over a terminal or a reader: control, bidirectional and invisible characters are
/// shown by their code. Line breaks and tabs stay.
pub(crate) fn inert(text: &str) -> Cow<'_, str> {
    rewritten(text, obeyed, |c, safe| safe.extend(c.escape_unicode()))
}

/// [`inert`] text for reading: joiners stay, since emoji and several scripts are written with them, and line breaks lose
/// their carriage return.
pub(crate) fn legible(text: &str) -> Cow<'_, str> {
    let escaped = |before, c| obeyed(before, c) && !matches!(c, '\u{200c}' | '\u{200d}');
    let write = |c: char, safe: &mut String| safe.extend(c.escape_unicode());
    match text.contains("\r\n") {
        true => Cow::Owned(rewritten(&text.replace("\r\n", "\n"), escaped, write).into_owned()),
        false => rewritten(text, escaped, write),
    }
}

/// `text` with every such character, told with the one before it, written in another way.
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

/// A path as a person in this folder would write it: `tools.json`, not what stands above it.
pub(crate) fn from_here(path: &Path) -> &Path {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here)
        .or_else(|_| path.strip_prefix("."))
        .ok()
        .filter(|below| below.file_name().is_some())
        .unwrap_or(path)
}

/// [`inert`] text on one line.
pub(crate) fn one_line(text: &str) -> String {
    inert(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `most` characters of `text`, the last an ellipsis where something was cut.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().count() <= most {
        return Cow::Borrowed(text);
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    Cow::Owned(kept.trim_end().to_owned() + "…")
}

/// Whether a terminal or a reader's eye would be led by a character: C0 but for line break and tab, DEL, C1, and what an
/// answer is flagged for.
fn obeyed(before: Option<char>, c: char) -> bool {
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
