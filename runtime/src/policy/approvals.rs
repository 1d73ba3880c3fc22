//! `approvals.json`: what a person agreed to for always. The file is its owner's alone, read whole and written whole or
//! not at all, by one process at a time; one that is not understood is an error and stays as it is.
//!
//! ```json
//! {"approvals": [{"tool": "fs_rm", "digest": "sha256:…", "definition": "sha256:…", "rule": "ask fs_* (toolcrib.toml)",
//!                 "given": "2026-01-31T12:00:00Z"}]}
//! ```

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::owner_only;

use super::approval::Approval;

/// The longest wait for another process that writes.
const MAX_LOCK: Duration = Duration::from_secs(2);
/// The largest file of approvals.
const MAX_BYTES: u64 = 1 << 20;

/// A file of approvals, which need not be there yet.
#[derive(Debug, Clone)]
pub struct Approvals {
    path: PathBuf,
}

/// One approval, and when it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredApproval {
    /// The tool's name.
    pub tool: String,
    /// The digest of its program, as `sha256:HEX`.
    pub digest: String,
    /// The digest of the rest of its definition; absent in what earlier versions stored, which matches no call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The rule that asked.
    pub rule: String,
    /// What the tool was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// When a person agreed.
    pub given: Timestamp,
}

impl StoredApproval {
    /// What was agreed to.
    pub fn approval(&self) -> Approval {
        Approval {
            tool: self.tool.clone(),
            digest: self.digest.clone(),
            definition: self.definition.clone(),
            rule: self.rule.clone(),
            granted: self.granted.clone(),
        }
    }
}

/// The whole file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    approvals: Vec<StoredApproval>,
}

impl Approvals {
    /// The approvals in a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was agreed to, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::Approvals`] where the file is there and cannot be read, is not understood, or can be written by others.
    pub fn read(&self) -> Result<Vec<StoredApproval>, Error> {
        self.content().map_err(|error| self.fault(&error))
    }

    /// Stores an approval, once, in the place of one that an earlier version stored of the same tool and rule.
    ///
    /// # Errors
    ///
    /// [`Error::Approvals`] as in [`Approvals::read`], and where the file cannot be written.
    pub fn add(&self, approval: &Approval) -> Result<(), Error> {
        self.change(|all| {
            all.retain(|one| one.definition.is_some() || one.tool != approval.tool || one.rule != approval.rule);
            if !all.iter().any(|one| one.approval() == *approval) {
                let Approval { tool, digest, definition, rule, granted } = approval.clone();
                all.push(StoredApproval { tool, digest, definition, rule, granted, given: Timestamp::now() });
            }
        })
    }

    /// Takes back those of which `which` is true; gives how many there were.
    ///
    /// # Errors
    ///
    /// [`Error::Approvals`] as in [`Approvals::add`].
    pub fn remove(&self, which: impl Fn(&StoredApproval) -> bool) -> Result<usize, Error> {
        self.change(|all| {
            let before = all.len();
            all.retain(|one| !which(one));
            before - all.len()
        })
    }

    /// Reads, changes and writes, while no other process does.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<StoredApproval>) -> T) -> Result<T, Error> {
        let changed = || {
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            owner_only::make_folder(folder)?;
            // The lock is a file of its own: the approvals themselves are replaced.
            let lock = owner_only::options().append(true).create(true).open(self.path.with_added_extension("lock"))?;
            owner_only::lock(&lock, MAX_LOCK)?;
            let mut all = self.content()?;
            let before = all.clone();
            let changed = change(&mut all);
            if all != before {
                self.replace(folder, &Content { approvals: all })?;
            }
            Ok(changed)
        };
        changed().map_err(|error| self.fault(&error))
    }

    fn content(&self) -> io::Result<Vec<StoredApproval>> {
        let file = match owner_only::options().read(true).open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        refuse_shared(&file)?;
        let mut text = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
        refuse_large(&text)?;
        let content: Content = serde_json::from_slice(&text)?;
        Ok(content.approvals)
    }

    /// Puts a new file into the place of the old one; a temporary file is its owner's alone.
    fn replace(&self, folder: &Path, content: &Content) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(content)?;
        text.push(b'\n');
        refuse_large(&text)?;
        let mut file = owner_only::unfinished(folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        // A rename outlasts a crash once its folder is written. Where folders cannot be synced, it is as safe as it gets.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(())
    }

    fn fault(&self, error: &io::Error) -> Error {
        Error::Approvals { path: self.path.clone(), reason: error.to_string() }
    }
}

fn refuse_large(text: &[u8]) -> io::Result<()> {
    let fits = text.len() as u64 <= MAX_BYTES;
    fits.then_some(()).ok_or_else(|| io::Error::other(format!("more than the {MAX_BYTES} bytes of approvals allowed")))
}

/// Refuses what is open and is no file, or what others own or may write.
#[cfg(unix)]
fn refuse_shared(file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata()?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if ours && metadata.is_file() && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it is no file, or belongs to or can be written by someone else"))
}

/// Nothing is told of a file's rights here.
#[cfg(not(unix))]
fn refuse_shared(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    fn approval(tool: &str) -> Approval {
        let definition = Some("sha256:01".to_owned());
        let (digest, rule) = ("sha256:00".to_owned(), "ask * (test)".to_owned());
        Approval { tool: tool.into(), digest, definition, rule, granted: Vec::new() }
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
        assert_eq!(file.read().unwrap().len(), 32, "what is kept is kept once");
        assert_eq!(file.remove(|one| one.tool == "t0_0").unwrap(), 1);
        assert_eq!(file.remove(|_| true).unwrap(), 31);
        assert!(file.read().unwrap().is_empty());
    }

    #[test]
    fn what_an_earlier_version_stored_is_read_and_replaced_by_the_same_with_a_definition() {
        let folder = tempfile::tempdir().unwrap();
        let file = Approvals::file(folder.path().join("approvals.json"));
        let old = |tool: &str| {
            format!(r#"{{"tool":"{tool}","digest":"sha256:00","rule":"ask * (test)","given":"2026-01-31T12:00:00Z"}}"#)
        };
        fs::write(file.path(), format!(r#"{{"approvals":[{},{}]}}"#, old("t"), old("u"))).unwrap();
        assert!(file.read().unwrap().iter().all(|one| one.approval().definition.is_none()));
        file.add(&approval("t")).unwrap();
        let kept: Vec<_> = file.read().unwrap().into_iter().map(|one| (one.tool, one.definition)).collect();
        assert_eq!(kept, [("u".to_owned(), None), ("t".to_owned(), Some("sha256:01".to_owned()))]);
    }

    #[test]
    fn a_file_that_is_not_understood_stays_as_it_is() {
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
        let told = "more than the 1048576 bytes of approvals allowed";
        assert!(file.read().unwrap_err().to_string().ends_with(told));
        fs::remove_file(file.path()).unwrap();
        assert!(file.add(&approval(&"t".repeat(1 << 20))).unwrap_err().to_string().ends_with(told));
        assert!(file.read().unwrap().is_empty(), "what could not be read again is not written");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_or_a_fifo_in_its_place_approves_nothing() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (real, file) = (folder.path().join("real"), Approvals::file(folder.path().join("approvals.json")));
        Approvals::file(&real).add(&approval("t")).unwrap();
        symlink(&real, file.path()).unwrap();
        assert!(file.read().is_err());
        fs::remove_file(file.path()).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, file.path(), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(file.read().unwrap_err().to_string().contains("it is no file"), "and nobody waits for its other end");
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
