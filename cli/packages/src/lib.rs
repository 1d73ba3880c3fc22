//! Bundles of tools: the built-in bundle, bundles from registries, their signatures, and their installation.

pub mod builtin;
pub mod cache;
pub mod install;
pub mod recipes;
pub mod registries;
pub mod signing;
