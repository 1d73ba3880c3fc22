//! A tool of a component with the contract of rich tools, as its bytes tell it.

use std::path::PathBuf;

/// Which tool of which component, and in what it has something to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rich {
    /// The component on the host.
    pub program: PathBuf,
    /// The tool's name inside of the component.
    pub tool: String,
    /// What the component exports besides the call.
    pub says: Says,
}

/// The optional parts of the contract that a component exports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Says {
    /// It checks calls.
    pub validate: bool,
    /// It tells what a call is about to do.
    pub preview: bool,
    /// It prepares once a session.
    pub prepare: bool,
    /// It claims calls.
    pub route: bool,
    /// It presents its answers.
    pub present: bool,
}
