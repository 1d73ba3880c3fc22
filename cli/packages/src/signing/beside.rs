//! Signatures of a tar: files beside it, and manifests that are attached to the bundle inside it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use toolcrib_base::input;
use toolcrib_base::render::{self, Advice};
use toolcrib_bundle::Bundle;
use toolcrib_registry::{Manifest, OCI_MANIFEST};
use toolcrib_signature::Digest;
use toolcrib_signature::limits::MAX_JSON_BYTES;

use super::finding::{Finding, Format};
use super::{SignatureReport, TrustedSigners, attached};

/// Suffix of a file with a Sigstore bundle.
pub const SIGSTORE_SUFFIX: &str = ".sigstore.json";
/// Suffix of a file with a minisign signature.
pub const MINISIGN_SUFFIX: &str = ".minisig";
/// First bytes of a minisign signature.
const MINISIGN_START: &[u8] = b"untrusted comment:";

/// Extensions of tool sources that are not bundles.
const SOURCES: [&str; 3] = ["wasm", "json", "md"];

/// Opens the bundle in a tar, and checks all of its content. Returns a second handle to the same file.
///
/// # Errors
///
/// The file cannot be read, or is not a complete bundle.
pub fn open(path: &Path) -> anyhow::Result<(Bundle<File>, File)> {
    let read = || -> anyhow::Result<_> {
        // Judged before it is opened: opening a pipe would wait for its writer.
        ensure!(fs::metadata(path)?.is_file(), "it is not a regular file");
        let file = File::open(path)?;
        let again = file.try_clone()?;
        let mut bundle = Bundle::open(file)?;
        bundle.verify()?;
        Ok((bundle, again))
    };
    read().map_err(|error| match source_of_tools(path) {
        Some(advice) => advice.into(),
        None => error.context(format!("cannot use the bundle `{}`", path.display())),
    })
}

/// Returns the advice for a component, a definition or a folder, which the user may take for a bundle.
fn source_of_tools(path: &Path) -> Option<Advice> {
    let is_source = |ending: &OsStr| SOURCES.iter().any(|source| ending.eq_ignore_ascii_case(source));
    if !(path.is_dir() || path.is_file() && path.extension().is_some_and(is_source)) {
        return None;
    }
    let tar = path.with_extension("tar");
    let (shown, tar) = (render::shell_path(path), render::shell_path(&tar));
    let hint = format!(
        "make a bundle of it with `toolcrib bundle pack {shown} -o {tar}`, or show its tools with `toolcrib list --tools {shown}`"
    );
    Some(Advice::new(format!("`{}` is not a bundle", path.display()), hint))
}

/// Returns the path with a suffix.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Finds and judges the signatures of a tar.
pub(super) fn find(path: &Path, named: &[PathBuf], trusted: &TrustedSigners) -> anyhow::Result<SignatureReport> {
    let (mut bundle, mut file) = open(path)?;
    let digest = bundle.digest();
    let mut findings = Vec::new();
    let usual = [SIGSTORE_SUFFIX, MINISIGN_SUFFIX].map(|suffix| (beside(path, suffix), false));
    for (path, required) in usual.into_iter().chain(named.iter().map(|path| (path.clone(), true))) {
        let shown = render::from_here(&path).display().to_string();
        let content = input::regular_file(&path, MAX_JSON_BYTES as u64);
        match content.with_context(|| format!("cannot read `{shown}`")) {
            Ok(Some(content)) if content.starts_with(MINISIGN_START) || is_minisign(&path) => {
                findings.push(Finding::of_minisign(shown, &content, &mut file, trusted));
            }
            Ok(Some(content)) => findings.push(Finding::of_bundle(shown, &content, &digest, trusted)),
            Ok(None) => ensure!(!required, "the signature `{shown}` does not exist"),
            Err(error) if required => return Err(error),
            Err(error) => findings.push(Finding::invalid(shown, Format::Sigstore, error)),
        }
    }
    let (inside, skipped) = inside(&mut bundle, &digest, trusted);
    findings.extend(inside);
    Ok(SignatureReport { bundle: render::from_here(path).display().to_string(), digest, findings, skipped })
}

fn is_minisign(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == &MINISIGN_SUFFIX[1..])
}

/// Judges the signatures that are attached to the bundle inside its archive, and counts those over the limit.
fn inside<R: Read + Seek>(bundle: &mut Bundle<R>, digest: &Digest, trusted: &TrustedSigners) -> (Vec<Finding>, usize) {
    let archive = bundle.archive();
    let attached = archive.referrers(*digest);
    let known = attached.filter_map(|entry| Some((attached::format(&entry.artifact_type)?, entry.descriptor.digest)));
    let known: Vec<_> = known.collect();
    let skipped = known.len().saturating_sub(attached::MAX_ATTACHED);
    let examined = known.into_iter().take(attached::MAX_ATTACHED).map(|(format, manifest)| {
        let place = manifest.to_string();
        let mut content = || -> anyhow::Result<Vec<u8>> {
            let bytes = archive.read_blob(manifest)?.into_vec(attached::MAX_ATTACHED_MANIFEST_BYTES)?;
            let layer = attached::layer(&Manifest::new(OCI_MANIFEST, bytes)?, digest, format)?;
            let blob: Digest = layer.digest.to_string().parse()?;
            Ok(archive.read_blob(blob)?.into_vec(MAX_JSON_BYTES as u64)?)
        };
        match content() {
            Ok(content) => attached::judge(place, format, &content, digest, trusted),
            Err(error) => Finding::invalid(place, format, error),
        }
    });
    (examined.collect(), skipped)
}
