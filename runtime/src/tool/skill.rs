//! Skills: instructions for an agent with the files beside them, and the languages of their scripts.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// Name of the file with a skill's instructions.
pub(crate) const SKILL_FILE: &str = "SKILL.md";
/// Path of a skill's files for its scripts in the guest.
pub(crate) const SKILL_FOLDER: &str = "/skill";

/// Skill: a folder with instructions, and the files that they name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Name in the front matter.
    pub name: String,
    /// Folder of its files, which may be inside a bundle.
    pub folder: PathBuf,
    /// All fields of the front matter, unchanged.
    pub front_matter: Map<String, Value>,
    /// All files, in the order of their paths.
    pub files: Vec<SkillFile>,
    /// SHA-256 digest over the paths and digests of all files, as `sha256:HEX`.
    pub digest: String,
    /// Name of the tool that runs the scripts, if any can run.
    pub runner: Option<String>,
}

/// File of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile {
    /// Path from the folder of the skill, with `/` between its parts.
    pub path: String,
    /// SHA-256 digest of its bytes, as `sha256:HEX`.
    pub digest: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// Language of a script that runs in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ScriptLanguage {
    /// Python, by a program for WASI.
    Python,
    /// JavaScript, by a program for WASI.
    JavaScript,
    /// Starlark, by the interpreter of scripts.
    Starlark,
}

/// Use of a skill's file by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillFileUse {
    /// Script that can run in the sandbox.
    Script(ScriptLanguage),
    /// Program that cannot run in the sandbox, with its kind.
    Native(&'static str),
    /// File to read.
    Data,
}

impl ScriptLanguage {
    /// Returns the name of the language.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::Starlark => "Starlark",
        }
    }
}

impl Skill {
    /// Finds a file by its path, exactly as it is listed.
    pub fn file(&self, path: &str) -> Option<&SkillFile> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.files.get(at)
    }

    /// Lists the scripts that can run in the sandbox.
    pub fn scripts(&self) -> impl Iterator<Item = (&SkillFile, ScriptLanguage)> {
        self.files.iter().filter_map(|file| match file.usage() {
            SkillFileUse::Script(language) => Some((file, language)),
            _ => None,
        })
    }

    /// Lists the programs that cannot run in the sandbox, each with its kind.
    pub fn native_programs(&self) -> impl Iterator<Item = (&SkillFile, &'static str)> {
        self.files.iter().filter_map(|file| match file.usage() {
            SkillFileUse::Native(kind) => Some((file, kind)),
            _ => None,
        })
    }
}

impl SkillFile {
    /// Returns the use of the file, by its name.
    pub fn usage(&self) -> SkillFileUse {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
        match ending.as_str() {
            // Marks a folder as a package, and does nothing by itself.
            "py" if name == "__init__.py" => SkillFileUse::Data,
            "py" => SkillFileUse::Script(ScriptLanguage::Python),
            "js" | "mjs" | "cjs" => SkillFileUse::Script(ScriptLanguage::JavaScript),
            "star" => SkillFileUse::Script(ScriptLanguage::Starlark),
            "sh" | "bash" | "zsh" | "fish" => SkillFileUse::Native("a shell script"),
            "ps1" | "bat" | "cmd" => SkillFileUse::Native("a script of Windows"),
            "rb" => SkillFileUse::Native("a Ruby script"),
            "pl" => SkillFileUse::Native("a Perl script"),
            "php" => SkillFileUse::Native("a PHP script"),
            "ts" | "mts" | "tsx" | "jsx" => SkillFileUse::Native("a script that must be compiled to JavaScript first"),
            "exe" | "dll" | "so" | "dylib" => SkillFileUse::Native("a native program"),
            _ => SkillFileUse::Data,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a skill with files of these paths.
    pub(crate) fn skill(paths: &[&str]) -> Skill {
        let file = |path: &&str| SkillFile { path: (*path).to_owned(), digest: "sha256:00".to_owned(), bytes: 1 };
        let mut files: Vec<_> = paths.iter().map(file).collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Skill {
            name: "s".to_owned(),
            folder: PathBuf::new(),
            front_matter: Map::new(),
            files,
            digest: "sha256:00".to_owned(),
            runner: None,
        }
    }

    #[test]
    fn the_name_of_a_file_decides_its_use_and_its_exact_path_finds_it() {
        let skill = skill(&["SKILL.md", "scripts/a.PY", "scripts/__init__.py", "b.mjs", "c.star", "d.sh", "e", "f.ts"]);
        let scripts: Vec<_> = skill.scripts().map(|(file, language)| (file.path.as_str(), language.as_str())).collect();
        assert_eq!(scripts, [("b.mjs", "JavaScript"), ("c.star", "Starlark"), ("scripts/a.PY", "Python")]);
        let native: Vec<_> = skill.native_programs().map(|(file, _)| file.path.as_str()).collect();
        assert_eq!(native, ["d.sh", "f.ts"]);
        for path in ["./SKILL.md", "scripts/../SKILL.md", "/SKILL.md", "skill.md", "scripts", ""] {
            assert!(skill.file(path).is_none(), "{path}");
        }
        assert!(skill.file("SKILL.md").is_some());
    }
}
