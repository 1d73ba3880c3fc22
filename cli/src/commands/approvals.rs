//! `toolcrib approvals`: answers calls that wait for approval, and lists and revokes permanent approvals.

mod pending;
mod places;

use std::path::PathBuf;
use std::process::ExitCode;

use toolcrib::policy::{ApprovalAnswer, Approvals, StoredApproval};
use toolcrib_base::render::{self, Advice, counted, one_line};
use toolcrib_base::suggestion;
use toolcrib_sources::options::Kept;

use places::ApprovalPlaces;

const EXAMPLES: &str = "\
Examples:
  toolcrib approvals pending                list the calls that wait
  toolcrib approvals pending 7k3md-x0q9a    show one of them in full
  toolcrib approvals allow 7k3md-x0q9a
  toolcrib approvals deny 7k3md-x0q9a --reason 'use the copy in drafts'
  toolcrib approvals list
  toolcrib approvals remove fs_write_file
  toolcrib approvals remove fs_write_file --client ada
  toolcrib approvals remove --all

If no one at the server can be asked, a call that requires approval is refused with an identifier, and is allowed \
once when it is repeated after `allow`. The answer covers exactly this call of this client. A call waits for 60 minutes; an answer \
holds for 15. A call of `run` or `mcp` with `--wait-approval` waits that long and continues with the answer; \
`--session` also allows further such calls of that run or client.

With `server.store`, the approvals and the waiting calls of all its servers are in the database; these commands reach them and \
the files of this user.

A permanent approval covers the calls of one tool that one rule asks about. It lapses when the tool changes: \
its program, fixed arguments, description, schema, limits, source or permissions.";
/// Client of approvals without an owner, in the list and as a value of `--client`.
const NO_TOKEN: &str = "no token";
const HEADINGS: [&str; 5] = ["TOOL", "RULE", "CLIENT", "APPROVED", "PROGRAM"];

/// Answer calls that wait for approval; list or revoke permanent approvals.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Settings file; `server.store` in it names the database with the servers' approvals
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_CONFIG", hide_env_values = true, global = true)]
    config: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the calls that wait for approval, oldest first, or show one in full
    Pending {
        /// Identifier of the call to show
        #[arg(value_name = "ID")]
        id: Option<String>,
        /// Print JSON: an array with one object per call, or the object of one call
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        kept: Kept,
    },
    /// Allow a waiting call: it continues, or runs once when it is repeated
    Allow {
        /// Identifier of the call
        #[arg(value_name = "ID")]
        id: String,
        /// Also allow further such calls in the session of the run or client that waits
        #[arg(long)]
        session: bool,
        /// Also store a permanent approval of such calls; one for a token or a person is theirs alone
        #[arg(long, conflicts_with = "session")]
        always: bool,
        #[command(flatten)]
        kept: Kept,
    },
    /// Deny a call that waits, or one that was allowed and not repeated yet
    Deny {
        /// Identifier of the call
        #[arg(value_name = "ID")]
        id: String,
        /// Reason that the model gets, at most 1,000 characters
        #[arg(long, value_name = "TEXT", value_parser = reason)]
        reason: Option<String>,
        #[command(flatten)]
        kept: Kept,
    },
    /// List the permanent approvals, oldest first
    List {
        /// Print a JSON array, one object per approval
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        kept: Kept,
    },
    /// Revoke the permanent approvals of these tools, of a client, or all of them
    Remove {
        #[arg(value_name = "TOOL", required_unless_present_any = ["all", "client"])]
        tools: Vec<String>,
        /// Only approvals of this client, as `list` shows it: `no token`, or a token's or a person's name
        #[arg(long, value_name = "CLIENT")]
        client: Option<String>,
        /// Revoke every approval
        #[arg(long, conflicts_with_all = ["tools", "client"])]
        all: bool,
        #[command(flatten)]
        kept: Kept,
    },
}

