//! Signatures of bundles: keys that sign, signers whom the user trusts, and signatures that are found beside a tar, inside it
//! or in a registry.

mod attached;
mod beside;
mod finding;
mod options;
mod passphrase;
mod referrers;
mod report;
mod secret_key;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolcrib_registry::{Client, Reference};

use crate::registries::SCHEME;

pub use beside::{MINISIGN_SUFFIX, SIGSTORE_SUFFIX, beside, open};
pub use finding::Format;
pub use options::{SignerOptions, TrustedSigners};
pub use passphrase::PassphraseOptions;
pub use referrers::{attach, signable};
pub use report::SignatureReport;
pub use secret_key::SecretKey;

/// Bundle as it is named on the command line: a tar or a reference to a registry.
#[derive(Debug, Clone)]
pub enum BundleName {
    /// File.
    File(PathBuf),
    /// Reference to a registry.
    Reference(Reference),
}

impl BundleName {
    /// Parses an argument: `oci://…` is a reference, everything else is a path.
    ///
    /// # Errors
    ///
    /// If the text after `oci://` is not a reference.
    pub fn parse(name: &OsStr) -> anyhow::Result<Self> {
        match name.to_str().filter(|name| name.starts_with(SCHEME)) {
            Some(name) => Ok(Self::Reference(name.parse()?)),
            None => Ok(Self::File(Path::new(name).into())),
        }
    }
}

/// Finds and verifies the signatures of a bundle in a registry: its referrers, listed by the registry or under the fallback
/// tag.
///
/// # Errors
///
/// The registry does not answer, lists more referrers than the client accepts, or names the bundle by another digest than
/// SHA-256. A signature that is not valid is a finding, not an error.
pub async fn of_reference(
    client: &Client,
    reference: &Reference,
    trusted: &TrustedSigners,
) -> anyhow::Result<SignatureReport> {
    let subject = signable(client, reference).await?;
    referrers::find(client, reference.repository(), &subject, trusted).await
}

/// Finds and verifies the signatures of a tar: `FILE.sigstore.json` and `FILE.minisig` beside it, those attached inside, and
/// the files in `named`. Blocks the thread.
///
/// Whoever can change the tar during the verification can change it afterwards: verify a private copy, and use that one.
///
/// # Errors
///
/// The tar is not a complete bundle, or a file cannot be read. A signature that is not valid is a finding, not an error.
pub fn of_file(path: &Path, named: &[PathBuf], trusted: &TrustedSigners) -> anyhow::Result<SignatureReport> {
    beside::find(path, named, trusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_recognized_by_its_scheme() {
        assert!(matches!(BundleName::parse("oci://a.example/x:1".as_ref()), Ok(BundleName::Reference(_))));
        assert!(matches!(BundleName::parse("a.example/x".as_ref()), Ok(BundleName::File(_))));
        assert!(BundleName::parse("oci://x".as_ref()).is_err());
    }
}
