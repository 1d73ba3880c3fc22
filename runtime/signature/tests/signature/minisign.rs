//! minisign: vectors of the program `minisign`, round trips, tampering, limits.

use std::io::{self, Read};

use toolcrib_signature::{
    Error,
    limits::{MAX_FIELD_BYTES, MAX_PART_BYTES, MAX_TRUSTED_COMMENT_BYTES},
    minisign::{MinisignKey, SecretKey, sign, signature_comment, verify},
};

const DATA: &[u8] = include_bytes!("data/minisign/bundle.tar");
const PLAIN_KEY: &[u8] = include_bytes!("data/minisign/plain.key");

fn plain_public() -> MinisignKey {
    MinisignKey::parse(include_bytes!("data/minisign/plain.pub")).unwrap()
}

fn signed(comment: &str) -> (String, MinisignKey) {
    let key = SecretKey::parse(PLAIN_KEY, None).unwrap();
    (sign(DATA, &key, comment).unwrap(), key.public_key().unwrap())
}

#[test]
fn signatures_of_minisign_are_verified_and_the_trusted_comment_is_shown() {
    let key = MinisignKey::parse(include_bytes!("data/minisign/minisign.pub")).unwrap();
    let verified = verify(DATA, include_bytes!("data/minisign/bundle.tar.minisig"), &key).unwrap();
    assert_eq!(verified.trusted_comment, "toolcrib test");
    assert_eq!(verified.key_id, "C0357C1F0278C7E1");
    let verified = verify(DATA, include_bytes!("data/minisign/plain.minisig"), &plain_public()).unwrap();
    assert!(verified.trusted_comment.ends_with("\tfile:bundle.tar\thashed"), "{verified:?}");
}

/// Decrypting takes 1 GiB of memory, as in the program.
#[test]
fn an_encrypted_secret_key_of_minisign_is_read() {
    let document = include_bytes!("data/minisign/encrypted.key");
    let key = SecretKey::parse(document, Some(b"correct horse")).unwrap();
    assert_eq!(key.public_key().unwrap().to_file(), include_str!("data/minisign/minisign.pub"));
    assert!(matches!(SecretKey::parse(document, None), Err(Error::PassphraseRequired)));
    assert!(matches!(SecretKey::parse(document, Some(b"Correct horse")), Err(Error::Passphrase)));
}

#[test]
fn the_same_key_and_file_give_the_signature_of_minisign() {
    let time = jiff::Timestamp::from_second(1_795_442_211).unwrap();
    let (signature, _) = signed(&signature_comment(time, "bundle.tar"));
    let theirs = include_str!("data/minisign/plain.minisig");
    let after_first_line = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(after_first_line(&signature), after_first_line(theirs));
}

#[test]
fn generated_keys_survive_their_files_with_and_without_a_password() {
    let key = SecretKey::generate().unwrap();
    let public = key.public_key().unwrap();
    for password in [None, Some(&b"a password"[..])] {
        let file = key.to_file(password).unwrap();
        let read = SecretKey::parse(file.as_bytes(), password).unwrap();
        let signature = sign(DATA, &read, "comment").unwrap();
        assert_eq!(verify(DATA, signature.as_bytes(), &public).unwrap().trusted_comment, "comment");
        if password.is_some() {
            assert!(matches!(SecretKey::parse(file.as_bytes(), Some(b"another")), Err(Error::Passphrase)));
        }
    }
    assert!(key.to_file(Some(b"")).is_err(), "an empty password protects nothing");
    assert!(matches!(key.to_file(Some(&[b'x'; 1025])), Err(Error::Limit { .. })));
}

#[test]
fn a_public_key_is_read_as_a_file_or_as_base64() {
    let key = plain_public();
    assert_eq!(MinisignKey::parse(key.to_base64().as_bytes()).unwrap().id(), key.id());
    assert_eq!(MinisignKey::parse(key.to_file().as_bytes()).unwrap().id(), key.id());
    let base64 = key.to_base64();
    for malformed in [
        String::new(),
        base64[4..].to_owned(),
        format!("{base64}=="),
        format!("comment\n{base64}"),
        format!("untrusted comment: a\n{base64}\nmore"),
        format!("untrusted comment: \u{1b}[2J\n{base64}"),
        base64.replacen("RW", "RX", 1),
        base64.replacen("RW", "RU", 1),
    ] {
        assert!(MinisignKey::parse(malformed.as_bytes()).is_err(), "{malformed:?}");
    }
}

