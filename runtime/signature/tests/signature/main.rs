//! Tests of the crate from outside, in one program.

#![expect(clippy::unwrap_used, reason = "a test may end in a panic, its helpers too")]

mod bundle;
mod bundle_limits;
mod hostile;
mod identity;
mod key_files;
mod keyless;
mod keys;
mod log;
mod minisign;
mod provenance;
mod support;
