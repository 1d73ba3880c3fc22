//! `toolcrib config set`, `unset` and `edit`: a new text is checked before it replaces the file in one step.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::config::{Change, DEFAULT_FILE, LayerKind, SettingsText, profile, system_file, user_file};
use crate::mcp_config::SettingsFile;
use crate::options::TrustOptions;
use crate::render::{self, Advice, one_line};
use crate::trust::{Subject, keeping_settings};

use super::{Target, editor};

/// Table of the profiles.
const PROFILE: &str = "profile";

impl Target {
    fn kind(&self) -> LayerKind {
        match (self.project, self.system) {
            (true, _) => LayerKind::Project,
            (_, true) => LayerKind::System,
            _ => LayerKind::User,
        }
    }

    fn path(&self) -> anyhow::Result<PathBuf> {
        let path = match self.kind() {
            LayerKind::Named | LayerKind::Project => Some(PathBuf::from(DEFAULT_FILE)),
            LayerKind::System => system_file(),
            LayerKind::User | LayerKind::Profile => user_file(),
        };
        path.ok_or_else(|| {
            Advice::new("no settings file: no home directory was found", "use `--project` for the file of this folder")
                .into()
        })
    }

    /// Reads the file; that of the system is created for all users.
    fn file(&self, path: &Path) -> anyhow::Result<SettingsFile> {
        let file = SettingsFile::read(path)?;
        Ok(if self.kind() == LayerKind::System { file.for_all() } else { file })
    }

    /// Tables above the sections: those of the profile in the user's file.
    fn above(&self) -> Vec<&'static str> {
        match (self.kind(), profile()) {
            (LayerKind::User, Some(name)) => vec![PROFILE, name],
            _ => Vec::new(),
        }
    }
}

pub(super) fn set(target: &Target, key: &str, value: &str, adds: bool) -> anyhow::Result<ExitCode> {
    let change = if adds { Change::Add(value) } else { Change::Set(value) };
    change_key(target, key, change, "set")
}

pub(super) fn unset(target: &Target, key: &str) -> anyhow::Result<ExitCode> {
    change_key(target, key, Change::Remove, "removed")
}

fn change_key(target: &Target, key: &str, change: Change<'_>, done: &str) -> anyhow::Result<ExitCode> {
    let path = target.path()?;
    let file = target.file(&path)?;
    let shown = one_line(&render::from_here(&path).to_string_lossy());
    // Checked first, so that a mistake in the file is told as that of the file.
    SettingsText::parse(&path, &shown, file.text().to_owned(), target.kind())?;
    let above = target.above();
    let Some(text) = change.make(file.text(), &above, key)? else {
        let hint = format!("`toolcrib config explain {key}` lists the files that set it");
        return Err(Advice::new(format!("`{key}` is not set in `{shown}`"), hint).into());
    };
    SettingsText::parse(&path, &shown, text.clone(), target.kind()).context("nothing was changed")?;
    replace(target, &path, &file, &text)?;
    let table = if above.is_empty() { String::new() } else { format!("[{}] of ", above.join(".")) };
    render::aside(&format!("{done} `{}` in {table}{shown}", one_line(key)));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn edit(target: &Target) -> anyhow::Result<ExitCode> {
    let path = target.path()?;
    let file = target.file(&path)?;
    let shown = one_line(&render::from_here(&path).to_string_lossy());
    let edited = editor::edit(file.text())?;
    let text = edited.text()?;
    if text == file.text() {
        render::aside(&format!("`{shown}` is unchanged"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(error) = SettingsText::parse(&path, &shown, text.clone(), target.kind()) {
        let kept = edited.keep()?;
        render::explain(&error);
        let hint = format!("correct the edited text, which is kept in `{}`", kept.display());
        return Err(Advice::new("nothing was changed", hint).into());
    }
    replace(target, &path, &file, &text)?;
    render::aside(&format!("changed {shown}"));
    Ok(ExitCode::SUCCESS)
}

/// Replaces the file. A project's file that is trusted stays so with the user's own change, and no other becomes so.
fn replace(target: &Target, path: &Path, file: &SettingsFile, text: &str) -> anyhow::Result<()> {
    if target.kind() != LayerKind::Project {
        return file.replace(text);
    }
    // The path and the text decide on trust, also in a text with a mistake that `edit` mends.
    let before = file.exists().then(|| Subject::of_settings(file.path().to_owned(), file.text(), Vec::new()));
    keeping_settings(TrustOptions::records().as_ref(), before.as_ref(), || {
        file.replace(text)?;
        Ok(SettingsText::parse(path, "", text.to_owned(), LayerKind::Project)?.subject())
    })
}
