//! Option for the folder of stored results.

use std::path::PathBuf;

use toolcrib::Results;
use toolcrib_base::folders::state_folder;
use toolcrib_base::headings::RECORDS;
use toolcrib_base::render::Advice;

/// Folder of results that are too large for a model.
#[derive(Debug, Clone, clap::Args)]
pub struct ResultsFolder {
    /// Directory for results too large for a model [default: `toolcrib/results` in your state directory]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_RESULTS_DIR", hide_env_values = true, help_heading = RECORDS)]
    results_dir: Option<PathBuf>,
}

impl ResultsFolder {
    /// Returns the result store in the named or default folder.
    pub fn results(&self) -> anyhow::Result<Results> {
        let folder = self.results_dir.clone().or_else(|| state_folder("results"));
        folder.map(Results::folder).ok_or_else(|| {
            Advice::new(
                "no folder for results: no home directory was found",
                "set one with `--set records.results_dir=DIR`",
            )
            .into()
        })
    }
}
