//! Entries for tools that are not called: a call to one tool reads their names and program paths, which are protected,
//! and nothing else.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::source::{left_out, name, program};
use crate::tool::{Body, Origin, Tool};

use super::command;

/// Tool that is not called.
pub(super) struct OtherTool {
    entry: Entry,
    program: PathBuf,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    command: Vec<String>,
    interface: Option<Interface>,
}

#[derive(Deserialize)]
struct Interface {
    aliases: Option<IgnoredAny>,
}

impl OtherTool {
    /// Reads an entry. Returns `None` for an entry that has to be read whole: the called tool's, which may be named by
    /// an alias, and one with a faulty name or command.
    pub(super) fn read(entry: &RawValue, called: &str, folder: &Path) -> Option<Self> {
        let entry: Entry = serde_json::from_str(entry.get()).ok()?;
        let has_aliases = entry.interface.as_ref().is_some_and(|interface| interface.aliases.is_some());
        if entry.name == called || has_aliases {
            return None;
        }
        name::usable(entry.name.clone())?;
        let program = command::resolve(entry.command.first()?, folder).ok()?;
        Some(Self { entry, program })
    }

    pub(super) fn name(&self) -> &str {
        &self.entry.name
    }

    /// Creates the tool, which cannot be used.
    pub(super) fn left_out(self, origin: Origin) -> Tool {
        let Self { entry, program } = self;
        let body = Body::Command {
            program: program::locate(&program),
            argv: command::guest_argv(entry.command),
            command_line: None,
        };
        left_out(&entry.name, body, origin)
    }
}
