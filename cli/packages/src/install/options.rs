//! Options of installed bundles: their places, and the agreement to a release.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib_base::folders::{bundles_folder, no_home, state_folder, user_folders};
use toolcrib_base::render;

use crate::cache::{CacheFolder, CacheLimit};
use crate::registries::{BundleStore, SourceRegistries};
use crate::servers::ServerAccess;
use crate::signing::SignerOptions;

use super::{AvailableBundles, BundleFolder, Code, InstallRecords, Installer, LOCK_FILE, LockFile};

/// Environment variable with the minimum age.
const MIN_AGE_VARIABLE: &str = "TOOLCRIB_MIN_AGE";
/// Minimum age of a release for an update, unless the user sets another.
const DEFAULT_MIN_AGE: Duration = Duration::from_hours(24);
/// Maximum of a minimum age.
const MAX_MIN_AGE: Duration = Duration::from_hours(24 * 365);
/// Heading of the options in the help.
const AGREEMENT: &str = "Agreement";

/// Place of installed bundles.
#[derive(Debug, Clone, clap::Args)]
pub struct PlaceOptions {
    /// Use your bundles for all directories instead of this directory's
    #[arg(long)]
    global: bool,
}

impl PlaceOptions {
    /// Returns the lock file of the bundles that are available here in addition to the place's own bundles; `None` if
    /// the place is available in every folder itself.
    pub fn other_lock_file(&self) -> Option<LockFile> {
        if self.global { None } else { global() }
    }

    /// Returns the lock file of the place.
    ///
    /// # Errors
    ///
    /// The user has no home directory.
    pub fn lock_file(&self) -> anyhow::Result<LockFile> {
        match self.global {
            true => global().ok_or_else(no_home),
            false => Ok(LockFile::new(&std::env::current_dir()?, false)),
        }
    }
}

/// Agreement to a release without a question, and refusals that are overridden.
#[derive(Debug, Clone, clap::Args)]
pub struct AgreementOptions {
    /// Permissions to grant: `all`, `none`, or a list of requested permissions, such as `net:api.example.com:443`
    #[arg(long, value_name = "WHICH", value_delimiter = ',', help_heading = AGREEMENT)]
    pub grant: Vec<String>,
    /// Accept the release with this digest without asking; repeatable
    #[arg(long = "trust", value_name = "DIGEST", value_delimiter = ',', help_heading = AGREEMENT)]
    pub digests: Vec<String>,
    /// Override a refusal by its code, such as `signer-changed`; the release is then reviewed; repeatable
    #[arg(long, value_name = "CODE", value_delimiter = ',', help_heading = AGREEMENT)]
    pub accept: Vec<Code>,
    /// Refuse releases that are younger than this, such as `12h`, `3d` or `0`
    ///
    /// By default a day for `update`, and nothing for `install`.
    #[arg(long, value_name = "TIME", env = MIN_AGE_VARIABLE, value_parser = age, help_heading = AGREEMENT)]
    min_age: Option<Duration>,
    /// Print one JSON object per bundle; nothing is asked
    #[arg(long)]
    pub json: bool,
}

/// Sources of releases, and the signers whom the user trusts.
#[derive(Debug, Clone, clap::Args)]
pub struct ReleaseOptions {
    /// Trusted signers.
    #[command(flatten)]
    pub signers: SignerOptions,
    /// Connections to registries.
    #[command(flatten)]
    pub registries: SourceRegistries,
    #[command(flatten)]
    folder: CacheFolder,
    #[command(flatten)]
    limit: CacheLimit,
    /// Files of a recipe's package, in place of its registry.
    #[arg(skip)]
    pub package: Option<PathBuf>,
    /// Access to servers.
    #[arg(skip)]
    pub servers: ServerAccess,
}

impl ReleaseOptions {
    /// Lists the flags that a repetition of the command needs, with their values for a shell.
    pub fn flags(&self) -> impl Iterator<Item = (&'static str, String)> {
        let package = self.package.iter().map(|path| ("from", render::shell_word(&path.display().to_string())));
        self.signers.flags().into_iter().chain(self.registries.connection.flags()).chain(package)
    }

    /// Returns the store of pulled bundles.
    ///
    /// # Errors
    ///
    /// The user has no folder for a cache.
    pub fn store(&self) -> anyhow::Result<BundleStore> {
        BundleStore::new(Some(self.folder.cache()?.max_bytes(self.limit.bytes())))
    }
}

impl AgreementOptions {
    /// Lists the flags that a repetition of the command needs, with their values for a shell.
    pub fn flags(&self) -> impl Iterator<Item = (&'static str, String)> {
        let accepted = self.accept.iter().map(|code| ("accept", code.to_string()));
        let grants = self.grant.iter().map(|grant| ("grant", render::shell_word(grant)));
        let age = self.min_age.map(|age| ("min-age", format!("{}s", age.as_secs())));
        accepted.chain(grants).chain(age)
    }

    /// Returns the minimum age for an installation.
    pub fn install_age(&self) -> Duration {
        self.min_age.unwrap_or_default()
    }

    /// Returns the minimum age for an update.
    pub fn update_age(&self) -> Duration {
        self.min_age.unwrap_or(DEFAULT_MIN_AGE)
    }
}

/// Returns the user's stores of installations; `None` without a home directory.
pub fn installer() -> Option<Installer> {
    let bundles = BundleFolder::new(bundles_folder()?);
    Some(Installer { records: InstallRecords::folder(&state_folder("")?), bundles })
}

/// Returns the bundles that are available in the current folder.
///
/// # Errors
///
/// A lock or the records cannot be read.
pub fn available_here() -> anyhow::Result<AvailableBundles> {
    let places = places();
    // Without a lock there is nothing to read.
    match installer().filter(|_| !places.is_empty()) {
        Some(Installer { records, bundles }) => AvailableBundles::read(&places, &records, &bundles),
        None => Ok(AvailableBundles::default()),
    }
}

/// Lists the places with a lock file, the current folder first.
fn places() -> Vec<LockFile> {
    let here = Path::new(LOCK_FILE).symlink_metadata().is_ok();
    let here = std::env::current_dir().ok().filter(|_| here).map(|folder| LockFile::new(&folder, false));
    here.into_iter().chain(global().filter(|lock| lock.path().symlink_metadata().is_ok())).collect()
}

/// Lock file of the user.
fn global() -> Option<LockFile> {
    user_folders().map(|user| LockFile::new(&user.config, true))
}

/// Parses an age such as `12h`, `3d` or `0`.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not an age such as `12h`, `3d` or `0`, up to `365d`");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "" if number == 0 => 0,
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(wrong()),
    };
    let age = number.checked_mul(seconds).map(Duration::from_secs);
    age.filter(|age| *age <= MAX_MIN_AGE).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units_and_an_end() {
        for (text, hours) in [("0", 0), ("12h", 12), ("3d", 72), ("1w", 168), ("60m", 1), ("365d", 8760)] {
            assert_eq!(age(text), Ok(Duration::from_hours(hours)), "{text}");
        }
        for text in ["", "1", "-1d", "1y", "366d", "99999999999999999999d", "9999999999999999999d", "d", "1.5d"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