impl Action {
    fn kept(&self) -> &Kept {
        match self {
            Self::Pending { kept, .. }
            | Self::Allow { kept, .. }
            | Self::Deny { kept, .. }
            | Self::List { kept, .. }
            | Self::Remove { kept, .. } => kept,
        }
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let places = ApprovalPlaces::open(args.action.kept().clone(), args.config.as_deref()).await?;
    let done = act(args.action, &places);
    places.close().await;
    done.map(|()| ExitCode::SUCCESS)
}

fn act(action: Action, places: &ApprovalPlaces) -> anyhow::Result<()> {
    match action {
        Action::Pending { id: None, json, .. } => pending::list(&places.waiting()?, json),
        Action::Pending { id: Some(id), json, .. } => pending::show(places, &id, json),
        Action::Allow { id, session: true, .. } => pending::allow_session(places, &id),
        Action::Allow { id, always, .. } => pending::allow(places, &id, always),
        Action::Deny { id, reason, .. } => pending::deny(places, &id, reason.as_deref().unwrap_or_default()),
        Action::List { json, .. } => list(&stored(&places.approvals()?)?, json),
        Action::Remove { tools, client, .. } => remove(&places.approvals()?, &tools, client.as_deref()),
    }
}

/// Parses the reason of a denial.
fn reason(text: &str) -> Result<String, String> {
    match (text.trim(), text.chars().count()) {
        ("", _) => Err("it is empty".to_owned()),
        (_, count) if count > ApprovalAnswer::MAX_REASON_LEN => {
            Err(format!("it has {count} characters, more than {}", ApprovalAnswer::MAX_REASON_LEN))
        }
        (text, _) => Ok(text.to_owned()),
    }
}

/// Returns the permanent approvals of all places, oldest first.
fn stored(places: &[Approvals]) -> anyhow::Result<Vec<StoredApproval>> {
    let mut all = Vec::new();
    for approvals in places {
        all.extend(approvals.read()?);
    }
    all.sort_by_key(|one| one.given);
    Ok(all)
}

fn list(approvals: &[StoredApproval], json: bool) -> anyhow::Result<()> {
    if json {
        return render::print_json(&serde_json::to_string(approvals)?);
    }
    let row = |one: &StoredApproval| {
        [one_line(&one.tool), one_line(&one.rule), client(one), format!("{:.0}", one.given), one_line(&one.digest)]
    };
    render::print(&render::table(HEADINGS, approvals.iter().map(row)))?;
    let outdated = approvals.iter().filter(|one| one.definition.is_none()).count();
    if outdated > 0 {
        let command = "`toolcrib approvals remove TOOL` removes them";
        render::hint(&format!("approvals of an earlier version that no longer apply: {outdated}; {command}"));
    }
    Ok(())
}

/// Returns the client of an approval as the list shows it.
fn client(one: &StoredApproval) -> String {
    match (&one.owner, &one.client) {
        (None, _) => NO_TOKEN.to_owned(),
        (Some(owner), client) => one_line(client.as_ref().unwrap_or(owner)),
    }
}

/// Returns `true` if an approval is of the client with this name: as the list shows it, or the name of its token or person, which
/// is before the name of its program.
fn is_of(one: &StoredApproval, name: &str) -> bool {
    let shown = client(one);
    let holder = one.owner.as_ref().and_then(|_| shown.split_once(": ")).map(|(holder, _)| holder);
    shown == name || holder == Some(name)
}

/// Revokes the approvals of `tools` in all places, or all if the list is empty; with a client, only its approvals.
fn remove(places: &[Approvals], tools: &[String], client: Option<&str>) -> anyhow::Result<()> {
    let mut known = stored(places)?;
    if let Some(name) = client {
        if !known.iter().any(|one| is_of(one, name)) {
            let message = format!("no approval of the client `{}`: nothing was revoked", one_line(name));
            let known: Vec<String> = known.iter().map(self::client).collect();
            return Err(Advice::new(message, nearest_or_list(name, known.iter().map(String::as_str))).into());
        }
        known.retain(|one| is_of(one, name));
    }
    if let Some(unknown) = tools.iter().find(|tool| !known.iter().any(|one| one.tool == **tool)) {
        let of_client = client.map(|name| format!(" for `{}`", one_line(name))).unwrap_or_default();
        let message = format!("no approval of `{}`{of_client}: nothing was revoked", one_line(unknown));
        let hint = nearest_or_list(unknown, known.iter().map(|one| one.tool.as_str()));
        return Err(Advice::new(message, hint).into());
    }
    let mut removed = 0;
    for approvals in places {
        removed += approvals.remove(|one| {
            let is_chosen = tools.is_empty() || tools.contains(&one.tool);
            is_chosen && client.is_none_or(|name| is_of(one, name))
        })?;
    }
    render::aside(&format!("revoked {}", counted(removed, "approval")));
    Ok(())
}

/// Returns a hint with the nearest known name, or with the command that lists all.
fn nearest_or_list<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match suggestion::nearest(name, known) {
        Some(nearest) => format!("did you mean `{}`?", one_line(nearest)),
        None => "`toolcrib approvals list` lists all approvals".to_owned(),
    }
}
