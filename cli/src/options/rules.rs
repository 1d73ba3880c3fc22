//! The options that say which calls may run, which need a person's yes, and where both are kept: rules on the command
//! line and in a `toolcrib.toml`, and what was agreed to for always.

use std::path::PathBuf;
use std::str::FromStr;

use toolcrib::Policy;
use toolcrib::call::Behavior;
use toolcrib::policy::{Approvals, Pattern, PatternError, Rule};

use crate::config::Config;

use super::state_folder;

const RULES: &str = "Which calls may run";

/// Rules over calls, and where more of them are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Rules {
    /// Let calls run without a question; PATTERN is like `fs_*` or `fs_write_file(path=out/*)`
    #[arg(long, value_name = "PATTERN", help_heading = RULES)]
    allow_tool: Vec<Patterns>,
    /// Ask before these calls; without a terminal the answer is no
    #[arg(long, value_name = "PATTERN", help_heading = RULES)]
    ask_tool: Vec<Patterns>,
    /// Refuse these calls; wins over any allowance
    #[arg(long, value_name = "PATTERN", help_heading = RULES)]
    deny_tool: Vec<Patterns>,
    /// More rules and settings; the file is trusted like a manifest of your own [default: ./toolcrib.toml, if there]
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_CONFIG", hide_env_values = true, help_heading = RULES)]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

/// Where it is kept what was agreed to for always.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Kept {
    /// Where it is kept what you agreed to for always [default: `toolcrib/approvals.json` in your state folder]
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_APPROVALS", hide_env_values = true, help_heading = RULES)]
    approvals: Option<PathBuf>,
}

impl Rules {
    /// What the `toolcrib.toml` says.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        Config::load(self.config.as_deref())
    }

    /// `policy` with the rules of the command line and those of `config`.
    pub(super) fn rule(&self, policy: Policy, config: &Config) -> Policy {
        let flags = [
            (Behavior::Allow, "--allow-tool", &self.allow_tool),
            (Behavior::Ask, "--ask-tool", &self.ask_tool),
            (Behavior::Deny, "--deny-tool", &self.deny_tool),
        ];
        let given = flags.into_iter().flat_map(|(behavior, flag, given)| {
            given.iter().flat_map(|list| &list.0).map(move |pattern| Rule::new(behavior, pattern.clone(), flag))
        });
        given.chain(config.rules.iter().cloned()).fold(policy, Policy::rule)
    }
}

impl Kept {
    /// The file; `None` where none is named and the user has no home, and then nothing is kept.
    pub(crate) fn file(&self) -> Option<Approvals> {
        self.approvals.clone().or_else(|| state_folder("approvals.json")).map(Approvals::file)
    }
}

/// The patterns of one option, separated by commas that stand outside parentheses and quotes.
#[derive(Debug, Clone)]
struct Patterns(Vec<Pattern>);

impl FromStr for Patterns {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (mut depth, mut quoted) = (0_u32, false);
        let separates = |c| {
            match c {
                '"' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && !quoted && depth == 0
        };
        text.split(separates).map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_inside_parentheses_or_quotes_separates_nothing() {
        for (text, count) in [
            ("fs_*", 1),
            ("fs_rm,fs_stat", 2),
            ("fs_write_file(path=out/*,mode=w), fs_rm", 2),
            (r#"q(a="x),y", b=1),z"#, 2),
        ] {
            assert_eq!(text.parse::<Patterns>().map(|list| list.0.len()), Ok(count), "{text}");
        }
        for text in ["", "fs_rm,", "fs_rm(path", "a,(b)"] {
            assert!(text.parse::<Patterns>().is_err(), "{text}");
        }
    }
}
