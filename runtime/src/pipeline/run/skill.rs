//! Reads a skill for a call: its instructions with a file list, or one file.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::error::{Outcome, ToolError};
use crate::flow::{Label, Mark};
use crate::pipeline::prepared::file_of;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution};
use crate::source::{ReadError, body_of, read_skill_file};
use crate::tool::{SKILL_FILE, Skill, SkillFile, SkillFileUse, Tool};

use super::epilogue::finish;
use super::{Answer, RunInput};

/// Reads a skill.
pub(super) async fn read(
    execution: &Execution<'_>,
    skill: &Arc<Skill>,
    RunInput { checked, limits, .. }: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let path = checked.value.get("file").and_then(Value::as_str);
    let file = file_of(skill, path.unwrap_or(SKILL_FILE), "file")?;
    mark(execution.tool, skill, recorder);
    let bytes = read_bytes(skill, file).await?;
    let is_binary_wanted = checked.value.get("binary").and_then(Value::as_bool).unwrap_or_default();
    let answer = match (text(bytes), path) {
        (Ok(text), None) => overview(skill, body_of(&text)),
        (Ok(text), Some(path)) => json!({ "file": path, "text": text }),
        (Err(bytes), _) if is_binary_wanted => json!({ "file": file.path, "base64": STANDARD.encode(bytes) }),
        (Err(_), _) => {
            let message = format!(
                "`{}` is a binary file of {} bytes; with `binary` it is returned as base64, and scripts of the skill can read it",
                file.path, file.bytes
            );
            return Err(ToolError::new(Outcome::Failed, message));
        }
    };
    let line = answer.to_string();
    recorder.usage.count_answer(line.len(), limits.stdout)?;
    Ok(finish(Ok(Some(line)), "", scope, recorder, |line, _| line.as_ref().map_or(0, String::len)))
}

/// Marks the answer as text of a stranger, unless a person answers for the skill.
pub(super) fn mark(tool: &Tool, skill: &Skill, recorder: &CallRecorder<'_>) {
    if !tool.is_vouched_for() {
        let mut label = Label::default();
        label.mark(&Mark::Untrusted, &format!("skill:{}", skill.name).into());
        recorder.usage.flow.join(&label);
    }
}

/// Reads a file as it was when the skill was loaded.
///
/// # Errors
///
/// [`Outcome::Failed`] if it has changed, or cannot be read.
pub(super) async fn read_bytes(skill: &Arc<Skill>, file: &SkillFile) -> Result<Vec<u8>, ToolError> {
    let (skill, wanted) = (skill.clone(), file.clone());
    let read = tokio::task::spawn_blocking(move || read_skill_file(&skill, &wanted)).await;
    let failed = |message: String| ToolError::new(Outcome::Failed, message);
    let bytes = read.map_err(|_| failed(format!("`{}` could not be read", file.path)))?;
    bytes.map_err(|error: ReadError| failed(error.message(file)))
}

/// Returns the text of a file, or its bytes if it is no text.
fn text(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    if bytes.contains(&0) {
        return Err(bytes);
    }
    String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
}

/// Returns a skill's instructions and its file list.
fn overview(skill: &Skill, instructions: &str) -> Value {
    let file = |file: &SkillFile| {
        let mut row = Map::from_iter([("path".to_owned(), json!(file.path)), ("bytes".to_owned(), json!(file.bytes))]);
        match file.usage() {
            SkillFileUse::Script(language) => row.insert("script".to_owned(), json!(language.as_str())),
            SkillFileUse::Native(kind) => row.insert("notRun".to_owned(), json!(kind)),
            SkillFileUse::Data => None,
        };
        Value::Object(row)
    };
    let files: Vec<Value> = skill.files.iter().map(file).collect();
    let mut answer = json!({ "skill": skill.name, "instructions": instructions, "files": files });
    if let Some(runner) = &skill.runner {
        answer["scriptsAreRunBy"] = json!(runner);
    }
    answer
}
