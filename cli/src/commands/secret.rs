//! `toolcrib secret`: stores, lists and removes secrets. A value is read from a hidden prompt or a pipe and never
//! printed.

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use toolcrib::policy::Secret;
use toolcrib_base::render::{self, Advice, counted, usage_error};
use toolcrib_settings::secrets::{Location, Vault, prompt};
use toolcrib_sources::options::KeptSecrets;
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  toolcrib secret set github                     prompts for the value
  pass show github | toolcrib secret set github  reads the value from a pipe
  toolcrib secret list
  toolcrib secret remove github

A tool requests a secret by name, for one host and one place in the request:
  \"capabilities\": {\"secrets\": [{\"name\": \"github\", \"host\": \"api.github.com\",
    \"header\": \"Authorization\", \"format\": \"Bearer {}\"}]}
toolcrib inserts the value only into requests to that host; the tool never sees it.
Tools in your own tools.json get the secrets that they request. Other tools also need a flag:
  --allow-secret=github@api.github.com#header:authorization

Secrets are stored in the system's keyring if it answers, else in an encrypted file. The key of that \
file is in the same folder, so anyone who can read your files can read your secrets. With \
TOOLCRIB_SECRETS_PASSPHRASE set, the file is encrypted with that passphrase and has no key file.";
const HEADINGS: [&str; 3] = ["NAME", "STORED IN", "SET"];
/// Maximum bytes that are read of a value; more than a secret may have, so that a longer value is refused.
const MAX_BYTES: u64 = 64 << 10;

/// Store secrets that tools can use but never read.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Store a secret, replacing any with the same name
    Set {
        /// Lowercase letters, digits, `_` and `-`; the value is prompted for, or read from a pipe
        #[arg(value_name = "NAME")]
        name: String,
        /// Values that were typed as arguments, which are refused
        #[arg(hide = true, allow_hyphen_values = true)]
        values: Vec<String>,
        #[command(flatten)]
        kept: KeptSecrets,
    },
    /// List the names and where each secret is stored
    List {
        /// Print a JSON array, one object per secret
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
    // Keyrings, locks and key derivation block the thread.
    tokio::task::spawn_blocking(move || act(args.action)).await?
}

fn act(action: Action) -> anyhow::Result<ExitCode> {
    match action {
        Action::Set { name, values, .. } if !values.is_empty() => Err(value_typed(&name)),
        Action::Set { name, kept, .. } => set(&kept.vault()?, &name),
        Action::List { json, kept } => list(&kept.vault()?, json),
        Action::Remove { names, kept } => remove(&kept.vault()?, &names),
    }
}

fn set(vault: &Vault, name: &str) -> anyhow::Result<ExitCode> {
    // Checked before the prompt, so that no value is typed in vain.
    ensure!(
        toolcrib::tool::is_secret_name(name),
        Advice::new(
            format!("`{name}` is not the name of a secret"),
            "use at most 64 lowercase letters, digits, `_` and `-`, such as `github`; the value is never an argument"
        )
    );
    let value = if io::stdin().is_terminal() { read_terminal(name)? } else { read_pipe()? };
    let secret = Secret::new(name, value.as_str())?;
    let location = vault.set(&secret)?;
    render::aside(&format!("secret `{name}` is stored in {}", describe(vault, location)));
    Ok(ExitCode::SUCCESS)
}

/// Error about a value on the command line, which other users and the history of the shell can see.
fn value_typed(name: &str) -> anyhow::Error {
    let name = if toolcrib::tool::is_secret_name(name) { name } else { "NAME" };
    usage_error(format!(
        "a secret's value cannot be an argument, because other users and your shell history would see it: nothing was stored; \
         run `toolcrib secret set {name}`, which asks for the value, or pipe it: `pass show {name} | toolcrib secret set {name}`"
    ))
}

fn read_terminal(name: &str) -> anyhow::Result<Zeroizing<String>> {
    let line = prompt::ask(&format!("value of `{name}` (not shown): ")).map_err(|error| {
        Advice::new(
            format!("cannot prompt for the value: {error}"),
            format!("pipe it: `… | toolcrib secret set {name}`"),
        )
    })?;
    line.ok_or_else(|| {
        let hint = format!("type the value at the prompt, or pipe it: `… | toolcrib secret set {name}`");
        Advice::new("no value was given: nothing was changed", hint).into()
    })
}

/// Reads the value from a pipe or a file, without the final line break.
fn read_pipe() -> anyhow::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_BYTES as usize + 1));
    io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .context("cannot read the value from standard input")?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        Advice::new(
            "the value on standard input is not UTF-8",
            "encode it as text, such as base64, which the tool expects",
        )
    })?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    Ok(Zeroizing::new(line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

fn list(vault: &Vault, json: bool) -> anyhow::Result<ExitCode> {
    let secrets = vault.list()?;
    if json {
        render::print_json(&serde_json::to_string(&secrets)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = secrets.iter().map(|secret| {
        let location = match secret.location {
            Location::Keyring => "keyring".to_owned(),
            Location::File => render::one_line(&vault.path().display().to_string()),
        };
        [secret.name.clone(), location, secret.set.map_or_else(|| "-".to_owned(), |set| format!("{set:.0}"))]
    });
    render::print(&render::table(HEADINGS, rows))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(vault: &Vault, names: &[String]) -> anyhow::Result<ExitCode> {
    vault.remove(names)?;
    render::aside(&format!("removed {}", counted(names.len(), "secret")));
    Ok(ExitCode::SUCCESS)
}

fn describe(vault: &Vault, location: Location) -> String {
    match location {
        Location::Keyring => "the system's keyring".to_owned(),
        Location::File => format!("`{}`", vault.path().display()),
    }
}
