//! Records of the Agent Tool standard: those of a crib and those of its calls. Each is held against the standard's own
//! schemas, where a machine has them.

mod crib;
mod run;
pub(crate) mod standard;
pub(crate) mod watched;
