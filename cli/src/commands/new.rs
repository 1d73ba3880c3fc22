//! `toolcrib new`: creates working templates of tools and hooks. Existing files are never overwritten.

mod folder;
mod language;
mod package;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use toolcrib_base::render::{self, Advice};
use toolcrib_settings::subjects::keeping;
use toolcrib_settings::trust::TrustRecords;
use toolcrib_sources::options::default_source;

use language::Language;

const TOOL: &str = include_str!("new/tool.md");
/// Test cases of the tool in [`TOOL`].
const CASES: &str = include_str!("new/tool.tests.json");
/// Extension of the test cases for a Markdown tool.
const CASES_EXTENSION: &str = "tests.json";
const HOOK: &str = include_str!("new/hook.md");
const TOOLS: &str = ".harness/tools";
const HOOKS: &str = ".harness/hooks";
/// Example arguments for the tool in [`TOOL`].
const EXAMPLE: &str = r#"{"text":"to be or not to be"}"#;
const MAX_NAME_LEN: usize = 64;
/// File names reserved in a tools folder.
const RESERVED: [&str; 2] = ["readme", "harness"];

const EXAMPLES: &str = "\
Examples:
  toolcrib new tool greet                     greet/, a package in Rust
  toolcrib new tool count --markdown          .harness/tools/count.md
  toolcrib new tool greet --lang python       greet/, also javascript, go or c
  toolcrib new tool count --markdown --dir .  ./count.md
  toolcrib new hook guard                     .harness/hooks/guard.md

The templates work as created: build or validate them, call them, then edit them.";

/// Create a new tool or hook.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    template: Template,
}

#[derive(clap::Subcommand)]
enum Template {
    /// Create a tool: a project in Rust or another language, or a Markdown file
    #[command(after_long_help = EXAMPLES)]
    Tool {
        /// Name of the tool for models: letters, digits, `_` and `-`
        #[arg(value_parser = name)]
        name: String,
        /// Create a Markdown file with a Starlark script, which needs no compiler
        #[arg(long, conflicts_with = "lang")]
        markdown: bool,
        /// Language of the project
        #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = Language::Rust)]
        lang: Language,
        /// Parent directory [default: the current one, or `.harness/tools` for a Markdown file]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Create a hook: a Markdown file with a script that runs before every call
    #[command(after_long_help = EXAMPLES)]
    Hook {
        /// Name of the hook, shown to the model when it blocks a call: letters, digits, `_` and `-`
        #[arg(value_parser = name)]
        name: String,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let records = TrustRecords::of_user();
    // A folder without tools has nothing of somebody else.
    let is_new = default_source().is_err();
    let (file, next) = match args.template {
        Template::Tool { name, markdown: false, lang, dir } if lang != Language::Rust => {
            let folder = language::write(&dir.unwrap_or_default(), &name, lang)?;
            let source = quoted(&lang.source(&folder, &name));
            let call = format!("call {} '{}' --tools {source}", language::snake(&name), language::EXAMPLE);
            let test = format!("test {}", quoted(&folder));
            render::print_path(&folder)?;
            let script = quoted(&folder.join("build"));
            let readme = quoted(&folder.join("README.md"));
            let first = match lang.installs_compiler() {
                true => format!("Next ({readme} tells more):\n  {script} --install"),
                false => format!("Next: install the compiler ({readme}), then\n  {script}"),
            };
            render::aside(&format!("{first}\n  toolcrib {test}\n  toolcrib {call}"));
            return Ok(ExitCode::SUCCESS);
        }
        Template::Tool { name, markdown: false, dir, .. } => {
            let folder = package::write(&dir.unwrap_or_default(), &name)?;
            let (shown, component) = (quoted(&folder), format!("{}.wasm", name.replace('-', "_")));
            let call = format!("call {name} '{}' --tools {}", package::EXAMPLE, quoted(&folder.join(component)));
            (folder, vec![format!("build {shown}"), format!("test {shown}"), call])
        }
        Template::Tool { name, dir, .. } => {
            let dir = dir.unwrap_or_else(|| TOOLS.into());
            let is_new = is_new && dir == Path::new(TOOLS);
            let file = keeping(Path::new("."), records.as_ref(), is_new, || write(&dir, &name, TOOL))?;
            let cases = write_file(&file.with_extension(CASES_EXTENSION), CASES);
            // A project also applies its hooks and its policy.
            let source = if dir == Path::new(TOOLS) { ".".to_owned() } else { quoted(&file) };
            let test = format!("test {}", quoted(&file));
            if let Err(error) = cases {
                render::warning(&format!("{error:#}"));
            }
            (file, vec![format!("validate {source}"), test, format!("call {name} '{EXAMPLE}' --tools {source}")])
        }
        Template::Hook { name } => {
            let file = keeping(Path::new("."), records.as_ref(), is_new, || write(Path::new(HOOKS), &name, HOOK))?;
            (file, vec!["validate .".to_owned(), "list --tools .".to_owned()])
        }
    };
    render::print_path(&file)?;
    let next: String = next.iter().map(|command| format!("\n  toolcrib {command}")).collect();
    render::aside(&format!("Next:{next}"));
    Ok(ExitCode::SUCCESS)
}

/// Creates a Markdown file that must not exist yet.
fn write(folder: &Path, name: &str, content: &str) -> anyhow::Result<PathBuf> {
    let file = folder.join(format!("{name}.md"));
    fs::create_dir_all(folder).with_context(|| format!("cannot write `{}`", file.display()))?;
    write_file(&file, content)?;
    Ok(file)
}

/// Creates a file that must not exist yet.
fn write_file(file: &Path, content: &str) -> anyhow::Result<()> {
    let context = || format!("cannot write `{}`", file.display());
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(mut open) => open.write_all(content.as_bytes()).with_context(context)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let hint = "existing files are never overwritten: choose another name, or remove the file first";
            return Err(Advice::new(format!("`{}` already exists", file.display()), hint).into());
        }
        Err(error) => return Err(error).with_context(context),
    }
    Ok(())
}

/// Parses a name that all model servers accept and all file systems distinguish.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || text.len() > MAX_NAME_LEN || !text.chars().all(is_plain) || text.starts_with('-') {
        return Err(format!("use 1 to {MAX_NAME_LEN} letters, digits, `_` and `-`, not starting with `-`"));
    }
    if RESERVED.contains(&text.to_lowercase().as_str()) {
        return Err(format!("`{text}.md` is reserved in a tools folder: choose another name"));
    }
    Ok(text.to_owned())
}

/// Formats a path for a shell.
fn quoted(path: &Path) -> String {
    render::shell_word(&path.display().to_string())
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
