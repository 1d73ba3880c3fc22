//! `approvals.json`: permanent approvals. The file is owner-only, read whole and replaced whole by one process at a
//! time. A file with unknown content is an error and stays unchanged.
//!
//! ```json
//! {"approvals": [{"tool": "fs_rm", "digest": "sha256:…", "definition": "sha256:…", "rule": "ask fs_* (toolcrib.toml)",
//!                 "given": "2026-01-31T12:00:00Z"}]}
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store::{ListFile, SharedEntries};

use super::approval::Approval;

/// Maximum size of the file.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum size of the approvals of one owner, so that there is room for those of others.
const MAX_OWNER_BYTES: usize = 1 << 18;

/// A file of permanent approvals, or those that several servers share. A missing file is empty.
#[derive(Debug, Clone)]
pub struct Approvals {
    file: ListFile<StoredApproval>,
}

/// A permanent approval with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredApproval {
    /// Name of the tool.
    pub tool: String,
    /// Digest of the tool's program, as `sha256:HEX`.
    pub digest: String,
    /// Digest of the tool's remaining definition. `None` in approvals of earlier versions, which match no call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Rule that asked.
    pub rule: String,
    /// Permissions that the tool was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// Owner of the calls. `None` for sessions without an owner, and in approvals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Name of the owner's client when the approval was given, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Time at which the approval was given.
    pub given: Timestamp,
}

impl StoredApproval {
    /// Returns the approval without its time.
    pub fn approval(&self) -> Approval {
        Approval {
            tool: self.tool.clone(),
            digest: self.digest.clone(),
            definition: self.definition.clone(),
            rule: self.rule.clone(),
            granted: self.granted.clone(),
            owner: self.owner.clone(),
        }
    }
}

impl Approvals {
    /// Uses the approvals in a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { file: ListFile::new(path, "approvals", MAX_BYTES) }
    }

    /// Uses the approvals in a store that several servers share.
    pub fn shared(entries: Arc<dyn SharedEntries>) -> Self {
        Self { file: ListFile::shared(entries, "approvals", MAX_BYTES as usize) }
    }

    /// Returns `true` for approvals in a store that several servers share.
    pub fn is_shared(&self) -> bool {
        self.file.is_shared()
    }

    /// Path, or a name for messages if servers share the approvals.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Reads the approvals, oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::Approvals`] if the file exists and cannot be read or parsed, or can be written by other users.
    pub fn read(&self) -> Result<Vec<StoredApproval>, Error> {
        self.file.read().map_err(|error| self.fault(error))
    }

    /// Stores an approval once. It replaces approvals of the same tool and rule that an earlier version stored without
    /// a definition.
    ///
    /// # Errors
    ///
    /// [`Error::Approvals`] as for [`Approvals::read`], if the file cannot be written, and if the approvals of this owner are too
    /// many.
    pub fn add(&self, approval: &Approval) -> Result<(), Error> {
        self.add_for(approval, None)
    }

    /// Stores an approval as [`Approvals::add`] does, with the present name of its owner's client for people.
    ///
    /// # Errors
    ///
    /// As for [`Approvals::add`].
    pub fn add_for(&self, approval: &Approval, client: Option<&str>) -> Result<(), Error> {
        self.change(|all| {
            let is_replaced = |old: &StoredApproval| {
                old.definition.is_none() && (&old.tool, &old.rule) == (&approval.tool, &approval.rule)
            };
            if all.iter().any(|one| one.approval() == *approval) {
                all.retain(|old| !is_replaced(old));
                return Ok(());
            }
            let Approval { tool, digest, definition, rule, granted, owner } = approval.clone();
            let (client, given) = (client.map(str::to_owned), Timestamp::now());
            let one = StoredApproval { tool, digest, definition, rule, granted, owner, client, given };
            let own = all.iter().filter(|old| old.owner == one.owner && !is_replaced(old)).chain([&one]);
            if own.map(size).sum::<usize>() > MAX_OWNER_BYTES {
                return Err(too_many(&one));
            }
            all.retain(|old| !is_replaced(old));
            all.push(one);
            Ok(())
        })?
        .map_err(|error| self.fault(error))
    }

    /// Revokes the approvals for which `selects` returns `true`, and returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Approvals`] as for [`Approvals::add`].
    pub fn remove(&self, selects: impl Fn(&StoredApproval) -> bool) -> Result<usize, Error> {
        self.change(|all| {
            let before = all.len();
            all.retain(|one| !selects(one));
            before - all.len()
        })
    }

    fn change<T>(&self, change: impl FnMut(&mut Vec<StoredApproval>) -> T) -> Result<T, Error> {
        self.file.update(change).map_err(|error| self.fault(error))
    }

    fn fault(&self, error: io::Error) -> Error {
        Error::Approvals { path: self.path().to_path_buf(), reason: error.to_string(), source: Some(Arc::new(error)) }
    }
}

/// Returns the size of an approval in the file, without its indentation.
fn size(one: &StoredApproval) -> usize {
    serde_json::to_vec(one).map_or(usize::MAX / 2, |text| text.len())
}

