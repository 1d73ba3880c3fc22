//! Secret keys and signing in the format of minisign.
//!
//! A secret key file has two lines: a comment, and base64 of algorithms, scrypt parameters, and the key identifier, the
//! Ed25519 key pair and a checksum, which are combined with the output of scrypt by exclusive or when there is a password.

use std::{fmt, io::Read};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use blake2::{Blake2b, Blake2b512, Digest as _, digest::consts::U32};
use ed25519_dalek::{Signer as _, SigningKey};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::{COMMENT, MinisignKey, TRUSTED_COMMENT, check_comment, lines, malformed};
use crate::{
    error::{Error, excerpt},
    limits::{MAX_FIELD_BYTES, MAX_MINISIGN_MEMORY, MAX_MINISIGN_OPERATIONS, MAX_TRUSTED_COMMENT_BYTES},
};

/// Memory of scrypt for new keys, in bytes: N = 2^17, r = 8, p = 1.
const NEW_MEMORY: u64 = 128 << 20;
const NEW_OPERATIONS: u64 = 1 << 22;

const SALT: std::ops::Range<usize> = 6..38;
const OPERATIONS: std::ops::Range<usize> = 38..46;
const MEMORY: std::ops::Range<usize> = 46..54;
const ID: std::ops::Range<usize> = 54..62;
const KEY_PAIR: std::ops::Range<usize> = 62..126;
const CHECKSUM: std::ops::Range<usize> = 126..158;
/// Bytes of a decoded secret key.
const KEY_BYTES: usize = 158;
/// Start of a key with a password: Ed25519, scrypt, BLAKE2b.
const WITH_PASSWORD: &[u8; 6] = b"EdScB2";
/// Start of a key without a password.
const WITHOUT_PASSWORD: &[u8; 6] = b"Ed\0\0B2";
const WHAT: &str = "secret key";

/// Secret key of minisign; erased from memory when dropped.
pub struct SecretKey {
    id: [u8; 8],
    key: SigningKey,
}

impl SecretKey {
    /// Generates a key from the random numbers of the system.
    ///
    /// # Errors
    /// [`Error::Random`] when the system has none.
    pub fn generate() -> Result<Self, Error> {
        let (mut id, mut seed) = ([0; 8], Zeroizing::new([0; 32]));
        getrandom::fill(&mut id).and_then(|()| getrandom::fill(&mut *seed)).map_err(Error::Random)?;
        Ok(Self { id, key: SigningKey::from_bytes(&seed) })
    }

    /// Reads a secret key file. `password` is ignored when the key has none.
    ///
    /// A key of the program `minisign` takes 1 GiB of memory to decrypt, as it does there.
    ///
    /// # Errors
    /// [`Error::PassphraseRequired`], [`Error::Passphrase`] for a wrong password or a damaged key, [`Error::Limit`] for
    /// scrypt parameters over the limits, [`Error::Minisign`] for a malformed file.
    pub fn parse(document: &[u8], password: Option<&[u8]>) -> Result<Self, Error> {
        let [comment, encoded] = lines(WHAT, document)?;
        if !comment.starts_with(COMMENT) {
            return Err(malformed(WHAT, format!("a line that starts with `{COMMENT}`"), "another line"));
        }
        let decoded = STANDARD.decode(encoded).map(Zeroizing::new);
        // The position of an error is left out, because the text around it is secret.
        let decoded = decoded.map_err(|_| malformed(WHAT, "padded base64", "something else"))?;
        let count = decoded.len();
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        if count != KEY_BYTES {
            return Err(malformed(WHAT, format!("{KEY_BYTES} bytes in base64"), format!("{count} bytes")));
        }
        bytes.copy_from_slice(&decoded);
        if bytes.starts_with(WITH_PASSWORD) {
            combine(&mut bytes, password.ok_or(Error::PassphraseRequired)?)?;
        } else if bytes.starts_with(WITHOUT_PASSWORD) {
            // The program `minisign` writes no checksum into a key without a password.
            if bytes[CHECKSUM].iter().all(|byte| *byte == 0) {
                let sum = checksum(&bytes);
                bytes[CHECKSUM].copy_from_slice(&sum[..]);
            }
        } else {
            let found = format!("`{}`", excerpt(&String::from_utf8_lossy(&bytes[..6])));
            return Err(malformed(WHAT, "the algorithms `Ed`, `Sc` or none, `B2`", found));
        }
        Self::from_plain(&bytes)
    }

    fn from_plain(bytes: &[u8; KEY_BYTES]) -> Result<Self, Error> {
        if !bool::from(checksum(bytes)[..].ct_eq(&bytes[CHECKSUM])) {
            return Err(Error::Passphrase);
        }
        let (mut id, mut pair) = ([0; 8], Zeroizing::new([0; 64]));
        id.copy_from_slice(&bytes[ID]);
        pair.copy_from_slice(&bytes[KEY_PAIR]);
        // The halves of the pair have to belong together: signing with a foreign public half reveals the secret half.
        let key = SigningKey::from_keypair_bytes(&pair).map_err(|_| Error::Passphrase)?;
        Ok(Self { id, key })
    }

