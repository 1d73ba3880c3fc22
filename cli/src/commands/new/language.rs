//! Templates of tools in other languages: a project with its contract, its code, test cases, and a script and a README with the
//! commands to build it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toolcrib_base::render::Advice;
use toolcrib_sources::staleness::SCRIPT;

use super::folder::create;

const CONTRACT: (&str, &str) = ("wit/tool.wit", include_str!("lang/tool.wit"));
/// World of the tools that `toolcrib` in a project implements, with the packages that it names.
const WORLD: [(&str, &str); 5] = [
    ("wit/tool.wit", include_str!("lang/wit/world.wit")),
    ("wit/deps/clocks.wit", include_str!("lang/wit/clocks.wit")),
    ("wit/deps/http.wit", include_str!("lang/wit/http.wit")),
    ("wit/deps/io.wit", include_str!("lang/wit/io.wit")),
    ("wit/deps/toolcrib.wit", include_str!("../../../../wit/tool/tool.wit")),
];
/// Tool metadata, which the script of a project embeds: the tool needs nothing.
const DESCRIPTOR: (&str, &str) = ("descriptor.json", include_str!("lang/descriptor.json"));
const CASES: (&str, &str) = ("tests.json", include_str!("lang/tests.json"));
const IGNORED: (&str, &str) = (".gitignore", "/target\n/.venv\n/node_modules\n__pycache__\n*.wasm\n");
/// Library of a project in Python.
const PYTHON_LIBRARY: [(&str, &str); 8] = [
    ("toolcrib/__init__.py", include_str!("lang/python/toolcrib/__init__.py")),
    ("toolcrib/__main__.py", include_str!("lang/python/toolcrib/__main__.py")),
    ("toolcrib/errors.py", include_str!("lang/python/toolcrib/errors.py")),
    ("toolcrib/exchange.py", include_str!("lang/python/toolcrib/exchange.py")),
    ("toolcrib/host.py", include_str!("lang/python/toolcrib/host.py")),
    ("toolcrib/http.py", include_str!("lang/python/toolcrib/http.py")),
    ("toolcrib/schema.py", include_str!("lang/python/toolcrib/schema.py")),
    ("toolcrib/tools.py", include_str!("lang/python/toolcrib/tools.py")),
];
/// Library of a project in JavaScript.
const JAVASCRIPT_LIBRARY: [(&str, &str); 12] = [
    ("toolcrib/component.js", include_str!("lang/javascript/toolcrib/component.js")),
    ("toolcrib/describe.mjs", include_str!("lang/javascript/toolcrib/describe.mjs")),
    ("toolcrib/errors.js", include_str!("lang/javascript/toolcrib/errors.js")),
    ("toolcrib/exchange.js", include_str!("lang/javascript/toolcrib/exchange.js")),
    ("toolcrib/finish.mjs", include_str!("lang/javascript/toolcrib/finish.mjs")),
    ("toolcrib/host.js", include_str!("lang/javascript/toolcrib/host.js")),
    ("toolcrib/http.js", include_str!("lang/javascript/toolcrib/http.js")),
    ("toolcrib/index.d.ts", include_str!("lang/javascript/toolcrib/index.d.ts")),
    ("toolcrib/index.js", include_str!("lang/javascript/toolcrib/index.js")),
    ("toolcrib/json.js", include_str!("lang/javascript/toolcrib/json.js")),
    ("toolcrib/text.js", include_str!("lang/javascript/toolcrib/text.js")),
    ("toolcrib/tools.js", include_str!("lang/javascript/toolcrib/tools.js")),
];
/// Example arguments for the tool.
pub(super) const EXAMPLE: &str = r#"{"name":"Ada"}"#;
/// Words that no method of a class in Python may be named.
const PYTHON_WORDS: [&str; 33] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield", "print",
];

/// Languages of templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Language {
    Rust,
    Python,
    #[value(alias = "js")]
    Javascript,
    Go,
    C,
}

impl Language {
    /// Files of the template, with placeholders for the name; none for Rust, which has its own template.
    fn files(self) -> Vec<(&'static str, &'static str)> {
        let own: &[(&str, &str)] = match self {
            Language::Rust => return Vec::new(),
            Language::Python => &[
                DESCRIPTOR,
                (SCRIPT, include_str!("lang/python/build")),
                ("app.py", include_str!("lang/python/app.py")),
                ("requirements.txt", include_str!("lang/python/requirements.txt")),
                ("README.md", include_str!("lang/python/README.md")),
            ],
            Language::Javascript => &[
                DESCRIPTOR,
                (SCRIPT, include_str!("lang/javascript/build")),
                ("app.js", include_str!("lang/javascript/app.js")),
                ("package.json", include_str!("lang/javascript/package.json")),
                ("package-lock.json", include_str!("lang/javascript/package-lock.json")),
                ("jsconfig.json", include_str!("lang/javascript/jsconfig.json")),
                ("README.md", include_str!("lang/javascript/README.md")),
            ],
            Language::Go => &[
                (SCRIPT, include_str!("lang/go/build")),
                ("main.go", include_str!("lang/go/main.go")),
                ("go.mod", include_str!("lang/go/go.mod")),
                ("tools.json", include_str!("lang/go/tools.json")),
                ("README.md", include_str!("lang/go/README.md")),
            ],
            Language::C => &[
                CONTRACT,
                DESCRIPTOR,
                (SCRIPT, include_str!("lang/c/build")),
                ("app.c", include_str!("lang/c/app.c")),
                ("component.c", include_str!("lang/c/component.c")),
                ("tool.h", include_str!("lang/c/tool.h")),
                ("README.md", include_str!("lang/c/README.md")),
            ],
        };
        own.iter().copied().chain([CASES, IGNORED]).collect()
    }

