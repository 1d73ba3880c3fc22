//! The bytes of a file of secrets: a header in the clear, and behind it everything else encrypted. Whatever is changed,
//! header and names included, is found when it is opened.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | `toolcrib-secrets` |
//! | 1 | the version of this format, 1 |
//! | 1 | where the key is from: 0 a file beside this one, 1 a passphrase |
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
/// Bytes of a key.
pub(super) const KEY_LEN: usize = 32;
/// Rounds that a passphrase is put through.
const ROUNDS: u32 = 600_000;
/// The most rounds that a file may ask for: it is not to decide how long this takes.
const MAX_ROUNDS: u32 = 10_000_000;

/// One secret as it is kept.
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

/// Where the key of a file is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    File,
    Passphrase,
}

/// What opens a file.
pub(super) enum Key {
    File(Zeroizing<[u8; KEY_LEN]>),
    Passphrase(Zeroizing<String>),
}

impl Key {
    /// A new key for a file.
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

/// Where the key of these bytes is from.
///
/// # Errors
///
/// What they are instead of a file of secrets of this version.
pub(super) fn key_kind(bytes: &[u8]) -> anyhow::Result<KeyKind> {
    ensure!(bytes.starts_with(MAGIC), "it is no file of secrets, or its beginning is lost");
    ensure!(bytes.len() > HEADER_LEN, "it is cut short: {} bytes are left", bytes.len());
    match (bytes[16], bytes[17]) {
        (VERSION, 0) => Ok(KeyKind::File),
        (VERSION, 1) => Ok(KeyKind::Passphrase),
        (VERSION, other) => bail!("it names a key of the unknown kind {other}"),
        (other, _) => bail!("it has version {other} of the format, and this program knows version {VERSION}"),
    }
}

/// The secrets in a file's bytes.
///
/// # Errors
///
/// Why they cannot be opened. A wrong key and a changed file look the same.
pub(super) fn open(bytes: &[u8], key: &Key) -> anyhow::Result<Vec<Entry>> {
    let kind = key_kind(bytes)?;
    let (header, sealed) = bytes.split_at(HEADER_LEN);
    let rounds = u32::from_be_bytes(header[18..22].try_into()?);
    let fits = match kind {
        KeyKind::File => rounds == 0,
        KeyKind::Passphrase => (ROUNDS..=MAX_ROUNDS).contains(&rounds),
    };
    ensure!(fits, "its header asks for {rounds} rounds of the key: it was changed");
    let nonce = Nonce::try_assume_unique_for_key(&header[HEADER_LEN - NONCE_LEN..]).ok().context("it is cut short")?;
    let cipher = key.cipher(rounds, &header[22..22 + SALT_LEN])?;
    let mut plain = Zeroizing::new(sealed.to_vec());
    let opened = cipher.open_in_place(nonce, Aad::from(header), &mut plain);
    let opened = opened.ok().context(match kind {
        KeyKind::File => "it was changed or damaged, or the key beside it is another one's",
        KeyKind::Passphrase => "the passphrase is wrong, or it was changed or damaged",
    })?;
    // What a parser says of a text quotes it.
    serde_json::from_slice(opened).ok().context("what is in it was written by another program")
}

/// The bytes of a file with these secrets.
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
    // Room for everything at once: a buffer that grows leaves copies behind.
    let room = entries.iter().map(|entry| 128 + entry.name.len() + 2 * entry.value.len()).sum::<usize>() + 128;
    let mut sealed = Zeroizing::new(Vec::with_capacity(room));
    serde_json::to_writer(&mut *sealed, entries)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok().context("a nonce has another length")?;
    cipher.seal_in_place_append_tag(nonce, Aad::from(&bytes), &mut *sealed).ok().context("cannot encrypt")?;
    bytes.extend_from_slice(&sealed);
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> anyhow::Result<()> {
    SystemRandom::new().fill(bytes).ok().context("the system gives no random numbers")
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
    fn what_is_sealed_is_opened_by_its_key_alone() {
        let key = Key::File(Key::random().unwrap());
        let bytes = seal(&entries(), &key).unwrap();
        assert_eq!(open(&bytes, &key).unwrap()[0].value, "ghp_0123456789");
        assert!(!bytes.windows(6).any(|part| part == b"github" || part == b"012345"), "nothing is in the clear");
        assert_ne!(seal(&entries(), &key).unwrap(), bytes, "no nonce is used twice");
        let other = Key::File(Key::random().unwrap());
        assert!(refused(&bytes, &other).contains("the key beside it is another one's"));
        let words = Key::Passphrase(Zeroizing::new("correct horse".to_owned()));
        let bytes = seal(&entries(), &words).unwrap();
        assert_eq!(key_kind(&bytes).unwrap(), KeyKind::Passphrase);
        assert_eq!(open(&bytes, &words).unwrap()[0].name, "github");
        let wrong = Key::Passphrase(Zeroizing::new("correct horsf".to_owned()));
        assert!(refused(&bytes, &wrong).contains("the passphrase is wrong"));
    }

    #[test]
    fn every_changed_byte_and_every_lost_one_is_found() {
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
    fn a_file_does_not_decide_how_long_its_key_takes() {
        let words = Key::Passphrase(Zeroizing::new("correct horse".to_owned()));
        let mut bytes = seal(&entries(), &words).unwrap();
        for rounds in [0, 1, ROUNDS - 1, MAX_ROUNDS + 1, u32::MAX] {
            bytes[18..22].copy_from_slice(&rounds.to_be_bytes());
            assert!(refused(&bytes, &words).contains("rounds of the key"), "{rounds}");
        }
        bytes[16] = 2;
        assert!(refused(&bytes, &words).contains("version 2 of the format"));
    }
}
