//! Options for compiling tools in limited processes and caching the result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib::Builder;
use toolcrib::cache::Cache;

use crate::compiler::CompilerProcesses;
use crate::render::Advice;

use super::{LIMITS, RECORDS, duration, size, user_folders};

/// Variable with the size limit of the cache.
pub(crate) const LIMIT_VARIABLE: &str = "TOOLCRIB_MAX_CACHE";
/// [`toolcrib::cache::DEFAULT_MAX_BYTES`] as an argument.
pub(crate) const DEFAULT_MAX_CACHE: &str = "2GiB";

/// Script interpreter embedded in the program.
static INTERPRETER: &[u8] = include_bytes!(env!("TOOLCRIB_INTERPRETER"));

/// Compile cache, and limits for compiling one tool.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Compiling {
    #[command(flatten)]
    folder: CacheFolder,
    /// Maximum processor time to compile a tool; each tool is compiled once and cached
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2min", help_heading = LIMITS)]
    compile_timeout: Duration,
    /// Maximum memory to compile a tool
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "2GiB", help_heading = LIMITS)]
    compile_memory: usize,
    #[command(flatten)]
    limit: CacheLimit,
}

/// Folder of compiled tools and pulled bundles.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CacheFolder {
    /// Directory for compiled tools and pulled bundles [default: `toolcrib` in your cache directory]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_CACHE_DIR", hide_env_values = true, help_heading = RECORDS)]
    cache_dir: Option<PathBuf>,
}

/// Size limit of the cache.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CacheLimit {
    /// Maximum size of all compiled tools and pulled bundles in the cache; the least recently used are removed first
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = DEFAULT_MAX_CACHE, help_heading = LIMITS)]
    #[arg(env = LIMIT_VARIABLE, hide_env_values = true)]
    max_cache: usize,
}

impl CacheFolder {
    /// Returns the cache in the named or default folder.
    pub(crate) fn cache(&self) -> anyhow::Result<Cache> {
        self.path().map(Cache::folder).ok_or_else(|| {
            Advice::new("no folder for the cache: no home directory was found", "set one with `--cache-dir DIR`").into()
        })
    }

    /// Returns the named or default folder; `None` if none is named and the user has no home directory.
    fn path(&self) -> Option<PathBuf> {
        self.cache_dir.clone().or_else(|| Some(user_folders()?.cache))
    }
}

impl CacheLimit {
    /// Returns the limit in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.max_cache as u64
    }
}

impl Compiling {
    /// Returns the cache; `None` if no folder is named and the user has no home directory, which disables the cache.
    pub(crate) fn cache(&self) -> Option<Cache> {
        Some(Cache::folder(self.folder.path()?).max_bytes(self.limit.bytes()))
    }

    /// Returns the folder of the cache; `None` as for [`Compiling::cache`].
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.folder.path()
    }

    /// Configures the compiler, the interpreter and the cache of a runtime.
    pub(crate) fn settle(&self, builder: Builder) -> Builder {
        let builder = builder.compiler(Arc::new(CompilerProcesses::new(self.compile_timeout, self.compile_memory)));
        // A build without the guests' workspace has none.
        let builder = if INTERPRETER.is_empty() { builder } else { builder.interpreter(INTERPRETER) };
        let builder = builder.max_cache(self.limit.bytes());
        self.folder.path().into_iter().fold(builder, Builder::compile_cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_limit_is_that_of_the_library() {
        assert_eq!(size(DEFAULT_MAX_CACHE).map(|bytes| bytes as u64), Ok(toolcrib::cache::DEFAULT_MAX_BYTES));
    }
}
