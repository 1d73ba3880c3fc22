//! Key-signed Sigstore bundles: round trips, tampering, confusion of keys and algorithms.

use crate::support::{ALGORITHMS, bundle, decode, digest, edited, encode, signer, trusting};
use p256::ecdsa::DerSignature;
use serde_json::{Value, json};
use toolcrib_signature::{
    Digest, Error, Format, Policy, SignedBy,
    key::{Algorithm, Signer},
    verify,
};

#[test]
fn each_algorithm_signs_and_verifies() {
    for algorithm in ALGORITHMS {
        let signer = signer(algorithm);
        let verified = verify(&bundle(algorithm), &digest(), &trusting(signer.public_key())).unwrap();
        assert_eq!(verified.signed_by, SignedBy::Key(signer.public_key().id().unwrap()));
        assert_eq!(verified.format, Format::SigstoreBundleV03);
        assert_eq!(verified.time, None, "a bundle without a log proves no time");
    }
}

#[test]
fn generated_keys_sign_and_verify() {
    for algorithm in ALGORITHMS {
        let signer = Signer::generate(algorithm).unwrap();
        let bundle = signer.sign_digest(&digest()).unwrap();
        verify(&bundle, &digest(), &trusting(signer.public_key())).unwrap();
    }
}

#[test]
fn the_same_key_and_digest_give_the_same_bytes() {
    for algorithm in ALGORITHMS {
        assert_eq!(bundle(algorithm), bundle(algorithm), "{algorithm}");
    }
}

#[test]
fn the_shape_is_that_of_cosign() {
    let value: Value = serde_json::from_slice(&bundle(Algorithm::EcdsaP256)).unwrap();
    assert_eq!(value["mediaType"], "application/vnd.dev.sigstore.bundle.v0.3+json");
    assert_eq!(value["dsseEnvelope"]["payloadType"], "application/vnd.in-toto+json");
    let id = signer(Algorithm::EcdsaP256).public_key().id().unwrap();
    assert_eq!(value["verificationMaterial"]["publicKey"]["hint"], encode(id.as_bytes()));
    let statement: Value = serde_json::from_slice(&decode(&value["dsseEnvelope"]["payload"])).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://sigstore.dev/cosign/sign/v1");
    assert_eq!(statement["subject"][0]["digest"]["sha256"], digest().hex());
    assert_eq!(statement["predicate"], json!({}));
}

#[test]
fn a_policy_that_trusts_nobody_refuses() {
    let error = verify(&bundle(Algorithm::EcdsaP256), &digest(), &Policy::new()).unwrap_err();
    assert!(matches!(error, Error::Policy { missing: "trusted key", .. }), "{error}");
}

#[test]
fn another_key_is_refused_and_both_keys_are_named() {
    let other = Signer::generate(Algorithm::EcdsaP256).unwrap().public_key();
    let error = verify(&bundle(Algorithm::EcdsaP256), &digest(), &trusting(other.clone())).unwrap_err();
    assert!(matches!(error, Error::NoTrustedKey { .. }));
    assert!(error.to_string().contains(&other.id().unwrap().to_string()), "{error}");
}

#[test]
fn one_of_several_trusted_keys_is_enough() {
    let policy = ALGORITHMS
        .into_iter()
        .fold(Policy::new(), |policy, algorithm| policy.trust_key(signer(algorithm).public_key()).unwrap());
    for algorithm in ALGORITHMS {
        let verified = verify(&bundle(algorithm), &digest(), &policy).unwrap();
        assert_eq!(verified.signed_by, SignedBy::Key(signer(algorithm).public_key().id().unwrap()));
    }
}

#[test]
fn another_digest_is_refused_and_both_digests_are_named() {
    let (bundle, other) = (bundle(Algorithm::EcdsaP256), Digest::of(b"another manifest"));
    let error = verify(&bundle, &other, &trusting(signer(Algorithm::EcdsaP256).public_key())).unwrap_err();
    assert_eq!(error.to_string(), format!("the signature is for `{}`, expected `{other}`", digest()));
}

#[test]
fn a_key_never_verifies_a_signature_of_another_algorithm() {
    for (key, signature) in [(Algorithm::EcdsaP256, Algorithm::Ed25519), (Algorithm::Ed25519, Algorithm::EcdsaP256)] {
        let policy = trusting(signer(key).public_key());
        let error = verify(&bundle(signature), &digest(), &policy).unwrap_err();
        assert!(matches!(error, Error::NoTrustedKey { .. }), "{error}");
        // The same with the hint of the trusted key: the hint decides nothing.
        let hint = encode(signer(key).public_key().id().unwrap().as_bytes());
        let forged = edited(&bundle(signature), |b| b["verificationMaterial"]["publicKey"]["hint"] = hint);
        assert!(verify(&forged, &digest(), &policy).is_err());
    }
}

