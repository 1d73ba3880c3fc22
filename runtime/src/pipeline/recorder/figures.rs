//! Figures of a finished call: copied from its usage into its receipt, with each refusal and the flag that would allow it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::call::{Denial, Receipt, pasted};
use crate::error::{Outcome, ToolError};
use crate::policy::{Secrets, real_path};
use crate::tool::{Access, Body, FileRequest};

use super::{CallRecorder, redact};

/// Parts of the words in errors about files.
const FILE_WORDS: [&str; 11] =
    ["file", "folder", "director", "path", "open", "exist", "found", "permi", "access", "descriptor", "errno"];

/// Words of Python for a module that is missing, which is no file of the user.
const MISSING_MODULE: &str = "no module named";

/// Returns `true` if the text of an error may be about a file.
fn is_about_files(text: &str) -> bool {
    let text = text.to_lowercase();
    text.is_empty() || !text.contains(MISSING_MODULE) && FILE_WORDS.iter().any(|word| text.contains(word))
}

/// Returns the last line of a log, which names the reason of a crash.
fn last_words(log: &str) -> Option<&str> {
    log.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("note:"))
}

impl CallRecorder<'_> {
    /// Takes the receipt and completes it with the figures of the usage. After this the recorder is closed.
    pub(super) fn complete(&mut self, error: Option<&ToolError>) -> Receipt {
        let outcome = error.map_or(Outcome::Ok, |error| error.outcome);
        let mut receipt = self.receipt.take().expect("a recorder is closed once");
        let usage = &self.usage;
        receipt.outcome = outcome;
        receipt.ms = milliseconds(self.started.elapsed());
        receipt.waited_ms = milliseconds(self.budget.waited);
        receipt.cpu_ms = milliseconds(Duration::from_nanos(usage.processor_nanos.load(Relaxed)));
        receipt.fuel = Some(usage.fuel.load(Relaxed)).filter(|fuel| *fuel > 0);
        receipt.peak_memory_bytes = usage.peak_memory.load(Relaxed);
        receipt.stdout_bytes = usage.stdout.load(Relaxed);
        receipt.stderr_bytes = usage.stderr.load(Relaxed);
        receipt.disk_bytes = usage.disk_bytes.load(Relaxed);
        receipt.disk_entries = usage.disk_entries.load(Relaxed);
        receipt.truncated = usage.truncated.load(Relaxed);
        receipt.network = usage.requests().summary();
        if let (Some(effects), Some(network)) = (usage.effects.get(), &receipt.network) {
            effects.sent.add(network);
        }
        receipt.denied.extend(usage.requests().denials());
        receipt.denied.extend(usage.denials().into_iter().map(|(access, path)| self.path_denial(access, &path)));
        receipt.denied.extend(usage.refusals());
        receipt.denied.extend(self.missing_folder(error));
        receipt.missed_folders = usage.missed_folders() && error.is_none_or(|error| self.may_concern_files(error));
        usage.hooks().into_iter().for_each(|hook| receipt.add_hook(hook));
        receipt.executed = usage.executed();
        receipt.executions = usage.executions.load(Relaxed);
        receipt.added = usage.additions();
        receipt.delegated = usage.delegated.load(Relaxed);
        receipt.calls = usage.calls.load(Relaxed);
        receipt.completions = usage.completions.load(Relaxed);
        receipt.tokens = usage.tokens.load(Relaxed);
        receipt.parts = self.parts;
        receipt.dropped_parts = usage.dropped_parts.load(Relaxed);
        receipt.secrets = usage.requests().secrets();
        receipt.label = Some(usage.flow.label()).filter(|label| !label.is_empty());
        if let Some(scanner) = self.secrets.and_then(Secrets::scanner) {
            redact::redact_receipt(&mut receipt, &scanner);
        }
        receipt
    }

    /// Returns a denial for a failed tool that looked for folders, requested none and was granted none.
    fn missing_folder(&self, error: Option<&ToolError>) -> Option<Denial> {
        let error = error.filter(|error| matches!(error.outcome, Outcome::Failed | Outcome::Trap))?;
        let tool = self.tool.filter(|_| self.may_concern_files(error))?;
        let requested = &tool.requested;
        let is_open = matches!(requested.files, FileRequest::None) && !requested.declared && !self.stated_denial;
        let missed = is_open && self.folder.is_none() && self.usage.missed_folders();
        let access = Access::Read.as_str();
        missed.then(|| Denial { capability: access.to_owned(), flag: Some(format!("--allow-{access}=DIR")) })
    }

    /// Returns `false` for an error of a component's function that is about something else than files: an interpreter that is
    /// a part of the component looks for folders at each start.
    fn may_concern_files(&self, error: &ToolError) -> bool {
        let is_function = self.tool.is_some_and(|tool| matches!(tool.body, Body::Typed(_) | Body::Rich(_)));
        let crash = || last_words(&self.log).filter(|_| error.outcome == Outcome::Trap);
        !is_function || is_about_files(&error.message) || crash().is_some_and(is_about_files)
    }

    /// Returns the denial of a path with the flag that would allow it: writing inside a folder granted for reading needs
    /// that folder. There is no flag for a path that leaves the folder: an argument must not lead a person to grant more
    /// and more of the folders above.
    pub(crate) fn path_denial(&self, access: Access, path: &str) -> Denial {
        let word = access.as_str();
        let flag = self.folder.as_ref().and_then(|(folder, granted)| {
            let is_inside = real_path(&folder.join(path.trim_start_matches('/'))).starts_with(folder);
            let helps = is_inside && access > *granted && !self.stated_denial && self.may_get(access);
            helps.then(|| pasted(&format!("--allow-{word}"), &folder.to_string_lossy())).flatten()
        });
        Denial { capability: format!("{word}:{path}"), flag }
    }

    /// Returns `true` if the tool requests this access to a folder that a flag names.
    fn may_get(&self, access: Access) -> bool {
        self.tool.is_none_or(|tool| match &tool.requested.files {
            FileRequest::None => !tool.requested.declared,
            FileRequest::Workspace(most) => *most >= access,
            FileRequest::Folders(folders) => folders.iter().any(|folder| folder.access >= access),
        })
    }
}

/// Converts a duration to milliseconds with microsecond precision.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
