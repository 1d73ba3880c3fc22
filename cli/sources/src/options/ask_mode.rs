//! Question mode of `run`, `chat` and `mcp`: the calls that are asked about without a rule of the user. It is an ask rule over a
//! class of tools, so that rules, answers and approvals act on it as on any other.

use toolcrib::call::Behavior;
use toolcrib::policy::Rule;
use toolcrib_base::render;
use toolcrib_settings::config::origin_of;
use toolcrib_settings::permission::can_ask;

/// Question mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum AskMode {
    /// Calls of tools that delete or overwrite, as their definition states, and of untrusted tools that may write, in a
    /// granted folder
    #[default]
    Destructive,
    /// All calls of tools that may write in a granted folder, whatever their definition states
    Writes,
    /// No call without a rule that asks
    Never,
}

impl AskMode {
    /// Class of the tools, and the value of the option.
    fn class(self) -> Option<(&'static str, &'static str)> {
        match self {
            AskMode::Destructive => Some(("@overwrites", "destructive")),
            AskMode::Writes => Some(("@writes", "writes")),
            AskMode::Never => None,
        }
    }

    /// Returns the rule of the mode. It has one origin, wherever the mode is set: permanent approvals name it.
    fn rule(self) -> Option<Rule> {
        let (class, value) = self.class()?;
        Some(Rule::new(Behavior::Ask, class.parse().ok()?, format!("--ask={value}")))
    }
}

/// Option for the question mode.
#[derive(Debug, Clone, clap::Args)]
pub struct AskOptions {
    /// Calls that need your approval without a rule [default: destructive]
    ///
    /// Only where somebody can answer: at a terminal, with --answers, with --wait-approval, or through the client of `mcp`.
    /// Elsewhere the permissions alone decide, and --ask-tool=@writes denies such calls. Tools of --allow-tool are not asked about.
    #[arg(long, value_name = "WHICH", value_enum, help_heading = super::rules::RULES)]
    ask: Option<AskMode>,
}

impl AskOptions {
    /// Returns the value of the mode, and its source.
    pub fn shown(&self) -> (&'static str, &'static str) {
        let value = self.ask.unwrap_or_default().class().map_or("never", |(_, value)| value);
        let given = if self.ask.is_some() { "--ask" } else { "default" };
        (value, origin_of("ask").unwrap_or(given))
    }

    /// Returns the rule of the mode for a server. A mode that was chosen holds for each client, since `toolcrib approvals` can
    /// answer; otherwise it holds where the client, or a call that waits, can be answered.
    pub fn server_rule(&self) -> Option<Rule> {
        let rule = self.ask.unwrap_or_default().rule()?;
        Some(if self.ask.is_some() { rule } else { rule.where_answered() })
    }

    /// Returns the rule of the mode. `is_answered` is `true` if another program or terminal answers; else a person at this
    /// terminal must be there, and a mode that was chosen in vain is reported by a hint, unless it `is_quiet`.
    pub fn rule(&self, is_answered: bool, is_quiet: bool) -> Option<Rule> {
        let (class, value) = self.ask.unwrap_or_default().class()?;
        if is_answered || can_ask() {
            return Some(self.ask.unwrap_or_default().rule()?.where_answered());
        }
        if self.ask.is_some() && !is_quiet {
            render::hint(&format!(
                "no terminal is available to ask, so `--ask={value}` has no effect: only the permissions decide; \
                 `--ask-tool={class}` denies such calls"
            ));
        }
        None
    }
}
