//! `toolcrib outdated`: lists installed bundles with the present releases of their sources. Nothing is installed.

use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolcrib_base::folders::no_home;
use toolcrib_base::render::{self, one_line};
use toolcrib_packages::install::{BundleSource, FetchedRelease, LockFile, LockedBundle, Newest, fetch, newest};
use toolcrib_packages::install::{PlaceOptions, ReleaseOptions, installer};
use toolcrib_sources::options::KeptSecrets;

use super::update::{NO_BUNDLES, named};

const EXAMPLES: &str = "\
Examples:
  toolcrib outdated
  toolcrib outdated --json | jq -r '.[] | select(.outdated) | .name'

A release that is listed counts as seen: its age for `toolcrib update --min-age` begins.";
const HEADINGS: [&str; 4] = ["BUNDLE", "INSTALLED", "AVAILABLE", "SOURCE"];

/// List bundles with newer releases.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Names of bundles [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print a JSON array, one object per bundle, including bundles that are up to date
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceOptions,
    #[command(flatten)]
    releases: ReleaseOptions,
    #[command(flatten)]
    kept: KeptSecrets,
}

/// Installed bundle with the present release of its source.
struct Found {
    bundle: LockedBundle,
    /// Present release, or the reason why the source cannot be read.
    present: Result<Present, String>,
}

/// Present release of a source.
struct Present {
    source: String,
    version: Option<String>,
    /// Digest, if it is known before the release is fetched.
    digest: Option<String>,
    /// Reason why newer versions are not known.
    problem: Option<String>,
}

/// Gets the present release of a bundle.
async fn present(bundle: &LockedBundle, place: &LockFile, options: &ReleaseOptions) -> anyhow::Result<Present> {
    let source = BundleSource::parse(&bundle.source, place.folder())?;
    if let BundleSource::Recipe(recipe) = &source {
        let version = recipe.read()?.version;
        let is_present = bundle.version.as_ref() == Some(&version);
        let digest = is_present.then(|| bundle.digest.clone());
        return Ok(Present { source: bundle.source.clone(), version: Some(version), digest, problem: None });
    }
    let Newest { source, problem } = newest(source, options).await;
    let FetchedRelease { release, .. } = fetch(&source, options).await?;
    Ok(Present { source: source.text(place.folder()), version: release.version, digest: Some(release.digest), problem })
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    args.releases.servers = args.kept.servers();
    let (place, installer) = (args.place.lock_file()?, installer().ok_or_else(no_home)?);
    let mut all = Vec::new();
    for bundle in named(&place, &args.names)? {
        let present = present(&bundle, &place, &args.releases).await;
        if let Ok(Present { digest: Some(digest), .. }) = &present {
            installer.records.first_seen(digest, Timestamp::now())?;
        }
        all.push(Found { bundle, present: present.map_err(|error| render::message(&error)) });
    }
    let is_complete = all.iter().all(|found| found.problem().is_none());
    if args.json {
        render::print_json(&all.iter().map(Found::json).collect::<Value>().to_string())?;
    } else {
        let outdated: Vec<&Found> = all.iter().filter(|found| found.is_outdated()).collect();
        match outdated.as_slice() {
            [] if !is_complete => {}
            [] if all.is_empty() => render::aside(NO_BUNDLES),
            [] => render::aside("all bundles are up to date"),
            some => render::print(&render::table(HEADINGS, some.iter().map(|found| found.row())))?,
        }
    }
    for found in &all {
        if let Some(reason) = found.problem() {
            render::warning(&format!("bundle `{}`: {reason}", found.bundle.name));
        }
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Found {
    /// Returns the reason why newer releases are not known, or the present one.
    fn problem(&self) -> Option<&str> {
        match &self.present {
            Ok(present) => present.problem.as_deref(),
            Err(reason) => Some(reason),
        }
    }

    fn is_outdated(&self) -> bool {
        self.present.as_ref().is_ok_and(|present| present.digest.as_ref() != Some(&self.bundle.digest))
    }

    fn row(&self) -> [String; 4] {
        let LockedBundle { name, source, version, digest, .. } = &self.bundle;
        let shown = |version: Option<&String>, digest: &str| one_line(version.map_or(digest, String::as_str));
        let present = self.present.as_ref();
        let present = present
            .map_or_else(|_| "-".to_owned(), |it| shown(it.version.as_ref(), it.digest.as_deref().unwrap_or("-")));
        [one_line(name), shown(version.as_ref(), digest), present, one_line(source)]
    }

    fn json(&self) -> Value {
        let LockedBundle { name, source, version, digest, .. } = &self.bundle;
        let present = match &self.present {
            Ok(Present { source, version, digest, .. }) => {
                json!({ "source": source, "version": version, "digest": digest })
            }
            Err(_) => Value::Null,
        };
        json!({
            "name": name,
            "source": source,
            "installed": { "version": version, "digest": digest },
            "present": present,
            "outdated": self.is_outdated(),
            "problem": self.problem(),
        })
    }
}
