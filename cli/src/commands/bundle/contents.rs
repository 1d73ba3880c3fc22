//! Content of a bundle before it is written: its sources' files under their paths in the bundle, and the tools. Only
//! named files are taken: definitions, the programs that they name, licences and the lock.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib::Tool;
use toolcrib::policy::canonical;
use toolcrib::source::{self, SourceParts};
use toolcrib::tool::{Format, ScriptedHook};
use toolcrib_base::render::{self, Advice};
use toolcrib_bundle::{BundledTool, MAX_TEXT_LENGTH, MediaType, visible};

/// Path of the bill of materials in a bundle.
pub(super) const BILL: &str = "sbom.cdx.json";
/// Lock beside a source.
const LOCK: &str = "toolcrib.lock";
/// Beginnings of licence file names.
const LICENSES: [&str; 3] = ["license", "licence", "copying"];
/// Maximum number of files with licences beside one source.
const MAX_LICENSES: usize = 64;

/// Content of a bundle.
#[derive(Default)]
pub(super) struct Contents {
    /// Files by their paths in the bundle.
    pub(super) files: BTreeMap<String, PackedFile>,
    /// Paths that define tools; empty if the root of the bundle does.
    pub(super) sources: Vec<String>,
    pub(super) tools: Vec<PackedTool>,
    pub(super) hooks: Vec<ScriptedHook>,
}

/// File of a bundle.
#[derive(Debug, Clone)]
pub(super) struct PackedFile {
    /// Path on disk.
    pub(super) path: PathBuf,
    pub(super) media_type: MediaType,
}

/// Tool of a bundle.
pub(super) struct PackedTool {
    pub(super) tool: Tool,
    /// Path of its definition in the bundle.
    pub(super) definition: String,
    /// Path of its program in the bundle.
    pub(super) program: Option<String>,
}

impl Contents {
    /// Collects the files of sources. The only source becomes the root of the bundle; each of several gets a folder with its
    /// number.
    ///
    /// # Errors
    ///
    /// The first problem of a source, a file outside of the folder of its source, a tool that two sources define.
    pub(super) fn collect(sources: &[PathBuf]) -> anyhow::Result<Self> {
        let mut contents = Self::default();
        for (index, source) in sources.iter().enumerate() {
            let prefix = if sources.len() == 1 { String::new() } else { format!("{}/", index + 1) };
            contents.add(source, &prefix)?;
        }
        Ok(contents)
    }

    fn add(&mut self, source: &Path, prefix: &str) -> anyhow::Result<()> {
        let SourceParts { folder, entry, definitions, programs, tools, hooks, .. } = source::parts(source)?;
        let place = Place::new(&folder, prefix)?;
        let loads = format!("{prefix}{}", slashed(&entry).unwrap_or_default());
        if !loads.is_empty() {
            self.sources.push(loads.trim_end_matches('/').to_owned());
        }
        for definition in &definitions {
            let media_type = media_type(definition, &tools);
            self.insert(place.of(definition).map_err(|wrong| wrong.of_definition())?, definition, media_type);
        }
        for program in &programs {
            let named = || tools.iter().find(|tool| tool.body.program().is_some_and(|other| same(other, program)));
            let inner = place.of(program).map_err(|wrong| wrong.of_program(named()))?;
            self.insert(inner, program, MediaType::WASM);
        }
        for (name, media_type) in beside(&folder)? {
            let path = folder.join(&name);
            self.insert(place.of(&path).map_err(|wrong| wrong.of_definition())?, &path, media_type);
        }
        for tool in tools {
            let inside = |path: &Path| place.of(&absolute(path)).map_err(|wrong| wrong.of_definition());
            if let Some(other) = self.tools.iter().find(|other| other.tool.name == tool.name) {
                let (one, two) = (other.tool.origin.describe(), tool.origin.describe());
                let message = format!("tool `{}` is in `{one}` and in `{two}`", tool.name);
                return Err(Advice::new(message, "pack them into two bundles, or rename one").into());
            }
            let (definition, program) = (inside(&tool.origin.path)?, tool.body.program().map(inside).transpose()?);
            self.tools.push(PackedTool { tool, definition, program });
        }
        self.hooks.extend(hooks);
        Ok(())
    }

    fn insert(&mut self, inner: String, path: &Path, media_type: MediaType) {
        self.files.insert(inner, PackedFile { path: path.to_path_buf(), media_type });
    }
}

