//! Conversion of JSON to engine values and back, by a function's types. The mapping follows [`crate::schema::typed`],
//! which has validated the arguments.

mod lift;
mod lower;

pub(super) use lift::{LiftError, to_json};
pub(super) use lower::lower;

#[cfg(test)]
mod tests;
