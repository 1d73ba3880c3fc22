//! Changes its folder as `cp`, `mv`, `rm`, `ln` and others do, step by step, and describes what it sees.

use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Error, Value, error, json};
use wasip2::filesystem::preopens::get_directories;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Operation: see [`act`].
    op: String,
    path: String,
    /// Path that the operation creates, or target of a link.
    #[serde(default)]
    to: String,
    #[serde(default)]
    text: String,
    /// Place of `patch`, or size of `resize`.
    #[serde(default)]
    at: u64,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Value, Error> {
    let mut results = Vec::new();
    for step in &args.steps {
        let done = act(step).ok_or_else(|| error!("unknown op `{}`", step.op))?;
        results.push(match done {
            Ok(value) => json!({ "ok": value }),
            Err(error) => json!({ "error": error.to_string() }),
        });
    }
    Ok(results.into())
}

/// Executes a step; `None` for an unknown one.
fn act(step: &Step) -> Option<io::Result<Value>> {
    let (path, to) = (step.path.as_str(), step.to.as_str());
    let done = |result: io::Result<()>| result.map(|()| Value::Null);
    Some(match step.op.as_str() {
        "write" => done(fs::write(path, &step.text)),
        "patch" => done(patch(step)),
        "resize" => done(
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .and_then(|file| file.set_len(step.at)),
        ),
        "copy" => done(fs::read(path).and_then(|content| fs::write(to, content))),
        "copy_tree" => done(copy_tree(path, to)),
        "move" => done(fs::rename(path, to)),
        "name" => done(fs::hard_link(path, to)),
        "link" => done(link(path, to)),
        "mkdir" => done(fs::create_dir(path)),
        "remove" => done(fs::remove_file(path)),
        "remove_folder" => done(fs::remove_dir(path)),
        "remove_tree" => done(remove_tree(path)),
        "show" => show(path, false).map(Value::from),
        "digest_tree" => show(path, true).map(|lines| format!("{:016x}", digest(lines.as_bytes())).into()),
        _ => return None,
    })
}

fn patch(step: &Step) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&step.path)?;
    file.seek(SeekFrom::Start(step.at))?;
    file.write_all(step.text.as_bytes())
}

fn link(path: &str, target: &str) -> io::Result<()> {
    let folders = get_directories();
    let (folder, _) = folders.first().ok_or_else(|| io::Error::other("no folder"))?;
    folder.symlink_at(target, path).map_err(|code| io::Error::other(code.name()))
}

fn copy_tree(from: &str, to: &str) -> io::Result<()> {
    let names = names(from)?;
    fs::create_dir(to)?;
    for name in names {
        let (from, to) = (format!("{from}/{name}"), format!("{to}/{name}"));
        let found = fs::symlink_metadata(&from)?;
        if found.is_dir() {
            copy_tree(&from, &to)?;
        } else if found.is_symlink() {
            link(&to, &target(&from)?)?;
        } else {
            fs::write(to, fs::read(from)?)?;
        }
    }
    Ok(())
}

fn remove_tree(path: &str) -> io::Result<()> {
    for name in names(path)? {
        let inner = format!("{path}/{name}");
        match fs::symlink_metadata(&inner)?.is_dir() {
            true => remove_tree(&inner)?,
            false => fs::remove_file(&inner)?,
        }
    }
    fs::remove_dir(path)
}

fn names(path: &str) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(path)?;
    let mut names =
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn target(path: &str) -> io::Result<String> {
    Ok(fs::read_link(path)?.to_string_lossy().into_owned())
}

/// Describes the entries of a folder, a line each: kind, size, digest of the content or target, and path below the folder.
fn show(path: &str, is_whole: bool) -> io::Result<String> {
    let (mut lines, mut left) = (String::new(), vec![String::new()]);
    while let Some(inner) = left.pop() {
        for name in names(&format!("{path}/{inner}"))? {
            let below = if inner.is_empty() { name } else { format!("{inner}/{name}") };
            let at = format!("{path}/{below}");
            let found = fs::symlink_metadata(&at)?;
            lines += &if found.is_dir() {
                format!("folder {below}\n")
            } else if found.is_symlink() {
                format!("link {} {below}\n", target(&at)?)
            } else {
                let content = fs::read(&at)?;
                format!("file {} {:016x} {below}\n", found.len(), digest(&content))
            };
            if is_whole && found.is_dir() {
                left.push(below);
            }
        }
    }
    Ok(lines)
}

/// FNV-1a.
fn digest(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
