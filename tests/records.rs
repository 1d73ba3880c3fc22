//! Agent Tool records of a crib and of its calls. Each is validated against the schemas of the standard, if the
//! machine has them.

mod crib;
mod run;
pub(crate) mod standard;
pub(crate) mod watched;
