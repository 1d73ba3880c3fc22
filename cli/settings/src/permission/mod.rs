//! Approval prompts on the terminal, calls that wait for an answer from another terminal, permanent approvals, and hints about
//! denied or stopped calls. Rules and tool definitions decide which calls need approval; this module decides nothing.

mod denial;
mod deny_flags;
mod difference;
mod effects;
mod folders;
mod keyboard;
mod layout;
mod limits;
mod one_key;
mod pending;
mod person;
mod refusal;
mod removal;
mod sheet;
mod typed;

pub use denial::denial_hints;
pub use deny_flags::DenyFlags;
pub use folders::{FolderHints, folders_hint};
pub use limits::limit_hint;
pub use one_key::{KeyAnswer, ask_key, ask_person_key};
pub use pending::{
    PendingApprover, PendingCall, PendingCalls, Waiting, WaitingApprover, WaitingCallback, announce, is_denial, key,
    pending_refusal,
};
pub use person::{TerminalApprover, store_approval};
pub use refusal::hint;

use std::io::{self, Write};
use std::path::Path;

use toolcrib::policy::{ApprovalRequest, Withheld};
use toolcrib::tool::Trust;
use toolcrib_base::render::{self, lock_terminal, one_line};

use keyboard::Keyboard;

/// Prints a question and reads one line at the terminal; `None` at the end of input. Input typed before the question is
/// discarded.
pub async fn ask(question: &str) -> Option<String> {
    let mut keyboard = Keyboard::default();
    keyboard.discard();
    {
        let _lock = lock_terminal();
        let mut stderr = io::stderr();
        // A question that cannot be printed is not answered.
        write!(stderr, "{}", render::question(question)).and_then(|()| stderr.flush()).ok()?;
    }
    keyboard.line().await
}

/// Returns `true` if somebody can answer a question at the terminal.
pub fn can_ask() -> bool {
    Keyboard::open().is_some()
}

/// Parts of a request that its tool and its arguments determine.
#[derive(Debug)]
pub struct RequestDetails {
    /// Source of the tool and its program, as absolute paths.
    pub source: String,
    /// Fixed arguments of the program, as JSON text.
    pub fixed: Option<String>,
    /// Properties of the tool with their basis.
    pub properties: String,
    /// Lines that the call would change, if its arguments have them.
    pub changes: Option<String>,
}

impl RequestDetails {
    /// Creates the details of a request.
    pub fn new(request: &ApprovalRequest<'_>) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let tool = request.tool;
        Self {
            source: sheet::source(tool, absolute),
            fixed: sheet::fixed(&tool.body),
            properties: sheet::facts(tool),
            changes: changes(request),
        }
    }
}

/// Returns the lines or files that a call would change, or the effects that it has held back.
fn changes(request: &ApprovalRequest<'_>) -> Option<String> {
    match request.effects {
        Some(effects) => Some(effects::described(effects)),
        None => difference::of(request).map(|difference| difference.text).or_else(|| removal::of(request)),
    }
}

/// Returns the action of a call in one line, as its tool's definition words it. Strangers have no word in it.
fn action(request: &ApprovalRequest<'_>) -> Option<String> {
    if let Some(effects) = request.effects {
        return Some(effects::action(effects));
    }
    let summary = request.summary.filter(|_| request.tool.origin.trust != Trust::Stranger)?;
    let line = one_line(summary);
    let mut characters = line.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect())
}

/// Text width of a request that another program shows, in columns.
const TEXT_WIDTH: usize = 100;

/// Maximum length of such a request in bytes.
const MAX_TEXT: usize = 16 << 10;

/// Formats an approval request for another program that asks the user; `None` if it is too long to be shown whole, or if rules
/// withhold it from a model, which that program may show it to. Of many effects that were held back, the entries alone are listed.
pub fn request_text(request: &ApprovalRequest<'_>) -> Option<String> {
    let changes: &[Changes] = match (request.withheld, request.effects) {
        (Withheld::Arguments, _) | (Withheld::Contents, Some(_)) => return None,
        (Withheld::Nothing, Some(effects)) if effects::has_long_requests(effects) => return None,
        // What an agreement allows is listed at least.
        (Withheld::Nothing, Some(_)) => &[Changes::Compared, Changes::Listed],
        (Withheld::Nothing, None) => &[Changes::Compared, Changes::Hidden],
        (Withheld::Contents, None) => &[Changes::Hidden],
    };
    let mut texts = changes.iter().map(|changes| sheet::Sheet::for_client(request, TEXT_WIDTH, *changes).text);
    texts.find(|text| text.len() <= MAX_TEXT)
}

/// Form in which a request shows changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changes {
    /// Line by line.
    Compared,
    /// One line for each entry; for effects that were held back.
    Listed,
    Hidden,
}