#[test]
fn both_values_of_s_are_accepted_as_other_verifiers_do() {
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    let bundle = bundle(Algorithm::EcdsaP256);
    let mirrored = edited(&bundle, |b| {
        let sig = &mut b["dsseEnvelope"]["signatures"][0]["sig"];
        let parsed: p256::ecdsa::Signature = DerSignature::from_bytes(&decode(sig)).unwrap().try_into().unwrap();
        let (r, s) = (parsed.r(), parsed.s());
        let mirrored = p256::ecdsa::Signature::from_scalars(*r, -*s).unwrap();
        *sig = encode(mirrored.to_der().as_bytes());
    });
    assert_ne!(mirrored, bundle);
    verify(&bundle, &digest(), &policy).unwrap();
    verify(&mirrored, &digest(), &policy).unwrap();
}

#[test]
fn signatures_in_another_encoding_are_refused() {
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    let bundle = bundle(Algorithm::EcdsaP256);
    let der = decode(&serde_json::from_slice::<Value>(&bundle).unwrap()["dsseEnvelope"]["signatures"][0]["sig"]);
    let parsed: p256::ecdsa::Signature = DerSignature::from_bytes(&der).unwrap().try_into().unwrap();
    let trailing = [&der[..], &[0]].concat();
    for bytes in [parsed.to_bytes().to_vec(), trailing, Vec::new(), vec![0; 64], der[1..].to_vec()] {
        let forged = edited(&bundle, |b| b["dsseEnvelope"]["signatures"][0]["sig"] = encode(&bytes));
        assert!(matches!(verify(&forged, &digest(), &policy), Err(Error::NoTrustedKey { .. })), "{bytes:?}");
    }
}

#[test]
fn each_tampered_field_is_refused() {
    let other: Value =
        serde_json::from_slice(&signer(Algorithm::EcdsaP256).sign_digest(&Digest::of(b"other")).unwrap()).unwrap();
    type Change<'a> = Box<dyn Fn(&mut Value) + 'a>;
    let set = |pointer: &'static str, value: Value| -> Change<'_> {
        Box::new(move |b| *b.pointer_mut(pointer).unwrap() = value.clone())
    };
    let add = |pointer: &'static str, key: &'static str, value: Value| -> Change<'_> {
        Box::new(move |b| b.pointer_mut(pointer).unwrap()[key] = value.clone())
    };
    let remove = |pointer: &'static str, key: &'static str| -> Change<'_> {
        Box::new(move |b| drop(b.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key)))
    };
    let signature = json!({ "sig": other["dsseEnvelope"]["signatures"][0]["sig"] });
    let changes: Vec<(&str, Change<'_>)> = vec![
        ("older media type", set("/mediaType", "application/vnd.dev.sigstore.bundle+json;version=0.2".into())),
        ("newer media type", set("/mediaType", "application/vnd.dev.sigstore.bundle.v0.4+json".into())),
        ("no media type", remove("", "mediaType")),
        ("payload of another artifact", set("/dsseEnvelope/payload", other["dsseEnvelope"]["payload"].clone())),
        ("signature of another artifact", set("/dsseEnvelope/signatures/0", signature.clone())),
        ("other payload type", set("/dsseEnvelope/payloadType", "application/json".into())),
        ("no signature", set("/dsseEnvelope/signatures", json!([]))),
        ("signature of the wrong type", set("/dsseEnvelope/signatures", json!([1]))),
        ("unknown field", add("", "extra", json!(1))),
        ("unknown field in the envelope", add("/dsseEnvelope", "extra", json!(null))),
        ("unknown field in the signature", add("/dsseEnvelope/signatures/0", "extra", json!(null))),
        ("unknown field in the material", add("/verificationMaterial", "extra", json!({}))),
        ("unknown field in the key", add("/verificationMaterial/publicKey", "rawBytes", "".into())),
        ("two contents", add("", "messageSignature", json!({}))),
        ("key and certificate", add("/verificationMaterial", "certificate", json!({ "rawBytes": "" }))),
        ("certificate chain", add("/verificationMaterial", "x509CertificateChain", json!({ "certificates": [] }))),
        ("neither key nor certificate", remove("/verificationMaterial", "publicKey")),
        ("no material", remove("", "verificationMaterial")),
        ("no envelope", remove("", "dsseEnvelope")),
        ("array as material", set("/verificationMaterial", json!([]))),
        ("number as hint", set("/verificationMaterial/publicKey/hint", json!(7))),
    ];
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    let bundle = bundle(Algorithm::EcdsaP256);
    for (name, change) in changes {
        let error = verify(&edited(&bundle, change), &digest(), &policy).expect_err(name);
        let message = error.to_string();
        assert!(message.contains("expected") || message.contains("no trusted key"), "{name}: {message}");
    }
}

