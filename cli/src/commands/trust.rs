//! `toolcrib trust`: reviews what a source or a settings file requests, and records that a person trusts it.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolcrib::policy::real_path;
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_packages::builtin;
use toolcrib_packages::cache::{CacheFolder, CacheLimit};
use toolcrib_packages::registries;
use toolcrib_packages::registries::SourceRegistries;
use toolcrib_settings::config;
use toolcrib_settings::instructions;
use toolcrib_settings::permission::ask;
use toolcrib_settings::subjects;
use toolcrib_settings::trust::{State, Subject, TrustRecord, TrustRecords, Trusted, review};
use toolcrib_sources::options::default_source;

const EXAMPLES: &str = "\
Examples:
  toolcrib trust                                 review the sources here
  toolcrib trust ./tools.json
  toolcrib trust ./tools.json --trust=sha256:…   trust exactly this content
  toolcrib trust --list
  toolcrib trust --remove ./tools.json

Trust covers a path with its content: every tool, hook and setting, and the programs they name. \
Any change ends it until you review the path again.";
const HEADINGS: [&str; 4] = ["PATH", "TRUSTED", "REQUESTS", "DIGEST"];

/// Review what a source of tools, a `toolcrib.toml` or an `AGENTS.md` requests, and trust it.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Tool sources, `oci://` references, settings files or an `AGENTS.md` [default: those in this directory]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Trust the paths without asking if their content has this digest; repeatable
    #[arg(long = "trust", value_name = "DIGEST", value_delimiter = ',', conflicts_with_all = ["list", "remove"])]
    digests: Vec<String>,
    /// List the trusted paths, oldest first
    #[arg(long, conflicts_with_all = ["paths", "remove"])]
    list: bool,
    /// End the trust in the paths
    #[arg(long, requires = "paths")]
    remove: bool,
    /// Print JSON: one object per path, or with --list an array; nothing is asked
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: CacheFolder,
    #[command(flatten)]
    limit: CacheLimit,
    #[command(flatten)]
    registries: SourceRegistries,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let records = TrustRecords::of_user().ok_or_else(|| {
        Advice::new("no file for trusted paths: no home directory was found", "pass `--trust=DIGEST` to each command")
    })?;
    if args.list {
        list(&records.read()?, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut paths = if args.paths.is_empty() { defaults()? } else { args.paths };
    let cache = args.folder.cache().ok().map(|cache| cache.max_bytes(args.limit.bytes()));
    let _held = registries::localize(&mut paths, &args.registries, cache).await?;
    if args.remove {
        for path in &paths {
            remove(&records, path)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let trusted = Trusted::read(&[], Some(&records))?;
    let mut code = ExitCode::SUCCESS;
    for path in &paths {
        let subject = subjects::read(path)?;
        let (state, shown) = match builtin::holds(path) {
            true => (State::Trusted, "`builtin`, a part of this program,".to_owned()),
            false => (trusted.state(&subject), render::from_here(path).display().to_string()),
        };
        if args.json {
            render::print_json(&describe(&subject, &state).to_string())?;
        } else {
            render::print_screen(&review::text(&shown, &subject, &state))?;
        }
        if state == State::Trusted {
            continue;
        }
        match agreement(path, &subject, &args.digests, args.json).await? {
            true => {
                records.add(&subject)?;
                render::aside(&format!("trusted `{}`", render::from_here(path).display()));
            }
            false => code = ExitCode::FAILURE,
        }
    }
    Ok(code)
}

/// Returns the default source, the settings and the instructions of the current directory.
fn defaults() -> anyhow::Result<Vec<PathBuf>> {
    let beside: Vec<PathBuf> = config::default_file().into_iter().chain(instructions::default_file()).collect();
    match default_source() {
        Ok(source) => Ok([source].into_iter().chain(beside).collect()),
        Err(_) if !beside.is_empty() => Ok(beside),
        Err(error) => Err(error),
    }
}

/// Returns `true` if the user trusts the subject: by its digest on the command line, or by an answer at the terminal.
async fn agreement(path: &Path, subject: &Subject, digests: &[String], json: bool) -> anyhow::Result<bool> {
    if digests.contains(&subject.digest) {
        return Ok(true);
    }
    let shown = render::from_here(path).display();
    if !digests.is_empty() {
        let hint = format!("its digest is {}; review it and pass that one", subject.digest);
        return Err(Advice::new(format!("`{shown}` does not have the digest passed with --trust"), hint).into());
    }
    if json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let word = render::shell_path(path);
        render::hint(&format!("to trust this content: toolcrib trust {word} --trust={}", subject.digest));
        return Ok(false);
    }
    let typed = ask(&format!("Trust `{}`? Type yes: ", one_line(&shown.to_string()))).await;
    let is_yes = typed.is_some_and(|typed| matches!(typed.to_lowercase().as_str(), "y" | "yes"));
    if is_yes {
        // The person agreed to what was shown, so it is read again.
        let again = subjects::read(path).context("the content changed during the review")?;
        if again.digest != subject.digest {
            return Err(Advice::new(format!("`{shown}` changed during the review"), "review it again").into());
        }
    }
    Ok(is_yes)
}

fn remove(records: &TrustRecords, path: &Path) -> anyhow::Result<()> {
    let shown = render::from_here(path).display();
    // A path that no longer exists can still be on record.
    let path = subjects::read(path).map_or_else(|_| real_path(path), |subject| subject.path);
    match records.remove(&path)? {
        true => render::aside(&format!("`{shown}` is no longer trusted")),
        false => {
            let hint = "`toolcrib trust --list` lists the trusted paths";
            return Err(Advice::new(format!("`{shown}` is not trusted: nothing was changed"), hint).into());
        }
    }
    Ok(())
}

fn list(records: &[TrustRecord], json: bool) -> anyhow::Result<()> {
    if json {
        return render::print_json(&serde_json::to_string(records)?);
    }
    let row = |record: &TrustRecord| {
        let requests: usize = record.items.iter().map(|item| item.requests.len()).sum();
        let path = render::from_here(&record.path).display().to_string();
        [one_line(&path), format!("{:.0}", record.given), requests.to_string(), one_line(&record.digest)]
    };
    render::print(&render::table(HEADINGS, records.iter().map(row)))
}

/// Describes a subject as JSON.
fn describe(subject: &Subject, state: &State) -> serde_json::Value {
    let state_name = match state {
        State::Trusted => "trusted",
        State::Changed(_) => "changed",
        State::Unknown => "unknown",
    };
    let mut object = json!({
        "path": subject.path,
        "digest": subject.digest,
        "state": state_name,
        "items": subject.items,
    });
    if let State::Changed(record) = state {
        object["changes"] = json!(review::changes(record, subject));
    }
    object
}
