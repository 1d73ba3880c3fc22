//! A crib's tools for one client of the Model Context Protocol, over the standard streams. Nothing is granted, and no
//! call asks anybody.
//!
//! ```console
//! $ printf '%s\n' \
//!     '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}' \
//!     '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
//!     '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"calculate","arguments":{"expression":"6*7"}}}' |
//!     cargo run -p toolcrib-mcp --example serve -- target/crib
//! ```

use std::process::ExitCode;
use std::sync::Arc;

use toolcrib::{Audit, Results, Runtime};
use toolcrib_mcp::{Handler, ProgressListeners, Publication, Published, Seal, serve_stdio};
use toolcrib_settings::permission::DenyFlags;

/// Number of tools above which a client searches for them.
const MAX_LISTED: usize = 128;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "target/crib".into());
    let state = tempfile::tempdir()?;
    let folder = state.path().to_path_buf();
    let publish = move || {
        let listeners = Arc::new(ProgressListeners::default());
        let runtime = Runtime::builder(Audit::folder(folder.join("audit")))
            .source(&source)
            .compile_cache(folder.join("cache"))
            .observer(listeners.clone())
            .build()?;
        let results = Results::folder(folder.join("results"));
        Ok(Published::new(runtime, listeners, results, DenyFlags::default(), MAX_LISTED))
    };
    let first = publish()?;
    // No client has options of its own, so that a client never needs another runtime.
    let publication = Publication::new(first, move |_, _| publish());
    serve_stdio(Handler::new(publication, Seal::new()?, false)).await
}
