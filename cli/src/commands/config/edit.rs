//! `toolcrib config set`, `unset` and `edit`: a new text is checked before it replaces the file in one step.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::CommandFactory;
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_mcp::client_config::SettingsFile;
use toolcrib_settings::config::{
    Change, ConfiguredDenial, DEFAULT_FILE, Layer, LayerKind, SettingsText, check_values, profile, rules, system_file,
    user_file,
};
use toolcrib_settings::trust::TrustRecords;
use toolcrib_settings::trust::{State, Subject, Trusted, keeping_settings};
use toolcrib_sources::options::{RuleCheck, check_permissions, check_rules};

use crate::Cli;

use super::{Target, editor};

/// Table of the profiles.
const PROFILE: &str = "profile";
/// Section of the denials.
const DENIALS: &str = "deny";
/// Sections that decide which rules can match.
const RULES: [&str; 2] = ["permissions.", "sources."];
const UNCHANGED: &str = "nothing was changed";

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
            LayerKind::Set | LayerKind::Named | LayerKind::Project => Some(PathBuf::from(DEFAULT_FILE)),
            LayerKind::System => system_file(),
            LayerKind::User | LayerKind::Profile => user_file(),
        };
        path.ok_or_else(|| {
            Advice::new(
                "no settings file: no home directory was found",
                "use `--project` for the file in this directory",
            )
            .into()
        })
    }

    /// Reads the file, and returns it with its path. The system's file is created for all users.
    fn open(&self) -> anyhow::Result<(PathBuf, SettingsFile)> {
        let path = self.path()?;
        let file = SettingsFile::read(&path)?;
        Ok((path, if self.kind() == LayerKind::System { file.for_all() } else { file }))
    }

    fn confirm(&self, done: &str, key: &str, shown: &str) {
        let above = self.above();
        let table = if above.is_empty() { String::new() } else { format!("[{}] of ", above.join(".")) };
        render::aside(&format!("{done} `{}` in {table}{shown}", one_line(key)));
    }

    /// Returns the tables above the sections, for a profile in the user's file.
    fn above(&self) -> Vec<&'static str> {
        self.profile().map_or_else(Vec::new, |name| vec![PROFILE, name])
    }

    /// Profile of the user's file that is changed.
    fn profile(&self) -> Option<&'static str> {
        profile().filter(|_| self.kind() == LayerKind::User)
    }

    /// Returns `true` if only the user has written the file: it is no project's, it is trusted, or it does not exist yet.
    fn is_own(&self, file: &SettingsFile) -> anyhow::Result<bool> {
        let Some(subject) = subject_of(file).filter(|_| self.kind() == LayerKind::Project) else { return Ok(true) };
        let trusted = Trusted::read(&[], TrustRecords::of_user().as_ref())?;
        Ok(trusted.state(&subject) == State::Trusted)
    }
}

pub(super) async fn set(target: &Target, key: &str, value: &str, adds: bool) -> anyhow::Result<ExitCode> {
    let change = if adds { Change::Add(value) } else { Change::Set(value) };
    let (path, file) = target.open()?;
    let shown = shown(&path);
    // Checked first, so that a mistake in the file is reported as the file's own.
    SettingsText::parse_file(&path, &shown, file.text().to_owned(), target.kind())?;
    let text = change.make(file.text(), &target.above(), key)?.context("a change makes a text")?;
    let new = SettingsText::parse(&path, &shown, text.clone(), target.kind()).context(UNCHANGED)?;
    check_key(&new, target, key).context(UNCHANGED)?;
    check(&new, target, &file, decides_rules(key)).await.context(UNCHANGED)?;
    replace(target, &path, &file, &text)?;
    target.confirm("set", key, &shown);
    Ok(ExitCode::SUCCESS)
}

/// Checks a key's value as the option that it is the default of.
///
/// # Errors
///
/// A value that commands would refuse.
fn check_key(text: &SettingsText, target: &Target, key: &str) -> anyhow::Result<()> {
    let layer = match target.profile() {
        Some(name) => text.profile(name),
        None => Some(text.base(target.kind())),
    };
    let Some(mut layer) = layer else { return Ok(()) };
    layer.settings.retain(|setting| setting.name == key);
    let denied = layer.settings.iter().filter(|setting| setting.key.section == DENIALS);
    let origin = || format!("`{key}`");
    let denied = denied.map(|setting| ConfiguredDenial {
        name: setting.key.name,
        values: layer.texts(setting),
        origin: origin(),
        is_given: false,
    });
    let denied = denied.collect();
    let options = check_values(layer, &Cli::command())?;
    check_permissions(options.as_ref(), denied).with_context(origin)
}

