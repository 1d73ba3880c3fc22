//! Programs that run scripts in skills, one for each language, and the script that a call names. The host brings the programs, and
//! no call names one.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use toolcrib_foundation::text::shown;

use crate::error::{Error, Outcome, ToolError};
use crate::sandbox::Program;
use crate::source::nearest;
use crate::tool::{ScriptLanguage, Skill, SkillFile, SkillFileUse, Tool};

use super::{PreparedTool, ProgramCompiler, ToolEntry};

/// Programs for scripts in skills, and the folder for copies.
#[derive(Default)]
pub(crate) struct SkillPrograms {
    pub(crate) programs: Vec<SkillProgram>,
    /// Private folder for the copies; without one no script runs.
    pub(crate) copies: Option<PathBuf>,
}

/// Program of a language.
pub(crate) struct SkillProgram {
    pub(crate) language: ScriptLanguage,
    /// Program as a tool that no call reaches.
    pub(crate) tool: Tool,
    /// State of the tool without fuel counting.
    pub(crate) plain: PreparedTool,
    /// State of the tool with fuel counting.
    pub(crate) metered: PreparedTool,
}

impl SkillPrograms {
    /// Returns the compiled program that runs a script. Its compilation is the host's own work.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is none for the language, or it cannot run.
    pub(crate) async fn program(
        &self,
        compiler: &ProgramCompiler,
        prepared: &PreparedTool,
        (file, language): (&SkillFile, ScriptLanguage),
    ) -> Result<Arc<Program>, ToolError> {
        let bad = |message: String| ToolError::new(Outcome::BadComponent, message);
        let (path, name) = (&file.path, language.as_str());
        let found = self.programs.iter().find(|program| program.language == language);
        let SkillProgram { tool, plain, metered, .. } = found.ok_or_else(|| {
            let recipe = if language == ScriptLanguage::Python { "cpython" } else { "quickjs" };
            bad(format!("`{path}` is a script in {name}, and no program runs it here: `toolcrib install {recipe}`"))
        })?;
        let entry =
            ToolEntry { tool, prepared: if prepared.limits.fuel.is_some() { metered } else { plain }, index: None };
        let unusable = |error: Error| bad(format!("the program for scripts in {name} cannot run: {error}"));
        compiler.program(entry).await.map_err(unusable)
    }
}

/// Finds the script that a call names, with its language.
///
/// # Errors
///
/// [`Outcome::BadArguments`] if there is no such file, or it cannot run in the sandbox.
pub(crate) fn script_of<'s>(skill: &'s Skill, arguments: &Value) -> Result<(&'s SkillFile, ScriptLanguage), ToolError> {
    let path = arguments.get("script").and_then(Value::as_str).unwrap_or_default();
    let file = file_of(skill, path, "script")?;
    let why = match file.usage() {
        SkillFileUse::Script(language) => return Ok((file, language)),
        SkillFileUse::Native(kind) => format!(
            "is {kind}, and only Python, JavaScript and Starlark run in the sandbox; read it, and do its work with other tools"
        ),
        SkillFileUse::Data => {
            "is no script: its name ends neither in `.py`, `.js`, `.mjs`, `.cjs` nor in `.star`".to_owned()
        }
    };
    Err(ToolError::new(Outcome::BadArguments, format!("invalid values: script: `{}` {why}", file.path)))
}

/// Finds a file by the path in an argument of a call.
///
/// # Errors
///
/// [`Outcome::BadArguments`] if there is none at exactly this path.
pub(crate) fn file_of<'s>(skill: &'s Skill, path: &str, argument: &str) -> Result<&'s SkillFile, ToolError> {
    skill.file(path).ok_or_else(|| {
        let near = nearest(path, skill.files.iter().map(|file| file.path.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message =
            format!("invalid values: {argument}: the skill `{}` has no file {:?}{hint}", skill.name, shown(path));
        ToolError::new(Outcome::BadArguments, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::skill_of;

    #[test]
    fn only_a_listed_script_in_a_language_of_the_sandbox_is_chosen() {
        let skill = skill_of(&["SKILL.md", "scripts/a.py", "scripts/b.sh", "c.star"]);
        let choose = |script: Value| script_of(&skill, &json!({ "script": script }));
        assert_eq!(choose(json!("scripts/a.py")).unwrap().1, ScriptLanguage::Python);
        assert_eq!(choose(json!("c.star")).unwrap().1, ScriptLanguage::Starlark);
        for (script, why) in [
            (json!("../../x.py"), "has no file \"../../x.py\""),
            (json!("./scripts/a.py"), "did you mean `scripts/a.py`?"),
            (json!("scripts/b.sh"), "is a shell script, and only Python"),
            (json!("SKILL.md"), "is no script"),
            (json!(null), "has no file \"\""),
        ] {
            let error = choose(script).unwrap_err();
            assert_eq!(error.outcome, Outcome::BadArguments);
            assert!(error.message.contains(why), "{}", error.message);
        }
    }
}
