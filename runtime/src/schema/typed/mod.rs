//! Values of WIT types in JSON. This module holds the schemas and the check of arguments; the sandbox converts values.
//!
//! | WIT | JSON |
//! |---|---|
//! | `bool` | `true`, `false` |
//! | `u8` … `s64` | an integer within the type's range |
//! | `f32`, `f64` | a number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `char` | a string of one character |
//! | `string` | a string |
//! | `list<u8>` | a string: base64 with padding |
//! | `list<T>` | an array |
//! | `tuple<…>` | an array of exactly these |
//! | `record` | an object; a field that is an `option` may be left out |
//! | `variant` | `{"CASE": value}`, and `"CASE"` if the case has no payload |
//! | `enum` | the case, a string |
//! | `flags` | an array of the names that are set, each once |
//! | `option<T>` | `null` or the value; if the value itself may be `null`, `{"some": value}` |
//! | `result<T, E>` | as a variant of the cases `ok` and `error` |
//! | `map<string, V>` | an object |
//! | `map<K, V>` | an array of pairs `[key, value]` |
//!
//! The arguments of a function are an object of its parameters. A function that returns a `result` succeeds with the
//! `ok` value and fails with the `err` value.

mod check;
mod describe;

pub(super) use check::MAX_EXACT;
pub(crate) use check::check;
pub(crate) use describe::{arguments, output};

/// Numbers that JSON has no digits for.
pub(crate) const NOT_A_NUMBER: &str = "NaN";
pub(crate) const INFINITE: &str = "Infinity";
pub(crate) const NEGATIVE_INFINITE: &str = "-Infinity";
/// The cases of a `result`.
pub(crate) const OK: &str = "ok";
pub(crate) const ERROR: &str = "error";
/// The member that holds the value of an option that may itself be `null`.
pub(crate) const SOME: &str = "some";
