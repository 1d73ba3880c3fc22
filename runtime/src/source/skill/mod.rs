//! Skills: folders with a `SKILL.md`, in the format of agentskills.io. A skill becomes a tool that returns its instructions and its
//! files, and a second one that runs its scripts, if it has any. Rules of the format that public skills often break are
//! warnings; limits and names are not.

mod fields;
mod files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use toolcrib_foundation::text::{MAX_LISTED, listed, shown};

use crate::tool::{Body, Disabled, Fact, Format, Origin, SKILL_FILE, Skill, Tool};

use super::diagnostics::{Diagnostics, Parsed};
use super::dialect::Dialect;
use super::document::{Candidate, from_root, without_mark};
use super::source_folder::SourceFolder;
use super::{folder, name};

use fields::Fields;
pub(crate) use files::{ReadError, read_file};

/// Ending of the tool name for the scripts.
const RUN: &str = "_run";
/// Maximum length of a skill's tool name, so that the name with [`RUN`] fits model servers too.
const MAX_TOOL_NAME: usize = 64 - RUN.len();

/// A folder with `SKILL.md`.
pub(super) struct Skills;

impl Dialect for Skills {
    fn matches_path(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == SKILL_FILE)
    }

    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        let file = match candidate.path() {
            path if self.matches_path(path) => path.to_path_buf(),
            folder => folder.join(SKILL_FILE),
        };
        read_skill(&file)
    }

    fn manifest(&self) -> Option<&'static str> {
        Some(SKILL_FILE)
    }

    fn matches_entry(&self, path: &Path) -> bool {
        super::files::is_folder(path) && super::files::is_file(&path.join(SKILL_FILE))
    }

    /// Reads the skills of a folder. Of two with one name the second is left out, with a warning.
    fn read_entries(&self, folders: &[&Path], mut before: Parsed) -> Parsed {
        for folder in folders {
            if folder.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                let mut report = Diagnostics::new(folder);
                report
                    .warn("the skill is left out: its folder is a link; name the folder that it leads to as a source");
                before.add(Parsed::of(None, report));
                continue;
            }
            let mut skill = self.read(&Candidate::new(folder));
            let taken = |tool: &Tool| before.tools.iter().find(|other| other.name == tool.name);
            if let Some(other) = skill.tools.iter().find_map(taken) {
                let mut report = Diagnostics::new(&folder.join(SKILL_FILE));
                let (name, path) = (shown(&other.name), other.origin.path.display());
                report.warn(&format!("the skill is left out: {path} has a tool {name:?} already"));
                skill = Parsed::of(None, report);
            }
            before.add(skill);
        }
        before
    }

    fn entry_form(&self) -> Option<&'static str> {
        Some("skill (`NAME/SKILL.md`)")
    }
}

/// Lists the skill folders of a source. Every file there is a part of the source.
pub(super) fn folders(path: &Path) -> Vec<PathBuf> {
    let parent = |file: &Path| {
        file.parent().map(|folder| match folder.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => folder.to_path_buf(),
        })
    };
    if Skills.matches_path(path) {
        return parent(path).into_iter().collect();
    }
    if Skills.matches_entry(path) {
        return vec![path.to_path_buf()];
    }
    let entries = folder::files(path).unwrap_or_default();
    entries.into_iter().filter(|entry| Skills.matches_entry(entry)).collect()
}

/// Reads the skill of a `SKILL.md`. A skill with an error stays as an unusable tool.
fn read_skill(file: &Path) -> Parsed {
    let file = from_root(file);
    let folder = file.parent().unwrap_or(Path::new("/")).to_path_buf();
    let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut report = Diagnostics::new(&file);
    let mut origin = Origin::of(Format::Other("skill"), file.clone());
    let tools = read_tools(&folder, &folder_name, &mut origin, &mut report);
    let tools = match report.confine(0) {
        None => tools.unwrap_or_default(),
        Some(unusable) => {
            let name = name::usable(fields::tool_name(&folder_name, MAX_TOOL_NAME));
            name.map(|name| Tool::broken(name, unusable, Origin { provisional_name: true, ..origin }))
                .into_iter()
                .collect()
        }
    };
    Parsed::of(tools, report)
}

