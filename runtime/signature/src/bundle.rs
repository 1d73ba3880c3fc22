//! Sigstore bundle v0.3 with a DSSE envelope: the JSON shape. Trust is judged elsewhere.
//!
//! The envelope carries an in-toto statement, because a statement says what a signature is for: a signature over bare
//! bytes could have been made for any purpose. Bundles with a message signature are therefore refused.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    error::{Error, excerpt},
    json::{self, Object},
    limits::{
        MAX_ENTRIES, MAX_EVIDENCE, MAX_FIELD_BYTES, MAX_HINT_BYTES, MAX_LOG_BODY_BYTES, MAX_PART_BYTES,
        MAX_PAYLOAD_BYTES,
    },
};

/// Media type of the only accepted bundle format.
pub const BUNDLE_MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Payload type of the only accepted DSSE envelopes.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Longest hash in base64: 64 bytes.
const MAX_HASH_TEXT_BYTES: usize = 88;
const WHAT: &str = "Sigstore bundle";

/// Bundle with a checked shape and an unchecked signature.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) material: Material,
    pub(crate) payload: Vec<u8>,
    pub(crate) signature: Vec<u8>,
    pub(crate) log_entries: usize,
    pub(crate) timestamps: usize,
}

/// Verification material named by the bundle; not authenticated.
#[derive(Debug)]
pub(crate) enum Material {
    /// Hint at a key that the verifier has.
    PublicKey { hint: String },
    /// Certificate of a keyless signature; its bytes are judged by the keyless verifier.
    Certificate,
}

impl Bundle {
    /// Reads a bundle and refuses everything that this crate does not know.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut bundle = json::object(WHAT, bytes)?;
        bundle.constant("mediaType", BUNDLE_MEDIA_TYPE)?;
        if bundle.take("messageSignature").is_some() {
            return Err(bundle.unexpected("messageSignature", "a `dsseEnvelope` instead", "a message signature"));
        }
        let mut material = bundle.object("verificationMaterial")?;
        let mut envelope = bundle.object("dsseEnvelope")?;
        bundle.finish()?;

        let log_entries = material.objects("tlogEntries", MAX_EVIDENCE)?;
        let timestamps = material.optional_object("timestampVerificationData")?;
        let parsed = Self {
            log_entries: log_entries.len(),
            timestamps: timestamps.map_or(Ok(0), check_timestamps)?,
            material: read_material(&mut material)?,
            payload: read_payload(&mut envelope)?,
            signature: read_signature(&mut envelope)?,
        };
        material.finish()?;
        envelope.finish()?;
        log_entries.into_iter().try_for_each(check_log_entry)?;
        Ok(parsed)
    }

    /// Returns the bytes that the signature covers.
    pub(crate) fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes(&self.payload)
    }
}

/// Writes a key-signed bundle without insignificant whitespace.
pub(crate) fn write(hint: &str, payload: &[u8], signature: &[u8]) -> Vec<u8> {
    serde_json::json!({
        "mediaType": BUNDLE_MEDIA_TYPE,
        "verificationMaterial": { "publicKey": { "hint": hint } },
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{ "sig": STANDARD.encode(signature) }],
        },
    })
    .to_string()
    .into_bytes()
}

/// Returns the pre-authentication encoding of DSSE (protocol version 1) for an in-toto payload.
pub(crate) fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

fn read_material(material: &mut Object) -> Result<Material, Error> {
    if material.take("x509CertificateChain").is_some() {
        let expected = "`certificate`, which replaced it in version 0.3";
        return Err(material.unexpected("x509CertificateChain", expected, "a certificate chain"));
    }
    let (key, certificate) = (material.optional_object("publicKey")?, material.optional_object("certificate")?);
    match (key, certificate) {
        (Some(mut key), None) => {
            let hint = key.optional_text("hint", MAX_HINT_BYTES)?.unwrap_or_default();
            key.finish()?;
            Ok(Material::PublicKey { hint })
        }
        (None, Some(mut certificate)) => {
            certificate.bytes("rawBytes", MAX_PART_BYTES)?;
            certificate.finish()?;
            Ok(Material::Certificate)
        }
        (key, _) => {
            let found = if key.is_some() { "both" } else { "neither" };
            Err(material.unexpected("publicKey", "either `publicKey` or `certificate`", found))
        }
    }
}

