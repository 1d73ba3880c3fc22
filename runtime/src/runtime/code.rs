//! The tools for programs of a model, beside or in place of those that a program can call.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_foundation::text::shown;

use crate::error::Error;
use crate::pipeline::{CallableNames, CodeLanguage, InterpreterSource, PreparedTool, builtin, stub_language};
use crate::schema;
use crate::source::{Diagnostic, Severity, digest, program_bytes};
use crate::stub::{self, StubTool};
use crate::tool::{Basis, Body, Builtin, Callers, Fact, Glob, Tool};

use super::builder::Builder;

/// Names of the tools for programs; without the first the others are of no use.
const NAMES: [&str; 3] = ["run_code", "search_tools", "describe_tool"];
/// Maximum bytes of the signatures of all tools in the description of `run_code`. Beyond it a model searches for them.
const MAX_OVERVIEW: usize = 8 << 10;
/// Maximum bytes of the schemas of all tools whose signatures are tried.
const MAX_SCHEMAS: usize = 64 << 10;
/// Maximum number of tools whose signatures are tried.
const MAX_LISTED: usize = 200;

/// # Programs
impl Builder {
    /// Adds an interpreter of programs that call tools, a component that exports `toolcrib:code/interpreter`, by its digest, as
    /// `sha256:HEX`. It offers the tool `run_code` for programs of `language`, such as `python`, with `guide` as a part of its
    /// description; the first language is the default of the tool, and a later interpreter of a language replaces an earlier one.
    /// `read` returns the component, and is called only if the cache does not contain its code.
    ///
    /// The interpreter has no grant. Every call of its program passes the whole pipeline, as a call of its caller does.
    #[must_use]
    pub fn code_interpreter(
        mut self,
        (language, guide): (impl Into<String>, impl Into<String>),
        digest: impl Into<Arc<str>>,
        read: impl Fn() -> io::Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let component = InterpreterSource::Stored(digest.into(), Arc::new(read));
        add_language(
            &mut self.code,
            CodeLanguage { name: language.into(), guide: guide.into(), component, file: None },
        );
        self
    }

    /// Shows a model the tools for programs alone: `search_tools`, `describe_tool` and `run_code`, so that many tools cost it no more
    /// than few. Tools that state to be for direct calls, and those whose names match one of `direct`, are shown too.
    #[must_use]
    pub fn code_mode(mut self, direct: impl IntoIterator<Item = Glob>) -> Self {
        self.direct = Some(direct.into_iter().collect());
        self
    }

    /// Adds an interpreter of programs as [`Builder::code_interpreter`] does, from the file of its component, which states its
    /// language in the custom section `toolcrib:language`. Tools cannot change the file.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] if the file cannot be read, or states no language.
    pub fn code_component(self, file: &Path) -> Result<Self, Error> {
        let failed = |reason: String| Error::Component { path: file.to_path_buf(), reason };
        let bytes = program_bytes(file).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let language = toolcrib_component::language(&bytes).map_err(|error| failed(error.to_string()))?;
        let language = language.ok_or_else(|| {
            failed("is no interpreter of programs: it has no custom section `toolcrib:language`".to_owned())
        })?;
        let path = file.to_path_buf();
        // A tool must not be able to replace what later sessions run.
        let mut builder = self.protect(file);
        let component = InterpreterSource::Stored(digest(&bytes).into(), Arc::new(move || program_bytes(&path)));
        let (name, guide) = (language.language, language.guide);
        add_language(&mut builder.code, CodeLanguage { name, guide, component, file: Some(file.into()) });
        Ok(builder)
    }
}

impl Builder {
    /// Returns the languages for programs: those of the builder, and those of interpreters in trusted sources.
    /// An interpreter of another source is left out, with a warning. Without a language of the builder, no program is offered.
    pub(super) fn languages(
        &self,
        tools: &[Tool],
        prepared: &[PreparedTool],
        warnings: &mut Vec<Diagnostic>,
    ) -> Vec<CodeLanguage> {
        let mut languages = self.code.clone();
        for (tool, prepared) in tools.iter().zip(prepared).filter(|_| !self.code.is_empty()) {
            let Body::Interpreter(interpreter) = &tool.body else { continue };
            if tool.unusable.is_some() || self.disables_interpreter(tool, prepared) {
                continue;
            }
            let component = match tool.origin.trust.is_operators() {
                true => interpreter_source(tool, &interpreter.program)
                    .map_err(|error| format!("it cannot be read: {error}")),
                false => Err("nobody has trusted its source; review it with `toolcrib trust`".to_owned()),
            };
            let unused = match component {
                Ok(component) => {
                    let (name, guide) = (interpreter.language.clone(), interpreter.guide.clone());
                    let file = Some(tool.origin.path.as_ref().into());
                    add_language(&mut languages, CodeLanguage { name, guide, component, file });
                    continue;
                }
                Err(unused) => unused,
            };
            let message =
                format!("interpreter {:?} of {} programs is not used: {unused}", tool.name, interpreter.language);
            let path = tool.origin.path.to_path_buf();
            warnings.push(Diagnostic { severity: Severity::Warning, path, place: None, message });
        }
        languages
    }

