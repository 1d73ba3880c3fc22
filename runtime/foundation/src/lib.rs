//! Tables, parsers and limits that several crates share: special-purpose addresses, strict JSON, hexadecimal digits, and the
//! length of foreign texts.

pub mod address;
pub mod json;
pub mod text;

mod hex;

pub use hex::hex;
