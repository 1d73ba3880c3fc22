//! `toolcrib cache`: lists, fills and empties the cache of compiled tools and pulled bundles.

mod warm;

use std::process::ExitCode;

use anyhow::Context;
use toolcrib::cache::{CacheEntry, Removal};
use toolcrib_authoring::build_folder::BuildFolder;
use toolcrib_base::parse::{rounded_size, size, size_in_words};
use toolcrib_base::render;
use toolcrib_packages::cache::{CacheFolder, CacheLimit, DEFAULT_MAX_CACHE, LIMIT_VARIABLE};

const EXAMPLES: &str = "\
Examples:
  toolcrib cache list                 compiled tools and pulled bundles
  toolcrib cache warm --tools .       compile all tools ahead
  toolcrib cache prune --max 512MiB   remove the least recently used
  toolcrib cache clear                remove all

A tool is compiled when it is first called, and again if its program, its engine settings or \
toolcrib change. Bundles are pulled from registries. After each compilation and each pull the least \
recently used entries above `cache.max` are removed. Removing entries only costs the time to compile \
or pull them again. Installed bundles are not in the cache.";
const LIST_EXAMPLES: &str = "\
Examples:
  toolcrib cache list
  toolcrib cache list --json | jq 'map(.bytes) | add'

The time of last use is up to an hour early. With --json, `digest` is the SHA-256 of the program or the bundle's \
manifest, and `file` the entry's path in the cache directory. A `download` is a part of an interrupted pull.";
const PRUNE_EXAMPLES: &str = "\
Examples:
  toolcrib cache prune              down to the limit of 2 GiB
  toolcrib cache prune --max 512MiB

Only files of the cache are removed, never others in its directory. Bundles in use stay.";
const CLEAR_EXAMPLES: &str = "\
Examples:
  toolcrib cache clear
  toolcrib cache clear --set cache.dir=./cache

Only files of the cache are removed, never others in its directory. Bundles in use stay.";
const HEADINGS: [&str; 4] = ["DIGEST", "KIND", "SIZE", "LAST USED"];
/// Length of a shortened digest in characters: `sha256:`, twelve digits and the ellipsis.
const DIGEST_CHARS: usize = 20;

/// List, fill or empty the cache of compiled tools and pulled bundles.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    List(List),
    Warm(Box<warm::Args>),
    Prune(Prune),
    Clear(Clear),
}

/// List the entries, most recently used first, and their total size.
#[derive(clap::Args)]
#[command(after_long_help = LIST_EXAMPLES)]
struct List {
    /// Print a JSON array, one object per entry
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: CacheFolder,
    #[command(flatten)]
    limit: CacheLimit,
}

/// Remove the least recently used entries above a size.
#[derive(clap::Args)]
#[command(after_long_help = PRUNE_EXAMPLES)]
struct Prune {
    /// Maximum size of the entries that stay
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = DEFAULT_MAX_CACHE)]
    #[arg(env = LIMIT_VARIABLE, hide_env_values = true)]
    max: usize,
    #[command(flatten)]
    folder: CacheFolder,
}

/// Remove all entries, and the folder in which `build` compiles tools.
#[derive(clap::Args)]
#[command(after_long_help = CLEAR_EXAMPLES)]
struct Clear {
    #[command(flatten)]
    folder: CacheFolder,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List(args) => list(&args)?,
        Action::Warm(args) => return warm::run(*args).await,
        Action::Prune(args) => report(args.folder.cache()?.prune(args.max as u64)?),
        Action::Clear(args) => {
            let cache = args.folder.cache()?;
            BuildFolder::clear(cache.path()).context("cannot remove the build folder")?;
            report(cache.clear()?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &List) -> anyhow::Result<()> {
    let entries = args.folder.cache()?.entries()?;
    if args.json {
        return render::print_json(&serde_json::to_string(&entries)?);
    }
    render::print(&render::table(HEADINGS, entries.iter().map(row)))?;
    let total = rounded_size(entries.iter().map(|entry| entry.bytes).sum());
    render::aside(&format!("{}, {total} of {}", counted(entries.len()), size_in_words(args.limit.bytes() as usize)));
    Ok(())
}

fn row(entry: &CacheEntry) -> [String; 4] {
    [
        render::shortened(&entry.digest, DIGEST_CHARS).into_owned(),
        entry.kind.as_str().to_owned(),
        rounded_size(entry.bytes),
        format!("{:.0}", entry.used),
    ]
}

fn report(removal: Removal) {
    render::aside(&format!("removed {}, {}", counted(removal.entries), rounded_size(removal.bytes)));
}

fn counted(entries: usize) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}