    /// Files of the template without placeholders: the library `toolcrib` of a project, and its world.
    fn library(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Language::Python => [&PYTHON_LIBRARY[..], &WORLD].concat(),
            Language::Javascript => [&JAVASCRIPT_LIBRARY[..], &WORLD].concat(),
            Language::Rust | Language::Go | Language::C => Vec::new(),
        }
    }

    /// Returns `true` if the script of a project installs its compiler with `--install`.
    pub(super) fn installs_compiler(self) -> bool {
        matches!(self, Language::Python | Language::Javascript)
    }

    /// Source of the tool, for `toolcrib call`.
    pub(super) fn source(self, folder: &Path, name: &str) -> PathBuf {
        match self {
            Language::Go => folder.join("tools.json"),
            _ => folder.join(format!("{}.wasm", snake(name))),
        }
    }
}

/// Returns the tool name for a model, which is the function name.
pub(super) fn snake(name: &str) -> String {
    name.replace('-', "_")
}

/// Creates the project inside `dir`. The folder appears only when it is complete.
pub(super) fn write(dir: &Path, name: &str, language: Language) -> anyhow::Result<PathBuf> {
    check(name)?;
    create(dir, name, |folder| fill(folder, name, language))
}

fn fill(folder: &Path, name: &str, language: Language) -> io::Result<()> {
    let (snake, kebab) = (snake(name), name.replace('_', "-"));
    let named = |text: &str| {
        text.replace("SNAKE", &snake).replace("KEBAB", &kebab).replace("FILE", &snake).replace("NAME", name)
    };
    let own = language.files().into_iter().map(|(path, text)| (path, named(text)));
    for (path, text) in own.chain(language.library().into_iter().map(|(path, text)| (path, text.to_owned()))) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, text)?;
    }
    executable::allow(&folder.join(SCRIPT))
}

/// Rejects names that are not valid for a function in every contract.
fn check(name: &str) -> anyhow::Result<()> {
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    if name.split(['-', '_']).all(is_word) && !PYTHON_WORDS.contains(&name) {
        return Ok(());
    }
    let hint = "choose another name: words of lowercase letters and digits, each beginning with a letter, with `_` or `-` \
                between them";
    Err(Advice::new(format!("`{name}` is not a valid function name"), hint).into())
}

#[cfg(unix)]
mod executable {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    pub(super) fn allow(script: &Path) -> io::Result<()> {
        fs::set_permissions(script, Permissions::from_mode(0o755))
    }
}

#[cfg(not(unix))]
mod executable {
    use std::io;
    use std::path::Path;

    /// Permissions to execute are a matter of the file's name.
    #[expect(clippy::unnecessary_wraps, reason = "the other systems write")]
    pub(super) fn allow(_: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_a_function_in_every_language() {
        assert!(["greet", "most-frequent", "fs_read2"].iter().all(|name| check(name).is_ok()));
        assert!(["Greet", "my-2x", "a--b", "lambda", "_x"].iter().all(|name| check(name).is_err()));
    }

    #[test]
    fn every_project_says_how_it_is_built() {
        for language in [Language::Python, Language::Javascript, Language::Go, Language::C] {
            let parent = tempfile::tempdir().unwrap();
            let folder = write(parent.path(), "most-frequent", language).unwrap();
            let name = folder.file_name().unwrap().to_owned();
            assert_eq!(name, "most-frequent");
            let files = language.files();
            let text = |name: &str| files.iter().find(|(path, _)| *path == name).expect(name).1;
            assert!(
                text("README.md").contains("./build\n") && text(SCRIPT).contains("is missing; install"),
                "{language:?}"
            );
            let world = language.library();
            let has = |path: &str| folder.join(path).is_file();
            assert!(world.iter().all(|(path, _)| has(path)), "{language:?}");
            // Digests pin the compiler, and the library is no place for placeholders.
            let pins = [("requirements.txt", "--hash=sha256:"), ("package-lock.json", "\"integrity\": \"sha512-")];
            let pinned = pins
                .iter()
                .any(|(path, pin)| fs::read_to_string(folder.join(path)).is_ok_and(|text| text.contains(pin)));
            assert_eq!(pinned, language.installs_compiler(), "{language:?}");
            assert_eq!(has("wit/deps/toolcrib.wit"), language.installs_compiler(), "{language:?}");
        }
    }
}
