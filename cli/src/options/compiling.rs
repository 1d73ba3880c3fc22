//! How tools are compiled: in processes with limits, and kept, so that it is done once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib::Builder;

use crate::compiler::Processes;

use super::{LIMITS, RECORDS, duration, size, user_folders};

/// The interpreter of scripts, which the program carries in itself.
static INTERPRETER: &[u8] = include_bytes!(env!("TOOLCRIB_INTERPRETER"));

/// Where compiled tools are kept, and what compiling one may take.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Compiling {
    /// Where compiled tools are kept [default: `toolcrib` in your cache folder]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_CACHE_DIR", hide_env_values = true, help_heading = RECORDS)]
    cache_dir: Option<PathBuf>,
    /// How long compiling one tool may take, which is done once
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s", help_heading = LIMITS)]
    compile_timeout: Duration,
    /// The most memory for compiling one tool
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "2GiB", help_heading = LIMITS)]
    compile_memory: usize,
}

impl Compiling {
    /// The folder; `None` where none is named and the user has no home, and then nothing is kept.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.cache_dir.clone().or_else(|| Some(user_folders()?.cache_dir().to_path_buf()))
    }

    /// Says to a runtime how its tools are compiled.
    pub(crate) fn settle(&self, builder: Builder) -> Builder {
        let builder = builder.compiler(Arc::new(Processes::new(self.compile_timeout, self.compile_memory)));
        // A build without the guests' workspace has none.
        let builder = if INTERPRETER.is_empty() { builder } else { builder.interpreter(INTERPRETER) };
        self.folder().into_iter().fold(builder, Builder::compile_cache)
    }
}