/// Removes a key. A file with a mistake is changed too, so that the key with the mistake can be removed.
pub(super) async fn unset(target: &Target, key: &str) -> anyhow::Result<ExitCode> {
    let (path, file) = target.open()?;
    let shown = shown(&path);
    let parse = |text: &str| SettingsText::parse_file(&path, &shown, text.to_owned(), target.kind());
    let before = parse(file.text());
    let removed = match Change::Remove.make(file.text(), &target.above(), key) {
        // No key can be removed from a text that is not TOML.
        Err(error) if before.is_err() && !file.text().is_empty() => return Err(before.err().unwrap_or(error)),
        removed => removed?,
    };
    let Some(text) = removed else {
        let hint = format!("`toolcrib config explain {key}` lists the files that set it");
        return Err(Advice::new(format!("`{key}` is not set in `{shown}`"), hint).into());
    };
    let after = parse(&text);
    if before.is_ok() {
        after.as_ref().map_err(|error| Advice::new(render::message(error), UNCHANGED))?;
    }
    replace(target, &path, &file, &text)?;
    target.confirm("removed", key, &shown);
    match after {
        Ok(new) => check(&new, target, &file, false).await,
        Err(error) => Err(error),
    }
    .context("the file has another mistake")?;
    Ok(ExitCode::SUCCESS)
}

fn shown(path: &Path) -> String {
    one_line(&render::from_here(path).to_string_lossy())
}

/// Returns `true` if a key decides which rules can match.
fn decides_rules(key: &str) -> bool {
    RULES.iter().any(|section| key.starts_with(section))
}

/// Checks the edited layer's rules against the tools that it is used with. The tools come from its own sources, or
/// from the sources of the file around a profile or of the other files. With `is_about_rules` it warns of rules without
/// a tool, and says so if the rules cannot be checked; else the change does not touch them.
///
/// # Errors
///
/// A rule that can match no call.
async fn check(
    text: &SettingsText,
    target: &Target,
    before: &SettingsFile,
    is_about_rules: bool,
) -> anyhow::Result<()> {
    let file = text.base(target.kind());
    let profile = target.profile().and_then(|name| text.profile(name));
    let rules = rules(profile.as_ref().unwrap_or(&file))?;
    if rules.is_empty() {
        return Ok(());
    }
    let named = || profile.as_ref().and_then(Layer::sources).or_else(|| file.sources());
    // Whoever wrote the file of a project must not choose which paths are opened.
    let sources = if target.is_own(before)? { named() } else { None };
    match check_rules(sources, &rules).await {
        RuleCheck::Dead(dead) if is_about_rules => bail!(dead.message),
        RuleCheck::Dead(dead) => return Err(Advice::new(dead.message, dead.repair).into()),
        _ if !is_about_rules => {}
        RuleCheck::Checked(warnings) => warnings.iter().for_each(|warning| render::warning(warning)),
        RuleCheck::Stopped(error) | RuleCheck::Unchecked(error) => {
            let reason = render::message(&error);
            render::hint(&format!("the rules were not checked, because the tools cannot be loaded here: {reason}"));
        }
    }
    Ok(())
}

pub(super) async fn edit(target: Target) -> anyhow::Result<ExitCode> {
    let (path, file) = target.open()?;
    let shown = shown(&path);
    let before = file.text().to_owned();
    // The editor blocks the thread.
    let edited = tokio::task::spawn_blocking(move || editor::edit(&before)).await??;
    let text = edited.text()?;
    if text == file.text() {
        render::aside(&format!("`{shown}` is unchanged"));
        return Ok(ExitCode::SUCCESS);
    }
    let checked = match SettingsText::parse(&path, &shown, text.clone(), target.kind()) {
        Ok(new) => check(&new, &target, &file, true).await,
        Err(error) => Err(error),
    };
    if let Err(error) = checked {
        let kept = edited.keep()?;
        render::explain(&error);
        let hint = format!("correct the edited text, which is kept in `{}`", kept.display());
        return Err(Advice::new(UNCHANGED, hint).into());
    }
    replace(&target, &path, &file, &text)?;
    render::aside(&format!("changed {shown}"));
    Ok(ExitCode::SUCCESS)
}

/// Returns a file that exists as a subject of trust. The path and the text decide on trust, also in a text with a mistake that
/// `edit` mends.
fn subject_of(file: &SettingsFile) -> Option<Subject> {
    file.exists().then(|| Subject::of_settings(file.path().to_owned(), file.text(), Vec::new()))
}

/// Replaces the file. A project's file that is trusted stays so with the user's own change, and no other becomes so.
fn replace(target: &Target, path: &Path, file: &SettingsFile, text: &str) -> anyhow::Result<()> {
    if target.kind() != LayerKind::Project {
        return file.replace(text);
    }
    let before = subject_of(file);
    if SettingsText::parse(path, "", text.to_owned(), LayerKind::Project).is_err() {
        // A text with a mistake is trusted by nobody.
        return file.replace(text);
    }
    keeping_settings(TrustRecords::of_user().as_ref(), before.as_ref(), || {
        file.replace(text)?;
        Ok(SettingsText::parse(path, "", text.to_owned(), LayerKind::Project)?.subject())
    })
}
