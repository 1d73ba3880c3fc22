//! Transparency log with one entry, and trust roots.

use p256::ecdsa::{DerSignature, SigningKey, signature::Signer as _};
use pkcs8::EncodePublicKey as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolcrib_signature::{Digest, keyless::TrustRoot};

use super::{decode, edited, encode};

/// Writes and reads a trust root.
pub(crate) fn trust_root(logs: Value, certificate_logs: Value, authorities: Value) -> TrustRoot {
    let root = json!({
        "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
        "tlogs": logs,
        "certificateAuthorities": authorities,
        "ctlogs": certificate_logs,
        "timestampAuthorities": [],
    });
    TrustRoot::from_json(&serde_json::to_vec(&root).unwrap()).unwrap()
}

/// Time of log entries, in seconds since 1970: 14 November 2023.
pub(crate) const TIME: i64 = 1_700_000_000;

/// Log with one entry.
pub(crate) struct Log(SigningKey);

impl Log {
    pub(crate) fn new(secret: u8) -> Self {
        Self(SigningKey::from_slice(&[secret; 32]).unwrap())
    }

    pub(crate) fn public_key(&self) -> Vec<u8> {
        self.0.verifying_key().to_public_key_der().unwrap().into_vec()
    }

    pub(crate) fn id(&self) -> Vec<u8> {
        Sha256::digest(self.public_key()).to_vec()
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: DerSignature = self.0.sign(message);
        signature.as_bytes().to_vec()
    }

    /// Describes the log as a trust root does.
    pub(crate) fn description(&self) -> Value {
        json!({
            "baseUrl": "https://log.example",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": encode(self.public_key()),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": { "start": "2021-01-01T00:00:00Z" },
            },
            "logId": { "keyId": encode(self.id()) },
        })
    }

    pub(crate) fn trust_root(&self) -> TrustRoot {
        trust_root(json!([self.description()]), json!([]), json!([]))
    }

    /// Adds a log entry of the kind `dsse` to a key-signed bundle.
    pub(crate) fn record(&self, bundle: &[u8], key: &str, time: i64) -> Vec<u8> {
        edited(bundle, |b| {
            let envelope = &b["dsseEnvelope"];
            let body = json!({
                "apiVersion": "0.0.1",
                "kind": "dsse",
                "spec": {
                    "envelopeHash": { "algorithm": "sha256", "value": "0".repeat(64) },
                    "payloadHash": { "algorithm": "sha256", "value": Digest::of(&decode(&envelope["payload"])).hex() },
                    "signatures": [{ "signature": envelope["signatures"][0]["sig"], "verifier": encode(key) }],
                },
            });
            b["verificationMaterial"]["tlogEntries"] = json!([self.entry(&body, time)]);
        })
    }

    fn entry(&self, body: &Value, time: i64) -> Value {
        let body = body.to_string();
        let root = encode(Sha256::digest([&[0][..], body.as_bytes()].concat()));
        let note = format!("log.example\n1\n{}\n", root.as_str().unwrap());
        let note_signature = encode([&self.id()[..4], &self.sign(note.as_bytes())].concat());
        let id: String = self.id().iter().map(|byte| format!("{byte:02x}")).collect();
        let promise = format!(r#"{{"body":{},"integratedTime":{time},"logID":"{id}","logIndex":0}}"#, encode(&body));
        json!({
            "logIndex": "0",
            "logId": { "keyId": encode(self.id()) },
            "kindVersion": { "kind": "dsse", "version": "0.0.1" },
            "integratedTime": time.to_string(),
            "inclusionPromise": { "signedEntryTimestamp": encode(self.sign(promise.as_bytes())) },
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": root,
                "treeSize": "1",
                "hashes": [],
                "checkpoint": { "envelope": format!("{note}\n— log.example {}\n", note_signature.as_str().unwrap()) },
            },
            "canonicalizedBody": encode(&body),
        })
    }
}
