//! File format of encrypted secrets: a header in plain text, then the encrypted secrets with their names. Every change
//! to a file, including its header, is detected when it is decrypted.
//!
//! | bytes | content |
//! |---|---|
//! | 16 | `toolcrib-secrets` |
//! | 1 | the version of this format, 1 |
//! | 1 | kind of the key: 0 a key file, 1 a passphrase |
//! | 4 | rounds of PBKDF2-HMAC-SHA256, big-endian; 0 without a passphrase |
//! | 16 | its salt |
//! | 12 | the nonce |
//! | rest | JSON under ChaCha20-Poly1305, with the bytes before as associated data |

use std::num::NonZeroU32;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2::{self, PBKDF2_HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

const MAGIC: &[u8; 16] = b"toolcrib-secrets";
const VERSION: u8 = 1;
const SALT_LEN: usize = 16;
const HEADER_LEN: usize = 16 + 1 + 1 + 4 + SALT_LEN + NONCE_LEN;
/// Length of a key in bytes.
pub(super) const KEY_LEN: usize = 32;
/// Rounds of key derivation in new files.
const ROUNDS: u32 = 600_000;
/// Maximum rounds accepted from a file, which bounds the time that a hostile file can use.
const MAX_ROUNDS: u32 = 10_000_000;

/// One stored secret.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) set: Timestamp,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.value.zeroize();
    }
}

/// Source of a file's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    File,
    Passphrase,
}

/// Key of a file.
pub(super) enum Key {
    File(Zeroizing<[u8; KEY_LEN]>),
    Passphrase(Zeroizing<String>),
}

impl Key {
    /// Generates a key for a key file.
    pub(super) fn random() -> anyhow::Result<Zeroizing<[u8; KEY_LEN]>> {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        fill(&mut *key)?;
        Ok(key)
    }

    fn cipher(&self, rounds: u32, salt: &[u8]) -> anyhow::Result<LessSafeKey> {
        let mut derived = Zeroizing::new([0; KEY_LEN]);
        let key = match self {
            Key::File(key) => key,
            Key::Passphrase(words) => {
                let rounds = NonZeroU32::new(rounds).context("a passphrase needs rounds")?;
                pbkdf2::derive(PBKDF2_HMAC_SHA256, rounds, salt, words.as_bytes(), &mut *derived);
                &derived
            }
        };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &**key).ok().context("the key has another length")?;
        Ok(LessSafeKey::new(key))
    }
}

/// Reads the kind of the key from the header.
///
/// # Errors
///
/// The bytes are not a secrets file, or have an unknown version or kind of key.
pub(super) fn key_kind(bytes: &[u8]) -> anyhow::Result<KeyKind> {
    ensure!(bytes.starts_with(MAGIC), "it is not a secrets file, or its beginning is missing");
    ensure!(bytes.len() > HEADER_LEN, "it is truncated to {} bytes", bytes.len());
    match (bytes[16], bytes[17]) {
        (VERSION, 0) => Ok(KeyKind::File),
        (VERSION, 1) => Ok(KeyKind::Passphrase),
        (VERSION, other) => bail!("unknown key type {other}"),
        (other, _) => bail!("it has version {other} of the format, but only version {VERSION} is supported"),
    }
}

/// Decrypts the secrets in the bytes of a file.
///
/// # Errors
///
/// The bytes cannot be decrypted or parsed. A wrong key cannot be distinguished from a changed file.
pub(super) fn open(bytes: &[u8], key: &Key) -> anyhow::Result<Vec<Entry>> {
    let kind = key_kind(bytes)?;
    let (header, sealed) = bytes.split_at(HEADER_LEN);
    let rounds = u32::from_be_bytes(header[18..22].try_into()?);
    let fits = match kind {
        KeyKind::File => rounds == 0,
        KeyKind::Passphrase => (ROUNDS..=MAX_ROUNDS).contains(&rounds),
    };
    ensure!(fits, "its header was changed: {rounds} rounds of key derivation are outside the accepted range");
    let nonce = Nonce::try_assume_unique_for_key(&header[HEADER_LEN - NONCE_LEN..]).ok().context("it is truncated")?;
    let cipher = key.cipher(rounds, &header[22..22 + SALT_LEN])?;
    let mut plain = Zeroizing::new(sealed.to_vec());
    let opened = cipher.open_in_place(nonce, Aad::from(header), &mut plain);
    let opened = opened.ok().context(match kind {
        KeyKind::File => "it was changed or damaged, or its key file belongs to another file",
        KeyKind::Passphrase => "the passphrase is wrong, or it was changed or damaged",
    })?;
    // An error of the parser would quote the text.
    serde_json::from_slice(opened).ok().context("its decrypted content is not a list of secrets")
}

