//! Checks of rules against the tools of the sources, before a command stops because of them.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::{ArgMatches, FromArgMatches, Parser};
use toolcrib::policy::{Permission, real_path};
use toolcrib::{Audit, Error, Policy, Runtime};
use toolcrib_base::render::Advice;
use toolcrib_settings::config::{Config, ConfiguredDenial, ConfiguredRule, Layers, repair_of};
use toolcrib_settings::selection::split;

use super::Sources;
use super::denials::denials;
use super::permissions::Permissions;

/// Path of the warnings about rules.
const RULES: &str = "rules";

/// Sources of a command without options.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct DefaultSources {
    #[command(flatten)]
    sources: Sources,
}

/// Result of a check.
#[derive(Debug)]
pub enum RuleCheck {
    /// Every rule can match; warnings about those that match no tool here.
    Checked(Vec<String>),
    /// A rule can match no call.
    Dead(DeadRule),
    /// Another permission than a rule stops every command.
    Stopped(anyhow::Error),
    /// The tools cannot be loaded.
    Unchecked(anyhow::Error),
}

/// Rule of a settings file that can match no call.
#[derive(Debug)]
pub struct DeadRule {
    /// Place, rule and reason.
    pub message: String,
    /// Commands that remove or correct the rule.
    pub repair: String,
}

/// Checks that the permissions of a command's options can be granted, and these denied, as far as that depends on no folder.
///
/// # Errors
///
/// The first permission that is impossible, such as a variable with a space in its name.
pub fn check_permissions(options: Option<&ArgMatches>, denied: Vec<ConfiguredDenial>) -> anyhow::Result<()> {
    let allowed = options.map(Permissions::from_arg_matches).transpose()?;
    let denied = denials(&Config { denials: denied, ..Config::default() })?;
    let is_folder =
        |it: &Permission| matches!(it.unlimited(), Permission::Read(_) | Permission::Write(_) | Permission::Hooks(_));
    let allowed = allowed.iter().flat_map(Permissions::allowed).filter(|it| !is_folder(it));
    let policy = allowed.fold(Policy::default(), Policy::allow);
    let denied = denied.into_iter().map(|(permission, _)| permission).filter(|it| !is_folder(it));
    let policy = denied.fold(policy, Policy::deny);
    Runtime::builder(Audit::off()).policy(policy).build()?;
    Ok(())
}

/// Checks rules against the tools of `tools`, or else of the sources that commands use in this folder. No bundle is pulled.
pub async fn check_rules(tools: Option<Vec<PathBuf>>, rules: &[ConfiguredRule]) -> RuleCheck {
    match default_sources(tools).await {
        Ok(sources) => sources.check_rules(Policy::default(), rules),
        Err(error) => RuleCheck::Unchecked(error),
    }
}

async fn default_sources(tools: Option<Vec<PathBuf>>) -> anyhow::Result<Sources> {
    let mut sources = DefaultSources::try_parse_from::<_, &str>([])?.sources;
    let of_settings = || {
        let layers = Layers::load(None, &sources.trust.trusted().ok()?).ok()?;
        layers.all().iter().filter(|layer| layer.is_trusted).find_map(|layer| layer.sources())
    };
    sources.tools = tools.or_else(of_settings).unwrap_or_default();
    for source in sources.tools.iter().map(|source| source.to_string_lossy()) {
        ensure!(!source.contains("://"), "`{source}` is in a registry");
    }
    sources.fetch().await?;
    Ok(sources)
}

impl Sources {
    /// Checks rules of settings files against the tools of the sources, in addition to a policy.
    pub fn check_rules(&self, policy: Policy, rules: &[ConfiguredRule]) -> RuleCheck {
        let build = || -> anyhow::Result<Result<Runtime, Error>> {
            let trusted = self.trust.trusted()?;
            let policy = rules.iter().fold(policy, |policy, of| policy.rule(of.rule.clone()));
            let mut builder = self.trust.apply(Runtime::builder(Audit::off()).policy(policy), &trusted, None);
            for source in self.paths()? {
                builder = self.add_source(builder, source);
            }
            Ok(self.compiling.settle(builder, self.programs()).build())
        };
        match build() {
            Ok(Ok(runtime)) => {
                let warnings = runtime.warnings().iter().filter(|warning| warning.path.as_os_str() == RULES);
                RuleCheck::Checked(warnings.map(ToString::to_string).collect())
            }
            Ok(Err(error)) => match dead_rule(&error, rules) {
                Some(dead) => RuleCheck::Dead(dead),
                None if matches!(error, Error::Permission { .. }) => RuleCheck::Stopped(with_place(error, rules, &[])),
                None => RuleCheck::Unchecked(error.into()),
            },
            Err(error) => RuleCheck::Unchecked(error),
        }
    }
}

/// Finds the rule of a settings file that an error is about.
fn dead_rule(error: &Error, rules: &[ConfiguredRule]) -> Option<DeadRule> {
    let Error::Permission { permission, reason } = error else { return None };
    let ConfiguredRule { rule, place, repair, .. } = rules.iter().find(|of| of.rule.to_string() == *permission)?;
    let message = format!("{place}: {} {}: {reason}", rule.verb(), rule.pattern().as_str());
    Some(DeadRule { message, repair: repair.clone() })
}

/// Finds the denial of a settings file that an error is about.
fn denial_of<'d>(error: &Error, denials: &'d [ConfiguredDenial]) -> Option<&'d ConfiguredDenial> {
    let Error::Permission { permission, .. } = error else { return None };
    let is_it = |denial: &&ConfiguredDenial| {
        let denied = permission.strip_prefix(&format!("--deny-{}=", denial.name));
        let is_value = |value: &str, denied: &str| {
            let item = split(value).1;
            value == denied || item == denied || real_path(Path::new(item)) == Path::new(denied)
        };
        denied.is_some_and(|denied| denial.values.iter().any(|value| is_value(value, denied)))
    };
    denials.iter().find(is_it)
}

/// Adds the place in a settings file, and the commands that repair it, to an error of a runtime that the file causes.
pub(super) fn with_place(error: Error, rules: &[ConfiguredRule], denials: &[ConfiguredDenial]) -> anyhow::Error {
    if let Some(DeadRule { message, repair }) = dead_rule(&error, rules) {
        return Advice::new(message, repair).into();
    }
    if let Some(denial) = denial_of(&error, denials) {
        let repair = if denial.is_given { "correct it" } else { "`toolcrib config edit` opens your file" };
        let hint = format!("its value is from {}; {repair}", denial.origin);
        return Advice::new(error.to_string(), hint).into();
    }
    let option = match &error {
        Error::Permission { permission, .. } => permission.split('=').next().filter(|flag| flag.starts_with("--")),
        _ => None,
    };
    match option.and_then(repair_of) {
        Some((origin, repair)) => {
            Advice::new(error.to_string(), format!("its value is from the {origin}; {repair}")).into()
        }
        None => error.into(),
    }
}
