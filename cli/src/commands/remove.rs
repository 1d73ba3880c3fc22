//! `toolcrib remove`: removes installed bundles with their grants.

use std::process::ExitCode;

use toolcrib_base::folders::no_home;
use toolcrib_base::render::{self, Advice};
use toolcrib_packages::install::{PlaceOptions, installer};

const EXAMPLES: &str = "\
Examples:
  toolcrib remove acme/weather
  toolcrib remove acme/weather --global

Its grants and its signer and version pins are removed too: if you install the bundle again, it is new.";

/// Remove installed bundles.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Names of bundles
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    place: PlaceOptions,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (place, installer) = (args.place.lock_file()?, installer().ok_or_else(no_home)?);
    let lock = installer.records.lock()?;
    for name in &args.names {
        if !installer.remove(&lock, &place, name)? {
            let path = place.path();
            let message = format!("`{}` has no bundle `{name}`", render::from_here(&path).display());
            let hint = "`toolcrib outdated --json` lists the installed bundles";
            return Err(Advice::new(message, hint).into());
        }
        render::aside(&format!("removed `{name}`"));
    }
    Ok(ExitCode::SUCCESS)
}
