//! Errors for people: the message, its causes, and the next step.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal};
use std::process::ExitCode;

use super::terminal_lock::Stream;
use super::{Mistake, Tone, fill, forget_hints, hint, label, uses_colors};

/// Standard output was closed by its reader. The program ends without an error.
#[derive(Debug)]
pub(super) struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl Error for OutputClosed {}

/// An error message with a hint.
#[derive(Debug)]
pub struct Advice {
    message: String,
    hint: String,
}

impl Advice {
    /// Creates an error with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }

    /// Returns the hint.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Advice {}

/// Creates a usage error, which exits with code 2.
pub fn usage_error(message: impl fmt::Display) -> anyhow::Error {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{message}\n")).into()
}

/// Prints an error and returns its exit code: 2 for a usage error, raised by a command as a [`clap::Error`], and 0 if
/// standard output was closed.
pub fn failure(error: &anyhow::Error) -> ExitCode {
    if error.is::<OutputClosed>() {
        return ExitCode::SUCCESS;
    }
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        print_usage(usage);
        return ExitCode::from(2);
    }
    explain(error);
    ExitCode::FAILURE
}

/// Prints help or a usage error, on a terminal with lines that end between words.
pub fn print_usage(usage: &clap::Error) {
    let is_error = usage.use_stderr();
    let terminal = if is_error { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    // The stream may be closed.
    if !terminal {
        let _ = usage.print();
        return;
    }
    let text = usage.render();
    let text = if uses_colors(true) { text.ansi().to_string() } else { text.to_string() };
    let (stream, text) = match is_error {
        true => (Stream::Err, fill::for_messages(&text, 0)),
        false => (Stream::Out, fill::for_output(&text)),
    };
    let _ = stream.put(text.as_bytes());
}

/// Returns `true` if the reader of standard output has closed it, which is not an error.
pub fn is_output_closed(error: &anyhow::Error) -> bool {
    error.is::<OutputClosed>()
}

/// Formats an error with its causes as one message for programs.
pub fn message(error: &anyhow::Error) -> String {
    let mut last = error.to_string();
    let mut message = last.clone();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors repeat their source in their own message.
        if !last.contains(&cause) {
            message = format!("{message}: {cause}");
            last = cause;
        }
    }
    // Usage errors already start with a label.
    message.trim().strip_prefix("error: ").unwrap_or(message.trim()).to_owned()
}

/// Writes `error:`, each `cause:` and the `hint:`s of an error; hints that an earlier failure gave too are repeated.
pub fn explain(error: &anyhow::Error) {
    forget_hints();
    let mut message = error.to_string();
    label(Tone::Bad, "error", &message);
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors repeat their source in their own message.
        if !message.contains(&cause) {
            label(Tone::Bad, "cause", &cause);
            message = cause;
        }
    }
    if let Some(text) = hint_of(error) {
        hint(&text);
    }
}

/// Returns the next step for an error: its own, or the step for the system error that caused it.
pub fn hint_of(error: &anyhow::Error) -> Option<String> {
    let advice = || error.downcast_ref::<Advice>().map(|advice| advice.hint.clone());
    let mistake = || error.downcast_ref::<Mistake>()?.suggestion().map(str::to_owned);
    let known = || error.downcast_ref::<toolcrib::Error>().and_then(toolcrib::Error::hint);
    let cause = || error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).and_then(hint_of_system);
    advice().or_else(mistake).or_else(known).or_else(|| cause().map(str::to_owned))
}

/// Returns the next step after a system error.
fn hint_of_system(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::NotFound => "check the path; a relative one starts at the current directory",
        ErrorKind::PermissionDenied => {
            "check the owner and mode of the file and its directory, for example with `ls -l`"
        }
        ErrorKind::IsADirectory => "it is a directory: name a file in it",
        ErrorKind::NotADirectory => "part of the path is a file: choose another directory",
        ErrorKind::AlreadyExists => "existing files are never overwritten: choose another name, or remove the file",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk is full: free some space",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only: choose another directory",
        ErrorKind::AddrInUse => "another process uses the address: end it, or choose another port",
        _ => return None,
    })
}
