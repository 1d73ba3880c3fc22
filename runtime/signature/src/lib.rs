//! Signs and verifies toolcrib bundles in formats that other programs read.
//!
//! - **Sigstore bundle v0.3**, signed by a key (ECDSA P-256 or Ed25519): [`key::Signer::sign_digest`] and [`verify()`].
//!   Keyless bundles are verified offline against a [`keyless::TrustRoot`].
//! - **minisign**, a detached signature beside a file: [`minisign::sign`] and [`minisign::verify`].
//! - **SLSA provenance v1**, for display: [`provenance::Provenance`].
//! - The content of a bundle that nobody verified, for display: [`Claim`].
//!
//! Every function takes its input as arguments and touches neither the network nor the environment. Files are touched by
//! [`key::read_key_file`] and [`key::write_key_file`] alone. One clock is read: `sigstore-verify` compares the times in log
//! entries with the current time and refuses the future.
//!
//! # Form of a signature
//!
//! The bundle holds a DSSE envelope with an in-toto statement, not a message signature. This is the form that
//! `cosign sign` writes and `cosign verify` reads for images since version 3, and the statement says what the signature
//! means: subject = manifest digest, predicate type = [`statement::SIGNATURE_PREDICATE`].
//!
//! # What is refused
//!
//! Everything that this crate does not know: other media types, message signatures, certificate chains, several
//! signatures, subjects with other digests or other digest algorithms, other payload or predicate types, unknown fields,
//! repeated keys, trailing data, and evidence that the policy cannot check. Every size and count has its limit in [`limits`].
//!
//! Two fields are not covered by a signature and decide nothing: the key hint and the DSSE `keyid`.
//!
//! ```
//! use toolcrib_signature::{Digest, Policy, key::{Algorithm, Signer}, verify};
//!
//! let signer = Signer::generate(Algorithm::EcdsaP256)?;
//! let manifest = Digest::of(b"the bytes of an OCI manifest");
//! let bundle = signer.sign_digest(&manifest)?;
//!
//! let policy = Policy::new().trust_key(signer.public_key())?;
//! let verified = verify(&bundle, &manifest, &policy)?;
//! println!("{}: {}", verified.format, verified.signed_by);
//! assert!(verify(&bundle, &Digest::of(b"another manifest"), &policy).is_err());
//! # Ok::<(), toolcrib_signature::Error>(())
//! ```

pub mod bundle;
pub mod claim;
pub mod error;
pub mod json;
pub mod key;
pub mod keyless;
pub mod limits;
pub mod minisign;
pub mod policy;
pub mod provenance;
mod provider;
mod sign;
pub mod statement;
pub mod verify;

pub use claim::Claim;
pub use error::Error;
pub use policy::{Identity, Policy};
pub use toolcrib_bundle::Digest;
pub use verify::{Format, SignedBy, Verified, verify};
