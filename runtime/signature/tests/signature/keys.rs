//! Keys: PEM and PKCS#8, encryption at rest, files, identifiers, malformed input.

use crate::support::{ALGORITHMS, bundle, digest, signer, trusting};
use toolcrib_signature::{
    Error,
    key::{Algorithm, PublicKey, Signer},
    limits::{MAX_FIELD_BYTES, MAX_PART_BYTES, MAX_TEXT_BYTES},
    verify,
};

const OPENSSL_PASSPHRASE: Option<&[u8]> = Some(b"openssl-pass");

#[test]
fn keys_survive_pem_with_and_without_a_passphrase() {
    for algorithm in ALGORITHMS {
        let key = Signer::generate(algorithm).unwrap();
        let plain = Signer::from_pem(key.to_pem().unwrap().as_bytes(), None).unwrap();
        assert_eq!(plain.public_key(), key.public_key());

        let encrypted = key.to_encrypted_pem(b"a passphrase").unwrap();
        assert!(encrypted.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"), "{algorithm}");
        let decrypted = Signer::from_pem(encrypted.as_bytes(), Some(b"a passphrase")).unwrap();
        assert_eq!(decrypted.public_key(), key.public_key());
        assert!(matches!(Signer::from_pem(encrypted.as_bytes(), Some(b"A passphrase")), Err(Error::Passphrase)));
        assert!(matches!(Signer::from_pem(encrypted.as_bytes(), None), Err(Error::PassphraseRequired)));
        assert_ne!(*encrypted, *key.to_encrypted_pem(b"a passphrase").unwrap(), "salt and vector are random");
    }
}

#[test]
fn keys_of_openssl_are_read_with_scrypt_and_with_pbkdf2() {
    let public = PublicKey::from_pem(include_bytes!("data/openssl/p256.pub.pem")).unwrap();
    for pem in [&include_bytes!("data/openssl/p256.scrypt.pem")[..], include_bytes!("data/openssl/p256.pbkdf2.pem")] {
        assert_eq!(Signer::from_pem(pem, OPENSSL_PASSPHRASE).unwrap().public_key(), public);
        assert!(matches!(Signer::from_pem(pem, Some(b"wrong")), Err(Error::Passphrase)));
    }
    let public = PublicKey::from_pem(include_bytes!("data/openssl/ed25519.pub.pem")).unwrap();
    assert_eq!(signer(Algorithm::Ed25519).public_key(), public);
}

#[test]
fn encrypted_keys_of_cosign_are_read() {
    let pem = include_bytes!("data/cosign/p256.pem");
    let key = Signer::from_pem(pem, Some(b"cosign-pass")).unwrap();
    assert_eq!(key.public_key(), signer(Algorithm::EcdsaP256).public_key());
    assert!(matches!(Signer::from_pem(pem, Some(b"wrong")), Err(Error::Passphrase)));
    assert!(matches!(Signer::from_pem(pem, None), Err(Error::PassphraseRequired)));
}

/// Replaces text in the JSON document of a cosign key.
fn cosign_key(from: &str, to: &str) -> Vec<u8> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let pem = include_str!("data/cosign/p256.pem");
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let json = String::from_utf8(STANDARD.decode(body).unwrap()).unwrap();
    let changed = json.replace(from, to);
    assert_ne!(changed, json, "{from}");
    let body = STANDARD.encode(changed);
    let lines: Vec<&str> = body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let label = "ENCRYPTED SIGSTORE PRIVATE KEY";
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n")).into_bytes()
}

#[test]
fn costly_or_foreign_encryption_of_cosign_keys_is_refused() {
    for (from, to) in [("65536", "1073741824"), ("\"r\": 8", "\"r\": 80000"), ("\"p\": 1", "\"p\": 100000")] {
        let error = Signer::from_pem(&cosign_key(from, to), Some(b"cosign-pass")).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{from}: {error}");
    }
    for (from, to) in [
        ("65536", "65535"),
        ("65536", "0"),
        ("65536", "-1"),
        ("scrypt", "argon2"),
        ("secretbox", "aes"),
        ("\"r\": 8", "\"r\": 0"),
    ] {
        let error = Signer::from_pem(&cosign_key(from, to), Some(b"cosign-pass")).unwrap_err();
        assert!(matches!(error, Error::Field { .. } | Error::Key { .. }), "{from} {to}: {error}");
    }
}

#[test]
fn costly_key_derivation_of_pkcs8_is_refused_before_it_runs() {
    use pkcs8::{
        EncryptedPrivateKeyInfoOwned, SecretDocument,
        der::{Encode as _, asn1::OctetString},
        pkcs5::pbes2::Parameters,
    };
    let parameters = [
        Parameters::generate_scrypt_aes256cbc(scrypt::Params::new(20, 8, 1).unwrap(), &[0; 16], [0; 16]),
        Parameters::generate_scrypt_aes256cbc(scrypt::Params::new(14, 8, 9).unwrap(), &[0; 16], [0; 16]),
        Parameters::generate_pbkdf2_sha256_aes256cbc(10_000_001, &[0; 16], [0; 16]),
    ];
    for parameters in parameters {
        let info = EncryptedPrivateKeyInfoOwned {
            encryption_algorithm: parameters.unwrap().into(),
            encrypted_data: OctetString::new([0; 160]).unwrap(),
        };
        let document = SecretDocument::try_from(info.to_der().unwrap()).unwrap();
        let pem = document.to_pem("ENCRYPTED PRIVATE KEY", pkcs8::LineEnding::LF).unwrap();
        let error = Signer::from_pem(pem.as_bytes(), Some(b"passphrase")).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{error}");
    }
}

