//! Commands of a chat: lines that begin with `/`.

use toolcrib::policy::Pattern;

/// Maximum bytes of a model's name.
const MAX_MODEL: usize = 200;

/// A line that a person typed.
#[derive(Debug)]
pub(super) enum Typed {
    /// A message for the model.
    Message(String),
    /// Nothing.
    Empty,
    /// The model is asked again, without a new message.
    Go,
    Tools,
    /// Approvals that are given ahead; without a pattern they are listed.
    Allow(Option<Pattern>),
    Undo,
    Cost,
    Compact,
    /// The model is shown, or replaced by one with this name.
    Model(Option<String>),
    Help,
    Quit,
}

/// Help of a chat.
pub(super) const HELP: &str = "\
/tools          the tools that the model may call, with their permissions
/allow PATTERN  allow calls of tools such as fs_rm or fs_* without asking in this chat; without PATTERN, list them
/undo           remove your last message and everything after it, and put back the files that its calls have changed
/model [NAME]   show the model, or switch to another one on the same server
/cost           requests, tokens, calls and cost so far, and how full the context is
/compact        replace the older messages by a summary that the model writes
/go             let the model continue without a new message, after an interruption, an error or a budget
/help           show this list
/quit           end the chat; it stays saved (also Ctrl-D)

Ctrl-C stops an answer and keeps its text. End a line with `\\` to continue it on the next line.
Start a message with a space if it begins with `/`.";

impl Typed {
    /// Parses a line.
    ///
    /// # Errors
    ///
    /// Explains what is wrong with a command.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        if line.trim().is_empty() {
            return Ok(Self::Empty);
        }
        let Some(command) = line.strip_prefix('/') else { return Ok(Self::Message(line.trim().to_owned())) };
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let argument = argument.trim();
        let parsed = match name {
            "tools" => Self::Tools,
            "allow" => Self::Allow(pattern(argument)?),
            "undo" => Self::Undo,
            "cost" => Self::Cost,
            "compact" => Self::Compact,
            "model" => Self::Model(model(argument)?),
            "go" => Self::Go,
            "help" | "?" => Self::Help,
            "quit" | "exit" | "q" => Self::Quit,
            _ => return Err(format!("unknown command `/{name}`; see `/help`; to send it as text, start with a space")),
        };
        match argument.is_empty() || matches!(parsed, Self::Allow(_) | Self::Model(_)) {
            true => Ok(parsed),
            false => Err(format!("`/{name}` takes no argument")),
        }
    }
}

fn model(text: &str) -> Result<Option<String>, String> {
    match text.split_whitespace().count() {
        0 => Ok(None),
        1 if text.len() <= MAX_MODEL && !text.contains(char::is_control) => Ok(Some(text.to_owned())),
        _ => Err(format!("a name of a model is one word of at most {MAX_MODEL} bytes")),
    }
}

fn pattern(text: &str) -> Result<Option<Pattern>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let pattern: Pattern = text.parse().map_err(|error| format!("{error}"))?;
    match !pattern.names_tools() || text.contains('(') {
        true => Err(format!("`{text}`: name tools here, such as `fs_rm` or `fs_*`; rules with arguments are options")),
        false => Ok(Some(pattern)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        assert!(matches!(Typed::parse(" "), Ok(Typed::Empty)));
        assert!(matches!(Typed::parse("/quit"), Ok(Typed::Quit)) && matches!(Typed::parse("/undo "), Ok(Typed::Undo)));
        assert!(matches!(Typed::parse("hello /quit"), Ok(Typed::Message(text)) if text == "hello /quit"));
        assert!(matches!(Typed::parse(" /etc/hosts?"), Ok(Typed::Message(text)) if text == "/etc/hosts?"));
        assert!(matches!(Typed::parse("/allow"), Ok(Typed::Allow(None))));
        assert!(matches!(Typed::parse("/allow fs_*"), Ok(Typed::Allow(Some(pattern))) if pattern.as_str() == "fs_*"));
        assert!(matches!(Typed::parse("/model"), Ok(Typed::Model(None))));
        assert!(matches!(Typed::parse("/model a/b:c"), Ok(Typed::Model(Some(name))) if name == "a/b:c"));
        assert!(Typed::parse(&format!("/model {}", "x".repeat(MAX_MODEL))).is_ok());
        assert!(Typed::parse(&format!("/model {}", "x".repeat(MAX_MODEL + 1))).is_err());
        for wrong in [
            "/model a b",
            "/compact now",
            "/etc/hosts",
            "/",
            "/undo 3",
            "/allow fs_rm(path=a)",
            "/allow @writes",
            "/allow a b",
        ] {
            assert!(Typed::parse(wrong).is_err(), "{wrong}");
        }
    }
}
