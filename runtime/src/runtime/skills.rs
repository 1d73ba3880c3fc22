//! Programs for the scripts of skills.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::error::Error;
use crate::pipeline::{PreparedTool, SkillProgram, SkillPrograms, ToolPlaces};
use crate::policy::{Allowed, Grant};
use crate::schema::ToolValidator;
use crate::tool::{Body, Limits, Origin, ScriptLanguage, Tool};

use super::builder::Builder;

/// # Skills
impl Builder {
    /// Sets the search for the programs for WASI that run the scripts of skills, as `PROGRAM SCRIPT ARGUMENTS…`. It is called once for
    /// Python and once for JavaScript, if a source has scripts, and returns the file of the program, which may be inside a bundle.
    /// Scripts in Starlark are run by the [interpreter of scripts](Builder::interpreter).
    #[must_use]
    pub fn skill_programs(mut self, find: impl Fn(ScriptLanguage) -> Option<PathBuf> + Send + Sync + 'static) -> Self {
        self.skill_programs = Some(Box::new(find));
        self
    }

    /// Sets the private folder for copies of skills. Each call of a script reads a copy, which is removed when the call
    /// ends. Without one, no script of a skill runs.
    #[must_use]
    pub fn skill_copies(mut self, folder: impl Into<PathBuf>) -> Self {
        self.skill_copies = Some(folder.into());
        self
    }

    /// Prepares the programs for the scripts of skills among these tools. Nothing is compiled.
    ///
    /// # Errors
    ///
    /// The engine's error.
    pub(super) fn find_skill_programs(&self, tools: &[Tool]) -> Result<SkillPrograms, Error> {
        let mut skills = SkillPrograms { programs: Vec::new(), copies: self.skill_copies.clone() };
        let has_scripts = tools.iter().any(|tool| matches!(tool.body, Body::SkillScripts(_)));
        let Some(find) = self.skill_programs.as_ref().filter(|_| has_scripts) else { return Ok(skills) };
        for language in [ScriptLanguage::Python, ScriptLanguage::JavaScript] {
            let Some(program) = find(language) else { continue };
            let body = Body::Command { program, argv: Vec::new(), command_line: None };
            let mut tool = Tool::new(language.as_str(), body, Origin::host());
            tool.requested.declared = true;
            let prepare = |fuel: Option<u64>| {
                let input = ToolValidator::compile(&tool).map_err(Error::Engine)?;
                let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new())?;
                Ok::<_, Error>(PreparedTool::new(input, grant, Limits { fuel, ..self.limits }, ToolPlaces::new(1)))
            };
            let (plain, metered) = (prepare(None)?, prepare(Some(u64::MAX))?);
            skills.programs.push(SkillProgram { language, plain, metered, tool });
        }
        Ok(skills)
    }
}
