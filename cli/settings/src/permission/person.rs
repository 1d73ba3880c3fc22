//! Approval prompts on the terminal, one at a time, short at first and in full on request. One key answers, or a line where keys
//! do not arrive one by one, and only one that was typed after the prompt was shown; without a terminal the answer is
//! [`ApprovalAnswer::Nobody`].

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::{Mutex as Lock, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use toolcrib::policy::{Approval, ApprovalAnswer, ApprovalRequest, Approvals, Approver, StoredApproval};
use toolcrib_base::render::{self, Tone, one_line};

use super::keyboard::{Keyboard, Pressed, TypedLine};
use super::one_key::{OpenLine, explain, interrupted, pressed};
use super::sheet::Sheet;
use super::typed::{Durations, Typed};

/// Assumed width of a terminal that does not report one, in columns.
const DEFAULT_WIDTH: usize = 80;
/// Maximum number of answers that are not understood; after these the call is denied.
const MAX_UNCLEAR: usize = 5;

/// Explanation of the answers.
const NOT_UNDERSTOOD: &str = "Not understood: press one of the letters in brackets; Enter alone means no.";
/// Explanation of the answers where lines are typed.
const LINE_NOT_UNDERSTOOD: &str = "Not understood: type a letter in brackets and press Enter.\n\
                                   Text after `n` is a reason that the model gets; Enter alone means no.";
/// Question for the reason of a no, which is a line.
const REASON: &str = "Reason that the model gets: ";
/// The same where Escape leads back to the question about the call.
const REASON_OR_BACK: &str = "Reason that the model gets (Escape: back): ";

/// Asks the user at the terminal for approvals.
#[derive(Debug)]
pub struct TerminalApprover {
    /// File that stores permanent approvals.
    approvals: Option<Approvals>,
    /// Permanent approvals given earlier.
    earlier: Vec<StoredApproval>,
    /// Tools and rules for which the outdated approval was already reported.
    reported: Lock<HashSet<(String, String)>>,
    /// Locked while a prompt is shown.
    state: Mutex<PromptState>,
}

/// State shared by all prompts.
#[derive(Debug, Default)]
struct PromptState {
    /// The terminal, once it was opened.
    keyboard: Option<Keyboard>,
    /// Approvals for more than one call, `true` for permanent ones: a queued prompt may be covered by an earlier answer.
    granted: HashMap<Approval, bool>,
}

impl TerminalApprover {
    /// Creates an approver that stores permanent approvals in `approvals`, and reads those already stored.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn new(approvals: Option<Approvals>) -> anyhow::Result<Self> {
        let earlier = approvals.as_ref().map_or(Ok(Vec::new()), Approvals::read)?;
        Ok(Self { approvals, earlier, reported: Lock::default(), state: Mutex::default() })
    }

    /// Permanent approvals that were stored when the approver was created.
    pub fn earlier(&self) -> &[StoredApproval] {
        &self.earlier
    }

    /// Reports once why an earlier approval does not cover this call. A matching approval would have prevented the prompt.
    fn explain(&self, approval: &Approval) {
        let about = |given: &&StoredApproval| {
            given.owner == approval.owner && given.tool == approval.tool && given.rule == approval.rule
        };
        let Some(given) = self.earlier.iter().rfind(about) else { return };
        let key = (approval.tool.clone(), approval.rule.clone());
        if self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            let why = match given.definition {
                None => "it was stored by an earlier version without the tool's definition",
                Some(_) => "the tool's program, definition, source or permissions have changed since",
            };
            render::hint(&format!("an approval of `{}` does not apply: {why}", one_line(&approval.tool)));
        }
    }

    async fn answer(&self, question: ApprovalRequest<'_>) -> ApprovalAnswer {
        if let Some(approval) = question.approval {
            self.explain(approval);
        }
        let mut state = self.state.lock().await;
        let PromptState { keyboard, granted } = &mut *state;
        if keyboard.is_none() {
            *keyboard = Keyboard::open();
        }
        let Some(keyboard) = keyboard else { return ApprovalAnswer::Nobody };
        let Some(approval) = question.approval else {
            return ask(keyboard, &question, Durations { session: false, always: false }).await;
        };
        if let Some(is_permanent) = granted.get(approval) {
            return ApprovalAnswer::Earlier { is_permanent: *is_permanent };
        }
        let offered = Durations { session: true, always: self.approvals.is_some() };
        let answer = match (ask(keyboard, &question, offered).await, &self.approvals) {
            (ApprovalAnswer::Always, Some(approvals)) => store_approval(approvals.clone(), approval.clone()).await,
            (answer, _) => answer,
        };
        if matches!(answer, ApprovalAnswer::Session | ApprovalAnswer::Always) {
            granted.insert(approval.clone(), answer == ApprovalAnswer::Always);
        }
        answer
    }
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(question).boxed()
    }
}

