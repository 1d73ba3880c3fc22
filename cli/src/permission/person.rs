//! The person at the terminal, who is asked one question at a time. Only a line typed after the question was shown
//! answers it; without a terminal there is nobody.

use std::collections::{HashMap, HashSet};
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex as Lock, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use toolcrib::policy::{Approval, ApprovalAnswer, ApprovalRequest, Approvals, Approver, StoredApproval};

use crate::render::{self, Tone, one_line};

use super::keyboard::Keyboard;
use super::sheet::Sheet;

/// Columns of a terminal that does not tell its width.
const WIDTH: usize = 80;

/// Whoever sits at the terminal.
#[derive(Debug)]
pub(crate) struct Person {
    approvals: Option<Approvals>,
    /// Permanent approvals given earlier.
    earlier: Vec<StoredApproval>,
    /// The tools and rules of which it was said that an earlier approval no longer applies.
    hinted: Lock<HashSet<(String, String)>>,
    /// One question at a time.
    turn: Mutex<Turn>,
}

/// What lasts from one question to the next.
#[derive(Debug, Default)]
struct Turn {
    keyboard: Keyboard,
    /// What was agreed to for longer than one call: a question that waited for its turn may be about the same.
    agreed: HashMap<Approval, ApprovalAnswer>,
}

impl Person {
    /// The person at the terminal; what they agree to for always goes into `approvals`, which held `earlier`.
    pub(crate) fn new(approvals: Option<Approvals>, earlier: Vec<StoredApproval>) -> Self {
        Self { approvals, earlier, hinted: Lock::default(), turn: Mutex::default() }
    }

    /// Says once why an earlier approval does not answer this question: had it matched, nobody would be asked.
    fn explain(&self, approval: &Approval) {
        let about = |given: &&StoredApproval| given.tool == approval.tool && given.rule == approval.rule;
        let Some(given) = self.earlier.iter().rfind(about) else { return };
        let key = (approval.tool.clone(), approval.rule.clone());
        if self.hinted.lock().unwrap_or_else(PoisonError::into_inner).insert(key) {
            let why = match given.definition {
                None => "an earlier version stored it, without the definition of the tool",
                Some(_) => "its program, its definition, its source or what it may use has changed since",
            };
            render::hint(&format!("an approval of `{}` does not apply: {why}", one_line(&approval.tool)));
        }
    }

    async fn answer(&self, question: ApprovalRequest<'_>) -> ApprovalAnswer {
        if let Some(approval) = question.approval {
            self.explain(approval);
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return ApprovalAnswer::Nobody;
        }
        let mut turn = self.turn.lock().await;
        let Some(approval) = question.approval else {
            return ask(&mut turn.keyboard, &question, Terms { session: false, always: false }).await;
        };
        if let Some(answer) = turn.agreed.get(approval) {
            return *answer;
        }
        let terms = Terms { session: true, always: self.approvals.is_some() };
        let answer = match (ask(&mut turn.keyboard, &question, terms).await, &self.approvals) {
            (ApprovalAnswer::Always, Some(approvals)) => keep(approvals.clone(), approval.clone()).await,
            (answer, _) => answer,
        };
        if matches!(answer, ApprovalAnswer::Session | ApprovalAnswer::Always) {
            turn.agreed.insert(approval.clone(), answer);
        }
        answer
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(question).boxed()
    }
}

/// For how long a person can agree, besides for this call.
#[derive(Debug, Clone, Copy)]
struct Terms {
    session: bool,
    always: bool,
}

/// Keeps an approval; what could not be kept holds for the session.
async fn keep(approvals: Approvals, approval: Approval) -> ApprovalAnswer {
    let kept = tokio::task::spawn_blocking(move || approvals.add(&approval)).await;
    match kept.map_err(anyhow::Error::from).and_then(|kept| Ok(kept?)) {
        Ok(()) => ApprovalAnswer::Always,
        Err(error) => {
            render::warning(&format!("{error:#}; you are asked again in the next session"));
            ApprovalAnswer::Session
        }
    }
}

/// Shows a question until it is answered. Nothing else is written meanwhile.
async fn ask(keyboard: &mut Keyboard, question: &ApprovalRequest<'_>, terms: Terms) -> ApprovalAnswer {
    let _quiet = render::hold();
    let mut whole = false;
    loop {
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(WIDTH, |(width, _)| usize::from(width.0));
        let sheet = Sheet::new(question, width, whole);
        keyboard.forget();
        say(&format!("\n{} {}", render::paint(Tone::Doubtful, "question:", true), sheet.text));
        let session = if terms.session { ", [s]ession" } else { "" };
        let always = if terms.always { ", [a]lways" } else { "" };
        let view = if sheet.is_cut { ", [v]iew all" } else { "" };
        loop {
            let open = OpenLine::new(&format!("[o]nce{session}{always}{view}, [n]o (Enter means no): "));
            let Some(line) = keyboard.line().await else { return ApprovalAnswer::No };
            open.closed();
            match line.to_lowercase().as_str() {
                "o" | "once" => return ApprovalAnswer::Once,
                "s" | "session" if terms.session => return ApprovalAnswer::Session,
                "a" | "always" if terms.always => return ApprovalAnswer::Always,
                "n" | "no" | "" => return ApprovalAnswer::No,
                "v" | "view" if sheet.is_cut => break,
                _ => keyboard.forget(),
            }
        }
        whole = true;
    }
}

/// A line on which a person writes. Where they do not end it, it ends with this.
struct OpenLine;

impl OpenLine {
    fn new(text: &str) -> Self {
        say(text);
        Self
    }

    /// The person has ended the line.
    fn closed(self) {
        std::mem::forget(self);
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        say("\n");
    }
}

fn say(text: &str) {
    // A terminal that is gone gives no answer either.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
