//! Tool in a component with the rich tool contract.

use std::path::PathBuf;

/// Tool in a component with the rich tool contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rich {
    /// The component on the host.
    pub program: PathBuf,
    /// Name of the tool inside the component.
    pub tool: String,
    /// Optional parts of the contract that the component exports for this tool.
    pub exports: RichExports,
}

/// Optional exports in the rich tool contract.
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
