//! Settings files of MCP clients: place, format, the shape of the entry that starts `toolcrib mcp`, and its merge into
//! an existing file. Only `file` touches the disk, and nothing here reads the environment.

mod client;
mod connection;
mod entry;
mod file;
mod format;
mod json;
mod location;
mod merge;
#[cfg(test)]
mod merge_tests;
mod toml;
mod yaml;

pub use client::{Client, Scope};
pub use connection::{Address, Connection, Program, Target};
pub use entry::Launch;
pub use file::SettingsFile;
pub use location::{Folders, System};
pub use merge::{Change, Merge, Plan};
