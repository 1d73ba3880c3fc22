//! `toolcrib mcp config`: prints the entry that starts `toolcrib mcp` from an MCP client, or adds it to the client's settings.

use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Value, json};
use toolcrib::policy::canonical;
use toolcrib_base::folders::home_folder;
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_mcp::client_config::{Change, Client, Folders, Launch, Merge, Plan, Scope, SettingsFile, System};
use toolcrib_packages::builtin;
use toolcrib_packages::registries::SCHEME;

const EXAMPLES: &str = "\
Examples:
  toolcrib mcp config claude-code            print the entry and its file
  toolcrib mcp config claude-code --write    add the entry to that file
  toolcrib mcp config cursor --project --write --tools ./tools.json
  toolcrib mcp config codex --write -- --allow-read=/home/me/notes

The entry names this program by its absolute path, and so does --tools. Everything else in the file \
stays as it is, comments included. A file that cannot be read is never changed. `toolcrib doctor` \
checks the servers of all clients.";
/// Prefix of Windows paths without a length limit, which few clients understand.
const VERBATIM: &str = r"\\?\";

/// Print the settings of an MCP client, or write them.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// MCP client
    #[arg(value_name = "CLIENT", value_enum)]
    client: Client,
    /// Add the entry to the client's file instead of printing it
    #[arg(long)]
    write: bool,
    /// Replace an entry `toolcrib` that differs
    #[arg(long, requires = "write")]
    force: bool,
    /// Use the file of the project in the current directory
    #[arg(long)]
    project: bool,
    /// Use your own file, for all projects [default]
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Source of tools for the server; repeatable
    #[arg(long, value_name = "PATH")]
    tools: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Options of `toolcrib mcp`
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let scope = if args.project { Scope::Project } else { Scope::User };
    let path = path(args.client, scope)?;
    let launch = launch(args)?;
    let name = args.client.facts().name;
    if let Some((text, placeholder)) = launch.placeholder(args.client) {
        let message = format!("`{text}` cannot be an argument: {name} would replace the `{placeholder}` in it");
        return Err(Advice::new(message, "use a path or an argument without it").into());
    }
    let file = match SettingsFile::read(&path) {
        Ok(file) => Some(file),
        Err(error) if args.write => return Err(error),
        Err(_) => None,
    };
    let plan = Plan::new(args.client, &launch, file.as_ref().map_or("", SettingsFile::text));
    let report = Report { args, scope, path: file.as_ref().map_or(path.as_path(), SettingsFile::path), plan: &plan };
    match file.as_ref().filter(|_| args.write) {
        Some(file) => report.write(file),
        None => report.print(),
    }
}

/// Returns the client's settings file for a scope.
fn path(client: Client, scope: Scope) -> anyhow::Result<PathBuf> {
    settings_file(client, scope)?.ok_or_else(|| {
        let message = format!("{} has no settings file of a project", client.facts().name);
        Advice::new(message, "leave out `--project`").into()
    })
}

/// Returns the client's settings file for a scope; `None` if the client has none.
pub(crate) fn settings_file(client: Client, scope: Scope) -> anyhow::Result<Option<PathBuf>> {
    let home = home_folder().ok_or_else(|| Advice::new("no home directory was found", "set `HOME`"))?;
    let folders = Folders {
        system: System::current(),
        home,
        project: std::env::current_dir().context("cannot find the current directory")?,
        variable: &|name| std::env::var_os(name),
        exists: &Path::exists,
    };
    Ok(folders.file(client, scope))
}

/// Returns this program with the arguments of the server.
fn launch(args: &Args) -> anyhow::Result<Launch> {
    let program = std::env::current_exe().and_then(|path| canonical(&path));
    let command = text(&program.context("cannot find the path of this program")?)?;
    let mut arguments = vec!["mcp".to_owned()];
    for source in &args.tools {
        arguments.extend(["--tools".to_owned(), place(source)?]);
    }
    arguments.extend(args.arguments.iter().cloned());
    super::check_arguments(&arguments)?;
    Ok(Launch { command, arguments })
}

