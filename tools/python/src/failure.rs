//! Failures of programs: what an exception of the interpreter says, in the form of the contract.

use std::borrow::Cow;

use monty_types::{ExcType, MontyException, StackFrame};
use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::TextSize;

use crate::awaited::HIDDEN;
use crate::hints;

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The program was not started.
    Invalid,
    /// An exception that the program did not catch.
    Uncaught,
    /// A limit was reached.
    Limit,
    /// The host did what the contract does not allow.
    Misuse,
}

/// Entry of a traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
    /// Name of the function.
    pub(crate) function: Option<String>,
    /// Source line.
    pub(crate) source: Option<String>,
}

impl Frame {
    /// Entry of an offset in the source.
    pub(crate) fn at(index: &LineIndex, source: &str, offset: usize) -> Self {
        let place = index.line_column(TextSize::try_from(offset).unwrap_or_default(), source);
        let line = source.lines().nth(place.line.to_zero_indexed()).unwrap_or_default();
        let number = |place: OneIndexed| u32::try_from(place.get()).unwrap_or(0);
        Self {
            line: number(place.line),
            column: number(place.column),
            function: None,
            source: Some(cut(line.trim(), KEPT_SOURCE)),
        }
    }
}

/// Failed program.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Kind.
    pub(crate) kind: Kind,
    /// Type of the exception.
    pub(crate) exception: String,
    /// Message.
    pub(crate) message: String,
    /// Traceback, outermost entry first.
    pub(crate) traceback: Vec<Frame>,
}

/// Start of the compiler's messages about features that it lacks.
const UNSUPPORTED: &str = "The monty syntax parser does not yet support ";
/// Entries of a traceback that are kept at each end.
const KEPT_FRAMES: usize = 10;
/// Characters of a source line that are kept.
const KEPT_SOURCE: usize = 200;
/// Characters of a message that are kept.
const KEPT_MESSAGE: usize = 4_000;

impl Failure {
    /// Failure of the host.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self { kind: Kind::Misuse, exception: "Misuse".to_owned(), message: message.into(), traceback: Vec::new() }
    }

    /// Failure of a program that is refused before it is parsed.
    pub(crate) fn invalid(message: String) -> Self {
        Self { kind: Kind::Invalid, exception: "SyntaxError".to_owned(), message, traceback: Vec::new() }
    }

    /// Failure of a program. `stopped` says whether a limit of this crate stopped it.
    pub(crate) fn new(error: &MontyException, stopped: bool) -> Self {
        let message = error.message().unwrap_or_default();
        let kind = match error.exc_type() {
            _ if stopped => Kind::Limit,
            // No program can raise these two texts and be believed to have reached a limit: both are only labels.
            ExcType::MemoryError if message.starts_with("memory limit exceeded") => Kind::Limit,
            ExcType::TimeoutError if message.starts_with("time limit exceeded") => Kind::Limit,
            ExcType::SyntaxError if error.traceback().iter().all(|frame| frame.hide_frame_name) => Kind::Invalid,
            ExcType::NotImplementedError if message.starts_with(UNSUPPORTED) => Kind::Invalid,
            _ => Kind::Uncaught,
        };
        let hidden = |frame: &&StackFrame| frame.preview_line.as_ref().is_some_and(|line| line.contains(HIDDEN));
        let frames: Vec<&StackFrame> = error.traceback().iter().filter(|frame| !hidden(frame)).collect();
        let traceback = frames
            .iter()
            .enumerate()
            .filter(|(index, _)| *index < KEPT_FRAMES || index + KEPT_FRAMES >= frames.len())
            .map(|(_, entry)| frame(entry))
            .collect();
        let message = hints::explained(message).unwrap_or_else(|| plain(message).into_owned());
        Self { kind, exception: exception(error.exc_type()), message: cut(&message, KEPT_MESSAGE), traceback }
    }
}

/// Message of the interpreter without its own name.
pub(crate) fn plain(message: &str) -> Cow<'_, str> {
    match message.strip_prefix(UNSUPPORTED) {
        Some(feature) => format!("this Python does not have {feature}").into(),
        None => message.into(),
    }
}

/// Name of an exception type in programs: failed calls are `ToolError`, which is another name of `OSError`.
fn exception(kind: ExcType) -> String {
    match kind {
        ExcType::OSError => "ToolError".to_owned(),
        other => other.to_string(),
    }
}

fn frame(entry: &StackFrame) -> Frame {
    Frame {
        line: entry.start.line,
        column: entry.start.column,
        function: entry.frame_name.clone().filter(|name| name != "<module>"),
        source: entry.preview_line.as_deref().map(|line| cut(&line.trim().replace("t00ls_", "tools."), KEPT_SOURCE)),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
