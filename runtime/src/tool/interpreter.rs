//! Interpreters of programs in sources.

use std::path::PathBuf;

use toolcrib_component::Language;

/// Field that disables an interpreter for calls.
pub(crate) const INTERPRETER: &str = "interpreter";

/// Interpreter for programs that call tools, as a source has it. Nothing calls it but the tool that runs programs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interpreter {
    /// Path of the component.
    pub program: PathBuf,
    /// Name of the language, such as `python`.
    pub language: String,
    /// Part of the language that programs may use, for a model.
    pub guide: String,
    /// Name and version of the interpreter.
    pub implementation: String,
}

impl Interpreter {
    /// Describes an interpreter as its component states.
    pub(crate) fn new(program: PathBuf, language: &Language) -> Self {
        let Language { language, guide, implementation, .. } = language.clone();
        Self { program, language, guide, implementation }
    }

    /// Request that a person agrees to: `programs:LANGUAGE`. An interpreter can make each call that its programs could make.
    pub fn capability(&self) -> String {
        format!("programs:{}", self.language)
    }
}
