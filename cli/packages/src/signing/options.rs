//! Trusted signers: public keys, identities and the trust root that the user names.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolcrib_base::input;
use toolcrib_base::render::{self, Advice, usage_error};
use toolcrib_signature::key::PublicKey;
use toolcrib_signature::keyless::TrustRoot;
use toolcrib_signature::limits::{self, MAX_JSON_BYTES, MAX_TEXT_BYTES};
use toolcrib_signature::{Identity, Policy, minisign};

/// Maximum number of trusted minisign keys, as many as of other keys.
pub(crate) const MAX_MINISIGN_KEYS: usize = limits::MAX_ENTRIES;
const PEM_START: &str = "-----BEGIN ";
const HEADING: &str = "Trusted signers";

/// Options that name trusted signers. Without any, every signature is listed and none is trusted.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SignerOptions {
    /// Trust signatures by this public key: PEM (P-256 or Ed25519) or minisign; repeatable
    #[arg(long = "key", value_name = "FILE", help_heading = HEADING)]
    keys: Vec<PathBuf>,
    /// Trust keyless signatures of this certified name, such as an e-mail address or the URL of a workflow; repeatable
    #[arg(long = "identity", value_name = "NAME", requires_all = ["issuers", "trust_root"], help_heading = HEADING)]
    identities: Vec<String>,
    /// Issuer that vouches for the identity: one for all, or one for each in the same order
    #[arg(long = "issuer", value_name = "URL", requires = "identities", help_heading = HEADING)]
    issuers: Vec<String>,
    /// Authorities and logs that keyless signatures are checked against: a `trusted_root.json` of Sigstore
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    trust_root: Option<PathBuf>,
    /// Accept signatures by trusted keys with log entries that cannot be checked because there is no --trust-root
    #[arg(long, help_heading = HEADING)]
    ignore_log: bool,
}

impl SignerOptions {
    /// Reads the keys and the trust root.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is malformed, or the numbers of identities and issuers do not fit.
    pub fn trusted(&self) -> anyhow::Result<TrustedSigners> {
        let mut trusted = TrustedSigners::default();
        for path in &self.keys {
            let text = read_named(path, MAX_TEXT_BYTES);
            let added = text.and_then(|text| trusted.add_key(&text));
            added.with_context(|| format!("cannot use the public key `{}`", path.display()))?;
        }
        for identity in self.pairs()? {
            trusted.add_identity(identity)?;
        }
        if let Some(path) = &self.trust_root {
            let text = read_named(path, MAX_JSON_BYTES);
            let root = text.and_then(|text| Ok(TrustRoot::from_json(&text)?));
            let root = root.with_context(|| format!("cannot use the trust root `{}`", path.display()))?;
            trusted.policy = trusted.policy.trust_root(root);
        }
        if self.ignore_log {
            trusted.policy = trusted.policy.ignore_unchecked_evidence();
        }
        Ok(trusted)
    }

    /// Lists the flags that name the signers, with their values for a shell.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let path = |path: &PathBuf| path.display().to_string();
        let keys = self.keys.iter().map(|key| ("key", path(key)));
        let identities = self.identities.iter().map(|identity| ("identity", identity.clone()));
        let issuers = self.issuers.iter().map(|issuer| ("issuer", issuer.clone()));
        let root = self.trust_root.iter().map(|root| ("trust-root", path(root)));
        let all = keys.chain(identities).chain(issuers).chain(root);
        all.map(|(flag, value)| (flag, render::shell_word(&value))).collect()
    }

    /// Returns `true` if no signer is named.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.identities.is_empty()
    }

    fn pairs(&self) -> anyhow::Result<Vec<Identity>> {
        let (names, issuers) = (self.identities.len(), self.issuers.len());
        if issuers != 1 && issuers != names {
            return match names {
                0 => Ok(Vec::new()),
                _ => Err(usage_error(format!(
                    "found {names} `--identity` and {issuers} `--issuer`: pass one issuer for each"
                ))),
            };
        }
        let issuers = self.issuers.iter().cycle();
        let pairs = self.identities.iter().zip(issuers).map(|(name, issuer)| Identity::new(name, issuer));
        Ok(pairs.collect::<Result<_, _>>()?)
    }
}

fn read_named(path: &Path, max: usize) -> anyhow::Result<Vec<u8>> {
    input::regular_file(path, max as u64)?.context("the file does not exist")
}

/// Signers whom the user trusts. The default trusts nobody.
#[derive(Debug, Default)]
pub struct TrustedSigners {
    pub(super) policy: Policy,
    pub(super) keys: Vec<PublicKey>,
    pub(super) minisign: Vec<minisign::MinisignKey>,
}

