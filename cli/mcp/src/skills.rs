//! Skills as clients see them, by the extension `io.modelcontextprotocol/skills`: an entry for each skill with its front matter and
//! the digests of its files, and each file as a resource `skill://NAME/FILE`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use rmcp::model::{
    DIRECTORY_MIME_TYPE, JsonObject, Resource, Skill as SkillEntry, SkillFrontmatter, SkillResource, SkillResources,
};
use serde_json::Value;
use toolcrib::Runtime;
use toolcrib::tool::{Body, Skill};
use toolcrib_base::render;

/// Prefix of skill addresses.
pub(super) const SCHEME: &str = "skill://";
/// Name of the file with the instructions.
const INSTRUCTIONS: &str = "SKILL.md";

/// Skills that clients see.
#[derive(Debug, Default)]
pub(super) struct SkillCatalog {
    skills: Vec<ServedSkill>,
    /// Files by their addresses: the skill, and the path in it.
    files: HashMap<String, (usize, String)>,
    /// Folders by their addresses, each with its direct children.
    folders: HashMap<String, BTreeMap<String, Resource>>,
}

/// One skill.
#[derive(Debug)]
pub(super) struct ServedSkill {
    /// Name of its tool in the runtime.
    pub(super) tool: String,
    pub(super) entry: SkillEntry,
    /// Resource of its instructions.
    pub(super) resource: Resource,
}

/// File of a skill that a client reads.
#[derive(Debug, PartialEq)]
pub(super) struct ServedFile<'a> {
    /// Name of the skill's tool in the runtime.
    pub(super) tool: &'a str,
    /// Path in the skill.
    pub(super) path: &'a str,
    pub(super) mime_type: &'static str,
}

impl SkillCatalog {
    /// Lists the skills of a runtime whose tools can be called. One that the extension does not allow is left out, with a warning.
    pub(super) fn new(runtime: &Runtime, is_callable: impl Fn(&toolcrib::Tool) -> bool) -> Self {
        let mut catalog = Self::default();
        let mut served: Vec<ServedSkill> = Vec::new();
        for tool in runtime.tools().filter(|tool| is_callable(tool)) {
            let Body::Skill(skill) = &tool.body else { continue };
            match entry(skill) {
                Ok(entry) => {
                    let mut resource = Resource::new(entry.uri.clone(), skill.name.clone());
                    resource.description = Some(entry.frontmatter.description.clone());
                    resource.mime_type = Some(mime_type(INSTRUCTIONS).to_owned());
                    resource.size = skill.file(INSTRUCTIONS).map(|file| file.bytes);
                    served.push(ServedSkill { tool: tool.name.clone(), entry, resource });
                }
                Err(why) => {
                    render::warning(&format!("`{}` is not served as a skill: {why}", render::one_line(&tool.name)));
                    continue;
                }
            }
            catalog.add_files(served.len() - 1, skill);
        }
        Self { skills: served, ..catalog }
    }

    /// Returns the skills.
    pub(super) fn skills(&self) -> &[ServedSkill] {
        &self.skills
    }

    /// Finds a skill by the address of its instructions.
    pub(super) fn skill(&self, uri: &str) -> Option<&ServedSkill> {
        self.skills.iter().find(|skill| skill.entry.uri == uri)
    }

    /// Finds a file by its address.
    pub(super) fn file(&self, uri: &str) -> Option<ServedFile<'_>> {
        let (skill, path) = self.files.get(uri)?;
        Some(ServedFile { tool: &self.skills[*skill].tool, path, mime_type: mime_type(path) })
    }

    /// Lists the direct children of a folder; `None` if there is no folder at the address.
    pub(super) fn folder(&self, uri: &str) -> Option<impl ExactSizeIterator<Item = &Resource>> {
        self.folders.get(uri).map(|children| children.values())
    }

    fn add_files(&mut self, index: usize, skill: &Skill) {
        let root = format!("{SCHEME}{}", encoded(&skill.name));
        self.folders.entry(root.clone()).or_default();
        for file in &skill.files {
            let mut folder = root.clone();
            let mut parts = file.path.split('/').peekable();
            while let Some(part) = parts.next() {
                let uri = format!("{folder}/{}", encoded(part));
                let mut resource = Resource::new(uri.clone(), part);
                match parts.peek() {
                    Some(_) => resource.mime_type = Some(DIRECTORY_MIME_TYPE.to_owned()),
                    None => {
                        resource.mime_type = Some(mime_type(part).to_owned());
                        resource.size = Some(file.bytes);
                    }
                }
                self.folders.entry(folder).or_default().insert(part.to_owned(), resource);
                folder = uri;
            }
            self.files.insert(folder, (index, file.path.clone()));
        }
    }
}

