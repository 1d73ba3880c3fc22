//! A tool of a component with the contract of rich tools.

use std::path::PathBuf;

/// Tool of a component with the contract of rich tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rich {
    /// The component on the host.
    pub program: PathBuf,
    /// Name of the tool inside of the component.
    pub tool: String,
    /// Optional parts of the contract that the component exports for this tool.
    pub exports: RichExports,
}

/// Optional exports of the contract of rich tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RichExports {
    /// `true` if it checks calls before they run.
    pub validate: bool,
    /// `true` if it describes the effect of a call before it runs.
    pub preview: bool,
    /// `true` if it prepares once per session.
    pub prepare: bool,
    /// `true` if it claims calls by name.
    pub route: bool,
    /// `true` if it renders its results.
    pub present: bool,
}
