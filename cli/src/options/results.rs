//! Where results are kept that are too large to be told to a model whole.

use std::path::PathBuf;

use toolcrib::Results;

use crate::render::Advice;

use super::{RECORDS, state_folder};

/// Where large results are kept.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ResultsFolder {
    /// Where results too large for a model are kept [default: `toolcrib/results` in your state folder]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_RESULTS_DIR", hide_env_values = true, help_heading = RECORDS)]
    results_dir: Option<PathBuf>,
}

impl ResultsFolder {
    /// The results in the folder that was named, or in the default one.
    pub(crate) fn results(&self) -> anyhow::Result<Results> {
        let folder = self.results_dir.clone().or_else(|| state_folder("results"));
        folder.map(Results::folder).ok_or_else(|| {
            Advice::new("no folder for results: you have no home folder", "name one with `--results-dir DIR`").into()
        })
    }
}