    /// Returns the tools for programs over the tools of all sources, and prepares these for code mode. A tool of a source keeps its
    /// name, with a warning.
    pub(super) fn code_tools(
        &self,
        languages: &[CodeLanguage],
        tools: &mut [Tool],
        prepared: &mut [PreparedTool],
        warnings: &mut Vec<Diagnostic>,
    ) -> Vec<Tool> {
        if languages.is_empty() {
            return Vec::new();
        }
        let is_taken = |own: &str| tools.iter().any(|tool| tool.name == own);
        let taken: Vec<&str> = NAMES.into_iter().filter(|own| is_taken(own)).collect();
        for own in &taken {
            let lost = match *own == NAMES[0] {
                true => "no programs are offered, and all tools are shown",
                false => "the tool for programs of that name is not offered",
            };
            warnings.push(warning(format!("a tool of a source is called `{own}`: {lost}")));
        }
        // Without the tool that runs programs, the others are of no use.
        if taken.contains(&NAMES[0]) {
            return Vec::new();
        }
        let mut builtins = vec![Builtin::RunCode];
        if let Some(direct) = &self.direct {
            builtins.extend([Builtin::SearchTools, Builtin::DescribeTool]);
            // Programs find all tools.
            prepared.iter_mut().for_each(|prepared| prepared.deferred = false);
            for glob in direct.iter().filter(|glob| !tools.iter().any(|tool| glob.is_match(&tool.name))) {
                let glob = shown(&glob.to_string());
                warnings.push(warning(format!("`sources.direct`: `{glob}` matches no loaded tool")));
            }
            let is_direct = |tool: &&mut Tool| direct.iter().any(|glob| glob.is_match(&tool.name));
            for tool in tools.iter_mut().filter(is_direct) {
                let callers = &mut tool.interface.discovery.callers;
                if callers.value == Callers::Both {
                    *callers = Fact::declared(Callers::Both);
                }
            }
        }
        let languages: Vec<_> = languages.iter().map(|code| (code.name.clone(), code.guide.clone())).collect();
        let names = CallableNames::of(tools.iter(), &self.routes);
        let overview = self.direct.is_some().then(|| overview(&languages[0].0, &names, tools, prepared));
        let code = builtin::CodeTools { languages, overview };
        let mut all: Vec<Tool> = builtins.into_iter().map(|builtin| code.tool(builtin)).collect();
        infer_safety(&mut all[0], tools, prepared);
        all.into_iter().filter(|own| !tools.iter().any(|tool| tool.name == own.name)).collect()
    }
}

/// Adds a language, or replaces the one of its name.
fn add_language(languages: &mut Vec<CodeLanguage>, language: CodeLanguage) {
    match languages.iter_mut().find(|other| other.name == language.name) {
        Some(other) => *other = language,
        None => languages.push(language),
    }
}

/// Returns the component of an interpreter in a source, pinned as it was reviewed, or as it is now.
fn interpreter_source(tool: &Tool, program: &Path) -> io::Result<InterpreterSource> {
    let known = match &tool.origin.pin {
        Some(pin) => pin.clone(),
        None => digest(&program_bytes(program)?).into(),
    };
    let program = program.to_path_buf();
    Ok(InterpreterSource::Stored(known, Arc::new(move || program_bytes(&program))))
}

/// Infers what a program cannot do from the tools that it can call: each of them is proven not to do it, or a source that a person
/// answers for declares so.
fn infer_safety(run_code: &mut Tool, tools: &[Tool], prepared: &[PreparedTool]) {
    let all = || tools.iter().zip(prepared).filter(|(tool, prepared)| prepared.is_useful(tool));
    let rules_out = |of: fn(&Tool) -> &Fact<bool>| {
        all().all(|(tool, _)| {
            let fact = of(tool);
            let counts = match fact.basis {
                Basis::Inferred => true,
                Basis::Declared => tool.is_vouched_for(),
                Basis::Default => false,
            };
            counts && !fact.value
        })
    };
    if rules_out(|tool| &tool.interface.safety.is_destructive) {
        run_code.interface.safety.is_destructive.infer(false);
    }
    if rules_out(|tool| &tool.interface.safety.is_open_world) {
        run_code.interface.safety.is_open_world.infer(false);
    }
}

/// Creates a warning about the tools for programs.
fn warning(message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, path: PathBuf::from("code"), place: None, message }
}

/// Describes the tools that a program can call: their signatures if these are short, else how to find them.
fn overview(language: &str, names: &CallableNames, tools: &[Tool], prepared: &[PreparedTool]) -> String {
    let search =
        format!("It can call {} tools: find them with `search_tools` and `describe_tool`.", names.iter().len());
    if names.iter().len() > MAX_LISTED {
        return search;
    }
    let useful = names.iter().filter(|(name, index)| {
        prepared[*index].is_useful(&tools[*index]) && names.find(name).is_some_and(|(_, found)| found == *index)
    });
    let (mut outlines, mut left) = (String::new(), MAX_SCHEMAS);
    for (name, index) in useful {
        let (tool, input) = (&tools[index], tools[index].model_input_schema());
        let read = input.iter().map(AsRef::as_ref).chain(&tool.interface.schemas.output_schema.value);
        for schema in read {
            let Some(text) = schema::text_within(schema, left) else { return search };
            left -= text.len();
        }
        outlines += &stub::outline(stub_language(language), &StubTool::of(name, tool, input.as_deref()));
        if outlines.len() > MAX_OVERVIEW {
            return search;
        }
    }
    format!("Functions of `tools`; `describe_tool` says more about them:\n{}", outlines.trim_end())
}
