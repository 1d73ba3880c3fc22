//! `toolcrib bundle pack`: writes sources of tools into one file. Equal content gives an equal file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolcrib::Tool;
use toolcrib::source::load_usable;
use toolcrib::tool::Body;
use toolcrib_authoring::check;
use toolcrib_base::parse::rounded_size;
use toolcrib_base::progress;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_bundle::{Metadata, WrittenBundle};
use toolcrib_sources::options::{self, Compiling};
use toolcrib_sources::staleness::{self, StaleComponent};

use crate::commands::validate;

use super::bill::Programs;
use super::contents::Contents;
use super::output;

const EXAMPLES: &str = "\
Examples:
  toolcrib bundle pack -o tools.tar             the source of this folder
  toolcrib bundle pack ./tools.json -o weather.tar --version 1.2.0
  toolcrib bundle pack ./greet.wasm ./notes -o both.tar
  toolcrib bundle pack . -o tools.tar --json | jq -r .digest

The bundle contains the definitions as they are, the programs that they name, files next to them that begin with \
LICENSE or COPYING, `toolcrib.lock`, and a bill of materials (CycloneDX 1.6). Other files are never \
packed. A program has to lie in the folder of its source. The file depends on the content alone: not on \
time, folder, locale or user.";
/// Name of a bundle with several tools.
const DEFAULT_NAME: &str = "tools";
/// Bundle version if its programs state none.
const DEFAULT_VERSION: &str = "0.0.0";
/// Maximum length of a name that is made from a tool's name, in bytes.
const MAX_NAME: usize = 128;

/// Pack tools with everything that they need into one file.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// A `tools.json`, a Markdown file, an Agent Tool definition, a component, a project, or a folder of them [default:
    /// ./tools.json, else ./.harness]
    #[arg(value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// File to write; an existing bundle is replaced
    #[arg(short, long = "out", value_name = "FILE")]
    out: PathBuf,
    /// Replace a file that is not a bundle
    #[arg(long)]
    force: bool,
    /// Pack components that are older than their sources
    #[arg(long)]
    allow_stale: bool,
    /// Name of the bundle, such as `acme/weather` [default: the name of the only tool, else `tools`]
    #[arg(long)]
    name: Option<String>,
    /// Version of the bundle [default: the one that all programs state, else 0.0.0]
    #[arg(long)]
    version: Option<String>,
    /// Print a JSON object with the digests of the bundle
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compiling: Compiling,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    output::check_target(&args.out, args.force)?;
    let sources = if args.sources.is_empty() { vec![options::default_source()?] } else { args.sources };
    for source in &sources {
        refuse_faulty_scripts(source, &args.compiling).await?;
    }
    let (out, name, version, allow_stale) = (args.out.clone(), args.name, args.version, args.allow_stale);
    let work = tokio::task::spawn_blocking(move || {
        let contents = Contents::collect(&sources)?;
        require_fresh(&contents, allow_stale)?;
        pack(&contents, &out, name, version)
    });
    let packed = progress::during("packing", work).await.context("packing did not finish")??;
    if args.json {
        render::print_json(&packed.describe(&args.out).to_string())?;
    } else {
        render::print_screen(&packed.text(&args.out))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a source with a script that the interpreter cannot parse. Everything else is checked when the source is read.
async fn refuse_faulty_scripts(source: &Path, compiling: &Compiling) -> anyhow::Result<()> {
    let has_script = load_usable(source).is_ok_and(|loaded| {
        let is_script = |tool: &Tool| matches!(tool.body, Body::Script(_));
        loaded.tools.iter().any(is_script) || loaded.hooks.iter().any(|hook| is_script(&hook.tool))
    });
    if !has_script {
        return Ok(());
    }
    let problems = progress::during("looking at the scripts", check::problems(source, compiling)).await;
    validate::refuse(&problems, source)
}

/// Bundle that was written.
struct Packed {
    metadata: Metadata,
    written: WrittenBundle,
    tools: Vec<String>,
    files: usize,
}

/// Refuses components that are older than their sources: users of the bundle would get other tools than those that its author
/// sees.
fn require_fresh(contents: &Contents, allow_stale: bool) -> anyhow::Result<()> {
    let tools = || contents.tools.iter().map(|packed| &packed.tool);
    if allow_stale {
        staleness::warn(tools());
        return Ok(());
    }
    StaleComponent::of_tools(tools()).first().map_or(Ok(()), |stale| Err(stale.refusal("pack")))
}

fn pack(contents: &Contents, out: &Path, name: Option<String>, version: Option<String>) -> anyhow::Result<Packed> {
    require_separate(out, contents)?;
    let programs = Programs::read(contents)?;
    let only = match contents.tools.as_slice() {
        [only] => bundle_name(&only.tool.name),
        _ => None,
    };
    let name = name.or(only).unwrap_or_else(|| DEFAULT_NAME.to_owned());
    let stated = programs.agreed(|program| program.version.as_ref()).filter(|version| is_version(version));
    let version = version.unwrap_or_else(|| stated.unwrap_or(DEFAULT_VERSION).to_owned());
    let mut metadata = Metadata::new(name, version);
    let is_expression = |text: &&str| text.chars().all(|c| c.is_ascii_alphanumeric() || ".-+:() ".contains(c));
    let licenses = programs.agreed(|program| program.licenses.as_ref()).filter(is_expression);
    metadata.licenses = licenses.filter(|text| !text.is_empty()).map(str::to_owned);
    let bill = programs.bill(&metadata, contents)?;
    let written = output::write(out, metadata.clone(), contents, &bill)?;
    let tools = contents.tools.iter().map(|packed| packed.tool.name.clone()).collect();
    Ok(Packed { metadata, written, tools, files: contents.files.len() + 1 })
}

/// Refuses an output that is one of the packed files, which would be lost.
fn require_separate(out: &Path, contents: &Contents) -> anyhow::Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    let target = real(out);
    match contents.files.values().find(|file| target.is_some() && real(&file.path) == target) {
        None => Ok(()),
        Some(_) => {
            let message = format!("`{}` is a part of the sources and would be replaced", out.display());
            Err(Advice::new(message, "name another file with `-o`").into())
        }
    }
}

