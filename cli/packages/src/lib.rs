//! Bundles of tools: the built-in bundle, bundles from registries and servers, their signatures, and their installation.

pub mod builtin;
pub mod cache;
pub mod install;
pub mod logins;
pub mod recipes;
pub mod registries;
pub mod servers;
pub mod signing;