fn read_payload(envelope: &mut Object) -> Result<Vec<u8>, Error> {
    envelope.constant("payloadType", PAYLOAD_TYPE)?;
    envelope.bytes("payload", MAX_PAYLOAD_BYTES)
}

fn read_signature(envelope: &mut Object) -> Result<Vec<u8>, Error> {
    let mut signatures = envelope.objects("signatures", usize::MAX)?;
    let count = signatures.len();
    let (1, Some(mut signature)) = (count, signatures.pop()) else {
        return Err(envelope.unexpected("signatures", "exactly one signature", format!("{count} signatures")));
    };
    // DSSE defines `keyid` as an unauthenticated hint.
    signature.optional_text("keyid", MAX_HINT_BYTES)?;
    let bytes = signature.bytes("sig", MAX_FIELD_BYTES)?;
    signature.finish()?;
    Ok(bytes)
}

fn check_timestamps(mut data: Object) -> Result<usize, Error> {
    let timestamps = data.objects("rfc3161Timestamps", MAX_EVIDENCE)?;
    data.finish()?;
    let count = timestamps.len();
    for mut timestamp in timestamps {
        timestamp.bytes("signedTimestamp", MAX_PART_BYTES)?;
        timestamp.finish()?;
    }
    Ok(count)
}

fn check_log_entry(mut entry: Object) -> Result<(), Error> {
    check_number(&mut entry, "logIndex")?;
    check_number(&mut entry, "integratedTime")?;
    entry.bytes("canonicalizedBody", MAX_LOG_BODY_BYTES)?;
    let mut log = entry.object("logId")?;
    log.bytes("keyId", MAX_HINT_BYTES)?;
    log.finish()?;
    let mut kind = entry.object("kindVersion")?;
    kind.text("kind", MAX_HINT_BYTES)?;
    kind.text("version", MAX_HINT_BYTES)?;
    kind.finish()?;
    if let Some(mut promise) = entry.optional_object("inclusionPromise")? {
        promise.bytes("signedEntryTimestamp", MAX_FIELD_BYTES)?;
        promise.finish()?;
    }
    // Version 0.3 requires a proof with a checkpoint in every entry.
    check_proof(entry.object("inclusionProof")?)?;
    entry.finish()
}

fn check_proof(mut proof: Object) -> Result<(), Error> {
    check_number(&mut proof, "logIndex")?;
    check_number(&mut proof, "treeSize")?;
    proof.bytes("rootHash", 64)?;
    for (i, hash) in proof.array("hashes", MAX_ENTRIES)?.into_iter().enumerate() {
        if hash.as_str().is_none_or(|text| text.len() > MAX_HASH_TEXT_BYTES) {
            return Err(proof.unexpected(&format!("hashes[{i}]"), "a hash in base64", json::kind(&hash)));
        }
    }
    let mut checkpoint = proof.object("checkpoint")?;
    checkpoint.text("envelope", MAX_PART_BYTES)?;
    checkpoint.finish()?;
    proof.finish()
}

/// Accepts a missing field or an integer, which Protocol Buffers write as text.
fn check_number(object: &mut Object, key: &str) -> Result<(), Error> {
    match object.take(key) {
        None => Ok(()),
        Some(serde_json::Value::String(text)) if text.parse::<u64>().is_ok() => Ok(()),
        Some(serde_json::Value::String(text)) => Err(object.unexpected(key, "digits", format!("`{}`", excerpt(&text)))),
        Some(serde_json::Value::Number(number)) if number.is_u64() => Ok(()),
        Some(other) => Err(object.unexpected(key, "digits", json::kind(&other))),
    }
}

/// Shortens the hint of a bundle for a message.
pub(crate) fn shown_hint(hint: &str) -> String {
    if hint.is_empty() { "none".to_owned() } else { excerpt(hint) }
}
