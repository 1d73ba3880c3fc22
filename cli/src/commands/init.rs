//! `toolcrib init`: creates a project with the built-in tools. Existing files are never overwritten.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Value, json};
use toolcrib::source::MANIFEST;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_packages::builtin::{self, BuiltinFile};
use toolcrib_settings::subjects;
use toolcrib_settings::trust::TrustRecords;
use toolcrib_sources::options::project_file;

const EXAMPLES: &str = "\
Examples:
  toolcrib init               a project in this folder
  toolcrib init ./assistant   a project in another folder
  toolcrib init --json | jq -r '.tools[]'

A project is a `tools.json` and the programs that it names, in `tools/bin`. Both are copies of the \
built-in tools and yours to edit: remove a tool, change its limits, add one of your own. The project \
is trusted as it is written, like the built-in tools; any change ends that (see `toolcrib trust`).";
const IN_THE_WAY: &str = "existing files are never overwritten: choose another folder with `toolcrib init DIR`, or move the \
                          file away";
/// Commands to continue with.
const NEXT: [&str; 3] = [
    "toolcrib list",
    r#"toolcrib call calculate '{"expression":"6*7"}'"#,
    r#"toolcrib call fs_list_dir '{"path":"."}' --allow-read=tools"#,
];

/// Create a project with the built-in tools.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder of the project, which is created if it is missing [default: the current one]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = args.folder.as_deref().unwrap_or(Path::new("."));
    if let Some(present) = project_file(folder) {
        let message = format!("`{}` already exists: nothing was written", shown(&present));
        let hint = "`toolcrib list` in its folder lists the tools of the project; `--tools builtin` names the built-in \
                    tools in any folder";
        return Err(Advice::new(message, hint).into());
    }
    let files = builtin::files()?;
    let paths = files.iter().map(|file| folder.join(&file.path));
    let mut folders = paths.flat_map(|path| path.ancestors().skip(1).map(Path::to_path_buf).collect::<Vec<_>>());
    if let Some(file) = folders.find(|path| path.symlink_metadata().is_ok() && !path.is_dir()) {
        let message = format!("`{}` is a file where the project needs a folder: nothing was written", shown(&file));
        return Err(Advice::new(message, IN_THE_WAY).into());
    }
    let missing = missing(folder, &files)?;
    // The manifest is last: without it, the folder is no project, and the command can be repeated.
    let (manifest, programs): (Vec<_>, Vec<_>) = missing.into_iter().partition(|file| file.path == MANIFEST);
    for file in programs.iter().chain(&manifest) {
        write(&folder.join(&file.path), &file.bytes)?;
    }
    let manifest = folder.join(MANIFEST);
    if let Err(error) = trust(&manifest) {
        render::warning(&format!("the project is not trusted: {error:#}; review it with `toolcrib trust`"));
    }
    let next: Vec<String> = entry(folder).into_iter().chain(NEXT.map(str::to_owned)).collect();
    let tools = tools(&files);
    if args.json {
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let record = json!({ "folder": folder, "manifest": manifest, "files": paths, "tools": tools, "next": next });
        render::print_json(&record.to_string())?;
    } else {
        render::print_path(render::from_here(&manifest))?;
        let next: String = next.iter().map(|command| format!("\n  {command}")).collect();
        render::aside(&format!("A project with {}. Next:{next}", counted(tools.len(), "tool")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the files that a folder does not have.
///
/// # Errors
///
/// A file exists with other content.
fn missing<'f>(folder: &Path, files: &'f [BuiltinFile]) -> anyhow::Result<Vec<&'f BuiltinFile>> {
    let mut missing = Vec::new();
    for file in files {
        let path = folder.join(&file.path);
        match path.symlink_metadata() {
            Err(_) => missing.push(file),
            Ok(found) if found.is_file() && is_equal(&path, found.len(), &file.bytes)? => {}
            Ok(_) => {
                let message = format!("`{}` already exists with other content: nothing was written", shown(&path));
                return Err(Advice::new(message, IN_THE_WAY).into());
            }
        }
    }
    Ok(missing)
}

/// Returns `true` if a file of `len` bytes has this content.
fn is_equal(path: &Path, len: u64, bytes: &[u8]) -> anyhow::Result<bool> {
    if len != bytes.len() as u64 {
        return Ok(false);
    }
    Ok(fs::read(path).with_context(|| format!("cannot read `{}`", shown(path)))? == bytes)
}

/// Creates a file that must not exist yet.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let create = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        // An incomplete file would be in the way of a second attempt.
        file.write_all(bytes).inspect_err(|_| drop(fs::remove_file(path)))
    };
    create().map_err(|error| {
        let hint = "create the project in a folder that you may write: `toolcrib init DIR`; running the command again continues";
        Advice::new(format!("cannot write `{}`: {error}", shown(path)), hint).into()
    })
}

/// Records trust in the new project.
fn trust(manifest: &Path) -> anyhow::Result<()> {
    let Some(records) = TrustRecords::of_user() else { return Ok(()) };
    records.add(&subjects::read(manifest)?)
}

/// Lists the names of the tools.
fn tools(files: &[BuiltinFile]) -> Vec<String> {
    let manifest = files.iter().find(|file| file.path == MANIFEST);
    let manifest: Value = manifest.and_then(|file| serde_json::from_slice(&file.bytes).ok()).unwrap_or_default();
    let tools = manifest["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

/// Returns the command that enters another folder than the current one.
fn entry(folder: &Path) -> Option<String> {
    (folder != Path::new(".")).then(|| format!("cd {}", render::shell_path(folder)))
}

fn shown(path: &Path) -> String {
    render::one_line(&render::from_here(path).display().to_string())
}
