//! `toolcrib console`: a page on this machine that shows runs, calls and tools, tries calls, and answers approvals.

use std::ffi::OsString;
use std::process::ExitCode;

use toolcrib_agent::runs::RunsFolder;
use toolcrib_console::{Console, Launcher, Shares, Views};
use toolcrib_sources::options::Sources;

/// Name of this command.
const NAME: &str = "console";

const EXAMPLES: &str = "\
Examples:
  toolcrib console                            open the printed address in a browser
  toolcrib console --port 8930 --share-read   the second address can only look
  toolcrib console --tools ./tools.json --allow-read=./docs
  toolcrib console --start-runs --allow-write=.   the second address also starts runs

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
    /// Also print an address that can start and resume runs, with the options of this console
    #[arg(long, hide_short_help = true)]
    start_runs: bool,
    #[command(flatten)]
    runs: RunsFolder,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.sources.fetch().await?;
    let launcher = args.start_runs.then(|| Launcher::new(of_runs(std::env::args_os().skip(1)))).transpose()?;
    let views = Views::new(args.runs.store()?, args.sources, launcher)?;
    let shares = Shares { read: args.share_read, start: args.start_runs };
    Console::listen(args.port, shares).await?.serve(views).await
}

/// Returns the command line for runs with this console's options, given its own without the program.
fn of_runs(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut arguments, mut of_runs, mut is_named) = (arguments.into_iter(), Vec::new(), false);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some(NAME) if !is_named => {
                is_named = true;
                of_runs.push("run".into());
            }
            Some("--port") => drop(arguments.next()),
            Some("--share-read" | "--start-runs") => {}
            Some(text) if text.starts_with("--port=") => {}
            _ => of_runs.push(argument),
        }
    }
    of_runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gets_every_option_that_is_not_about_the_page() {
        let typed = "--set a.b=c console --port 8930 --tools console --share-read --allow-read=. --start-runs --port=1";
        let of_runs = of_runs(typed.split(' ').map(OsString::from));
        assert_eq!(of_runs.join(std::ffi::OsStr::new(" ")), "--set a.b=c run --tools console --allow-read=.");
    }
}