/// Stores a permanent approval. If that fails, the approval covers the session only.
pub async fn store_approval(approvals: Approvals, approval: Approval) -> ApprovalAnswer {
    let stored = tokio::task::spawn_blocking(move || approvals.add(&approval)).await;
    match stored.map_err(anyhow::Error::from).and_then(|stored| Ok(stored?)) {
        Ok(()) => ApprovalAnswer::Always,
        Err(error) => {
            render::warning(&format!("{}; you will be asked again in the next session", render::message(&error)));
            ApprovalAnswer::Session
        }
    }
}

/// Shows a prompt until it is answered. Enter alone means no; anything unknown is explained and asked again, at most
/// [`MAX_UNCLEAR`] times. All other output waits meanwhile.
async fn ask(keyboard: &mut Keyboard, question: &ApprovalRequest<'_>, offered: Durations) -> ApprovalAnswer {
    let _quiet = render::lock_terminal();
    let (mut in_full, mut unclear) = (false, 0);
    let session = if offered.session { ", [s]ession" } else { "" };
    let always = if offered.always { ", [a]lways" } else { "" };
    loop {
        let width = width();
        let sheet = match in_full {
            true => Sheet::full(question, width, true).with_scope(question.approval),
            false => Sheet::short(question, width),
        };
        keyboard.discard();
        let asked = if question.effects.is_some() { "Make these changes?" } else { "Allow this call?" };
        say(&format!("\n{}\n{}", render::paint(Tone::Doubtful, asked, true), sheet.text));
        let details = if in_full { "" } else { ", [d]etails" };
        let yes = if question.effects.is_some() { "Make them: [y]es" } else { "Allow [o]nce (y)" };
        loop {
            let options = format!("{yes}{session}{always}{details}, no with [r]eason, or [N]o? ");
            let (typed, help) = match pressed(keyboard, &options, say).await {
                Pressed::Key(key) => (Typed::parse(key.encode_utf8(&mut [0; 4]), offered, !in_full), NOT_UNDERSTOOD),
                Pressed::Line(line) => (Typed::parse(&line, offered, !in_full), LINE_NOT_UNDERSTOOD),
                Pressed::No => return ApprovalAnswer::No,
                Pressed::Interrupt => interrupted().await,
                Pressed::Several => (None, NOT_UNDERSTOOD),
            };
            match typed {
                Some(Typed::Answer(answer)) => return answer,
                Some(Typed::Details) => break,
                Some(Typed::Reason) => {
                    if let Some(answer) = reason(keyboard).await {
                        return answer;
                    }
                }
                None if unclear == MAX_UNCLEAR => {
                    explain("Not understood: the call is denied.", say);
                    return ApprovalAnswer::No;
                }
                None => {
                    unclear += 1;
                    explain(help, say);
                }
            }
        }
        in_full = true;
    }
}

/// Asks for the reason of a no; `None` if the person goes back to the question.
async fn reason(keyboard: &mut Keyboard) -> Option<ApprovalAnswer> {
    let line = OpenLine(say);
    let ask = |escapes| say(&render::question(if escapes { REASON_OR_BACK } else { REASON }));
    match keyboard.line_or_escape(ask).await {
        TypedLine::Text(reason) => {
            line.ended();
            Some(if reason.is_empty() { ApprovalAnswer::No } else { ApprovalAnswer::NoBecause(reason) })
        }
        TypedLine::End => Some(ApprovalAnswer::No),
        TypedLine::Escape => None,
    }
}

/// Returns the columns of the terminal.
fn width() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0))
}

fn say(text: &str) {
    // If the terminal is gone, no answer will arrive either.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
