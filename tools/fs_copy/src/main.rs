//! Tool `fs_copy`: copies a file, or a folder with its content.

mod plan;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error, files};

use crate::plan::Plan;

/// Maximum files and folders of a copy, within the quota of a call.
const MAX_ENTRIES: usize = 5000;
/// Maximum size of a copy, in bytes, within the quota of a call.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    from: String,
    to: String,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    create_parents: bool,
}

#[derive(Serialize)]
struct Output {
    from: String,
    to: String,
    /// Number of copied files.
    files: usize,
    /// Number of copied folders.
    folders: usize,
    bytes: u64,
    /// Number of files that were replaced.
    replaced: usize,
    /// Entries that were not copied, each kind with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { from, to, overwrite, create_parents } = args;
    let found = fs::symlink_metadata(&from).at("copy", &from)?;
    if found.is_symlink() {
        return Err(error!("copy `{from}`: it is a symbolic link, which is not followed; copy its target"));
    }
    check_places(&from, &to)?;
    let plan = Plan::new(Path::new(&from), Path::new(&to), overwrite)?;
    if create_parents && let Some(parent) = Path::new(&to).parent() {
        fs::create_dir_all(parent).at("make the folder", parent)?;
    }
    if let Some(parent) = files::missing_parent(Path::new(&to)) {
        let parent = parent.display();
        let message = format!("copy to `{to}`: no such folder `{parent}`; set `create_parents` to true to create it");
        return Err(Error::not_found(message));
    }
    let mut copied = Copied::default();
    if let Err(error) = copied.copy(&plan) {
        return Err(copied.failed(&plan, &to, &error));
    }
    let Copied { files, folders, bytes } = copied;
    Ok(Output { from, to, files, folders, bytes, replaced: plan.replaced, left_out: plan.left_out.reasons() })
}

/// Refuses places that contain one another.
fn check_places(from: &str, to: &str) -> Result<(), Error> {
    let (source, target) = (files::from_root(from), files::from_root(to));
    if source == target {
        return Err(error!("`from` and `to` are the same path, `{to}`"));
    }
    if target.starts_with(&source) {
        return Err(error!("copy `{from}`: `{to}` is inside it"));
    }
    if source.starts_with(&target) {
        return Err(error!("copy to `{to}`: `{from}` is inside it"));
    }
    Ok(())
}

/// Numbers of what was copied so far.
#[derive(Default)]
struct Copied {
    files: usize,
    folders: usize,
    bytes: u64,
}

impl Copied {
    fn copy(&mut self, plan: &Plan) -> Result<(), Error> {
        for folder in &plan.folders {
            if !folder.exists {
                fs::create_dir(&folder.to).at("make the folder", &folder.to)?;
            }
            self.folders += 1;
        }
        for file in &plan.files {
            if !file.replaces && fs::symlink_metadata(&file.to).is_ok() {
                return Err(Error::conflict(format!("copy to `{}`: it exists meanwhile", file.to.display())));
            }
            self.bytes += files::copy(&file.from, &file.to, MAX_BYTES - self.bytes)?;
            self.files += 1;
        }
        Ok(())
    }

    /// Removes the incomplete copy if nothing was there before it, or else names what was made.
    fn failed(&self, plan: &Plan, to: &str, error: &Error) -> Error {
        let is_new = plan.folders.first().is_some_and(|folder| !folder.exists);
        let made = self.files + self.folders;
        if made == 0 {
            return error!("{error}; nothing was copied");
        }
        if is_new && fs::remove_dir_all(to).is_ok() {
            return error!("{error}; the incomplete copy was removed");
        }
        let last = self.files.checked_sub(1).map(|last| format!(", the last one `{}`", plan.files[last].to.display()));
        error!(
            "{error}; {} of {} files were copied before{}, and stay",
            self.files,
            plan.files.len(),
            last.unwrap_or_default()
        )
    }
}
