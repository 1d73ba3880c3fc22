//! Options for compiling tools in limited processes and caching the result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib::Builder;
use toolcrib::cache::Cache;
use toolcrib_base::headings::LIMITS;
use toolcrib_base::parse::{duration, size};
use toolcrib_embedded::{INTERPRETER_DIGEST, LANGUAGES};
use toolcrib_packages::cache::{CacheFolder, CacheLimit};

use crate::compiler::CompilerProcesses;

/// Compile cache, and limits for compiling one tool.
#[derive(Debug, Clone, clap::Args)]
pub struct Compiling {
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

/// Use of programs that a model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramUse {
    /// None are run.
    None,
    /// The model sees `run_code` with the first language beside the tools.
    Beside,
    /// The model sees the tools for programs in all languages in place of the others.
    Alone,
}

impl Compiling {
    /// Returns the cache; `None` if no folder is named and the user has no home directory, which disables the cache.
    pub fn cache(&self) -> Option<Cache> {
        Some(Cache::folder(self.folder.path()?).max_bytes(self.limit.bytes()))
    }

    /// Returns the folder of the cache; `None` as for [`Compiling::cache`].
    pub fn folder(&self) -> Option<PathBuf> {
        self.folder.path()
    }

    /// Configures the compiler, the interpreters and the cache of a runtime.
    pub fn settle(&self, builder: Builder, programs: ProgramUse) -> Builder {
        let builder = builder.compiler(Arc::new(CompilerProcesses::new(self.compile_timeout, self.compile_memory)));
        // A build without the guests' workspace has none.
        let builder = match INTERPRETER_DIGEST {
            "" => builder,
            digest => builder.stored_interpreter(digest, toolcrib_embedded::interpreter),
        };
        let number = match programs {
            ProgramUse::None => 0,
            ProgramUse::Beside => 1,
            ProgramUse::Alone => LANGUAGES.len(),
        };
        let languages = LANGUAGES.iter().take(number).filter(|language| !language.digest.is_empty());
        let builder = languages.fold(builder, |builder, language| {
            builder.code_interpreter((language.name, language.guide), language.digest, language.read)
        });
        let builder = builder.max_cache(self.limit.bytes());
        self.folder.path().into_iter().fold(builder, Builder::compile_cache)
    }
}