fn read_tools(folder: &Path, folder_name: &str, origin: &mut Origin, report: &mut Diagnostics) -> Option<Vec<Tool>> {
    let root = report.value(SourceFolder::open(folder).map_err(|error| format!("read folder: {error}")))?;
    let bytes = root.read(SKILL_FILE, fields::MAX_TEXT).map_err(|error| fields::unreadable(&error));
    let bytes = report.value(bytes)?;
    let text = String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned());
    let text = report.value(text)?;
    origin.text = Some(Arc::from(text.as_str()));
    let folder_name = (!root.is_root_of_bundle()).then_some(folder_name);
    let fields = Fields::read(without_mark(&text), folder_name, report)?;
    let files::Found { files, left_out } = report.value(files::find(&root))?;
    if !left_out.is_empty() {
        let left_out = left_out.iter().map(|(path, why)| format!("{:?} ({why})", shown(path)));
        report.warn(&format!("files are left out: {}", listed(left_out)));
    }
    let name = fields::tool_name(&fields.name, MAX_TOOL_NAME);
    if name != fields.name {
        report.warn(&format!("its tool is named `{name}`, as model servers take letters, digits, `_` and `-`"));
    }
    let requested = report.values(fields.requested(folder))?;
    let digest = files::digest(&files);
    let mut skill = Skill {
        name: fields.name.clone(),
        folder: folder.to_path_buf(),
        front_matter: fields.all.clone(),
        files,
        digest,
        runner: None,
    };
    origin.unknown.clone_from(&fields.all);
    let runner = format!("{name}{RUN}");
    let runs = skill.scripts().next().is_some();
    let has_programs = runs || skill.native_programs().next().is_some();
    skill.runner = runs.then(|| runner.clone());
    let skill = Arc::new(skill);
    let mut tools = vec![reader(&name, &fields, &skill, origin)];
    tools.extend(has_programs.then(|| Tool { requested, ..run_tool(runner, &name, &skill, origin) }));
    Some(tools)
}

/// Creates the tool that returns the instructions and the files.
fn reader(name: &str, fields: &Fields, skill: &Arc<Skill>, origin: &Origin) -> Tool {
    let about = "Path of one of its files, exactly as the call without arguments lists it; without a path, the call returns \
                 the instructions and the list of files";
    let parameters = json!({
        "type": "object",
        "properties": {
            "file": { "type": "string", "description": about },
            "binary": { "type": "boolean", "description": "Return a file that is no text as base64" },
        },
        "additionalProperties": false,
    });
    let mut tool = Tool::new(name, Body::Skill(skill.clone()), origin.clone());
    tool.description = Some(fields.description.clone());
    tool.parameters = Some(parameters);
    // It is granted nothing.
    tool.requested.declared = true;
    tool.interface.safety.is_open_world.infer(false);
    tool.interface.safety.is_read_only.infer(true);
    tool.interface.infer_read_only();
    tool
}

/// Creates the tool that runs the scripts. Without one that can run in the sandbox, the tool is disabled with the reason.
fn run_tool(runner: String, name: &str, skill: &Arc<Skill>, origin: &Origin) -> Tool {
    let paths: Vec<String> = skill.scripts().map(|(file, _)| format!("`{}`", file.path)).collect();
    let description = format!(
        "Run a script of the skill `{name}` in the sandbox, and return the text that it prints. Scripts: {}. Their files are at \
         `/skill`.",
        listed(paths.into_iter())
    );
    let parameters = json!({
        "type": "object",
        "properties": {
            "script": { "type": "string", "description": "Path of the script, as the skill lists it" },
            "arguments": { "type": "array", "items": { "type": "string" }, "description": "Arguments of the script" },
            "stdin": { "type": "string", "description": "Text for standard input" },
        },
        "required": ["script"],
        "additionalProperties": false,
    });
    let mut tool = Tool::new(runner, Body::SkillScripts(skill.clone()), origin.clone());
    tool.parameters = Some(parameters);
    match skill.runner {
        Some(_) => tool.description = Some(description),
        None => {
            let native = skill.native_programs().take(MAX_LISTED);
            let native = native.map(|(file, kind)| format!("`{}` is {kind}", file.path)).collect::<Vec<_>>();
            let reason = format!("no script of the skill can run in the sandbox: {}", listed(native.into_iter()));
            tool.disabled = Some(Disabled { field: "scripts", reason });
            tool.description = Some(format!("Run a script of the skill `{name}`."));
        }
    }
    tool.interface.safety.is_concurrency_safe = Fact::default(false);
    tool
}

#[cfg(test)]
mod tests;
