//! Options for rules about calls (allow, ask, deny) and for the file of permanent approvals.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use toolcrib::call::Behavior;
use toolcrib::policy::{Approvals, Pattern, PatternError, Rule};
use toolcrib::{Runtime, SharedEntries};
use toolcrib_base::folders::state_folder;
use toolcrib_base::parse::not_allowed;
use toolcrib_base::render::Advice;
use toolcrib_base::suggestion;
use toolcrib_settings::config::Config;
use toolcrib_settings::permission::{PendingCalls, TerminalApprover};
use toolcrib_settings::trust::Trusted;

use super::CODE_TOOLS;

/// Heading of the options for rules.
pub const RULES: &str = "Rules for calls";

/// Rules for calls.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RuleFlags {
    /// Allow matching calls without asking; PATTERN is like `fs_*` or `fs_write_file(path=out/*)`
    #[arg(long, value_name = "PATTERN", value_parser = Patterns::of_names, help_heading = RULES)]
    allow_tool: Vec<Patterns>,
    /// Ask for approval before matching calls; without a terminal they are denied. `@destructive`, `@writes` and
    /// `@overwrites` match all tools that delete or overwrite, all that may write in a granted folder, and those that do both
    #[arg(long, value_name = "PATTERN", help_heading = RULES)]
    ask_tool: Vec<Patterns>,
    /// Hold back what matching calls and the calls below them write, and ask once at their end, with all changes line by line;
    /// for programs of `run_code`, and tools that write much; `permissions.hold` holds back requests too (Linux)
    #[arg(long, value_name = "PATTERN", value_parser = Patterns::of_calls, help_heading = RULES)]
    stage_tool: Vec<Patterns>,
    /// Deny matching calls; overrides any --allow-* flag
    #[arg(long, value_name = "PATTERN", help_heading = RULES)]
    deny_tool: Vec<Patterns>,
}

/// Rules for calls, and the file with more of them.
#[derive(Debug, Clone, clap::Args)]
pub struct Rules {
    #[command(flatten)]
    flags: RuleFlags,
    /// Settings file of the project; without this option ./toolcrib.toml; until trusted, only its ask and deny rules
    /// apply
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_CONFIG", hide_env_values = true, help_heading = RULES)]
    config: Option<PathBuf>,
    /// Stored approvals.
    #[command(flatten)]
    pub kept: Kept,
    /// Rule of the question mode, in a command that has one.
    #[arg(skip)]
    pub mode: Option<Rule>,
    /// `true` for a command in which a model chooses the calls.
    #[arg(skip)]
    pub asks_about_flows: bool,
}

/// Location of the permanent approvals and of the calls that wait for approval.
#[derive(Debug, Clone, clap::Args)]
pub struct Kept {
    /// File that stores permanent approvals [default: `toolcrib/approvals.json` in your state directory]
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_APPROVALS", hide_env_values = true, help_heading = RULES)]
    approvals: Option<PathBuf>,
    /// File of the calls that wait for approval in another terminal [default: `toolcrib/pending.json` in your state
    /// directory]
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_PENDING", hide_env_values = true, help_heading = RULES)]
    pending: Option<PathBuf>,
    /// Lists that servers share, in place of files that no option names.
    #[arg(skip)]
    shared: Option<Arc<dyn SharedEntries>>,
}

impl Rules {
    /// Settings file that is named.
    pub fn config_file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Loads the settings files, the project's as far as it is trusted. A runtime that is built (`builds`) has
    /// what the files say now, and a hint names a project's file that is not trusted.
    pub fn config(&self, trusted: &Trusted, builds: bool) -> anyhow::Result<Config> {
        Config::load(self.config.as_deref(), trusted, builds)
    }

    /// Refuses a rule of the command line, or of the options of a client, with the name of one tool that is probably misspelt: it would have no effect on this
    /// run. A pattern, and a rule of a file, may be about the tools of another run, so they are warnings.
    ///
    /// # Errors
    ///
    /// The first such rule, with the name that was probably meant.
    pub(super) fn refuse_misspelt(
        &self,
        runtime: &Runtime,
        config: &Config,
        client: Option<&RuleFlags>,
    ) -> anyhow::Result<()> {
        let assigned = config.rules.iter().filter(|of| of.is_given).map(|of| of.rule.clone());
        for rule in self.flags.rules().chain(assigned).chain(client.iter().flat_map(|flags| flags.rules())) {
            let is_unknown = |name: &&str| runtime.tool(name).is_none() && !CODE_TOOLS.contains(name);
            let Some(name) = one_name(&rule).filter(is_unknown) else { continue };
            let mut names = runtime.tools().map(|tool| tool.name.as_str()).chain(CODE_TOOLS);
            if let Some(meant) = meant(name, &mut names) {
                let message = format!("`{rule}` matches no loaded tool: nothing was run");
                return Err(Advice::new(message, format!("did you mean `{meant}`?")).into());
            }
        }
        Ok(())
    }

