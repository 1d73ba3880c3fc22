//! What may look at a call before it runs and block it. A hook that fails blocks, and none can allow what a grant does
//! not.

use futures::future::BoxFuture;

use crate::call::ToolCall;
use crate::tool::Tool;

/// What a hook says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing against it.
    Allow,
    /// It must not run, for this reason, which the model sees.
    Block(String),
}

/// Something that is asked before each call, after its arguments were found valid.
pub trait Hook: Send + Sync {
    /// The name under which a block is reported.
    fn name(&self) -> &str;

    /// Judges a call.
    ///
    /// # Errors
    ///
    /// Any failure of the hook itself; the call is then blocked.
    fn before<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall) -> BoxFuture<'a, Result<Verdict, String>>;
}
