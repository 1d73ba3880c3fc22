//! `toolcrib doctor`: checks the installation and suggests fixes. It changes nothing; a server of a client that it starts may
//! fill the cache.

mod checks;
mod remotes;
mod servers;
mod sign_in;
mod store;

use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use toolcrib_base::folders::home_folder;
use toolcrib_base::render::{self, Tone};
use toolcrib_sources::options::Sources;

const EXAMPLES: &str = "\
Examples:
  toolcrib doctor                       the installation, the tools here
  toolcrib doctor --tools ./tools.json  the installation and these tools
  toolcrib doctor --json | jq '.[] | select(.status != \"ok\")'

MCP clients' servers are started as the clients start them, asked for their tools, and stopped. \
Only this program is started, and no tool is called. Installed remote servers are asked for their tools, \
and the issuers of `server.sign_in` for their keys.

Exit status: 1 if a check reports `fail`; a `warn` is advice.";

/// Check the installation and suggest fixes.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print a JSON array, one object per finding
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: Sources,
}

/// Result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    status: Status,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "cure")]
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, detail: detail.into(), fix: None }
    }

    fn wrong(check: &'static str, status: Status, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, status, detail: detail.into(), fix: Some(fix.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, tone) = match self.status {
            Status::Ok => ("ok  ", Tone::Good),
            Status::Warn => ("warn", Tone::Doubtful),
            Status::Fail => ("fail", Tone::Bad),
        };
        let terminal = io::stdout().is_terminal();
        let word = render::paint(tone, word, terminal);
        let detail = render::one_line(&self.detail);
        let paint_fix = |label| render::paint(Tone::Advice, label, terminal);
        if render::is_narrow() {
            let detail = from_home(&detail, home_folder().as_deref());
            write!(f, "{word} {}\n     {detail}", self.check)?;
            return self
                .fix
                .iter()
                .try_for_each(|fix| write!(f, "\n     {} {}", paint_fix("fix:"), render::one_line(fix)));
        }
        write!(f, "{word} {:11}  {detail}", self.check)?;
        if let Some(fix) = &self.fix {
            write!(f, "\n     {}  {}", paint_fix("fix:       "), render::one_line(fix))?;
        }
        Ok(())
    }
}

/// Shortens paths below the home folder to `~/…`, which a shell reads too: a narrow terminal has no room for them.
fn from_home(text: &str, home: Option<&Path>) -> String {
    let Some(home) = home.and_then(Path::to_str).filter(|home| home.len() > 1) else { return text.to_owned() };
    let is_start = |before: &str| before.is_empty() || before.ends_with([' ', '`', '(']);
    let (mut short, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(home) {
        let (before, after) = (&rest[..at], &rest[at + home.len()..]);
        short += before;
        short += if is_start(&short) && after.starts_with('/') { "~" } else { home };
        rest = after;
    }
    short + rest
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.sources.fetch().await?;
    let mut findings = checks::all(&args.sources);
    let is_sound = findings.iter().all(|finding| finding.status != Status::Fail) && args.sources.paths().is_ok();
    findings.extend(servers::all(&args.sources, is_sound).await);
    findings.extend(remotes::all(&args.sources).await);
    findings.extend(store::check(&args.sources).await);
    findings.extend(sign_in::all(&args.sources).await);
    if args.json {
        render::print_json(&serde_json::to_string(&findings)?)?;
    } else {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        render::print_screen(&lines.join("\n"))?;
    }
    let broken = findings.iter().any(|finding| finding.status == Status::Fail);
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_home_folder_are_shortened() {
        let home = Some(Path::new("/home/ada"));
        let text = "/home/ada/.cache, `/home/ada/a`; /home/adam/b /mnt/home/ada/c /home/ada";
        assert_eq!(from_home(text, home), "~/.cache, `~/a`; /home/adam/b /mnt/home/ada/c /home/ada");
        assert_eq!(from_home("/a", Some(Path::new("/"))), "/a");
        assert_eq!(from_home("/a", None), "/a");
    }
}
