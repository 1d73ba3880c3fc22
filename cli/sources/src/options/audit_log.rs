//! The option that places the audit log.

use std::io::ErrorKind;
use std::path::PathBuf;

use toolcrib_base::folders::state_folder;
use toolcrib_base::headings::RECORDS;
use toolcrib_base::render::Advice;

/// Location of the audit log.
#[derive(Debug, Clone, clap::Args)]
pub struct AuditLog {
    /// Directory for the audit log [default: `toolcrib/audit` in your state directory]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_AUDIT_DIR", hide_env_values = true, help_heading = RECORDS)]
    audit_dir: Option<PathBuf>,
}

impl AuditLog {
    /// Returns the log's folder.
    pub fn folder(&self) -> anyhow::Result<PathBuf> {
        self.audit_dir.clone().or_else(|| state_folder("audit")).ok_or_else(|| {
            Advice::new(
                "no directory for the audit log: no home directory was found",
                "set one with `--set records.audit_dir=DIR`",
            )
            .into()
        })
    }

    /// Returns the log's folder; `None` if it is the default one and no call has created it yet.
    pub fn begun(&self) -> anyhow::Result<Option<PathBuf>> {
        let folder = self.folder()?;
        let is_new = self.audit_dir.is_none()
            && folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        Ok((!is_new).then_some(folder))
    }
}