/// Returns a source as an absolute path, or the name of the built-in tools or a reference to a registry as it is.
fn place(source: &Path) -> anyhow::Result<String> {
    if builtin::is_named(source) || source.to_str().is_some_and(|text| text.starts_with(SCHEME)) {
        return text(source);
    }
    if !source.exists() {
        let message = format!("cannot find the source `{}`", source.display());
        return Err(Advice::new(message, "pass an existing path with `--tools PATH`").into());
    }
    text(&absolute(source)?)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().ok_or_else(|| {
        let message = format!("the path `{}` is not UTF-8", path.display());
        Advice::new(message, "use a path that is")
    })?;
    // The path of a share keeps the prefix, which is a part of its meaning.
    let short = text.strip_prefix(VERBATIM).filter(|rest| rest.as_bytes().get(1) == Some(&b':'));
    Ok(short.unwrap_or(text).to_owned())
}

/// Output of the command.
struct Report<'a> {
    args: &'a Args,
    scope: Scope,
    path: &'a Path,
    plan: &'a Plan,
}

impl Report<'_> {
    /// Prints the file and the fragment.
    fn print(&self) -> anyhow::Result<ExitCode> {
        if self.args.json {
            self.print_json("printed", &[])?;
            return Ok(ExitCode::SUCCESS);
        }
        render::print_path(self.path)?;
        self.print_fragment()?;
        render::hint("`--write` adds this to the file");
        Ok(ExitCode::SUCCESS)
    }

    fn print_fragment(&self) -> anyhow::Result<()> {
        render::print(&format!("\n{}", render::inert(self.plan.fragment().trim_end())))
    }

    fn print_json(&self, state: &str, changes: &[Change]) -> anyhow::Result<()> {
        let line = json!({
            "client": self.args.client.facts().name,
            "scope": self.scope.as_str(),
            "file": self.path,
            "format": self.plan.format(),
            "keys": self.plan.keys,
            "entry": self.plan.entry,
            "fragment": self.plan.fragment(),
            "state": state,
            "changes": changes,
        });
        render::print_json(&line.to_string())
    }

    /// Adds the entry to the file.
    fn write(&self, file: &SettingsFile) -> anyhow::Result<ExitCode> {
        let shown = self.path.display();
        let merge = match self.plan.merge(file.text()) {
            Ok(merge) => merge,
            Err(reason) => {
                let message = format!("cannot edit `{shown}`: {reason}: nothing was changed");
                if self.args.json {
                    self.print_json("refused", &[])?;
                } else {
                    self.print_fragment()?;
                }
                let hint = match self.args.client.facts().can_replace() {
                    true => "correct the file, or add this entry by hand",
                    false => "add this entry by hand",
                };
                return Err(Advice::new(message, hint).into());
            }
        };
        let key = self.plan.keys.join(".");
        let (state, changes, message) = match merge {
            Merge::Present => {
                ("unchanged", Vec::new(), format!("`{shown}` has this entry already: nothing was changed"))
            }
            Merge::Added(text) => {
                file.replace(&text)?;
                ("added", Vec::new(), format!("added `{key}` to `{shown}`"))
            }
            Merge::Different { changes, .. } if !self.args.force => {
                self.differs(&changes)?;
                let message = format!("`{shown}` has another entry `{key}`: nothing was changed");
                return Err(Advice::new(message, "pass `--force` to replace it").into());
            }
            Merge::Different { changes, text } => {
                file.replace(&text)?;
                ("replaced", changes, format!("replaced `{key}` in `{shown}`"))
            }
        };
        if self.args.json {
            self.print_json(state, &changes)?;
        } else {
            render::aside(&message);
            let note = self.args.client.note(self.scope).filter(|_| state != "unchanged");
            note.into_iter().for_each(render::hint);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the differences of an entry that stays.
    fn differs(&self, changes: &[Change]) -> anyhow::Result<()> {
        if self.args.json {
            return self.print_json("different", changes);
        }
        let value = |value: &Option<Value>| value.as_ref().map(|value| one_line(&value.to_string()));
        let lines = changes.iter().map(|Change { field, old, new }| {
            let field = one_line(field);
            match (value(old), value(new)) {
                (Some(old), Some(new)) => format!("  {field}: {old}, new: {new}"),
                (None, Some(new)) => format!("  {field}: missing, new: {new}"),
                _ => format!("  {field}: only in the file"),
            }
        });
        render::print(&lines.collect::<Vec<_>>().join("\n"))
    }
}
