//! The built programs of the shipped tools and of the interpreter of scripts. They are kept in `kept/`, beside the digest of
//! the sources that they were built from, so that a build of the program compiles no guest. Sources that changed are compiled,
//! in one inner `cargo build`; with the variable [`FROM_SOURCE`], all are, in the way in which they are recorded.
//!
//! `cargo run -p toolcrib-programs --example programs -- record` replaces the kept programs of changed sources; `check` compiles all and compares every byte.

mod cargo;
mod kept;
mod passed;
mod sources;
mod staging;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

pub use cargo::{Guests, TARGET, target_folder};
use kept::Kept;

/// Variable that, if it has a value, has all programs compiled from their sources.
pub const FROM_SOURCE: &str = "TOOLCRIB_FROM_SOURCE";
/// Guest that runs scripts.
pub const INTERPRETER: &str = "starlark_interpreter";
/// Manifest of the shipped tools, in the guests' workspace.
pub const MANIFEST: &str = "tools.json";

/// Programs by name, without `.wasm`.
pub type Programs = BTreeMap<String, Vec<u8>>;

/// Programs that are compiled together: features of a crate are those that any of them asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// The shipped tools.
    Tools,
    /// The interpreter, alone: its features of shared crates would make the tools larger, and change how they read numbers.
    Interpreter,
    /// The interpreter of Python programs, in a workspace of its own: it has many more crates than all tools together.
    Python,
    /// The interpreter of JavaScript programs, in a workspace of its own.
    JavaScript,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Interpreter, Self::Python, Self::JavaScript];
    /// Interpreters of programs that call tools.
    pub const LANGUAGES: [Self; 2] = [Self::Python, Self::JavaScript];

    /// Name in the list of digests, and of its language.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Interpreter => "interpreter",
            Self::Python => "python",
            Self::JavaScript => "javascript",
        }
    }

    /// Returns the group with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }

    /// Folder of the workspace that a group has for itself.
    #[must_use]
    pub fn own_workspace(self) -> Option<&'static str> {
        match self {
            Self::Tools | Self::Interpreter => None,
            Self::Python => Some("tools/python"),
            Self::JavaScript => Some("tools/javascript"),
        }
    }
}

