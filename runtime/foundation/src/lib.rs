//! Tables and parsers that several crates share: special-purpose addresses, strict JSON, and hexadecimal digits.

pub mod address;
pub mod json;

mod hex;

pub use hex::hex;