/// Makes a bundle's name from a tool's name; `None` if nothing of it is allowed.
fn bundle_name(tool: &str) -> Option<String> {
    let allowed = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c) { c } else { '-' };
    let name: String = tool.to_lowercase().chars().map(allowed).take(MAX_NAME).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns `true` if a bundle can have a version that a program states.
fn is_version(version: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    version.len() <= MAX_NAME
        && edge(version.chars().next())
        && edge(version.chars().next_back())
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
        && !version.contains("..")
}

impl Packed {
    fn describe(&self, out: &Path) -> serde_json::Value {
        json!({
            "file": out.to_string_lossy(),
            "name": self.metadata.name,
            "version": self.metadata.version,
            "digest": self.written.manifest.to_string(),
            "archive": { "digest": self.written.archive.digest.to_string(), "bytes": self.written.archive.size },
            "tools": self.tools,
            "files": self.files,
        })
    }

    fn text(&self, out: &Path) -> String {
        let Metadata { name, version, .. } = &self.metadata;
        let (tools, files) = (counted(self.tools.len(), "tool"), counted(self.files, "file"));
        let size = rounded_size(self.written.archive.size);
        format!("{}: {name} {version}, {tools}, {files}, {size}\n{}", out.display(), self.written.manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_tool_becomes_the_name_of_a_bundle() {
        for (tool, name) in
            [("weather", Some("weather")), ("Get Time!", Some("get-time")), ("_x_", Some("x")), ("漢字", None)]
        {
            assert_eq!(bundle_name(tool).as_deref(), name);
        }
    }

    #[test]
    fn only_versions_that_a_bundle_can_have_are_taken_from_programs() {
        for (version, is_valid) in
            [("1.2.0", true), ("1.0.0-rc.1+b", true), ("", false), ("1..2", false), ("v 1", false)]
        {
            assert_eq!(is_version(version), is_valid, "{version}");
        }
    }
}