fn too_many(one: &StoredApproval) -> io::Error {
    let client = match one.client.as_ref().or(one.owner.as_ref()) {
        Some(client) => format!("`{client}`"),
        None => "local users and clients without a token".to_owned(),
    };
    io::Error::other(format!(
        "the permanent approvals of {client} would take more than {MAX_OWNER_BYTES} bytes; remove some with `toolcrib approvals remove`"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::thread;

    use super::*;

    fn approval(tool: &str) -> Approval {
        let definition = Some("sha256:01".to_owned());
        let (digest, rule) = ("sha256:00".to_owned(), "ask * (test)".to_owned());
        Approval { definition, ..Approval::new(tool, digest, rule) }
    }

    #[test]
    fn parallel_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = Approvals::file(folder.path().join("new/approvals.json"));
        thread::scope(|scope| {
            for at in 0..8 {
                let file = &file;
                scope.spawn(move || (0..4).for_each(|n| file.add(&approval(&format!("t{at}_{n}"))).unwrap()));
            }
        });
        assert_eq!(file.read().unwrap().len(), 32);
        file.add(&approval("t0_0")).unwrap();
        assert_eq!(file.read().unwrap().len(), 32, "an approval is stored once");
        assert_eq!(file.remove(|one| one.tool == "t0_0").unwrap(), 1);
        assert_eq!(file.remove(|_| true).unwrap(), 31);
        assert!(file.read().unwrap().is_empty());
    }

    #[test]
    fn one_owner_cannot_fill_the_file_for_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = Approvals::file(folder.path().join("approvals.json"));
        let of = |owner: Option<&str>, tool: &str| Approval { owner: owner.map(str::to_owned), ..approval(tool) };
        let large = |number: usize| format!("t{number}{}", "x".repeat(MAX_OWNER_BYTES / 4));
        for number in 0..3 {
            file.add_for(&of(Some("ada"), &large(number)), Some("ada: editor")).unwrap();
        }
        let full = file.add_for(&of(Some("ada"), &large(3)), Some("ada: editor")).unwrap_err().to_string();
        assert!(full.contains("the permanent approvals of `ada: editor` would take more than 262144 bytes"), "{full}");
        file.add(&of(Some("ada"), &large(0))).unwrap();
        file.add(&of(Some("ada"), "small")).unwrap();
        for owner in [Some("bob"), None] {
            file.add(&of(owner, &large(0))).unwrap();
        }
        assert_eq!(file.read().unwrap().len(), 6);
        file.remove(|one| one.tool == large(0) && one.owner.as_deref() == Some("ada")).unwrap();
        file.add(&of(Some("ada"), &large(3))).unwrap();
    }

    #[test]
    fn an_approval_of_an_earlier_version_is_read_and_replaced_by_one_with_a_definition() {
        let folder = tempfile::tempdir().unwrap();
        let file = Approvals::file(folder.path().join("approvals.json"));
        let old = |tool: &str| {
            format!(r#"{{"tool":"{tool}","digest":"sha256:00","rule":"ask * (test)","given":"2026-01-31T12:00:00Z"}}"#)
        };
        fs::write(file.path(), format!(r#"{{"approvals":[{},{}]}}"#, old("t"), old("u"))).unwrap();
        assert!(file.read().unwrap().iter().all(|one| one.approval().definition.is_none()));
        file.add(&approval("t")).unwrap();
        let stored: Vec<_> = file.read().unwrap().into_iter().map(|one| (one.tool, one.definition)).collect();
        assert_eq!(stored, [("u".to_owned(), None), ("t".to_owned(), Some("sha256:01".to_owned()))]);
    }

    #[test]
    fn a_file_with_unknown_content_is_an_error_and_stays_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals.json");
        let file = Approvals::file(&path);
        for text in ["", "[]", "{\"approvals\":[{\"tool\":1}]}", "{\"approvals\":[],\"more\":1}"] {
            fs::write(&path, text).unwrap();
            let errors =
                [file.read().unwrap_err(), file.add(&approval("t")).unwrap_err(), file.remove(|_| true).unwrap_err()];
            assert!(errors.iter().all(|error| error.to_string().contains("approvals.json: ")), "{text}: {errors:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn an_endless_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = Approvals::file(folder.path().join("approvals.json"));
        File::create(file.path()).unwrap().set_len(1 << 40).unwrap();
        let reason = "more than the 1048576 bytes allowed";
        assert!(file.read().unwrap_err().to_string().ends_with(reason));
        fs::remove_file(file.path()).unwrap();
        // Few approvals of each of many owners fill it too.
        let of =
            |owner: u8| Approval { owner: Some(owner.to_string()), ..approval(&"t".repeat(MAX_OWNER_BYTES - 1000)) };
        (0..4).for_each(|owner| file.add(&of(owner)).unwrap());
        let stored = file.read().unwrap();
        assert!(file.add(&of(4)).unwrap_err().to_string().ends_with(reason));
        assert_eq!(file.read().unwrap(), stored);
        fs::remove_file(file.path()).unwrap();
        assert!(
            file.add(&approval(&"t".repeat(1 << 20))).unwrap_err().to_string().ends_with("`toolcrib approvals remove`")
        );
        assert!(file.read().unwrap().is_empty(), "a file that could not be read again is not written");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_or_a_fifo_at_its_path_approves_nothing() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (real, file) = (folder.path().join("real"), Approvals::file(folder.path().join("approvals.json")));
        Approvals::file(&real).add(&approval("t")).unwrap();
        symlink(&real, file.path()).unwrap();
        assert!(file.read().is_err());
        fs::remove_file(file.path()).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, file.path(), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(
            file.read().unwrap_err().to_string().contains("it is not a regular file"),
            "and opening it does not block"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_write_approves_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = Approvals::file(folder.path().join("approvals.json"));
        file.add(&approval("t")).unwrap();
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(file.read().is_err());
    }
}
