//! Tests of the crate from outside, in one program.

mod arbitrary;
mod damage;
mod determinism;
mod hostile_archives;
mod hostile_documents;
mod limits;
mod round_trip;
mod support;
