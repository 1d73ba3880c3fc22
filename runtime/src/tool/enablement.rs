//! For whom a tool is: the tags, the models and the servers' abilities without which it is neither shown nor called.

use super::glob::Glob;

/// What has to hold for a tool to be there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enablement {
    /// What it is, in words by which others choose it.
    pub tags: Vec<String>,
    /// The tags that a run must have.
    pub required_tags: Vec<String>,
    /// The tags that a run must not have.
    pub forbidden_tags: Vec<String>,
    /// The models that it is for; empty, every one. Where no model is known, none is excluded.
    pub models: Vec<Glob>,
    /// What the model's server must be able to do, such as `custom_tools` (tools that take text)
    /// or `media_results` (pictures in answers). Where no server is known, nothing
    /// is missing.
    pub provider: Vec<String>,
}