/// Describes a skill as the extension does.
fn entry(skill: &Skill) -> Result<SkillEntry, String> {
    let mut extra: JsonObject = skill.front_matter.clone();
    let mut text = |field: &str| match extra.remove(field) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("its front matter has no `{field}` text")),
    };
    let mut front_matter = SkillFrontmatter::new(text("name")?, text("description")?);
    front_matter.extra = extra;
    let uri = |path: &str| {
        let path: Vec<String> = path.split('/').map(encoded).collect();
        format!("{SCHEME}{}/{}", encoded(&skill.name), path.join("/"))
    };
    let files = skill.files.iter().map(|file| SkillResource::new(uri(&file.path), file.digest.clone(), file.bytes));
    let entry = SkillEntry::new(uri(INSTRUCTIONS), front_matter, SkillResources::Files(files.collect()));
    entry.validate().map_err(|error| error.to_string())?;
    Ok(entry)
}

/// Encodes a part of an address: all but unreserved characters become percent escapes.
fn encoded(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            // Writing to a string succeeds.
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// Returns the media type of a file, by its name.
fn mime_type(path: &str) -> &'static str {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "md" => "text/markdown",
        "py" => "text/x-python",
        "js" | "mjs" | "cjs" => "text/javascript",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "xml" | "xsd" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "pdf" => "application/pdf",
        "txt" | "sh" | "star" | "toml" | "ini" | "license" => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use toolcrib::Audit;

    use super::*;

    #[test]
    fn each_file_has_an_address_and_each_folder_lists_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("pdf");
        fs::create_dir_all(folder.join("a b/c")).unwrap();
        fs::write(folder.join("SKILL.md"), "---\nname: pdf\ndescription: x\nlicense: MIT\n---\n").unwrap();
        fs::write(folder.join("a b/c/é.png"), "1").unwrap();
        fs::create_dir(dir.path().join("Loud")).unwrap();
        fs::write(dir.path().join("Loud/SKILL.md"), "---\nname: LOUD\ndescription: x\n---\n").unwrap();
        let runtime = Runtime::builder(Audit::off()).source(dir.path()).build().unwrap();
        let catalog = SkillCatalog::new(&runtime, |_| true);
        let [skill] = catalog.skills() else { panic!("a name that the format does not allow: {catalog:?}") };
        assert_eq!((skill.tool.as_str(), skill.entry.uri.as_str()), ("pdf", "skill://pdf/SKILL.md"));
        assert_eq!(skill.entry.frontmatter.extra["license"], "MIT");
        let file = catalog.file("skill://pdf/a%20b/c/%C3%A9.png").unwrap();
        assert_eq!(file, ServedFile { tool: "pdf", path: "a b/c/é.png", mime_type: "image/png" });
        for uri in ["skill://pdf/../pdf/SKILL.md", "skill://pdf/a b/c/é.png", "skill://pdf", "skill://LOUD/SKILL.md"] {
            assert!(catalog.file(uri).is_none(), "{uri}");
        }
        let children = |uri| catalog.folder(uri).map(|all| all.map(|child| child.uri.as_str()).collect::<Vec<_>>());
        assert_eq!(children("skill://pdf").unwrap(), ["skill://pdf/SKILL.md", "skill://pdf/a%20b"]);
        assert_eq!(children("skill://pdf/a%20b").unwrap(), ["skill://pdf/a%20b/c"]);
        assert_eq!(children("skill://pdf/SKILL.md"), None);
    }
}