/// Repository with the sources of the programs.
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Returns the repository at a folder, if the guests' workspace is there: a package of the program alone lacks it.
    #[must_use]
    pub fn at(root: &Path) -> Option<Self> {
        root.join("tools/Cargo.toml").is_file().then(|| Self { root: root.to_path_buf() })
    }

    /// Returns the root folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Files and folders on which the programs depend, with the kept programs.
    #[must_use]
    pub fn dependencies(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = Group::ALL.iter().flat_map(|group| sources::of(&self.root, *group)).collect();
        all.push(self.root.join(kept::FOLDER));
        all.sort();
        all.dedup();
        all
    }

    /// Names of the programs in the manifest of the shipped tools.
    ///
    /// # Errors
    ///
    /// If the manifest cannot be read.
    pub fn tools(&self) -> Result<Vec<String>, String> {
        let manifest = self.root.join("tools").join(MANIFEST);
        let text = String::from_utf8_lossy(&read(&manifest)?).into_owned();
        // The library reads manifests completely; this only collects names. Tools may share a program.
        let parts = text.split("\"./tools/bin/").skip(1).filter_map(|rest| rest.split('"').next());
        let mut names: Vec<String> = parts.map(str::to_owned).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Names of the programs of a group.
    fn names(&self, group: Group) -> Result<Vec<String>, String> {
        match group {
            Group::Tools => self.tools(),
            Group::Interpreter => Ok(vec![INTERPRETER.to_owned()]),
            Group::Python | Group::JavaScript => Ok(vec![format!("{}_interpreter", group.name())]),
        }
    }

    /// Returns the programs of a group: the kept ones if their sources are unchanged, or else compiled below the target folder.
    ///
    /// # Errors
    ///
    /// If a kept program was changed, if the programs cannot be compiled, or if [`FROM_SOURCE`] asks for their compilation and
    /// one is not equal to the kept one of the same sources and the same compiler.
    pub fn programs(&self, group: Group, target: &Path) -> Result<Programs, String> {
        let names = self.names(group)?;
        let kept = Kept::read(&self.root)?;
        let is_kept = kept.is_of(group, &sources::digest(&self.root, group)?);
        if env::var_os(FROM_SOURCE).is_none_or(|value| value.is_empty()) {
            let compile = || self.compile(group, &Guests::new(&self.root, target));
            return if is_kept { kept.programs(&names) } else { compile() };
        }
        let compiled = self.compile(group, &Guests::staged(&staging::lay_out(&self.root, target)?, target))?;
        if is_kept && kept.compiler() == cargo::compiler()? {
            let different = different(&compiled, &kept.programs(&names)?);
            if !different.is_empty() {
                return Err(format!("other bytes than the kept ones: {}", different.join(", ")));
            }
        }
        Ok(compiled)
    }

    /// Compiles the programs of a group.
    fn compile(&self, group: Group, guests: &Guests) -> Result<Programs, String> {
        let names = self.names(group)?;
        let own = group.own_workspace().map(|folder| guests.of_workspace(folder));
        let guests = own.as_ref().unwrap_or(guests);
        guests.build(&names)?;
        let mut programs = Programs::new();
        for name in names {
            let program = match group {
                Group::Interpreter => guests.snapshot(&name)?,
                _ => read(&guests.program(&name))?,
            };
            programs.insert(name, program);
        }
        Ok(programs)
    }

    /// Compiles all programs from a copy of their sources, so that they are the same in every folder.
    fn compile_all(&self, target: &Path) -> Result<Vec<(Group, Programs)>, String> {
        let guests = Guests::staged(&staging::lay_out(&self.root, target)?, target);
        Group::ALL.into_iter().map(|group| Ok((group, self.compile(group, &guests)?))).collect()
    }

    /// Replaces the kept programs. Groups of which no source changed, since this compiler compiled them, are not compiled again.
    ///
    /// # Errors
    ///
    /// If the programs cannot be compiled or written, or if a source changes meanwhile.
    pub fn record(&self, target: &Path) -> Result<(), String> {
        let digests = || Group::ALL.map(|group| sources::digest(&self.root, group));
        let before = digests();
        let kept = Kept::read(&self.root)?;
        let is_of_compiler = kept.compiler() == cargo::compiler()?;
        let guests = Guests::staged(&staging::lay_out(&self.root, target)?, target);
        let groups = Group::ALL.into_iter().zip(before.clone()).map(|(group, digest)| {
            let digest = digest?;
            let programs = match is_of_compiler && kept.is_of(group, &digest) {
                true => kept.programs(&self.names(group)?)?,
                false => self.compile(group, &guests)?,
            };
            Ok((group, digest, programs))
        });
        let groups = groups.collect::<Result<Vec<_>, String>>()?;
        if digests() != before {
            return Err("a source changed while the programs were compiled: record them again".to_owned());
        }
        kept::write(&self.root, &groups)
    }

    /// Returns the groups with sources that changed since their programs were recorded.
    ///
    /// # Errors
    ///
    /// If the sources or the kept programs cannot be read.
    pub fn changed(&self) -> Result<Vec<Group>, String> {
        let kept = Kept::read(&self.root)?;
        let mut changed = Vec::new();
        for group in Group::ALL {
            if !kept.is_of(group, &sources::digest(&self.root, group)?) {
                changed.push(group);
            }
        }
        Ok(changed)
    }

    /// Returns `true` if a check has passed with the present sources of a group and the present compiler.
    ///
    /// # Errors
    ///
    /// If the sources or the list of passed checks cannot be read.
    pub fn has_passed(&self, group: Group, command: &[&str]) -> Result<bool, String> {
        passed::has(&self.root, group, command)
    }

    /// Adds a check to those that have passed.
    ///
    /// # Errors
    ///
    /// If the sources cannot be read, or the list cannot be written.
    pub fn add_passed(&self, group: Group, command: &[&str]) -> Result<(), String> {
        passed::add(&self.root, group, command)
    }

    /// Compiles all programs and returns the names of those that differ from the kept ones.
    ///
    /// # Errors
    ///
    /// If the programs cannot be compiled, or if the kept ones were compiled by another version of the compiler, which gives
    /// other bytes.
    pub fn differences(&self, target: &Path) -> Result<Vec<String>, String> {
        let kept = Kept::read(&self.root)?;
        let compiler = cargo::compiler()?;
        if kept.compiler() != compiler {
            return Err(format!("the programs were compiled by `{}`, and this is `{compiler}`", kept.compiler()));
        }
        let mut all = Vec::new();
        for (group, compiled) in self.compile_all(target)? {
            all.extend(different(&compiled, &kept.programs(&self.names(group)?)?));
        }
        Ok(all)
    }
}

/// Returns the names of the programs that are not equal to the kept ones.
fn different(compiled: &Programs, kept: &Programs) -> Vec<String> {
    compiled.iter().filter(|(name, bytes)| kept.get(*name) != Some(*bytes)).map(|(name, _)| name.clone()).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}
