//! `toolcrib update`: replaces installed bundles by the present releases of their sources.

use std::process::ExitCode;

use toolcrib_base::folders::no_home;
use toolcrib_base::render::{self, Advice};
use toolcrib_base::suggestion;
use toolcrib_packages::install::{AgreementOptions, PlaceOptions, ReleaseOptions, installer};
use toolcrib_packages::install::{BundleSource, LockFile, LockedBundle, Newest, Operation, newest};
use toolcrib_sources::options::KeptSecrets;

use super::install::{Order, Procedure};

const EXAMPLES: &str = "\
Examples:
  toolcrib update                 all bundles of ./toolcrib.lock
  toolcrib update acme/weather
  toolcrib update acme/weather --min-age=0
  toolcrib update acme/weather --accept=signer-changed
  toolcrib update --json

A reference with a version as its tag, such as `:1.2.0`, is updated to the highest version in its repository.

An update asks only for what is new: permissions, tools, descriptions and schemas. It is refused \
if the signer changed, a signature is missing, the version is lower, a version was published \
again, or the release is younger than --min-age. Each refusal has a code and names a command.";

/// Update installed bundles.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Names of bundles [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
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
    args.releases.servers = args.kept.servers();
    let (place, installer) = (args.place.lock_file()?, installer().ok_or_else(no_home)?);
    let other = args.place.other_lock_file();
    let procedure = Procedure {
        place: &place,
        other: other.as_ref(),
        installer: &installer,
        options: &args.agreement,
        releases: &args.releases,
        min_age: args.agreement.update_age(),
    };
    let bundles = named(&place, &args.names)?;
    if bundles.is_empty() && !args.agreement.json {
        render::aside(NO_BUNDLES);
    }
    let (mut orders, mut is_complete) = (Vec::with_capacity(bundles.len()), true);
    for bundle in bundles {
        let locked = BundleSource::parse(&bundle.source, place.folder())?;
        let Newest { source, problem } = newest(locked.clone(), &args.releases).await;
        if let Some(problem) = problem {
            render::warning(&problem);
            is_complete = false;
        }
        let text = if source == locked { bundle.source } else { source.text(place.folder()) };
        orders.push(Order { operation: Operation::Update, source, text, name: Some(bundle.name), is_frozen: false });
    }
    let code = procedure.perform_all(&orders, "updated").await?;
    Ok(if is_complete { code } else { ExitCode::FAILURE })
}

/// Message of a lock without bundles.
pub(super) const NO_BUNDLES: &str = "no bundle is installed here: `toolcrib install SOURCE` installs one";

/// Returns the named bundles of a lock, or all.
///
/// # Errors
///
/// The lock cannot be read, or has no bundle of a name.
pub(super) fn named(place: &LockFile, names: &[String]) -> anyhow::Result<Vec<LockedBundle>> {
    let lock = place.read()?;
    if names.is_empty() {
        return Ok(lock.bundles);
    }
    let known: Vec<&str> = lock.bundles.iter().map(|bundle| bundle.name.as_str()).collect();
    let find = |name: &String| {
        lock.bundle(name).cloned().ok_or_else(|| {
            let path = place.path();
            let message = format!("`{}` has no bundle `{name}`", render::from_here(&path).display());
            let hint = match known.is_empty() {
                true => "install one with `toolcrib install SOURCE`".to_owned(),
                false => suggestion::hint(name, &known),
            };
            Advice::new(message, hint).into()
        })
    };
    names.iter().map(find).collect()
}
