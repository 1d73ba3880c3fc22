//! Authoring of tools: builds of packages in Rust, the SDK, and checks of sources.

pub mod build_folder;
pub mod cargo_messages;
pub mod changes;
pub mod check;
pub mod component;
pub mod rust;
pub mod sdk;
