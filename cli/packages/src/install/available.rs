//! Bundles available to commands without `--tools`: from the lock in the current directory, and from the user's lock.
//! A bundle counts if the user's own records agree with the lock.

use std::path::{Path, PathBuf};

use super::bundle_folder::BundleFolder;
use super::lock::LockedBundle;
use super::lock_file::LockFile;
use super::records::{InstallRecords, Installation};

/// Available bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvailableBundle {
    /// Name in its lock.
    pub name: String,
    /// Stored bundle file.
    pub file: PathBuf,
    /// Digest of the review that trust pins.
    pub review: String,
    /// Requests that the user granted.
    pub granted: Vec<String>,
    /// Verified signers that the user agreed to.
    pub signers: Vec<String>,
}

/// Available bundles, and hints about locked bundles that are not available.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AvailableBundles {
    /// The bundles.
    pub bundles: Vec<AvailableBundle>,
    /// Hints about bundles that are left out.
    pub hints: Vec<String>,
}

impl AvailableBundles {
    /// Reads the locks. A bundle of an earlier place replaces one of the same name at a later place.
    ///
    /// # Errors
    ///
    /// A lock or the records cannot be read.
    pub(crate) fn read(places: &[LockFile], records: &InstallRecords, files: &BundleFolder) -> anyhow::Result<Self> {
        let mut found = Self::default();
        let mut names: Vec<String> = Vec::new();
        let mut all = None;
        for place in places {
            for bundle in place.read()?.bundles {
                if names.contains(&bundle.name) {
                    continue;
                }
                let all: &Vec<Installation> = match &mut all {
                    Some(all) => all,
                    empty => empty.insert(records.read()?),
                };
                if found.add(place, &bundle, all, files) {
                    names.push(bundle.name);
                }
            }
        }
        Ok(found)
    }

    /// Adds a bundle. Returns `false` if the user did not agree to it: it hides no other of its name then.
    fn add(&mut self, place: &LockFile, bundle: &LockedBundle, all: &[Installation], files: &BundleFolder) -> bool {
        let LockedBundle { name, digest, .. } = bundle;
        let path = place.path();
        let is_agreed = |it: &&Installation| {
            let Installation { lock, bundle: agreed, .. } = it;
            *lock == path && agreed.name == *name && agreed.digest == *digest && bundle.has_grants_of(agreed)
        };
        let agreed = all.iter().find(is_agreed);
        let file = files.file(digest);
        let global = if place.is_global { " --global" } else { "" };
        let command = format!("`toolcrib install{global}`");
        match agreed {
            None => self.hints.push(format!(
                "bundle `{name}` of `{}` is not installed for you, so its tools are missing; review it with {command}",
                shown(&path)
            )),
            Some(_) if !file.is_file() => {
                self.hints.push(format!("the file of bundle `{name}` is missing; fetch it with {command}"));
            }
            // Two names of one content: the grants of the first count.
            Some(_) if self.bundles.iter().any(|other| other.file == file) => {}
            Some(agreed) => {
                let (name, review) = (name.clone(), agreed.review.clone());
                let (granted, signers) = (agreed.bundle.granted.clone(), agreed.bundle.signers.clone());
                self.bundles.push(AvailableBundle { name, file, review, granted, signers });
            }
        }
        agreed.is_some()
    }
}

fn shown(path: &Path) -> String {
    toolcrib_base::render::from_here(path).display().to_string()
}
