//! `toolcrib mcp token`: creates, lists and revokes the tokens of clients over HTTP.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use toolcrib_base::parse::lifetime;
use toolcrib_base::render::{self, Advice, one_line, shell_word};
use toolcrib_mcp::{DeclaredTokens, SharedTokens, TokenRecord, TokenRights, TokenScope, Tokens};
use toolcrib_settings::config::Config;
use toolcrib_settings::trust::{TrustRecords, Trusted};
use toolcrib_shared_state::{PostgresStore, StateStore};
use toolcrib_sources::options::ClientOptions;

use super::store;

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp token new ada
  toolcrib mcp token new grafana --scope=metrics --for=90d
  toolcrib mcp token new bob -- --allow-read=./docs --deny-tool=fs_rm
  toolcrib mcp token list
  toolcrib mcp token revoke ada

A token is shown once. A running server notices a new and a revoked one. With `server.store`, tokens are in the database, \
for all servers.
Permissions and rules after `--` apply to this client, in addition to the server's own; relative folders start at \
the server's directory.";
const HEADINGS: [&str; 5] = ["TOKEN", "CREATED", "ENDS", "SCOPES", "OPTIONS"];

/// Create, list or revoke tokens.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Settings file with the database of `server.store`, which holds the tokens of all its servers
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_CONFIG", hide_env_values = true, global = true)]
    config: Option<PathBuf>,
}

/// Tokens in the file of this user, and those in the database of the settings.
struct AllTokens {
    file: Tokens,
    shared: Option<(Arc<PostgresStore>, SharedTokens)>,
}

impl AllTokens {
    /// Opens the file and, with `server.store`, the database.
    ///
    /// # Errors
    ///
    /// The settings or the database cannot be used.
    async fn open(config: Option<&Path>) -> anyhow::Result<Self> {
        let trusted = Trusted::read(&[], TrustRecords::of_user().as_ref())?;
        let shared = match Config::load(config, &trusted, false)?.store {
            None => None,
            Some(settings) => {
                let store = Arc::new(store::connect(&settings).await?);
                Some((store.clone(), SharedTokens::new(store)))
            }
        };
        Ok(Self { file: Tokens::of_user()?, shared })
    }

    /// Creates a token in the database, or in the file without one.
    async fn create(&self, name: &str, rights: TokenRights) -> anyhow::Result<String> {
        match &self.shared {
            None => self.file.create(name, rights),
            // One name is one client in records.
            Some(_) if self.file.list()?.iter().any(|token| token.name == name) => {
                let hint = format!("choose another name, or revoke it with `toolcrib mcp token revoke {name}`");
                Err(Advice::new(format!("a token `{name}` exists in the file of this user"), hint).into())
            }
            Some((_, shared)) => shared.create(name, rights).await,
        }
    }

    /// Lists the tokens of the file, then those in the database.
    async fn list(&self) -> anyhow::Result<Vec<TokenRecord>> {
        let mut all = self.file.list()?;
        if let Some((_, shared)) = &self.shared {
            all.extend(shared.list().await?);
        }
        Ok(all)
    }

    /// Revokes a token in both places.
    async fn revoke(&self, name: &str) -> anyhow::Result<bool> {
        let in_file = self.file.revoke(name)?;
        let in_database = match &self.shared {
            Some((_, shared)) => shared.revoke(name).await?,
            None => false,
        };
        Ok(in_file || in_database)
    }

    async fn close(self) {
        if let Some((store, _)) = self.shared {
            store.close().await;
        }
    }
}

#[derive(clap::Subcommand)]
enum Action {
    /// Create a token and print it
    New {
        /// Client name in the records of its calls and approvals
        name: String,
        /// Time after which the token is refused, such as `12h`, `90d` or `4w`; without it, never
        #[arg(long = "for", value_name = "TIME", value_parser = lifetime)]
        lifetime: Option<Duration>,
        /// Parts of the server that the token is for, separated by commas
        #[arg(long = "scope", value_name = "SCOPES", value_delimiter = ',', value_enum, default_value = "calls")]
        scopes: Vec<TokenScope>,
        /// Print the token and its entry for the file of `server.tokens`, instead of storing it
        #[arg(long)]
        declare: bool,
        /// Permissions and rules of this client, such as `--allow-read=./docs` or `--deny-tool=fs_rm`, and `--code`
        #[arg(last = true, value_name = "OPTION")]
        options: Vec<String>,
    },
    /// List the tokens, oldest first
    List {
        /// Print a JSON array, one object per token
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: the next request with it is refused
    Revoke {
        /// Name of the token
        name: String,
    },
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Action::New { name, lifetime, scopes, declare: true, options } = args.action {
        ClientOptions::parse(&options)?;
        let (token, entry) = DeclaredTokens::entry(&name, &TokenRights { options, scopes, lifetime })?;
        render::print(&format!("{token}\n\n{entry}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let tokens = AllTokens::open(args.config.as_deref()).await?;
    let done = act(&tokens, args.action).await;
    tokens.close().await;
    done.map(|()| ExitCode::SUCCESS)
}

async fn act(tokens: &AllTokens, action: Action) -> anyhow::Result<()> {
    match action {
        Action::New { name, lifetime, scopes, options, .. } => {
            ClientOptions::parse(&options)?;
            render::print(&tokens.create(&name, TokenRights { options, scopes, lifetime }).await?)?;
        }
        Action::List { json } => list(&tokens.list().await?, json)?,
        Action::Revoke { name } => revoke(tokens, &name).await?,
    }
    Ok(())
}

fn list(tokens: &[TokenRecord], json: bool) -> anyhow::Result<()> {
    if json {
        let one = |token: &TokenRecord| {
            json!({
                "name": token.name,
                "created": token.created,
                "expires": token.expires,
                "scopes": token.scopes,
                "options": token.options,
            })
        };
        let all: Vec<_> = tokens.iter().map(one).collect();
        return render::print_json(&serde_json::to_string(&all)?);
    }
    let words = |options: &[String]| options.iter().map(|option| shell_word(option)).collect::<Vec<_>>().join(" ");
    let options = |options: &[String]| if options.is_empty() { "-".to_owned() } else { one_line(&words(options)) };
    let now = Timestamp::now();
    let end = |token: &TokenRecord| match token.expires {
        Some(end) if end <= now => "ended".to_owned(),
        Some(end) => format!("{end:.0}"),
        None => "-".to_owned(),
    };
    let scopes = |token: &TokenRecord| token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ");
    let row = |token: &TokenRecord| {
        let created = format!("{:.0}", token.created);
        [one_line(&token.name), created, end(token), scopes(token), options(&token.options)]
    };
    render::print(&render::table(HEADINGS, tokens.iter().map(row)))
}

async fn revoke(tokens: &AllTokens, name: &str) -> anyhow::Result<()> {
    if !tokens.revoke(name).await? {
        let hint = "`toolcrib mcp token list` lists the tokens";
        return Err(Advice::new(format!("no token `{}`", one_line(name)), hint).into());
    }
    render::aside(&format!("revoked `{}`", one_line(name)));
    Ok(())
}
