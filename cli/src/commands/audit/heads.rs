//! Heads of audit logs in the database of `server.store`: the last record of each log at earlier times. A log that was cut back,
//! rewritten or removed does not have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolcrib::audit::{self, Chain};
use toolcrib::{EntryGroup, ExpectedVersion, SharedEntries};
use toolcrib_forward::host_name;
use toolcrib_shared_state::{DatabaseEntries, PostgresStore};

/// Group of all logs.
const GROUP: &str = "logs";
/// Maximum heads for each log. Of older ones, every second one stays.
const MAX_HEADS: usize = 200;
/// Maximum attempts at a note that other servers of the same log write too.
const MAX_ATTEMPTS: usize = 20;

/// Heads of the log in one local directory.
pub(crate) struct AuditHeads {
    entries: DatabaseEntries,
    group: EntryGroup,
    folder: PathBuf,
    /// Name of the log: this machine and the directory.
    log: String,
}

/// Last record of a log at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotedHead {
    /// Number of the record.
    pub(crate) seq: u64,
    /// Its chain value.
    chain: String,
    /// Time of the note.
    pub(crate) noted: Timestamp,
}

impl NotedHead {
    /// Returns the chain value.
    ///
    /// # Errors
    ///
    /// The database has another text.
    pub(crate) fn chain(&self) -> anyhow::Result<Chain> {
        self.chain.parse().context("a head of the audit log in the shared store is damaged")
    }
}

impl AuditHeads {
    /// Names the log in a directory. This is called within the runtime of the database.
    pub(crate) fn new(store: Arc<PostgresStore>, folder: &Path) -> Self {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let log = format!("{} {}", host_name().unwrap_or_default(), folder.display());
        Self { entries: DatabaseEntries::audit_heads(store), group: EntryGroup::new(GROUP, None), folder, log }
    }

    /// Returns the noted heads, oldest first.
    ///
    /// # Errors
    ///
    /// The database does not answer, or has another content.
    pub(crate) fn noted(&self) -> anyhow::Result<Vec<NotedHead>> {
        Ok(self.read()?.0)
    }

    /// Notes the present head, if there is one that is not noted yet. This blocks.
    ///
    /// # Errors
    ///
    /// The database does not answer, or the log ends before a noted head.
    pub(crate) fn note(&self) -> anyhow::Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            // Before the log: its records only become more.
            let (mut heads, expected) = self.read()?;
            let (present, has_last) = present(&self.folder, heads.last())?;
            match (heads.last(), &present) {
                (None, None) => return Ok(()),
                (Some(last), _) if !has_last => bail!(
                    "the audit log in `{}` does not have record {}, which it had at {:.0}: it was cut back, rewritten or removed",
                    self.folder.display(),
                    last.seq,
                    last.noted
                ),
                (Some(last), Some(present)) if last.seq == present.seq => return Ok(()),
                _ => heads.extend(present),
            }
            if heads.len() > MAX_HEADS {
                let (half, mut at) = (MAX_HEADS / 2, 0_usize);
                heads.retain(|_| {
                    at += 1;
                    at > half || at.is_multiple_of(2)
                });
            }
            let text = serde_json::to_vec(&heads)?;
            if self.entries.replace(&self.group, &self.log, expected, Some(&text))? {
                return Ok(());
            }
        }
        bail!("other servers write the heads of the audit log at the same time")
    }

    fn read(&self) -> anyhow::Result<(Vec<NotedHead>, ExpectedVersion)> {
        let Some(found) = self.entries.read(&self.group, &self.log)? else {
            return Ok((Vec::new(), ExpectedVersion::Absent));
        };
        let heads = serde_json::from_slice(&found.value).context("the heads of the audit log cannot be read")?;
        Ok((heads, ExpectedVersion::Present(found.version)))
    }
}

/// Reads the present head of a log, `None` without records, and whether the log has the record that was noted last. A log whose first
/// record is later has it, in files that were moved away.
fn present(folder: &Path, last: Option<&NotedHead>) -> anyhow::Result<(Option<NotedHead>, bool)> {
    let mut present = None;
    if !folder.try_exists()? {
        return Ok((present, last.is_none()));
    }
    for entry in audit::records(folder)?.newest_first() {
        let Some((seq, chain)) = audit::sealed(entry?.text.as_bytes()) else { continue };
        present.get_or_insert_with(|| NotedHead { seq, chain: chain.to_string(), noted: Timestamp::now() });
        match last {
            Some(last) if seq > last.seq => {}
            Some(last) => return Ok((present, seq == last.seq && last.chain == chain.to_string())),
            None => return Ok((present, true)),
        }
    }
    let is_later = present.is_some() || last.is_none();
    Ok((present, is_later))
}
