//! Messages of cargo, passed on to standard error but for one: the warning that all tools share one copy of the SDK, by a path
//! override. Cargo has no other way to replace a dependency that is a folder: `[patch]` replaces only dependencies from
//! registries and repositories.

use std::borrow::Cow;
use std::env;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::mem;
use std::process::{Command, Stdio};

use toolcrib_base::render::{self, Tone};

/// Text in the first line of the warning.
const START: &str = "path override for crate `toolcrib-guest` has altered the original list of";
/// Text in the last line of the warning, before an empty one.
const END: &str = "https://doc.rust-lang.org/cargo/reference/overriding-dependencies.html";
/// Maximum lines of the warning: a later version of cargo may end it otherwise.
const MAX_LINES: usize = 16;
/// Variable that lets cargo use colors.
const COLOR: &str = "CARGO_TERM_COLOR";

/// Lets cargo write to a pipe, with colors as for the terminal of this process.
pub(crate) fn pipe(cargo: &mut Command) {
    cargo.stderr(Stdio::piped());
    let has_colors = io::stderr().is_terminal() && matches!(render::paint(Tone::Quiet, "", true), Cow::Owned(_));
    if has_colors && env::var_os(COLOR).is_none() {
        cargo.env(COLOR, "always");
    }
}

/// Copies messages to their end, line by line, without the warning.
///
/// # Errors
///
/// The messages cannot be read or written.
pub(crate) fn copy(messages: impl Read, mut out: impl Write) -> io::Result<()> {
    let (mut messages, mut line) = (BufReader::new(messages), Vec::new());
    let (mut dropped, mut is_over) = (0, false);
    while messages.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        if text.contains(START) {
            dropped = MAX_LINES;
        }
        match dropped {
            // An empty line may follow the last one.
            0 if mem::take(&mut is_over) && text.trim().is_empty() => {}
            0 => out.write_all(&line)?,
            _ if text.contains(END) => (dropped, is_over) = (0, true),
            _ => dropped -= 1,
        }
        line.clear();
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNING: &str = "warning: path override for crate `toolcrib-guest` has altered the original list of\n\
        dependencies; the dependency on `toolcrib-guest-macro` was either added or\n\
        modified to not match the previously resolved version\n\n\
        This is currently allowed but is known to produce buggy behavior with spurious\n\n\
        https://doc.rust-lang.org/cargo/reference/overriding-dependencies.html\n\n";

    fn filtered(messages: &str) -> String {
        let mut all = Vec::new();
        copy(messages.as_bytes(), &mut all).unwrap();
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn exactly_one_warning_is_left_out() {
        let other = WARNING.replace("toolcrib-guest`", "serde`");
        let colored = WARNING.replacen("warning:", "\u{1b}[1m\u{1b}[33mwarning\u{1b}[0m\u{1b}[1m:\u{1b}[0m", 1);
        let more = "   Compiling greet v0.1.0 (/tmp/greet)\nwarning: unused\nwarn";
        for (messages, left) in [
            (format!("{WARNING}{more}"), more.to_owned()),
            (format!("a\n\n{colored}{more}"), format!("a\n\n{more}")),
            (other.clone(), other),
            (format!("{more}\n{WARNING}"), format!("{more}\n")),
            (format!("{}{more}", WARNING.trim_end_matches('\n').to_owned() + "\n"), more.to_owned()),
            (String::new(), String::new()),
        ] {
            assert_eq!(filtered(&messages), left);
        }
        let endless = format!("{}\n{}", WARNING.lines().next().unwrap(), "line\n".repeat(40));
        assert_eq!(filtered(&endless).matches("line\n").count(), 41 - MAX_LINES);
    }
}