impl PackedTool {
    /// Returns the entry of the tool in the bundle's config.
    pub(super) fn listed(&self) -> anyhow::Result<BundledTool> {
        let mut listed = BundledTool::new(&self.tool.name, self.definition.parse()?);
        listed.description = self.tool.description.as_deref().map(|text| visible(text, MAX_TEXT_LENGTH));
        listed.program =
            self.program.as_deref().filter(|program| **program != self.definition).map(str::parse).transpose()?;
        Ok(listed)
    }
}

/// Folder of a source, and its place in the bundle.
struct Place<'a> {
    folder: &'a Path,
    real: PathBuf,
    prefix: &'a str,
}

/// File that is not in the folder of its source.
struct Outside {
    file: PathBuf,
    folder: PathBuf,
    is_link: bool,
}

impl<'a> Place<'a> {
    fn new(folder: &'a Path, prefix: &'a str) -> anyhow::Result<Self> {
        let real = canonical(folder).with_context(|| format!("cannot open `{}`", folder.display()))?;
        Ok(Self { folder, real, prefix })
    }

    /// Returns the path of a file in the bundle.
    fn of(&self, file: &Path) -> Result<String, Outside> {
        let outside = |is_link| Outside { file: file.to_path_buf(), folder: self.folder.to_path_buf(), is_link };
        let inner = file.strip_prefix(self.folder).ok().and_then(slashed).ok_or_else(|| outside(false))?;
        match canonical(file) {
            Ok(real) if !real.starts_with(&self.real) => Err(outside(true)),
            _ => Ok(format!("{}{inner}", self.prefix)),
        }
    }
}

impl Outside {
    fn of_definition(self) -> anyhow::Error {
        let what = format!("`{}`", render::from_here(&self.file).display());
        self.error(&what)
    }

    /// Returns the error of a program, with the definition that names it.
    fn of_program(self, tool: Option<&Tool>) -> anyhow::Error {
        let program = self.file.display();
        let what = match tool {
            Some(tool) => {
                let (name, origin) = (&tool.name, tool.origin.describe());
                format!("the program `{program}` of tool `{name}` in `{origin}`")
            }
            None => format!("the program `{program}`"),
        };
        self.error(&what)
    }

    fn error(self, what: &str) -> anyhow::Error {
        let folder = self.folder.display();
        let (reason, hint) = match self.is_link {
            true => ("is a link that leads out of", "replace the link by the file that it leads to"),
            false => {
                ("lies outside of", "copy the file into the folder and name it there; definitions are packed unchanged")
            }
        };
        Advice::new(format!("{what} {reason} the folder of its source, `{folder}`"), hint).into()
    }
}

/// Lists the licences and the lock in the folder of a source.
fn beside(folder: &Path) -> anyhow::Result<Vec<(String, MediaType)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let is_license = is_license(&name);
        if (is_license || name == LOCK) && folder.join(&name).is_file() {
            found.push((name, if is_license { MediaType::LICENSE } else { MediaType::LOCK }));
        }
    }
    if found.len() > MAX_LICENSES {
        let folder = folder.display();
        anyhow::bail!("`{folder}` has {} files with licences, more than the {MAX_LICENSES} allowed", found.len());
    }
    Ok(found)
}

/// `true` for `LICENSE`, `LICENSE-MIT`, `COPYING.txt` and the like: the name of a text.
fn is_license(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_text = ["txt", "md"].map(|ending| name.ends_with(&format!(".{ending}"))).contains(&true);
    LICENSES.iter().any(|begins| name.starts_with(begins)) && (is_text || !name.contains('.') || name.ends_with("-2.0"))
}

/// Returns the media type of a definition.
fn media_type(definition: &Path, tools: &[Tool]) -> MediaType {
    if definition.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md")) {
        return MediaType::MARKDOWN;
    }
    let is_in_skill =
        |tool: &&Tool| tool.body.skill().is_some_and(|skill| definition.starts_with(absolute(&skill.folder)));
    match tools.iter().find(|tool| same(&tool.origin.path, definition)).map(|tool| tool.origin.format) {
        Some(Format::AgentTool) => MediaType::AGENT_TOOL_RECORD,
        None if tools.iter().any(|tool| is_in_skill(&tool)) => MediaType::BYTES,
        _ => MediaType::TOOLS_JSON,
    }
}

/// Returns a relative path with `/` between its parts; `None` if it is not plain or not UTF-8.
fn slashed(path: &Path) -> Option<String> {
    let part = |part: std::path::Component<'_>| match part {
        std::path::Component::Normal(name) => name.to_str().map(str::to_owned),
        _ => None,
    };
    path.components().map(part).collect::<Option<Vec<_>>>().map(|parts| parts.join("/"))
}

fn same(one: &Path, other: &Path) -> bool {
    absolute(one) == absolute(other)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
