//! Encrypted secret keys as `cosign generate-key-pair` writes them.
//!
//! The PEM body is a JSON document: scrypt parameters and salt, and PKCS#8 encrypted with NaCl's secretbox
//! (XSalsa20 and Poly1305). Such keys are read, never written.

use pkcs8::der::pem;
use poly1305::{Poly1305, universal_hash::KeyInit as _};
use salsa20::{
    XSalsa20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::secret::scrypt_cost;
use crate::{
    error::Error,
    json::{self, Object},
    limits::{MAX_HINT_BYTES, MAX_SCRYPT_MEMORY, MAX_TEXT_BYTES},
};

/// Label of keys that cosign writes since version 2.
pub(super) const LABEL: &str = "ENCRYPTED SIGSTORE PRIVATE KEY";
/// Label of keys that cosign wrote before version 2.
pub(super) const OLD_LABEL: &str = "ENCRYPTED COSIGN PRIVATE KEY";

const TAG_BYTES: usize = 16;

/// Decrypts a key and returns its PKCS#8 document in DER.
pub(super) fn decrypt(text: &str, passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
    let (_, body) = pem::decode_vec(text.as_bytes()).map_err(|error| malformed(error.to_string()))?;
    let mut document = json::object("secret key of cosign", &body)?;
    let key = derive(document.object("kdf")?, passphrase)?;
    let mut cipher = document.object("cipher")?;
    cipher.constant("name", "nacl/secretbox")?;
    let nonce: [u8; 24] =
        cipher.bytes("nonce", 24)?.try_into().map_err(|_| cipher.unexpected("nonce", "24 bytes", "fewer"))?;
    cipher.finish()?;
    let boxed = document.bytes("ciphertext", MAX_TEXT_BYTES)?;
    document.finish()?;
    open(&key, &nonce, &boxed).ok_or(Error::Passphrase)
}

fn derive(mut kdf: Object, passphrase: &[u8]) -> Result<Zeroizing<[u8; 32]>, Error> {
    kdf.constant("name", "scrypt")?;
    let mut parameters = kdf.object("params")?;
    let mut number = |key: &str| -> Result<u64, Error> {
        let value = parameters.take(key).and_then(|value| value.as_u64());
        value.ok_or_else(|| parameters.unexpected(key, "a positive number", "none"))
    };
    let (n, r, p) = (number("N")?, number("r")?, number("p")?);
    parameters.finish()?;
    scrypt_cost(n, r, p, MAX_SCRYPT_MEMORY)?;
    let salt = kdf.bytes("salt", MAX_HINT_BYTES)?;
    kdf.finish()?;
    let cost = n.is_power_of_two().then(|| n.trailing_zeros() as u8);
    let params = match (cost, u32::try_from(r), u32::try_from(p)) {
        (Some(log_n), Ok(r), Ok(p)) => scrypt::Params::new(log_n, r, p).ok(),
        _ => None,
    };
    let params = params.ok_or_else(|| malformed("invalid scrypt parameters"))?;
    let mut key = Zeroizing::new([0; 32]);
    scrypt::scrypt(passphrase, &salt, &params, &mut *key).map_err(|_| malformed("invalid scrypt parameters"))?;
    Ok(key)
}

/// Opens a secretbox: the tag comes first, and the first 32 bytes of the key stream are the tag's key.
fn open(key: &[u8; 32], nonce: &[u8; 24], boxed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (tag, ciphertext) = boxed.split_at_checked(TAG_BYTES)?;
    let mut stream = XSalsa20::new(key.into(), nonce.into());
    let mut tag_key = Zeroizing::new([0; 32]);
    stream.apply_keystream(&mut *tag_key);
    let expected = Poly1305::new((&*tag_key).into()).compute_unpadded(ciphertext);
    if !bool::from(expected.as_slice().ct_eq(tag)) {
        return None;
    }
    let mut plain = Zeroizing::new(ciphertext.to_vec());
    stream.apply_keystream(&mut plain);
    Some(plain)
}

fn malformed(found: impl Into<String>) -> Error {
    Error::key("secret key of cosign", "scrypt and secretbox as cosign writes them", found)
}