/// Encrypts secrets into the bytes of a file.
pub(super) fn seal(entries: &[Entry], key: &Key) -> anyhow::Result<Vec<u8>> {
    let (kind, rounds) = match key {
        Key::File(_) => (0, 0),
        Key::Passphrase(_) => (1, ROUNDS),
    };
    let mut random = [0; SALT_LEN + NONCE_LEN];
    fill(&mut random)?;
    let (salt, nonce) = random.split_at(SALT_LEN);
    let mut bytes = Vec::with_capacity(HEADER_LEN);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[VERSION, kind]);
    bytes.extend_from_slice(&rounds.to_be_bytes());
    bytes.extend_from_slice(salt);
    bytes.extend_from_slice(nonce);
    let cipher = key.cipher(rounds, salt)?;
    // Allocated once, because a growing buffer leaves copies of the secrets in memory.
    let capacity = entries.iter().map(|entry| 128 + entry.name.len() + 2 * entry.value.len()).sum::<usize>() + 128;
    let mut sealed = Zeroizing::new(Vec::with_capacity(capacity));
    serde_json::to_writer(&mut *sealed, entries)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok().context("a nonce has another length")?;
    cipher.seal_in_place_append_tag(nonce, Aad::from(&bytes), &mut *sealed).ok().context("cannot encrypt")?;
    bytes.extend_from_slice(&sealed);
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> anyhow::Result<()> {
    SystemRandom::new().fill(bytes).ok().context("the system provides no random numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        vec![Entry { name: "github".into(), value: "ghp_0123456789".into(), set: Timestamp::UNIX_EPOCH }]
    }

    fn refused(bytes: &[u8], key: &Key) -> String {
        open(bytes, key).err().map(|error| format!("{error:#}")).unwrap_or_default()
    }

    #[test]
    fn sealed_secrets_are_opened_only_with_their_key() {
        let key = Key::File(Key::random().unwrap());
        let bytes = seal(&entries(), &key).unwrap();
        assert_eq!(open(&bytes, &key).unwrap()[0].value, "ghp_0123456789");
        assert!(!bytes.windows(6).any(|part| part == b"github" || part == b"012345"), "nothing is in plain text");
        assert_ne!(seal(&entries(), &key).unwrap(), bytes, "no nonce is used twice");
        let other = Key::File(Key::random().unwrap());
        assert!(refused(&bytes, &other).contains("its key file belongs to another file"));
        let words = Key::Passphrase(Zeroizing::new("correct horse".to_owned()));
        let bytes = seal(&entries(), &words).unwrap();
        assert_eq!(key_kind(&bytes).unwrap(), KeyKind::Passphrase);
        assert_eq!(open(&bytes, &words).unwrap()[0].name, "github");
        let wrong = Key::Passphrase(Zeroizing::new("correct horsf".to_owned()));
        assert!(refused(&bytes, &wrong).contains("the passphrase is wrong"));
    }

    #[test]
    fn every_changed_or_missing_byte_is_detected() {
        let key = Key::File(Key::random().unwrap());
        let bytes = seal(&entries(), &key).unwrap();
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert!(!refused(&changed, &key).is_empty(), "byte {at}");
            }
            assert!(!refused(&bytes[..at], &key).is_empty(), "cut at {at}");
        }
        let longer = [&bytes[..], b"x"].concat();
        assert!(!refused(&longer, &key).is_empty());
    }

    #[test]
    fn a_file_cannot_choose_the_duration_of_key_derivation() {
        let words = Key::Passphrase(Zeroizing::new("correct horse".to_owned()));
        let mut bytes = seal(&entries(), &words).unwrap();
        for rounds in [0, 1, ROUNDS - 1, MAX_ROUNDS + 1, u32::MAX] {
            bytes[18..22].copy_from_slice(&rounds.to_be_bytes());
            assert!(refused(&bytes, &words).contains("rounds of key derivation"), "{rounds}");
        }
        bytes[16] = 2;
        assert!(refused(&bytes, &words).contains("version 2 of the format"));
    }
}
