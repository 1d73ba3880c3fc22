//! `toolcrib new`: files to begin with, each of which works as it is. Nothing that is there is written over.

mod package;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::render::{self, Advice};

const TOOL: &str = include_str!("new/tool.md");
const HOOK: &str = include_str!("new/hook.md");
const TOOLS: &str = ".harness/tools";
const HOOKS: &str = ".harness/hooks";
/// Arguments with which the tool of [`TOOL`] does something.
const EXAMPLE: &str = r#"{"text":"to be or not to be"}"#;
const MAX_NAME_LEN: usize = 64;
/// Names of files that mean something else in a folder of tools.
const TAKEN: [&str; 2] = ["readme", "harness"];

const EXAMPLES: &str = "\
Examples:
  toolcrib new tool greet                      greet/, a package in Rust with the SDK it needs
  toolcrib new tool count --markdown           .harness/tools/count.md, a tool in Starlark
  toolcrib new tool count --markdown --dir .   ./count.md
  toolcrib new hook guard                      .harness/hooks/guard.md, which looks at every call

What is new works as it is: build or validate it, call it, and then make it yours.";

/// Begin a tool or a hook.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Write a tool: a package in Rust, or a Markdown file
    #[command(after_help = EXAMPLES)]
    Tool {
        /// The name by which a model calls it: letters, digits, `_` and `-`
        #[arg(value_parser = name)]
        name: String,
        /// As a Markdown file with a script in Starlark, which needs no compiler
        #[arg(long)]
        markdown: bool,
        /// The folder for it [default: this one, or `.harness/tools` for a Markdown file]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Write a hook: a Markdown file with a script that is asked before every call
    #[command(after_help = EXAMPLES)]
    Hook {
        /// Its name, which a model is told with a refusal: letters, digits, `_` and `-`
        #[arg(value_parser = name)]
        name: String,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (file, next) = match args.what {
        What::Tool { name, markdown: false, dir } => {
            let folder = package::write(&dir.unwrap_or_default(), &name)?;
            let (shown, component) = (quoted(&folder), format!("{}.wasm", name.replace('-', "_")));
            let call = format!("call {name} '{}' --tools {}", package::EXAMPLE, quoted(&folder.join(component)));
            (folder, vec![format!("build {shown}"), format!("test {shown}"), call])
        }
        What::Tool { name, dir, .. } => {
            let dir = dir.unwrap_or_else(|| TOOLS.into());
            let file = write(&dir, &name, TOOL)?;
            // In a project its hooks and its policy count, too.
            let source = if dir == Path::new(TOOLS) { ".".to_owned() } else { quoted(&file) };
            (file, vec![format!("validate {source}"), format!("call {name} '{EXAMPLE}' --tools {source}")])
        }
        What::Hook { name } => {
            let file = write(Path::new(HOOKS), &name, HOOK)?;
            (file, vec!["validate .".to_owned(), "list --all --tools .".to_owned()])
        }
    };
    render::print_path(&file)?;
    let next: String = next.iter().map(|command| format!("\n  toolcrib {command}")).collect();
    render::aside(&format!("Next:{next}"));
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that is not there yet.
fn write(folder: &Path, name: &str, content: &str) -> anyhow::Result<PathBuf> {
    let file = folder.join(format!("{name}.md"));
    let told = || format!("cannot write `{}`", file.display());
    fs::create_dir_all(folder).with_context(told)?;
    match OpenOptions::new().write(true).create_new(true).open(&file) {
        Ok(mut open) => open.write_all(content.as_bytes()).with_context(told)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let hint = "nothing is written over: choose another name, or remove that file first";
            return Err(Advice::new(format!("`{}` is there already", file.display()), hint).into());
        }
        Err(error) => return Err(error).with_context(told),
    }
    Ok(file)
}

/// A name that every model server takes and every file system keeps apart.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || text.len() > MAX_NAME_LEN || !text.chars().all(is_plain) || text.starts_with('-') {
        return Err(format!("use 1 to {MAX_NAME_LEN} letters, digits, `_` and `-`, and begin with no `-`"));
    }
    if TAKEN.contains(&text.to_lowercase().as_str()) {
        return Err(format!("`{text}.md` means something else in a folder of tools: choose another name"));
    }
    Ok(text.to_owned())
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_every_server_takes() {
        let longest = "x".repeat(MAX_NAME_LEN);
        for good in ["count", "a", "fs_read-2", &longest] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        let longer = "x".repeat(MAX_NAME_LEN + 1);
        for bad in ["", "a b", "../x", "a/b", "näme", "a.md", "-x", "README", "harness", &longer] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
