//! `toolcrib secret`: keeps, lists and removes secrets. A value comes in by a hidden prompt or a pipe, and never out.

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use toolcrib::policy::Secret;
use zeroize::Zeroizing;

use crate::options::KeptSecrets;
use crate::render::{self, Advice};
use crate::secrets::{Place, Vault, prompt};

const EXAMPLES: &str = "\
Examples:
  toolcrib secret set github                       asks for the value and does not show it
  pass show github | toolcrib secret set github    the value from a pipe
  toolcrib secret list
  toolcrib secret remove github

A tool asks for a secret by its name, for one host and one place of a request:
  \"capabilities\": {\"secrets\": [{\"name\": \"github\", \"host\": \"api.github.com\",
    \"header\": \"Authorization\", \"format\": \"Bearer {}\"}]}
The host program puts the value into requests to that host alone; the tool never sees it.
A manifest of your own is enough for that. A record also needs the flag that names all three:
  --allow-secret=github@api.github.com#header:authorization

Secrets are kept in the system's keyring where one answers, else in an encrypted file. The key of that
file lies beside it, so whoever can read your files can read your secrets. With
TOOLCRIB_SECRETS_PASSPHRASE set, the file is locked with that passphrase and there is no key.";
const HEADINGS: [&str; 3] = ["NAME", "KEPT IN", "SET"];
/// The most bytes that are read of a value: enough to see that it is too long.
const MAX_BYTES: u64 = 64 << 10;

/// Keep secrets that tools may use and never see.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Keep a secret under a name, in the place of another of that name
    Set {
        /// Small letters, digits, `_` and `-`; the value is asked for, or read from a pipe
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        kept: KeptSecrets,
    },
    /// List the names, and where each is kept
    List {
        /// Print a JSON array, one object a secret
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        kept: KeptSecrets,
    },
    /// Remove secrets
    Remove {
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        kept: KeptSecrets,
    },
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Keyrings, locks and keys of passphrases keep a thread waiting.
    tokio::task::spawn_blocking(move || act(args.action)).await?
}

fn act(action: Action) -> anyhow::Result<ExitCode> {
    match action {
        Action::Set { name, kept } => set(&kept.vault()?, &name),
        Action::List { json, kept } => list(&kept.vault()?, json),
        Action::Remove { names, kept } => remove(&kept.vault()?, &names),
    }
}

fn set(vault: &Vault, name: &str) -> anyhow::Result<ExitCode> {
    // A wrong name is told before anybody types a value.
    ensure!(
        toolcrib::tool::is_secret_name(name),
        Advice::new(
            format!("`{name}` is not the name of a secret"),
            "small letters, digits, `_` and `-`, at most 64, such as `github`; the value is never an argument"
        )
    );
    let value = if io::stdin().is_terminal() { typed(name)? } else { piped()? };
    let secret = Secret::new(name, value.as_str())?;
    let place = vault.set(&secret)?;
    render::aside(&format!("secret `{name}` is kept in {}", told(vault, place)));
    Ok(ExitCode::SUCCESS)
}

fn typed(name: &str) -> anyhow::Result<Zeroizing<String>> {
    let line = prompt::ask(&format!("value of `{name}` (not shown): ")).map_err(|error| {
        Advice::new(format!("cannot ask for the value: {error}"), format!("pipe it: `… | toolcrib secret set {name}`"))
    })?;
    line.context("no value was given: nothing was changed")
}

/// The value from a pipe or a file, without the line break at its end.
fn piped() -> anyhow::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
    io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .context("cannot read the value from standard input")?;
    let text = std::str::from_utf8(&bytes).ok().context("the value on standard input is not UTF-8")?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    Ok(Zeroizing::new(line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

fn list(vault: &Vault, json: bool) -> anyhow::Result<ExitCode> {
    let kept = vault.list()?;
    if json {
        render::print_json(&serde_json::to_string(&kept)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = kept.iter().map(|one| {
        let place = match one.place {
            Place::Keyring => "keyring".to_owned(),
            Place::File => render::one_line(&vault.file().display().to_string()),
        };
        [one.name.clone(), place, one.set.map_or_else(|| "-".to_owned(), |set| format!("{set:.0}"))]
    });
    render::print(&render::table(HEADINGS, rows))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(vault: &Vault, names: &[String]) -> anyhow::Result<ExitCode> {
    vault.remove(names)?;
    render::aside(&format!("secrets removed: {}", names.len()));
    Ok(ExitCode::SUCCESS)
}

fn told(vault: &Vault, place: Place) -> String {
    match place {
        Place::Keyring => "the system's keyring".to_owned(),
        Place::File => format!("`{}`", vault.file().display()),
    }
}