#[test]
fn other_data_and_other_keys_are_refused() {
    let (signature, key) = signed("comment");
    for data in [&b"a bundle"[..], b"", b"a bundle\n\n", b"A bundle\n"] {
        let error = verify(data, signature.as_bytes(), &key).unwrap_err();
        assert!(matches!(error, Error::MinisignSignature { .. }), "{error}");
    }
    let other = SecretKey::generate().unwrap().public_key().unwrap();
    let error = verify(DATA, signature.as_bytes(), &other).unwrap_err().to_string();
    assert!(error.contains(&other.id()) && error.contains(&key.id()), "{error}");
}

#[test]
fn signatures_that_are_not_prehashed_are_refused() {
    let error = verify(DATA, include_bytes!("data/minisign/legacy.minisig"), &plain_public()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "minisign signature: expected the prehashed algorithm `ED`, found the algorithm `Ed`"
    );
}

/// The first line is not signed: the program calls it untrusted.
#[test]
fn every_bit_flip_is_refused_outside_the_untrusted_comment() {
    let (signature, key) = signed("timestamp:1\tfile:bundle.tar");
    let untrusted = "untrusted comment: ".len()..signature.find('\n').unwrap();
    for position in 0..signature.len() - 1 {
        for bit in 0..8 {
            let mut flipped = signature.clone().into_bytes();
            flipped[position] ^= 1 << bit;
            if let Ok(verified) = verify(DATA, &flipped, &key) {
                assert!(untrusted.contains(&position), "byte {position}, bit {bit}");
                assert_eq!(verified.trusted_comment, "timestamp:1\tfile:bundle.tar");
            }
        }
    }
    for length in 0..signature.len() - 1 {
        assert!(verify(DATA, &signature.as_bytes()[..length], &key).is_err(), "{length}");
    }
}

#[test]
fn a_trusted_comment_of_another_signature_is_refused() {
    let ((one, key), (two, _)) = (signed("one"), signed("two"));
    let mixed: Vec<&str> = one.lines().take(2).chain(two.lines().skip(2)).collect();
    // The signature of the data is the same, so the two halves fit; only the comment differs, and it is signed.
    assert_eq!(verify(DATA, mixed.join("\n").as_bytes(), &key).unwrap().trusted_comment, "two");
    let forged = one.replace("trusted comment: one", "trusted comment: two");
    assert!(verify(DATA, forged.as_bytes(), &key).is_err());
    let other = SecretKey::parse(PLAIN_KEY, None).unwrap();
    let elsewhere = sign(&b"other data"[..], &other, "one").unwrap();
    let mixed: Vec<&str> = one.lines().take(2).chain(elsewhere.lines().skip(2)).collect();
    assert!(verify(DATA, mixed.join("\n").as_bytes(), &key).is_err());
}

#[test]
fn malformed_signatures_are_refused() {
    let (signature, key) = signed("comment");
    let lines: Vec<&str> = signature.lines().collect();
    for malformed in [
        format!("{signature}more\n"),
        format!("\n{signature}"),
        signature.replace("untrusted comment: ", "comment: "),
        signature.replace("\ntrusted comment: ", "\ncomment: "),
        signature.replace(lines[1], &lines[1][4..]),
        signature.replace(lines[3], ""),
        signature.replace(lines[3], &format!("{}!", &lines[3][..87])),
    ] {
        assert!(matches!(verify(DATA, malformed.as_bytes(), &key), Err(Error::Minisign { .. })), "{malformed}");
    }
    assert!(verify(DATA, &[0xff; 64], &key).is_err());
}

