//! The interpreters of programs that call tools, one for each language.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Outcome, ToolError};
use crate::pipeline::state::{Concurrency, Memory, Permit};
use crate::sandbox::{CodeInterpreter, MAX_PROGRAMS, Sandbox};
use crate::tool::Limits;

use super::PreparedTool;
use super::host_component::{HostComponent, InterpreterSource};

/// Maximum number of programs that wait for another to end.
const MAX_WAITING: usize = 256;

/// Language of programs that call tools.
#[derive(Clone)]
pub(crate) struct CodeLanguage {
    /// Name, such as `python`.
    pub(crate) name: String,
    /// Description of the language for a model.
    pub(crate) guide: String,
    /// Component of its interpreter.
    pub(crate) component: InterpreterSource,
    /// File that the interpreter comes from; `None` if the embedder passed it in.
    pub(crate) file: Option<Arc<Path>>,
}

/// Interpreter of a language.
struct LanguageInterpreter {
    language: String,
    file: Option<Arc<Path>>,
    component: Arc<HostComponent<CodeInterpreter>>,
}

/// The interpreters of programs, and their concurrency limits.
pub(crate) struct CodeInterpreters {
    languages: Vec<LanguageInterpreter>,
    /// `true` if a model is shown the tools for programs instead of those that programs can call.
    pub(crate) only: bool,
    /// Limits of concurrent and waiting programs.
    concurrency: Arc<Concurrency>,
}

impl CodeInterpreters {
    /// Creates the state of interpreters that are not compiled; without a language no program can run.
    pub(crate) fn new(sandbox: &Arc<Sandbox>, languages: Vec<CodeLanguage>, only: bool) -> Self {
        let concurrency = Arc::new(Concurrency::new(MAX_PROGRAMS, MAX_WAITING));
        Self { languages: Vec::new(), only, concurrency }.with_languages(sandbox, languages, only)
    }

    /// Creates the state of another runtime in the same sandbox, which shares the limits and compiled interpreters.
    pub(crate) fn with_languages(&self, sandbox: &Arc<Sandbox>, languages: Vec<CodeLanguage>, only: bool) -> Self {
        let interpreter = |CodeLanguage { name: language, component, file, .. }: CodeLanguage| {
            let is_same =
                |known: &&LanguageInterpreter| known.language == language && known.component.is_of(Some(&component));
            if let Some(known) = self.languages.iter().find(is_same) {
                return LanguageInterpreter { language, file, component: known.component.clone() };
            }
            let prepare = |sandbox: &Sandbox, digest: &str, read: &dyn Fn() -> _, counts_fuel| {
                sandbox.prepare_code_interpreter(digest, read, counts_fuel)
            };
            let component = HostComponent::new(sandbox.clone(), Some(component), "interpreter of programs", prepare);
            LanguageInterpreter { language, file, component: Arc::new(component) }
        };
        let languages = languages.into_iter().map(interpreter).collect();
        Self { languages, only, concurrency: self.concurrency.clone() }
    }

    /// Returns `true` if a model can write programs.
    pub(crate) fn is_offered(&self) -> bool {
        !self.languages.is_empty()
    }

    /// Returns the first language, which a program without a language is in.
    pub(crate) fn default_language(&self) -> &str {
        self.languages.first().map_or("", |first| &first.language)
    }

    /// Returns each language with the file of its interpreter.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, Option<&Path>)> {
        self.languages.iter().map(|one| (one.language.as_str(), one.file.as_deref()))
    }

    /// Returns a language's interpreter, and the permit to run one program for a conversation at a depth.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is no interpreter, or it cannot run; [`Outcome::Busy`] if other programs run until the
    /// deadline.
    pub(crate) async fn interpreter(
        &self,
        language: &str,
        prepared: &PreparedTool,
        memory: &Memory,
        limits: &Limits,
        depth: u32,
    ) -> Result<(Arc<CodeInterpreter>, Permit<'_>), ToolError> {
        let known = self.languages.iter().find(|known| known.language == language);
        let missing = || ToolError::new(Outcome::BadComponent, format!("there is no interpreter of `{language}`"));
        let interpreter = known.ok_or_else(missing)?.component.get(prepared).await?;
        let permit = self.concurrency.acquire_any(memory, limits, depth).await;
        let busy = |_| ToolError::new(Outcome::Busy, format!("{MAX_PROGRAMS} other programs run"));
        Ok((interpreter, permit.map_err(busy)?))
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn programs_beyond_those_that_run_and_wait_are_refused() {
        let concurrency = Concurrency::new(MAX_PROGRAMS, MAX_WAITING);
        let (memory, limits) = (Memory::default(), Limits::with_deadline(std::time::Duration::from_millis(50)));
        let all = MAX_PROGRAMS as usize + MAX_WAITING + 1;
        let ended = join_all((0..all).map(|_| concurrency.acquire_any(&memory, &limits, 0))).await;
        let of = |outcome: Outcome| {
            ended.iter().filter(|ended| ended.as_ref().is_err_and(|it| it.outcome == outcome)).count()
        };
        assert_eq!(ended.iter().filter(|ended| ended.is_ok()).count(), MAX_PROGRAMS as usize);
        assert_eq!((of(Outcome::Deadline), of(Outcome::Busy)), (MAX_WAITING, 1));
    }
}