#[test]
fn several_signatures_are_refused_even_when_all_are_valid() {
    let doubled = edited(&bundle(Algorithm::EcdsaP256), |b| {
        let signature = b["dsseEnvelope"]["signatures"][0].clone();
        b["dsseEnvelope"]["signatures"].as_array_mut().unwrap().push(signature);
    });
    let error = verify(&doubled, &digest(), &trusting(signer(Algorithm::EcdsaP256).public_key())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Sigstore bundle: field `dsseEnvelope.signatures`: expected exactly one signature, found 2 signatures"
    );
}

#[test]
fn a_message_signature_is_refused_by_name() {
    let text = r#"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{}},
        "messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":""},"signature":""}}"#;
    let error = verify(text.as_bytes(), &digest(), &trusting(signer(Algorithm::EcdsaP256).public_key())).unwrap_err();
    assert!(error.to_string().contains("messageSignature"), "{error}");
}

#[test]
fn repeated_keys_and_trailing_data_are_refused() {
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    let text = String::from_utf8(bundle(Algorithm::EcdsaP256)).unwrap();
    for forged in [
        text.replacen('{', "{\"mediaType\":\"x\",", 1),
        text.replace("\"payloadType\"", "\"payload\":\"\",\"payloadType\""),
        format!("{text}{{}}"),
        format!("{text}\0"),
        format!("\u{feff}{text}"),
    ] {
        assert!(matches!(verify(forged.as_bytes(), &digest(), &policy), Err(Error::Json { .. })), "{forged}");
    }
}

/// The hint is the only text in our bundles that no signature covers.
#[test]
fn every_bit_flip_is_refused_or_changes_only_the_hint() {
    for algorithm in ALGORITHMS {
        let (bundle, policy) = (bundle(algorithm), trusting(signer(algorithm).public_key()));
        let original = verify(&bundle, &digest(), &policy).unwrap();
        let text = std::str::from_utf8(&bundle).unwrap();
        let start = text.find("\"hint\":\"").unwrap() + 8;
        let hint = start..start + text[start..].find('"').unwrap();
        let mut accepted = 0;
        for position in 0..bundle.len() {
            for bit in 0..8 {
                let mut flipped = bundle.clone();
                flipped[position] ^= 1 << bit;
                if let Ok(verified) = verify(&flipped, &digest(), &policy) {
                    assert!(hint.contains(&position), "{algorithm}: byte {position}, bit {bit}");
                    assert_eq!(verified, original);
                    accepted += 1;
                }
            }
        }
        assert!(accepted > 0, "the loop reaches the hint");
    }
}

#[test]
fn every_truncation_is_refused() {
    let (bundle, policy) = (bundle(Algorithm::EcdsaP256), trusting(signer(Algorithm::EcdsaP256).public_key()));
    for length in 0..bundle.len() {
        assert!(verify(&bundle[..length], &digest(), &policy).is_err(), "{length}");
    }
}

#[test]
fn provenance_by_the_same_key_is_not_a_signature() {
    let signer = signer(Algorithm::EcdsaP256);
    let statement = format!(
        r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"digest":{{"sha256":"{}"}}}}],"predicateType":"https://slsa.dev/provenance/v1","predicate":{{}}}}"#,
        digest().hex()
    );
    let bundle = signer.sign_statement(statement.as_bytes()).unwrap();
    let error = verify(&bundle, &digest(), &trusting(signer.public_key())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "in-toto statement: field `predicateType`: expected `https://sigstore.dev/cosign/sign/v1`, found `https://slsa.dev/provenance/v1`"
    );
}

#[test]
fn a_statement_that_would_not_verify_is_not_signed() {
    let signer = signer(Algorithm::EcdsaP256);
    assert!(signer.sign_statement(b"{}").is_err());
    assert!(signer.sign_statement(b"not json").is_err());
}
