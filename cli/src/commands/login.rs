//! `toolcrib login` and `toolcrib logout`: stores and erases the credential for a registry, where Docker keeps it, or the tokens for
//! a remote server, in the store of secrets. A password is read from a hidden prompt or from standard input, and never printed.

mod server;

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use toolcrib::tool::{RemoteAddress, RemoteAddressError};
use toolcrib_base::render::{self, Advice, one_line, usage_error};
use toolcrib_packages::registries::RegistryOptions;
use toolcrib_packages::registries::failed;
use toolcrib_packages::servers::ServerSource;
use toolcrib_registry::limits::MAX_CREDENTIAL_BYTES;
use toolcrib_registry::{Credential, Registry, Secret, StoredIn};
use toolcrib_settings::permission::ask;
use toolcrib_settings::secrets::prompt;
use toolcrib_sources::options::KeptSecrets;
use zeroize::Zeroizing;

use server::ServerOptions;

const EXAMPLES: &str = "\
Examples:
  toolcrib login registry.example.com          prompts for user and password
  gh auth token | toolcrib login ghcr.io --username octocat --password-stdin
  toolcrib login https://example.com/mcp       tools of a server, by OAuth

The registry checks the credential. It is stored as Docker does: by the credential helper that \
~/.docker/config.json names, or in that file, which is not encrypted. Credentials of Docker, Podman \
and oras are used too. The tokens of a server are stored as secrets, are sent to that server alone, and \
are renewed as long as it allows.";
const LOGOUT_EXAMPLES: &str = "\
Examples:
  toolcrib logout registry.example.com
  toolcrib logout localhost:5000
  toolcrib logout https://example.com/mcp";

/// Registry or server that somebody logs in to.
#[derive(Debug, Clone)]
enum Place {
    Registry(Registry),
    Server(RemoteAddress),
}

/// Store the credential for a registry or a remote server.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// HOST[:PORT] of the registry, or the address of the MCP server
    #[arg(value_name = "REGISTRY|URL", value_parser = place)]
    place: Place,
    /// User name [default: prompts for it]
    #[arg(long, short, value_name = "NAME")]
    username: Option<String>,
    /// Read the password or access token from standard input
    #[arg(long, requires = "username")]
    password_stdin: bool,
    #[command(flatten)]
    connection: RegistryOptions,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    kept: KeptSecrets,
}

/// Erase the credential for a registry or a remote server.
#[derive(clap::Args)]
#[command(after_long_help = LOGOUT_EXAMPLES)]
pub(crate) struct LogoutArgs {
    /// HOST[:PORT] of the registry, or the address of the MCP server
    #[arg(value_name = "REGISTRY|URL", value_parser = place)]
    place: Place,
    #[command(flatten)]
    connection: RegistryOptions,
    #[command(flatten)]
    kept: KeptSecrets,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let registry = match &args.place {
        Place::Server(_) if args.username.is_some() => {
            return Err(usage_error("--username is for a registry; a server asks for it in the browser"));
        }
        Place::Server(server) => return server::log_in(server, args.server, &args.kept).await,
        Place::Registry(_) if args.server.are_given() => {
            return Err(usage_error(
                "--client-id, --client-secret, --scope and --callback-port are for the address of a server",
            ));
        }
        Place::Registry(registry) => registry,
    };
    let client = args.connection.client(&[registry])?;
    let username = match args.username {
        Some(username) => username,
        None => username(registry).await?,
    };
    let password = match args.password_stdin {
        true => from_input()?,
        false => {
            tokio::task::spawn_blocking({
                let question = format!("Password of `{}` for {registry} (not shown): ", one_line(&username));
                move || from_terminal(&question)
            })
            .await??
        }
    };
    let credential = Credential::password(username.clone(), Secret::new(password.as_str()))?;
    let stored = client.login(registry, &credential).await;
    let stored = stored.map_err(|error| failed(error, &format!("log in to {registry}"), registry))?;
    let place = match stored {
        StoredIn::File(path) => format!("in `{}`, not encrypted", path.display()),
        StoredIn::Helper(name) => format!("by the credential helper `docker-credential-{name}`"),
        _ => "in the Docker configuration".to_owned(),
    };
    render::aside(&format!("logged in to {registry} as `{username}`; the credential is stored {place}"));
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn log_out(args: LogoutArgs) -> anyhow::Result<ExitCode> {
    let registry = match &args.place {
        Place::Server(server) => return server::log_out(server, &args.kept).await,
        Place::Registry(registry) => registry,
    };
    let client = args.connection.client(&[registry])?;
    let erased = client.logout(registry).await;
    match erased.map_err(|error| failed(error, &format!("log out of {registry}"), registry))? {
        true => render::aside(&format!("logged out of {registry}")),
        false => render::aside(&format!("no credential for {registry} was stored in the Docker configuration")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses the name of a registry, or the address of a server.
fn place(text: &str) -> Result<Place, String> {
    match ServerSource::is_named(text) {
        true => text.parse().map(Place::Server).map_err(|error: RemoteAddressError| error.to_string()),
        false => registry(text).map(Place::Registry),
    }
}

/// Parses the name of a registry, and explains that it is no address.
fn registry(text: &str) -> Result<Registry, String> {
    let host = text.split_once("://").map_or(text, |(_, rest)| rest).split('/').next().unwrap_or_default();
    match text.parse() {
        Ok(registry) => Ok(registry),
        Err(_) if host != text && host.parse::<Registry>().is_ok() => {
            Err(format!("pass host and port alone, as in `{host}`"))
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn username(registry: &Registry) -> anyhow::Result<String> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let hint = format!("… | toolcrib login {registry} --username NAME --password-stdin");
        return Err(usage_error(format!("no terminal to ask for user name and password; pipe the password: {hint}")));
    }
    let typed = ask(&format!("User name for {registry}: ")).await.filter(|typed| !typed.is_empty());
    typed.ok_or_else(|| {
        Advice::new("no user name was given: nothing was changed", "type it at the prompt, or pass `--username NAME`")
            .into()
    })
}

fn from_terminal(question: &str) -> anyhow::Result<Zeroizing<String>> {
    let line = match io::stdin().is_terminal() {
        true => prompt::ask(question),
        false => Err(io::Error::other("standard input is not a terminal")),
    };
    let line = line.map_err(|error| {
        Advice::new(format!("cannot prompt for the password: {error}"), "pipe it, with `--password-stdin`")
    })?;
    line.filter(|line| !line.is_empty()).ok_or_else(|| {
        let hint = "type it at the prompt, or pipe it with `--password-stdin`";
        Advice::new("no password was given: nothing was changed", hint).into()
    })
}

/// Reads the password from standard input, without the line break at its end.
fn from_input() -> anyhow::Result<Zeroizing<String>> {
    // The full capacity at once: growth would leave copies of the password behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_CREDENTIAL_BYTES + 3));
    io::stdin()
        .lock()
        .take(MAX_CREDENTIAL_BYTES as u64 + 2)
        .read_to_end(&mut bytes)
        .context("cannot read the password")?;
    let text = std::str::from_utf8(&bytes).map_err(|_| usage_error("the password is not UTF-8"))?;
    let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
    ensure!(text.len() <= MAX_CREDENTIAL_BYTES, "the password has more than {MAX_CREDENTIAL_BYTES} bytes");
    ensure!(!text.is_empty(), "no password was given: nothing was changed");
    Ok(Zeroizing::new(text.to_owned()))
}
