//! WASI preview 1 for core modules, without an adapter: its functions use the same files, streams, clocks and limits as
//! the functions for components, and the module keeps its own memory. No host path is known here; every file goes
//! through [`files`](super::files).

mod calls;
mod descriptors;
mod environment;
mod link;
mod listing;
mod memory;
mod paths;
mod polling;
mod stat;
mod transfer;

#[cfg(test)]
mod tests;

pub(in crate::sandbox) use link::{link, run};
