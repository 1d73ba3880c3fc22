//! Tool sources: options for the commands that load tools, as one runtime, and their tools as other systems define
//! them.

pub mod calls;
pub mod compiler;
pub mod media;
pub mod options;
pub mod schemas;
pub mod staleness;
pub mod tool_facts;
