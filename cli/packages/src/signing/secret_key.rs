//! Secret key of a signer, read from a file that only its owner can read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::ensure;
use toolcrib_base::render::Advice;
use toolcrib_signature::key::{self, read_key_file};
use toolcrib_signature::{Error, minisign};
use zeroize::Zeroizing;

use super::PassphraseOptions;

/// First bytes of a minisign key file.
const MINISIGN_START: &[u8] = b"untrusted comment:";

/// First bytes of public key files.
const PUBLIC_STARTS: [&[u8]; 2] = [b"-----BEGIN PUBLIC KEY-----", b"untrusted comment: minisign public key"];
/// Number of leading file bytes that show the kind; they hold no part of a secret key.
const MAX_START: u64 = 38;
/// Suffix of a public key's file.
const PUBLIC_SUFFIX: &str = ".pub";

/// Secret key.
pub enum SecretKey {
    /// Key for bundles of Sigstore.
    Sigstore(key::Signer),
    /// Key of minisign.
    Minisign(minisign::SecretKey),
}

impl SecretKey {
    /// Reads a secret key; asks for its passphrase only if the key has one.
    ///
    /// # Errors
    ///
    /// The file is not a secret key of the expected format, others can access it, or the passphrase is wrong.
    pub fn read(path: &Path, minisign: bool, passphrase: &PassphraseOptions) -> anyhow::Result<Self> {
        refuse_public(path)?;
        let file = read_key_file(path)?;
        let bytes = file.as_bytes();
        let shown = path.display();
        let is_minisign = bytes.starts_with(MINISIGN_START);
        ensure!(
            minisign == is_minisign,
            match is_minisign {
                true => Advice::new(format!("`{shown}` is a minisign key"), "pass `--minisign` to sign with it"),
                false => Advice::new(format!("`{shown}` is not a minisign key"), "leave out `--minisign`"),
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

/// Refuses a public key, before the permissions of its file are judged: anybody may read it.
fn refuse_public(path: &Path) -> anyhow::Result<()> {
    let mut start = Vec::new();
    let is_read =
        path.is_file() && File::open(path).is_ok_and(|file| file.take(MAX_START).read_to_end(&mut start).is_ok());
    if !is_read || !PUBLIC_STARTS.iter().any(|public| start.starts_with(public)) {
        return Ok(());
    }
    let shown = path.display().to_string();
    let secret = shown.strip_suffix(PUBLIC_SUFFIX).filter(|secret| Path::new(secret).is_file());
    let hint = match secret {
        Some(secret) => format!("sign with the secret key: `--key {secret}`"),
        None => "sign with the secret key; `toolcrib key new FILE` creates it next to `FILE.pub`".to_owned(),
    };
    Err(Advice::new(format!("`{shown}` is a public key, which verifies and cannot sign"), hint).into())
}
