//! Conditions for a tool's availability: run tags, models, and features of the model's server.

use super::glob::Glob;

/// Conditions that must all hold for a tool to be listed and called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enablement {
    /// Tags of the tool itself.
    pub tags: Vec<String>,
    /// Tags that the run must have.
    pub required_tags: Vec<String>,
    /// Tags that the run must not have.
    pub forbidden_tags: Vec<String>,
    /// Models that may use the tool; empty for every model. If the model is unknown, the tool is available.
    pub models: Vec<Glob>,
    /// Features that the model's server must support, such as `custom_tools` (tools that take text) or `media_results`
    /// (images in results). If the server is unknown, all features are assumed.
    pub provider: Vec<String>,
}
