//! Tests of the crate from outside, in one program.

#![expect(clippy::unwrap_used, reason = "a test may end in a panic, its helpers too")]

mod arbitrary;
mod damage;
mod determinism;
mod hostile_archives;
mod hostile_documents;
mod limits;
mod round_trip;
mod support;