impl TrustedSigners {
    /// Trusts a public key, given as the content of its file: PEM or minisign.
    ///
    /// # Errors
    ///
    /// The text is not a public key, or there are too many keys.
    pub(crate) fn add_key(&mut self, text: &[u8]) -> anyhow::Result<()> {
        if text.starts_with(PEM_START.as_bytes()) {
            ensure!(
                !text.windows(11).any(|words| words == b"PRIVATE KEY"),
                Advice::new(
                    "the file holds a secret key",
                    "pass the public key, which is in the file that ends in `.pub`"
                )
            );
            self.add_public_key(PublicKey::from_pem(text)?)?;
        } else {
            ensure!(self.minisign.len() < MAX_MINISIGN_KEYS, "more than {MAX_MINISIGN_KEYS} minisign keys");
            self.minisign.push(minisign::MinisignKey::parse(text)?);
        }
        Ok(())
    }

    /// Trusts the signers that a lock pins. An entry that is none of [`Signer::pin`](super::Signer::pin) verifies nothing.
    pub(crate) fn add_pinned(&mut self, pinned: &[String]) {
        for pin in pinned {
            // A signer who cannot be added verifies nothing, and the release counts as unsigned.
            let _ = self.add_pin(pin);
        }
    }

    fn add_pin(&mut self, pin: &str) -> anyhow::Result<()> {
        if let Some(key) = pin.strip_prefix("minisign:") {
            return self.add_key(key.as_bytes());
        }
        if let Some((name, issuer)) = pin.strip_prefix("identity:").and_then(|pair| pair.split_once(" issuer:")) {
            return self.add_identity(Identity::new(name, issuer)?);
        }
        let (_, key) = pin.strip_prefix("key:").and_then(|pin| pin.split_once(' ')).unwrap_or_default();
        let key = STANDARD.decode(key)?;
        self.add_public_key(PublicKey::from_der(&key)?)
    }

    fn add_public_key(&mut self, key: PublicKey) -> anyhow::Result<()> {
        let id = key.id()?;
        if !self.keys.iter().any(|known| known.id().is_ok_and(|known| known == id)) {
            self.policy = std::mem::take(&mut self.policy).trust_key(key.clone())?;
            self.keys.push(key);
        }
        Ok(())
    }

    fn add_identity(&mut self, identity: Identity) -> anyhow::Result<()> {
        self.policy = std::mem::take(&mut self.policy).trust_identity(identity)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_signature::key::{Algorithm, Signer};

    fn options(identities: &[&str], issuers: &[&str]) -> SignerOptions {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        SignerOptions { identities: owned(identities), issuers: owned(issuers), ..SignerOptions::default() }
    }

    #[test]
    fn each_identity_has_its_issuer() {
        let pairs = options(&["a", "b"], &["x", "y"]).pairs().expect("pairs");
        assert_eq!(pairs.iter().map(|pair| (pair.name(), pair.issuer())).collect::<Vec<_>>(), [("a", "x"), ("b", "y")]);
        assert_eq!(options(&["a", "b"], &["x"]).pairs().expect("pairs")[1].issuer(), "x");
        assert!(options(&["a", "b", "c"], &["x", "y"]).pairs().is_err());
        assert!(options(&["a"], &["x", "y"]).pairs().is_err());
        assert!(options(&["a"], &[]).pairs().is_err());
        assert!(options(&[], &[]).pairs().expect("none").is_empty());
    }

    #[test]
    fn signers_that_a_lock_pins_are_trusted_and_other_texts_trust_nobody() {
        let key = Signer::generate(Algorithm::Ed25519).expect("a key").public_key();
        let minisign = minisign::SecretKey::generate().expect("a key").public_key().expect("a key");
        let pins = [
            format!("key:{} {}", key.id().expect("an id"), STANDARD.encode(key.to_der().expect("DER"))),
            format!("minisign:{}", minisign.to_base64()),
            "identity:a@b.example issuer:https://issuer.example".to_owned(),
            "key:acme".to_owned(),
            "minisign:".to_owned(),
            "nobody".to_owned(),
        ];
        let mut trusted = TrustedSigners::default();
        trusted.add_pinned(&pins);
        assert_eq!((trusted.keys.len(), trusted.minisign.len()), (1, 1));
        assert_eq!(trusted.keys[0].id().expect("an id"), key.id().expect("an id"));
    }

    #[test]
    fn keys_of_both_formats_are_told_apart_and_a_secret_key_is_refused() {
        let mut trusted = TrustedSigners::default();
        let signer = Signer::generate(Algorithm::EcdsaP256).expect("a key");
        trusted.add_key(signer.public_key().to_pem().expect("PEM").as_bytes()).expect("a key");
        let key = minisign::SecretKey::generate().expect("a key").public_key().expect("a key");
        trusted.add_key(key.to_file().as_bytes()).expect("a key");
        assert_eq!((trusted.keys.len(), trusted.minisign.len()), (1, 1));
        let error = trusted.add_key(signer.to_pem().expect("PEM").as_bytes()).expect_err("a secret key");
        assert!(error.to_string().contains("secret key"), "{error}");
        assert!(trusted.add_key(b"").is_err());
        for _ in 1..MAX_MINISIGN_KEYS {
            trusted.add_key(key.to_file().as_bytes()).expect("a key");
        }
        assert!(trusted.add_key(key.to_file().as_bytes()).is_err());
    }
}
