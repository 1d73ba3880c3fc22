//! The user's editor on a private copy of a text. The editor is a program of the user's own choice and runs with their rights.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use tempfile::TempPath;
use toolcrib_base::render::{Advice, one_line};

/// Variables that name the editor, the first that is set counts.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];

/// Text that was edited.
pub(super) struct EditedText(TempPath);

/// Opens the editor on a copy of `text`, and waits for its end.
///
/// # Errors
///
/// No editor is named, or it cannot be started or fails.
pub(super) fn edit(text: &str) -> anyhow::Result<EditedText> {
    let set = |name: &&'static str| {
        let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty())?;
        Some((*name, value))
    };
    let (variable, editor) = VARIABLES.iter().find_map(set).ok_or_else(|| {
        Advice::new(
            "no editor: neither VISUAL nor EDITOR is set",
            "set one, such as `EDITOR=nano`, or use `toolcrib config set`",
        )
    })?;
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or_default();
    let context = || format!("cannot edit with `{editor}`");
    let mut file = tempfile::Builder::new().prefix("toolcrib-").suffix(".toml").tempfile().with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)?;
    let path = file.into_temp_path();
    let status = Command::new(program).args(words).arg(&path).status().map_err(|error| {
        let message = format!("cannot start the editor `{}`, which {variable} names: {error}", one_line(program));
        Advice::new(message, "set it to a program that is installed, or use `toolcrib config set`")
    })?;
    if !status.success() {
        return Err(Advice::new(format!("`{editor}` failed ({status})"), "nothing was changed").into());
    }
    Ok(EditedText(path))
}

impl EditedText {
    /// Returns the text.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        fs::read_to_string(&self.0).context("cannot read the edited text")
    }

    /// Keeps the text, and returns its file.
    pub(super) fn keep(self) -> anyhow::Result<PathBuf> {
        self.0.keep().context("cannot keep the edited text")
    }
}