#[test]
fn long_comments_and_control_characters_are_refused_on_both_sides() {
    let key = SecretKey::parse(PLAIN_KEY, None).unwrap();
    let long = "c".repeat(MAX_TRUSTED_COMMENT_BYTES);
    let signature = sign(DATA, &key, &long).unwrap();
    verify(DATA, signature.as_bytes(), &plain_public()).unwrap();
    assert!(matches!(sign(DATA, &key, &format!("{long}c")), Err(Error::Limit { .. })));
    for text in ["two\nlines", "\u{1b}[31m", "\r", "\0"] {
        assert!(matches!(sign(DATA, &key, text), Err(Error::Minisign { .. })), "{text:?}");
    }
    let longer = signature.replace("trusted comment: c", "trusted comment: cc");
    assert!(matches!(verify(DATA, longer.as_bytes(), &plain_public()), Err(Error::Limit { .. })));
    let (short, public) = signed("comment");
    let untrusted = short.replacen("signature", &"s".repeat(MAX_FIELD_BYTES + 1), 1);
    assert!(matches!(verify(DATA, untrusted.as_bytes(), &public), Err(Error::Limit { .. })));
    let escape = short.replacen("signature", "\u{1b}]0;title\u{7}", 1);
    assert!(matches!(verify(DATA, escape.as_bytes(), &public), Err(Error::Minisign { .. })));
}

#[test]
fn long_files_are_refused() {
    let long = vec![b'x'; MAX_PART_BYTES + 1];
    assert!(matches!(verify(DATA, &long, &plain_public()), Err(Error::Limit { .. })));
    assert!(matches!(MinisignKey::parse(&long), Err(Error::Limit { .. })));
    assert!(matches!(SecretKey::parse(&long, None), Err(Error::Limit { .. })));
}

/// Changes bytes of the decoded secret key.
fn changed_key(document: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let text = std::str::from_utf8(document).unwrap();
    let (comment, encoded) = text.trim_end().split_once('\n').unwrap();
    let mut bytes = STANDARD.decode(encoded).unwrap();
    change(&mut bytes);
    format!("{comment}\n{}\n", STANDARD.encode(bytes)).into_bytes()
}

#[test]
fn costly_scrypt_parameters_are_refused_before_they_run() {
    let encrypted = include_bytes!("data/minisign/encrypted.key");
    for field in [38..46, 46..54] {
        let costly = changed_key(encrypted, |bytes| bytes[field].copy_from_slice(&(u64::MAX / 2).to_le_bytes()));
        assert!(matches!(SecretKey::parse(&costly, Some(b"x")), Err(Error::Limit { .. })));
    }
}

#[test]
fn every_damaged_byte_of_a_secret_key_is_noticed() {
    let with_checksum = SecretKey::generate().unwrap().to_file(None).unwrap();
    for position in (0..6).chain(54..158) {
        let damaged = changed_key(with_checksum.as_bytes(), |bytes| bytes[position] ^= 1);
        assert!(SecretKey::parse(&damaged, None).is_err(), "{position}");
    }
    // A key of the program has no checksum, but both halves of the pair have to fit.
    for position in (0..6).chain(62..158) {
        let damaged = changed_key(PLAIN_KEY, |bytes| bytes[position] ^= 1);
        assert!(SecretKey::parse(&damaged, None).is_err(), "{position}");
    }
    let short = changed_key(PLAIN_KEY, |bytes| bytes.truncate(157));
    assert!(matches!(SecretKey::parse(&short, None), Err(Error::Minisign { .. })));
    let long = changed_key(PLAIN_KEY, |bytes| bytes.push(0));
    assert!(matches!(SecretKey::parse(&long, None), Err(Error::Minisign { .. })));
}

#[test]
fn debug_shows_no_secret() {
    let shown = format!("{:?}", SecretKey::parse(PLAIN_KEY, None).unwrap());
    assert_eq!(shown, "SecretKey { id: \"5F633EDAC458E07E\", .. }");
}

/// Yields zeros and counts them; no part of the data is kept.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = usize::try_from(self.0).unwrap_or(usize::MAX).min(buffer.len());
        buffer[..count].fill(0);
        self.0 -= count as u64;
        Ok(count)
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("disk on fire"))
    }
}

#[test]
fn data_is_streamed_and_its_errors_are_passed_on() {
    let key = SecretKey::parse(PLAIN_KEY, None).unwrap();
    let signature = sign(Zeros(8 << 20), &key, "zeros").unwrap();
    verify(Zeros(8 << 20), signature.as_bytes(), &plain_public()).unwrap();
    assert!(verify(Zeros((8 << 20) + 1), signature.as_bytes(), &plain_public()).is_err());
    assert!(matches!(sign(Broken, &key, ""), Err(Error::Read(_))));
    assert!(matches!(verify(Broken, signature.as_bytes(), &plain_public()), Err(Error::Read(_))));
}
