//! Values on their way into a component and out of it: JSON to the engine's values and back, by the types of the function.
//! The mapping is that of [`crate::schema::typed`], by which arguments were checked before they come here.

mod lift;
mod lower;

pub(super) use lift::{LiftError, answer};
pub(super) use lower::lower;

#[cfg(test)]
mod tests;