    /// Returns the secret key file, encrypted with `password`, or not encrypted when there is none.
    ///
    /// # Errors
    /// [`Error::Random`] when the system has no random numbers, [`Error::Limit`] for a password over
    /// [`MAX_FIELD_BYTES`], [`Error::Minisign`] for an empty password.
    pub fn to_file(&self, password: Option<&[u8]>) -> Result<Zeroizing<String>, Error> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        bytes[..6].copy_from_slice(if password.is_some() { WITH_PASSWORD } else { WITHOUT_PASSWORD });
        bytes[ID].copy_from_slice(&self.id);
        bytes[KEY_PAIR].copy_from_slice(&*Zeroizing::new(self.key.to_keypair_bytes()));
        let sum = checksum(&bytes);
        bytes[CHECKSUM].copy_from_slice(&sum[..]);
        if let Some(password) = password {
            if password.is_empty() {
                return Err(malformed("password", "at least one byte", "an empty password"));
            }
            getrandom::fill(&mut bytes[SALT]).map_err(Error::Random)?;
            bytes[OPERATIONS].copy_from_slice(&NEW_OPERATIONS.to_le_bytes());
            bytes[MEMORY].copy_from_slice(&NEW_MEMORY.to_le_bytes());
            combine(&mut bytes, password)?;
        }
        let encoded = Zeroizing::new(STANDARD.encode(&bytes[..]));
        let kind = if password.is_some() { "encrypted" } else { "unencrypted" };
        Ok(Zeroizing::new(format!("{COMMENT}minisign {kind} secret key\n{}\n", *encoded)))
    }

    /// Returns the public key.
    ///
    /// # Errors
    /// [`Error::Minisign`] when the key cannot be encoded.
    pub fn public_key(&self) -> Result<MinisignKey, Error> {
        let mut bytes = [0; 42];
        bytes[..2].copy_from_slice(b"Ed");
        bytes[2..10].copy_from_slice(&self.id);
        bytes[10..].copy_from_slice(self.key.verifying_key().as_bytes());
        MinisignKey::from_bytes(bytes)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("id", &super::shown_id(self.id)).finish_non_exhaustive()
    }
}

/// Signs everything that `data` yields and returns the content of `FILE.minisig`.
///
/// The signature covers `trusted_comment`; [`signature_comment`] writes the usual one.
///
/// # Errors
/// [`Error::Limit`] and [`Error::Minisign`] for a comment that is too long or has control characters; [`Error::Read`] when
/// `data` fails.
pub fn sign(mut data: impl Read, key: &SecretKey, trusted_comment: &str) -> Result<String, Error> {
    check_comment("trusted comment", trusted_comment, MAX_TRUSTED_COMMENT_BYTES)?;
    let comment = format!("signature from minisign key {}", super::shown_id(key.id));
    check_comment("untrusted comment", &comment, MAX_FIELD_BYTES)?;
    let mut hash = Blake2b512::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match data.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => hash.update(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
    let signature = key.key.sign(&hash.finalize()).to_bytes();
    let global = key.key.sign(&[&signature[..], trusted_comment.as_bytes()].concat()).to_bytes();
    let encoded = STANDARD.encode([&b"ED"[..], &key.id, &signature].concat());
    let global = STANDARD.encode(global);
    Ok(format!("{COMMENT}{comment}\n{encoded}\n{TRUSTED_COMMENT}{trusted_comment}\n{global}\n"))
}

/// Writes the trusted comment that the program `minisign` writes: the time, the name of the file and the mode.
#[must_use]
pub fn signature_comment(time: jiff::Timestamp, file_name: &str) -> String {
    format!("timestamp:{}\tfile:{file_name}\thashed", time.as_second())
}

/// BLAKE2b-256 of algorithm, identifier and key pair.
fn checksum(bytes: &[u8; KEY_BYTES]) -> Zeroizing<[u8; 32]> {
    let mut hash = Blake2b::<U32>::new();
    hash.update(&bytes[..2]);
    hash.update(&bytes[ID.start..KEY_PAIR.end]);
    Zeroizing::new(hash.finalize().into())
}

/// Encrypts or decrypts identifier, key pair and checksum: an exclusive or with the output of scrypt.
fn combine(bytes: &mut [u8; KEY_BYTES], password: &[u8]) -> Result<(), Error> {
    Error::limit("password, bytes", password.len(), MAX_FIELD_BYTES)?;
    let number = |range: std::ops::Range<usize>| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[range]);
        u64::from_le_bytes(number)
    };
    let parameters = scrypt_parameters(number(OPERATIONS), number(MEMORY))?;
    let mut stream = Zeroizing::new([0; KEY_BYTES - ID.start]);
    scrypt::scrypt(password, &bytes[SALT], &parameters, &mut *stream).map_err(|_| Error::Passphrase)?;
    bytes[ID.start..].iter_mut().zip(stream.iter()).for_each(|(byte, mask)| *byte ^= mask);
    Ok(())
}

/// Derives N and p (r is 8) from the two limits of libsodium, within this module's limits.
fn scrypt_parameters(operations: u64, memory: u64) -> Result<scrypt::Params, Error> {
    for (what, found, max) in [
        ("minisign scrypt operations", operations, MAX_MINISIGN_OPERATIONS),
        ("minisign scrypt memory, bytes", memory, MAX_MINISIGN_MEMORY),
    ] {
        if found > max {
            return Err(Error::Limit { what: what.into(), found, max });
        }
    }
    const R: u64 = 8;
    let operations = operations.max(32_768);
    let cost = |limit: u64| u8::try_from((limit / 2).max(1).ilog2() + 1).unwrap_or(u8::MAX).min(63);
    let (log_n, p) = if operations < memory / 32 {
        (cost(operations / (R * 4)), 1)
    } else {
        let log_n = cost(memory / (R * 128));
        (log_n, (operations / 4) / (1 << log_n) / R)
    };
    let p = u32::try_from(p).ok();
    let parameters = p.and_then(|p| scrypt::Params::new(log_n, R as u32, p).ok());
    parameters.ok_or_else(|| malformed(WHAT, "usable scrypt parameters", format!("{operations} and {memory}")))
}
