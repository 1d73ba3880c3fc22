//! Options for the cache of compiled tools and pulled bundles.

use std::path::PathBuf;

use toolcrib::cache::Cache;
use toolcrib_base::folders::user_folders;
use toolcrib_base::headings::{LIMITS, RECORDS};
use toolcrib_base::parse::size;
use toolcrib_base::render::Advice;

/// Variable with the size limit of the cache.
pub const LIMIT_VARIABLE: &str = "TOOLCRIB_MAX_CACHE";
/// [`toolcrib::cache::DEFAULT_MAX_BYTES`] as an argument.
pub const DEFAULT_MAX_CACHE: &str = "2GiB";

/// Folder of compiled tools and pulled bundles.
#[derive(Debug, Clone, clap::Args)]
pub struct CacheFolder {
    /// Directory for compiled tools and pulled bundles [default: `toolcrib` in your cache directory]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_CACHE_DIR", hide_env_values = true, help_heading = RECORDS)]
    cache_dir: Option<PathBuf>,
}

/// Size limit of the cache.
#[derive(Debug, Clone, clap::Args)]
pub struct CacheLimit {
    /// Maximum size of all compiled tools and pulled bundles in the cache; the least recently used are removed first
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = DEFAULT_MAX_CACHE, help_heading = LIMITS)]
    #[arg(env = LIMIT_VARIABLE, hide_env_values = true)]
    max_cache: usize,
}

impl CacheFolder {
    /// Returns the cache in the named or default folder.
    pub fn cache(&self) -> anyhow::Result<Cache> {
        self.path().map(Cache::folder).ok_or_else(|| {
            Advice::new("no directory for the cache: no home directory was found", "set one with `--set cache.dir=DIR`")
                .into()
        })
    }

    /// Returns the named or default folder; `None` if none is named and the user has no home directory.
    pub fn path(&self) -> Option<PathBuf> {
        self.cache_dir.clone().or_else(|| Some(user_folders()?.cache))
    }
}

impl CacheLimit {
    /// Returns the limit in bytes.
    pub fn bytes(&self) -> u64 {
        self.max_cache as u64
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
