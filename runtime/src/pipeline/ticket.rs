//! What a call is signed for with: it gathers the receipt while the call runs, and writes exactly one record when the
//! call ends, also when its future is dropped.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::audit::Audit;
use crate::call::{Denial, Receipt, ToolCall, ToolResult};
use crate::error::{Error, Outcome, ToolError};
use crate::policy::{Grant, real_path};
use crate::sandbox::Meter;
use crate::tool::Access;

/// The most characters of a caller's words that go into a record.
const LONGEST_WORD: usize = 256;

pub(super) struct Ticket {
    pub(super) meter: Arc<Meter>,
    audit: Arc<Audit>,
    started: Instant,
    receipt: Option<Receipt>,
    argv: Vec<String>,
    /// The host's folder behind the guest's `/`.
    cwd: Option<String>,
    /// That folder where it is the only one, so that a path of the guest's has one meaning.
    folder: Option<(PathBuf, Access)>,
    /// Whether the operator denied something that was asked for.
    stated_denial: bool,
    log: String,
    fault: Option<Error>,
}

impl Ticket {
    pub(super) fn new(audit: Arc<Audit>, call: &ToolCall) -> Self {
        let receipt = Receipt {
            call_id: clip(&call.id),
            invocation: String::new(),
            tool: clip(&call.name),
            digest: None,
            outcome: Outcome::Cancelled,
            decision: None,
            mutations: Vec::new(),
            waited_ms: 0.0,
            written: None,
            persisted: None,
            exit: None,
            ms: 0.0,
            cpu_ms: 0.0,
            fuel: None,
            peak_memory_bytes: 0,
            stdin_bytes: 0,
            stdout_bytes: 0,
            stderr_bytes: 0,
            truncated: false,
            env_keys: Vec::new(),
            granted: Vec::new(),
            denied: Vec::new(),
        };
        Self {
            meter: Arc::default(),
            audit,
            started: Instant::now(),
            receipt: Some(receipt),
            argv: Vec::new(),
            cwd: None,
            folder: None,
            stated_denial: false,
            log: String::new(),
            fault: None,
        }
    }

    /// Notes what the tool was granted.
    pub(super) fn permit(&mut self, grant: &Grant, argv: &[String]) {
        self.argv = argv.to_vec();
        if let [only] = grant.folders() {
            self.folder = Some((only.host.clone(), only.access));
        }
        self.stated_denial = grant.denied().iter().any(|denial| denial.flag.is_none());
        self.cwd = grant.folders().first().map(|folder| folder.host.display().to_string());
        if let Some(receipt) = &mut self.receipt {
            receipt.env_keys = grant.env_keys().map(str::to_owned).collect();
            receipt.granted = grant.granted();
            receipt.denied = grant.denied().to_vec();
        }
    }

    /// Notes the program that is about to run.
    pub(super) fn program(&mut self, digest: &str, stdin: usize) {
        if let Some(receipt) = &mut self.receipt {
            receipt.digest = Some(digest.to_owned());
            receipt.stdin_bytes = stdin as u64;
        }
    }

    pub(super) fn exited(&mut self, code: i32) {
        if let Some(receipt) = &mut self.receipt {
            receipt.exit = Some(code);
        }
    }

    pub(super) fn log(&mut self, stderr: &[u8]) {
        self.log = String::from_utf8_lossy(stderr).into_owned();
    }

    /// Writes the record and makes the result. An answer that cannot be signed for is not given.
    pub(super) fn close(mut self, call: ToolCall, ended: Result<String, ToolError>) -> ToolResult {
        let mut receipt = self.settle(ended.as_ref().map_or_else(|error| error.outcome, |_| Outcome::Ok));
        let outcome = match ended {
            Err(error) if error.outcome == Outcome::Unlogged => Err(error),
            ended => match self.audit.write(&receipt, &self.argv, self.cwd.take()) {
                Ok(()) => ended,
                Err(error) => {
                    receipt.outcome = Outcome::Unlogged;
                    Err(self.fault(error))
                }
            },
        };
        let log = std::mem::take(&mut self.log);
        let fault = self.fault.take();
        ToolResult { call_id: call.id, name: call.name, outcome, display: None, transcript: None, log, fault, receipt }
    }

    /// Keeps a fault of the host for the operator and gives what the model is told of it.
    pub(super) fn fault(&mut self, fault: Error) -> ToolError {
        let told = ToolError::of_fault(&fault);
        self.fault = Some(fault);
        told
    }

    /// The receipt with the figures of the meter. After this the ticket is closed.
    fn settle(&mut self, outcome: Outcome) -> Receipt {
        let mut receipt = self.receipt.take().expect("a ticket is closed once");
        let meter = &self.meter;
        receipt.outcome = outcome;
        receipt.ms = round(self.started.elapsed().as_secs_f64() * 1e3);
        receipt.cpu_ms = round(meter.processor_nanos.load(Relaxed) as f64 / 1e6);
        receipt.fuel = Some(meter.fuel.load(Relaxed)).filter(|fuel| *fuel > 0);
        receipt.peak_memory_bytes = meter.peak_memory.load(Relaxed);
        receipt.stdout_bytes = meter.stdout.load(Relaxed);
        receipt.stderr_bytes = meter.stderr.load(Relaxed);
        receipt.truncated = meter.truncated.load(Relaxed);
        receipt.denied.extend(meter.denials().into_iter().map(|(access, path)| self.denial(access, &path)));
        receipt
    }

    /// A refused path with the flag that would have allowed it: writing inside a folder that is granted for reading
    /// needs that folder, a path outside needs the folder it leads to. Where the path alone does not tell, there is none.
    fn denial(&self, access: Access, path: &str) -> Denial {
        let word = access.as_str();
        let flag = self.folder.as_ref().and_then(|(folder, granted)| {
            let wanted = real_path(&folder.join(path.trim_start_matches('/')));
            let inside = wanted.starts_with(folder);
            match (inside, wanted.parent()) {
                (true, _) if access > *granted && !self.stated_denial => {
                    Some(format!("--allow-{word}={}", folder.display()))
                }
                (false, Some(parent)) => Some(format!("--allow-{word}={}", parent.display())),
                _ => None,
            }
        });
        Denial { capability: format!("{word}:{path}"), flag }
    }
}

impl Drop for Ticket {
    /// A call whose future was dropped has no caller left, but it has a record.
    fn drop(&mut self) {
        if self.receipt.is_some() {
            let receipt = self.settle(Outcome::Cancelled);
            let _ = self.audit.write(&receipt, &self.argv, self.cwd.take());
        }
    }
}

fn clip(word: &str) -> String {
    word.chars().take(LONGEST_WORD).collect()
}

/// Microseconds are as fine as these clocks are worth.
fn round(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