#[test]
fn empty_and_long_passphrases_are_refused() {
    let key = signer(Algorithm::EcdsaP256);
    assert!(key.to_encrypted_pem(b"").is_err());
    let long = vec![b'x'; MAX_FIELD_BYTES + 1];
    assert!(matches!(key.to_encrypted_pem(&long), Err(Error::Limit { .. })));
    let pem = include_bytes!("data/openssl/p256.scrypt.pem");
    assert!(matches!(Signer::from_pem(pem, Some(&long)), Err(Error::Limit { .. })));
}

#[test]
fn the_key_id_is_the_digest_of_the_public_key() {
    use sha2::{Digest as _, Sha256};
    for algorithm in ALGORITHMS {
        let key = signer(algorithm).public_key();
        let expected: [u8; 32] = Sha256::digest(key.to_der().unwrap()).into();
        assert_eq!(key.id().unwrap().as_bytes(), &expected);
        assert_eq!(key.id().unwrap().to_string().len(), 64);
        let read = PublicKey::from_pem(key.to_pem().unwrap().as_bytes()).unwrap();
        assert_eq!(read.id().unwrap(), key.id().unwrap());
        assert_eq!(read.algorithm(), algorithm);
    }
}

#[test]
fn an_exported_public_key_verifies() {
    for algorithm in ALGORITHMS {
        let pem = signer(algorithm).public_key().to_pem().unwrap();
        verify(&bundle(algorithm), &digest(), &trusting(PublicKey::from_pem(pem.as_bytes()).unwrap())).unwrap();
    }
}

#[test]
fn keys_of_other_algorithms_are_refused_by_name() {
    let error = PublicKey::from_pem(include_bytes!("data/openssl/p384.pub.pem")).unwrap_err();
    assert!(error.to_string().contains("1.3.132.0.34"), "{error}");
    let error = PublicKey::from_pem(include_bytes!("data/openssl/rsa.pub.pem")).unwrap_err();
    assert!(error.to_string().contains("1.2.840.113549.1.1.1"), "{error}");
    let error = Signer::from_pem(include_bytes!("data/openssl/p256.sec1.pem"), None).unwrap_err();
    assert!(error.to_string().contains("EC PRIVATE KEY"), "{error}");
}

#[test]
fn an_ed25519_key_of_small_order_is_refused() {
    // SubjectPublicKeyInfo of Ed25519 with the neutral element.
    let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00, 0x01];
    der.resize(44, 0);
    let error = PublicKey::from_der(&der).unwrap_err();
    assert!(error.to_string().contains("small order"), "{error}");
}

#[test]
fn malformed_pem_is_refused() {
    let public = signer(Algorithm::EcdsaP256).public_key().to_pem().unwrap();
    let secret = signer(Algorithm::EcdsaP256).to_pem().unwrap();
    assert!(PublicKey::from_pem(secret.as_bytes()).is_err(), "a secret key is not a public key");
    assert!(Signer::from_pem(public.as_bytes(), None).is_err(), "a public key is not a secret key");
    for (pem, read) in [
        (public.as_str(), (|pem| PublicKey::from_pem(pem).is_ok()) as fn(&[u8]) -> bool),
        (secret.as_str(), |pem| Signer::from_pem(pem, None).is_ok()),
    ] {
        assert!(read(pem.as_bytes()));
        let body = pem.lines().nth(1).unwrap();
        for malformed in [
            String::new(),
            "no PEM".into(),
            pem.replace("-----END", "----END"),
            pem.replace(body, ""),
            pem.replace(body, &body[1..]),
            pem.replace(body, &format!("{body}!")),
            format!("text before\n{pem}"),
            format!("{pem}{pem}"),
            format!("{pem}\0"),
            pem.replace("BEGIN", "BEGIN RSA"),
        ] {
            assert!(!read(malformed.as_bytes()), "{malformed:?}");
        }
        for length in 0..pem.len() - 1 {
            assert!(!read(&pem.as_bytes()[..length]), "{length}");
        }
        assert!(!read(&[0xff; 100]));
    }
}

#[test]
fn long_key_documents_are_refused() {
    assert!(matches!(PublicKey::from_pem(&vec![b'-'; MAX_TEXT_BYTES + 1]), Err(Error::Limit { .. })));
    assert!(matches!(PublicKey::from_der(&vec![0x30; MAX_TEXT_BYTES + 1]), Err(Error::Limit { .. })));
    assert!(matches!(Signer::from_pem(&vec![b'-'; MAX_PART_BYTES + 1], None), Err(Error::Limit { .. })));
}

#[test]
fn debug_and_errors_show_no_secret() {
    for algorithm in ALGORITHMS {
        let key = signer(algorithm);
        let pem = key.to_pem().unwrap();
        let body = pem.lines().nth(1).unwrap();
        let shown = format!("{key:?}");
        assert!(shown.contains("public_key") && !shown.contains(body), "{shown}");
        // Every damaged line: the message may describe the place, never the content.
        for position in 28..pem.len() - 30 {
            let mut damaged = pem.as_bytes().to_vec();
            damaged[position] = b'!';
            if let Err(error) = Signer::from_pem(&damaged, None) {
                let message = format!("{error} {error:?}");
                assert!(!message.contains(&body[..12]) && !message.contains(&body[40..52]), "{message}");
            }
        }
    }
}