    /// Returns the rules from the command line and `config`, that for the question mode, and that about flows.
    pub(super) fn rules(&self, config: &Config) -> impl Iterator<Item = Rule> {
        self.flags
            .rules()
            .chain(config.rules.iter().map(|of| of.rule.clone()))
            .chain(self.mode.clone())
            .chain(config.flows.clone().filter(|_| self.asks_about_flows))
    }
}

impl RuleFlags {
    /// Returns the rules of the flags.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        let flags = [
            (Behavior::Allow, "--allow-tool", &self.allow_tool),
            (Behavior::Ask, "--ask-tool", &self.ask_tool),
            (Behavior::Deny, "--deny-tool", &self.deny_tool),
        ];
        let flags = flags.into_iter().flat_map(|(behavior, flag, given)| {
            given.iter().flat_map(|list| &list.0).map(move |pattern| Rule::new(behavior, pattern.clone(), flag))
        });
        let staged = self.stage_tool.iter().flat_map(|list| &list.0);
        flags.chain(staged.map(|pattern| Rule::new(Behavior::Ask, pattern.clone(), "--stage-tool").at_end()))
    }
}

impl Kept {
    /// Uses lists that servers share, in place of the files that no option names.
    #[must_use]
    pub fn shared_in(self, shared: Arc<dyn SharedEntries>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Returns the file, or the approvals that servers share; `None` if none is named and the user has no home directory, which
    /// disables permanent approvals.
    pub fn file(&self) -> Option<Approvals> {
        match (&self.approvals, &self.shared) {
            (None, Some(shared)) => Some(Approvals::shared(shared.clone())),
            (path, _) => path.clone().or_else(|| state_folder("approvals.json")).map(Approvals::file),
        }
    }

    /// Creates the approver that asks at the terminal, with the approvals that are stored now. Shared ones may be revoked at any time,
    /// and are read for each question instead.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn terminal_approver(&self) -> anyhow::Result<Arc<TerminalApprover>> {
        TerminalApprover::new(self.file().filter(|approvals| !approvals.is_shared())).map(Arc::new)
    }

    /// Returns the file of the calls that wait for approval, or those that servers share; `None` as for [`Kept::file`].
    pub fn pending(&self) -> Option<PendingCalls> {
        match (&self.pending, &self.shared) {
            (None, Some(shared)) => Some(PendingCalls::shared(shared.clone())),
            (path, _) => path.clone().or_else(|| state_folder("pending.json")).map(PendingCalls::file),
        }
    }
}

/// Returns the name of a rule about one tool, with or without arguments.
fn one_name(rule: &Rule) -> Option<&str> {
    let name = rule.pattern().as_str().split('(').next()?.trim();
    (rule.pattern().names_tools() && !name.contains(['*', '?'])).then_some(name)
}

/// Returns the name that a misspelt one probably means. There may be many: only names of similar length are compared.
fn meant<'a>(name: &str, names: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    let (written, max) = (name.to_ascii_lowercase(), name.len() / 3);
    let near: Vec<&str> = names.filter(|known| known.len().abs_diff(name.len()) <= max).collect();
    let same = near.iter().find(|known| known.eq_ignore_ascii_case(&written)).copied();
    same.or_else(|| suggestion::nearest(name, near))
}

/// Patterns in one option value, separated by commas outside parentheses and quotes.
#[derive(Debug, Clone)]
struct Patterns(Vec<Pattern>);

impl Patterns {
    /// Parses patterns for an allow rule, which names tools.
    fn of_names(text: &str) -> Result<Self, String> {
        let patterns: Self = text.parse().map_err(|error: PatternError| error.to_string())?;
        match patterns.0.iter().find(|pattern| !pattern.names_tools()) {
            Some(class) => Err(not_allowed(class)),
            None => Ok(patterns),
        }
    }

    /// Parses patterns for a rule that holds writes back, which is about calls.
    fn of_calls(text: &str) -> Result<Self, String> {
        let patterns: Self = text.parse().map_err(|error: PatternError| error.to_string())?;
        match patterns.0.iter().find(|pattern| pattern.is_about_flows()) {
            Some(flow) => {
                Err(format!("`{}`: a flow is allowed, asked about or denied; name tools here", flow.as_str()))
            }
            None => Ok(patterns),
        }
    }
}

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
        for text in ["", "fs_rm,", "fs_rm(path", "a,(b)", "@all"] {
            assert!(text.parse::<Patterns>().is_err(), "{text}");
        }
        assert!(Patterns::of_names("fs_rm,@writes").is_err_and(|message| message.starts_with("`@writes`: a class")));
        assert!(Patterns::of_calls("flow untrusted -> write").is_err() && Patterns::of_calls("@writes,fs_rm").is_ok());
        assert!(Patterns::of_names("fs_rm").is_ok() && "@writes".parse::<Patterns>().is_ok());
    }
}
