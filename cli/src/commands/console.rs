//! `toolcrib console`: a page on this machine that shows runs, calls and tools, tries calls, and answers approvals.

use std::process::ExitCode;

use toolcrib_agent::runs::RunsFolder;
use toolcrib_console::{Console, Views};
use toolcrib_sources::options::Sources;

const EXAMPLES: &str = "\
Examples:
  toolcrib console                            open the printed address in a browser
  toolcrib console --port 8930 --share-read   the second address can only look
  toolcrib console --tools ./tools.json --allow-read=./docs

The page shows kept runs with the time line of their calls, the audit log with figures and exports, the tools \
that these options load with what they are granted, and the calls that wait for approval, all of them live. \
There a person allows a call once or always, denies it with a reason, and revokes permanent approvals, as \
`toolcrib approvals` does; trusts a source or ends its trust, as `toolcrib trust` does; and tries a tool by a \
form, under the permissions and rules of these options, with the preview first.

Only this machine can reach the page, and only a browser that was opened with the printed link: its token is new at \
each start. Anyone with the link can decide, so share the second link, from --share-read. Everything ends with the \
program (Ctrl-C), including running calls. The page needs no network, and its one script only keeps it current.";

/// Serve a page with runs, calls, tools and decisions.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Port to listen on at 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Also print an address that can look and not decide
    #[arg(long)]
    share_read: bool,
    #[command(flatten)]
    runs: RunsFolder,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.sources.fetch().await?;
    let views = Views::new(args.runs.store()?, args.sources)?;
    Console::listen(args.port, args.share_read).await?.serve(views).await
}
