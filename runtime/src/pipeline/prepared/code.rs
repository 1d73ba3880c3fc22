//! The interpreters of programs that call tools, one for each language.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::delegate::MAX_DEPTH;
use crate::error::{Outcome, ToolError};
use crate::sandbox::{CodeInterpreter, MAX_PROGRAMS, Sandbox};
use crate::tool::Limits;

use super::PreparedTool;
use super::host_component::{HostComponent, InterpreterSource};

/// Language of programs that call tools.
#[derive(Clone)]
pub(crate) struct CodeLanguage {
    /// Name, such as `python`.
    pub(crate) name: String,
    /// Description of the language for a model.
    pub(crate) guide: String,
    /// Component of its interpreter.
    pub(crate) component: InterpreterSource,
}

/// The interpreters of programs, and the permits to run one.
pub(crate) struct CodeInterpreters {
    languages: Vec<(String, Arc<HostComponent<CodeInterpreter>>)>,
    /// `true` if a model is shown the tools for programs instead of those that programs can call.
    pub(crate) only: bool,
    /// Permits by depth: programs of a delegated agent take none from the programs that wait for it.
    permits: Arc<[Semaphore; MAX_DEPTH as usize + 1]>,
}

impl CodeInterpreters {
    /// Creates the state of interpreters that are not compiled; without a language no program can run.
    pub(crate) fn new(sandbox: &Arc<Sandbox>, languages: Vec<CodeLanguage>, only: bool) -> Self {
        let permits = Arc::new(std::array::from_fn(|_| Semaphore::new(MAX_PROGRAMS as usize)));
        Self { languages: Vec::new(), only, permits }.with_languages(sandbox, languages, only)
    }

    /// Creates the state of another runtime in the same sandbox, which shares the permits and compiled interpreters.
    pub(crate) fn with_languages(&self, sandbox: &Arc<Sandbox>, languages: Vec<CodeLanguage>, only: bool) -> Self {
        let component = |language: CodeLanguage| {
            let known = |(name, known): &&(String, Arc<HostComponent<CodeInterpreter>>)| {
                *name == language.name && known.is_of(Some(&language.component))
            };
            if let Some((name, known)) = self.languages.iter().find(known) {
                return (name.clone(), known.clone());
            }
            let prepare = |sandbox: &Sandbox, digest: &str, read: &dyn Fn() -> _, counts_fuel| {
                sandbox.prepare_code_interpreter(digest, read, counts_fuel)
            };
            let component = Some(language.component);
            let component = HostComponent::new(sandbox.clone(), component, "interpreter of programs", prepare);
            (language.name, Arc::new(component))
        };
        let languages = languages.into_iter().map(component).collect();
        Self { languages, only, permits: self.permits.clone() }
    }

    /// Returns `true` if a model can write programs.
    pub(crate) fn is_offered(&self) -> bool {
        !self.languages.is_empty()
    }

    /// Returns the first language, which a program without a language is in.
    pub(crate) fn default_language(&self) -> &str {
        self.languages.first().map_or("", |(name, _)| name)
    }

    /// Returns the interpreter of a language, and the permit to run one program at a depth.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is no interpreter, or it cannot run; [`Outcome::Busy`] if other programs run until the
    /// deadline.
    pub(crate) async fn interpreter(
        &self,
        language: &str,
        prepared: &PreparedTool,
        limits: &Limits,
        depth: u32,
    ) -> Result<(Arc<CodeInterpreter>, SemaphorePermit<'_>), ToolError> {
        let component = self.languages.iter().find(|(name, _)| name == language);
        let missing = || ToolError::new(Outcome::BadComponent, format!("there is no interpreter of `{language}`"));
        let interpreter = component.ok_or_else(missing)?.1.get(prepared).await?;
        let permits = &self.permits[(depth as usize).min(self.permits.len() - 1)];
        let permit = tokio::time::timeout(limits.deadline, permits.acquire()).await;
        let busy = || ToolError::new(Outcome::Busy, format!("{MAX_PROGRAMS} other programs run"));
        Ok((interpreter, permit.ok().and_then(Result::ok).ok_or_else(busy)?))
    }
}
