//! Secret key of a signer, read from a file that only its owner can read.

use std::path::Path;

use anyhow::ensure;
use toolcrib_signature::key::{self, read_key_file};
use toolcrib_signature::{Error, minisign};
use zeroize::Zeroizing;

use super::PassphraseOptions;
use crate::render::Advice;

/// First bytes of a key file of minisign.
const MINISIGN_START: &[u8] = b"untrusted comment:";

/// Secret key.
pub(crate) enum SecretKey {
    Sigstore(key::Signer),
    Minisign(minisign::SecretKey),
}

impl SecretKey {
    /// Reads a secret key; asks for its passphrase only if the key has one.
    ///
    /// # Errors
    ///
    /// The file is not a secret key of the expected format, others can access it, or the passphrase is wrong.
    pub(crate) fn read(path: &Path, minisign: bool, passphrase: &PassphraseOptions) -> anyhow::Result<Self> {
        let file = read_key_file(path)?;
        let bytes = file.as_bytes();
        let shown = path.display();
        let is_minisign = bytes.starts_with(MINISIGN_START);
        ensure!(
            minisign == is_minisign,
            match is_minisign {
                true => Advice::new(format!("`{shown}` is a key of minisign"), "pass `--minisign` to sign with it"),
                false => Advice::new(format!("`{shown}` is not a key of minisign"), "leave out `--minisign`"),
            }
        );
        let parse = |passphrase: Option<&[u8]>| match minisign {
            true => minisign::SecretKey::parse(bytes, passphrase).map(Self::Minisign),
            false => key::Signer::from_pem(bytes, passphrase).map(Self::Sigstore),
        };
        match parse(None) {
            Err(Error::PassphraseRequired) => {
                let words: Zeroizing<String> = passphrase.existing(&shown.to_string())?;
                Ok(parse(Some(words.as_bytes()))?)
            }
            read => Ok(read?),
        }
    }
}
