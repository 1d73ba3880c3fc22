//! Tests of the crate from outside, in one program.

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
