//! Runs a script of a skill in the sandbox: Python and JavaScript by a program for WASI, Starlark by the interpreter of scripts. The
//! script finds the files of its skill in a copy that lives as long as the call, as they were when the skill was loaded.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use tempfile::TempDir;
use toolcrib_component::digest;

use crate::error::{Error, Outcome, ToolError};
use crate::pipeline::prepared::script_of;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, Pipeline};
use crate::sandbox::{ScriptSource, ScriptText};
use crate::source::read_skill_file;
use crate::tool::{
    ArgvGroup, ArgvItem, CommandLine, GroupCondition, OutputForm, SKILL_FOLDER, Script, ScriptLanguage, Skill,
    SkillFile, Template,
};

use super::command::{CommandInput, run_with};
use super::skill::{mark, read_bytes};
use super::{Answer, RunInput, script};

/// Arguments of a script after its path, and its standard input.
static LINE: LazyLock<CommandLine> = LazyLock::new(|| CommandLine {
    argv: Some(vec![ArgvItem::Group(ArgvGroup {
        condition: GroupCondition::Each("arguments".to_owned()),
        argv: vec![Template::placeholder("arguments")],
        options: true,
    })]),
    stdin: Some(Template::placeholder("stdin")),
    output: Some(OutputForm::Text),
    ..CommandLine::default()
});

/// Runs a script of a skill.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    skill: &Arc<Skill>,
    input: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let prepared = execution.prepared;
    let (file, language) = script_of(skill, &input.checked.value)?;
    // A script can print each file of its skill.
    mark(execution.tool, skill, recorder);
    let copy = copy(pipeline, skill).await?;
    let grant = execution.grant.with_skill_files(copy.path(), SKILL_FOLDER);
    let grant = grant.map_err(|fault| failed(recorder, fault))?;
    let answer = match language {
        ScriptLanguage::Starlark => {
            let interpreter = pipeline.interpreters.interpreter(prepared).await?;
            let script = starlark(skill, file).await?;
            let text = ScriptText { name: &execution.tool.name, source: &script.source };
            let source = (&script, ScriptSource::Text(text), Path::new(&file.path));
            let (grant, source) = (Arc::new(grant), (&interpreter, source));
            script::run_source(pipeline, execution, &grant, source, input, scope, recorder).await
        }
        _ => {
            let program = pipeline.skills.program(&pipeline.programs, prepared, (file, language)).await?;
            let fixed = [program_name(language).to_owned(), format!("{SKILL_FOLDER}/{}", file.path)];
            let command = CommandInput { fixed: &fixed, line: Some(&LINE), grant: &grant };
            run_with(pipeline, execution, (&program, command), input, scope, recorder).await
        }
    };
    // Removing many files takes a while.
    let _ = tokio::task::spawn_blocking(move || drop(copy)).await;
    answer
}

/// Returns the name of a language's program in its own arguments.
fn program_name(language: ScriptLanguage) -> &'static str {
    match language {
        ScriptLanguage::JavaScript => "quickjs",
        ScriptLanguage::Python | ScriptLanguage::Starlark => "python",
    }
}

/// Reads a script in Starlark, as it was when the skill was loaded.
async fn starlark(skill: &Arc<Skill>, file: &SkillFile) -> Result<Script, ToolError> {
    let text = String::from_utf8(read_bytes(skill, file).await?)
        .map_err(|_| ToolError::new(Outcome::Failed, format!("`{}` is no text in UTF-8", file.path)))?;
    Ok(Script { digest: digest(text.as_bytes()), source: text.into(), place: None, background: false })
}

/// Copies the files of a skill into a private folder.
async fn copy(pipeline: &Pipeline, skill: &Arc<Skill>) -> Result<TempDir, ToolError> {
    let failed = |message: String| ToolError::new(Outcome::Failed, message);
    let folder = pipeline.skills.copies.clone();
    let folder = folder.ok_or_else(|| failed("no folder for the files of skills is configured".to_owned()))?;
    let skill = skill.clone();
    let copied = tokio::task::spawn_blocking(move || copy_to(&folder, &skill)).await;
    copied.map_err(|_| failed("the files of the skill could not be copied".to_owned()))?.map_err(failed)
}

fn copy_to(folder: &Path, skill: &Skill) -> Result<TempDir, String> {
    let failed = |error: std::io::Error| format!("the files of the skill could not be copied: {}", error.kind());
    let copy = crate::store::owner_only::temporary_folder(folder, "skill-").map_err(failed)?;
    for file in &skill.files {
        let bytes = read_skill_file(skill, file).map_err(|error| error.message(file))?;
        let path = copy.path().join(&file.path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
        // Two names may be of one file on this disk: neither stands for the other.
        std::fs::File::create_new(&path).and_then(|mut copy| copy.write_all(&bytes)).map_err(failed)?;
    }
    Ok(copy)
}

fn failed(recorder: &mut CallRecorder<'_>, fault: Error) -> ToolError {
    // The fault names a path of the host.
    recorder.fault(fault);
    let message =
        format!("the files of the skill could not be granted at `{SKILL_FOLDER}`: another folder may have this path");
    ToolError::new(Outcome::Failed, message)
}
