//! Options for compiling tools in limited processes and caching the result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib::Builder;

use crate::compiler::CompilerProcesses;

use super::{LIMITS, RECORDS, duration, size, user_folders};

/// Script interpreter embedded in the program.
static INTERPRETER: &[u8] = include_bytes!(env!("TOOLCRIB_INTERPRETER"));

/// Compile cache, and limits for compiling one tool.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Compiling {
    /// Directory for compiled tools [default: `toolcrib` in your cache directory]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_CACHE_DIR", hide_env_values = true, help_heading = RECORDS)]
    cache_dir: Option<PathBuf>,
    /// Maximum time to compile a tool; each tool is compiled once and cached
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s", help_heading = LIMITS)]
    compile_timeout: Duration,
    /// Maximum memory to compile a tool
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "2GiB", help_heading = LIMITS)]
    compile_memory: usize,
}

impl Compiling {
    /// Returns the cache folder; `None` if none is named and the user has no home directory, which disables the cache.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.cache_dir.clone().or_else(|| Some(user_folders()?.cache_dir().to_path_buf()))
    }

    /// Configures the compiler, the interpreter and the cache of a runtime.
    pub(crate) fn settle(&self, builder: Builder) -> Builder {
        let builder = builder.compiler(Arc::new(CompilerProcesses::new(self.compile_timeout, self.compile_memory)));
        // A build without the guests' workspace has none.
        let builder = if INTERPRETER.is_empty() { builder } else { builder.interpreter(INTERPRETER) };
        self.folder().into_iter().fold(builder, Builder::compile_cache)
    }
}
