//! Bundles of tools: the built-in one, those of registries, their signatures, and their installation.

pub mod builtin;
pub mod cache;
pub mod install;
pub mod registries;
pub mod signing;
