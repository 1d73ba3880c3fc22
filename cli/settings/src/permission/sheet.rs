//! Text of an approval prompt. Text from outside is printed to the right of a `|`, on lines no longer than the terminal is
//! wide and without control characters, so that it cannot imitate a line of the program.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::policy::{Approval, ApprovalRequest, StagedEffects};
use toolcrib::tool::{Body, Fact, Tool, Trust};
use toolcrib_base::render::{Tone, counted, from_here, inert_json, one_line, paint};

use super::layout::{longest, pretty, without, wrapped};
use super::{Changes, action, changes, difference, effects};

/// Width of a label and its mark, in columns.
const MARGIN: usize = 13;
/// Minimum width of text from outside, in columns. A narrower terminal is unreadable anyway.
const MIN_WIDTH: usize = 2;
/// Maximum lines of one label.
const MAX_LINES: usize = 20;
/// Lines kept from the end of a text that is cut to [`MAX_LINES`].
const LAST_LINES: usize = 6;
/// Mark of a line that goes on; a line of a difference begins otherwise.
const CONTINUED: &str = "↳ ";
/// Label of the changes.
const CHANGES: &str = "Changes";
/// Parts of a request that the short prompt always leaves out.
const LEFT_OUT: &str = "source, properties, call ID: d for details";

/// Text of a prompt.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) text: String,
    /// `true` if lines in the middle were left out.
    pub(super) is_cut: bool,
    width: usize,
    whole: bool,
    /// `true` for a terminal, which shows changed lines in colors.
    paints: bool,
    /// Arguments that are left out because the changes show their whole values.
    shown_arguments: Vec<String>,
    /// `true` if a line was cut at the width of the terminal.
    has_cut_line: bool,
}

impl Sheet {
    /// Creates the short prompt for a terminal of `width` columns. Its last row names the parts that it leaves out.
    pub(super) fn short(question: &ApprovalRequest<'_>, width: usize) -> Self {
        let mut sheet = Self::about(question, width, false);
        if let Some(approval) = question.approval {
            let rule = one_line(&approval.rule);
            let calls = match rule == one_line(question.rests_on) {
                true => format!("every `{}` call that this rule asks about", one_line(&approval.tool)),
                false => calls(approval),
            };
            sheet.row("Scope", &format!("\"session\" and \"always\" cover {calls}"));
        }
        let parts = [
            (sheet.is_cut, "lines in the middle of long texts, "),
            (!sheet.shown_arguments.is_empty(), "arguments of the changes, "),
            (question.preview.is_some() && sheet.says_action(question), "preview, "),
        ];
        let parts: String = parts.iter().filter(|(is_left_out, _)| *is_left_out).map(|(_, part)| *part).collect();
        sheet.row("Left out", &format!("{parts}{LEFT_OUT}"));
        sheet
    }

    /// Creates the full prompt; `whole` shows also long texts in full.
    pub(super) fn full(question: &ApprovalRequest<'_>, width: usize, whole: bool) -> Self {
        let mut sheet = Self::about(question, width, whole);
        sheet.origin(question);
        sheet
    }

    /// Creates a prompt with the rows that the short and the full form share: the call first.
    fn about(question: &ApprovalRequest<'_>, width: usize, whole: bool) -> Self {
        let mut sheet = Self { paints: true, ..Self::empty(width, whole) };
        sheet.head(question);
        sheet.changes(question);
        sheet.call(question);
        sheet.grounds(question);
        sheet
    }

    /// Creates the full prompt for another program: nothing is left out, and long arguments come after everything else about the
    /// call. It shows the changes in this form.
    pub(super) fn for_client(question: &ApprovalRequest<'_>, width: usize, changes: Changes) -> Self {
        let mut sheet = Self::empty(width, true);
        sheet.head(question);
        sheet.grounds(question);
        match (changes, question.effects) {
            (Changes::Compared, _) => sheet.changes(question),
            (Changes::Listed, Some(effects)) => sheet.row(CHANGES, &effects::in_short(effects)),
            _ => {}
        }
        sheet.call(question);
        sheet.origin(question);
        sheet
    }

    /// Adds the action and the tool.
    fn head(&mut self, question: &ApprovalRequest<'_>) {
        if let Some(action) = action(question) {
            self.row("Action", &action);
        }
        self.row("Tool", &one_line(&question.tool.name));
    }

    /// Returns `true` if the action says the same as a preview: both are then of the definition.
    fn says_action(&self, question: &ApprovalRequest<'_>) -> bool {
        !self.whole && action(question).is_some() && !matches!(question.tool.body, Body::Rich(_))
    }

    /// Adds the lines that the call would change. A short prompt then leaves out the arguments that they show.
    fn changes(&mut self, question: &ApprovalRequest<'_>) {
        let Some(effects) = question.effects else {
            let Some(difference) = difference::of(question) else {
                changes(question).iter().for_each(|lines| self.lines_row(CHANGES, lines));
                return;
            };
            self.lines_row(CHANGES, &difference.text);
            let is_shown = !self.whole && !self.is_cut && !self.has_cut_line;
            if is_shown && question.tool.origin.trust != Trust::Stranger {
                self.shown_arguments = difference.arguments;
            }
            return;
        };
        let (requests, changed) = (effects::requests(effects), effects::changed(effects));
        for (label, text) in [("Requests", requests), (CHANGES, changed)] {
            match (text.trim_end(), label) {
                ("", _) => {}
                (text, CHANGES) => self.lines_row(label, text),
                (text, _) => self.row(label, text),
            }
        }
    }

    /// Adds the arguments of the call.
    fn call(&mut self, question: &ApprovalRequest<'_>) {
        if let Some(fixed) = fixed(&question.tool.body) {
            self.row("Fixed", &one_line(&inert_json(&fixed)));
        }
        match without(question.arguments, &self.shown_arguments).filter(|_| !self.shown_arguments.is_empty()) {
            Some(rest) if rest.is_empty() => {}
            Some(rest) => self.row("Arguments", &pretty(&inert_json(&Value::from(rest).to_string()))),
            None => {
                self.shown_arguments.clear();
                self.row("Arguments", &pretty(&inert_json(question.arguments)));
            }
        }
        if let Some(preview) = question.preview.filter(|_| !self.says_action(question)) {
            self.row("Tool says", &preview.lines().map(one_line).collect::<Vec<_>>().join("\n"));
        }
    }

    /// Adds the permissions of the call, and the reasons for the question.
    fn grounds(&mut self, question: &ApprovalRequest<'_>) {
        match question.effects {
            None => self.granted(question.granted),
            Some(effects) => self.folders(effects),
        }
        if let Some(stage) = question.stage.filter(|_| question.effects.is_none()) {
            self.row("Held back", &format!("what it writes, in the stage `{}`", one_line(stage)));
        }
        if let Some(flow) = question.flow {
            self.row("Flow", &one_line(flow));
        }
        self.row("Asked by", &one_line(question.rests_on));
        if let Some(reason) = &question.tool.interface.permission.approval_reason.value {
            self.row("Reason", &one_line(reason));
        }
    }

    /// Adds the folders in which the changes are made.
    fn folders(&mut self, effects: &StagedEffects<'_>) {
        let folders: Vec<String> =
            effects.stage.folders().iter().map(|folder| one_line(&folder.display().to_string())).collect();
        if !folders.is_empty() {
            self.row("Folders", &folders.join("\n"));
        }
    }

    /// Adds the origin of the tool, its properties and the identifier of the call.
    fn origin(&mut self, question: &ApprovalRequest<'_>) {
        let tool = question.tool;
        self.row("Source", &one_line(&source(tool, |path| from_here(path).to_path_buf())));
        self.row("Properties", &facts(tool));
        self.row("Call", &one_line(question.invocation));
    }

    /// Adds the calls that an answer for more than one call covers, with the changes that end it.
    pub(super) fn with_scope(mut self, approval: Option<&Approval>) -> Self {
        if let Some(approval) = approval {
            self.row("Scope", &format!("\"session\" and \"always\" cover {}", scope(approval)));
        }
        self
    }

    /// Creates a sheet without rows; `whole` leaves nothing out of the rows that follow.
    pub(super) fn empty(width: usize, whole: bool) -> Self {
        Self {
            text: String::new(),
            is_cut: false,
            width,
            whole,
            paints: false,
            shown_arguments: Vec::new(),
            has_cut_line: false,
        }
    }

    /// Adds the granted permissions, one per line.
    pub(super) fn granted(&mut self, granted: &[String]) {
        self.row("Granted", &granted_text(granted));
    }

    /// Adds a label with lines from outside. A line that is wider than the terminal is cut, or if nothing is left out, goes on after a
    /// mark: a part of it cannot pass for a line.
    pub(super) fn lines_row(&mut self, label: &str, text: &str) {
        let columns = self.width.saturating_sub(MARGIN).max(MIN_WIDTH + CONTINUED.len());
        let mut lines = Vec::new();
        for line in text.split('\n') {
            let Some(cut) = longest(line, columns.saturating_sub(2)).filter(|_| longest(line, columns).is_some())
            else {
                lines.push(line.to_owned());
                continue;
            };
            if !self.whole {
                self.has_cut_line = true;
                lines.push(format!("{}…", &line[..cut]));
                continue;
            }
            let (mut part, mut rest, mut mark) = (cut, line, "");
            while !rest.is_empty() {
                lines.push(format!("{mark}{}", &rest[..part]));
                rest = &rest[part..];
                mark = CONTINUED;
                part = longest(rest, columns - CONTINUED.len()).unwrap_or(rest.len());
            }
        }
        self.row(label, &lines.join("\n"));
    }

    /// Adds a label with text from outside; every line of the text is marked.
    pub(super) fn row(&mut self, label: &str, text: &str) {
        let columns = self.width.saturating_sub(MARGIN).max(MIN_WIDTH);
        let lines: Vec<&str> = text.split('\n').flat_map(|line| wrapped(line, columns)).collect();
        let left_out = if self.whole || lines.len() <= MAX_LINES {
            0..0
        } else {
            MAX_LINES - LAST_LINES..lines.len() - LAST_LINES
        };
        let is_changes = label == CHANGES;
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            if at == left_out.start && !left_out.is_empty() {
                let characters: usize = lines[left_out.clone()].iter().map(|line| line.chars().count()).sum();
                // Every line from outside carries a mark; this one is ours.
                let (lines, characters) = (counted(left_out.len(), "line"), counted(characters, "character"));
                let _ = writeln!(self.text, "  … {lines} left out, {characters} …");
                self.is_cut = true;
            }
            if !left_out.contains(&at) {
                let line = match change_tone(line).filter(|_| self.paints && is_changes) {
                    Some(tone) => paint(tone, line, true),
                    None => (*line).into(),
                };
                let _ = writeln!(self.text, "{label:>10} | {line}");
            }
        }
    }
}

/// Returns the tone of a line about a change.
fn change_tone(line: &str) -> Option<Tone> {
    match line.split_once(' ').map_or(line, |(word, _)| word) {
        "added" => return Some(Tone::Good),
        "modified" | "moved" => return Some(Tone::Advice),
        "removed" => return Some(Tone::Bad),
        _ => {}
    }
    match line.as_bytes().first()? {
        b'+' => Some(Tone::Good),
        b'-' => Some(Tone::Bad),
        b'@' => Some(Tone::Quiet),
        _ => None,
    }
}

/// Lists granted permissions, one per line.
pub(super) fn granted_text(granted: &[String]) -> String {
    match granted {
        [] => "nothing".to_owned(),
        granted => granted.iter().map(|granted| one_line(&explained(granted))).collect::<Vec<_>>().join("\n"),
    }
}

/// Explains a granted capability that is not self-explanatory.
fn explained(granted: &str) -> String {
    let meaning = match granted.split_once(':') {
        Some(("call", _)) => "it may call these tools, each with its own permissions",
        None if granted == "model" => "it may ask the run's model",
        Some(("exec", _)) => "its script may run these programs from the crib",
        None if granted == "delegate" => "its script may delegate tasks to another agent",
        None if granted == "meta" => "its script may register tools and hooks in this run",
        _ => return granted.to_owned(),
    };
    format!("{granted} ({meaning})")
}

/// Calls that an approval covers.
pub(super) fn scope(approval: &Approval) -> String {
    let unchanged = "its program, fixed arguments, description, schema, limits, source and permissions stay the same";
    format!("{}, while {unchanged} ({})", calls(approval), one_line(&approval.digest))
}

/// Clients that a permanent approval covers, with the name of the present one.
pub(super) fn reach(approval: &Approval, client: &str) -> String {
    match approval.owner {
        Some(_) => format!("by the holder of the present token or sign-in of `{}`", one_line(client)),
        None => "by any client without a token".to_owned(),
    }
}

/// Calls that an approval covers, without the changes that end it.
pub(super) fn calls(approval: &Approval) -> String {
    format!("every `{}` call that `{}` asks about", one_line(&approval.tool), one_line(&approval.rule))
}

/// Source of a tool and its program, with paths as `shown` writes them.
pub(super) fn source(tool: &Tool, shown: impl Fn(&Path) -> PathBuf) -> String {
    if let Body::Builtin(_) = tool.body {
        return "toolcrib".to_owned();
    }
    let index = tool.origin.index.map(|index| format!(" (tool[{index}])")).unwrap_or_default();
    let program = match &tool.body {
        Body::Script(script) => format!(", script {}", script.digest),
        Body::Remote(remote) => format!(", server {}", remote.server.address),
        Body::Skill(skill) | Body::SkillScripts(skill) => format!(", skill {}", skill.digest),
        body => body.program().map(|program| format!(", program {}", shown(program).display())).unwrap_or_default(),
    };
    format!("{}{index}{program}", shown(&tool.origin.path).display())
}

/// Returns the fixed arguments that start every call of a program, or its command line with the placeholders, as JSON.
pub(super) fn fixed(body: &Body) -> Option<String> {
    match body {
        Body::Command { command_line: Some(line), .. } => {
            let mut line = json!(line);
            line["argv"] = body.arguments().into();
            Some(line)
        }
        Body::Command { .. } => Some(body.arguments()).filter(|all| !all.is_empty()).map(Value::from),
        Body::Typed(typed) => Some(json!([typed.function.to_string()])),
        Body::Rich(rich) => Some(json!([rich.tool])),
        Body::Remote(remote) => Some(json!([remote.server.address.as_str(), remote.name])),
        _ => None,
    }
    .map(|fixed| fixed.to_string())
}

pub(super) fn facts(tool: &Tool) -> String {
    let (safety, risk) = (&tool.interface.safety, &tool.interface.permission.risk_level);
    let fact = |fact: &Fact<bool>, yes: &str, no: &str| with_basis(if fact.value { yes } else { no }, fact);
    [
        fact(&safety.is_read_only, "read-only", "not read-only"),
        fact(&safety.is_destructive, "destructive", "not destructive"),
        fact(&safety.is_open_world, "open-world", "not open-world"),
        with_basis(&format!("{} risk", risk.value.as_str()), risk),
    ]
    .join(", ")
}

/// Formats a value with its basis, so that defaults are not mistaken for declarations.
fn with_basis<T>(value: &str, fact: &Fact<T>) -> String {
    format!("{value} ({})", format!("{:?}", fact.basis).to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(width: usize, whole: bool, text: &str) -> Sheet {
        let mut sheet = Sheet::empty(width, whole);
        sheet.row("Arguments", text);
        sheet
    }

    #[test]
    fn a_wide_line_of_a_difference_is_cut_or_goes_on_after_a_mark() {
        let line = format!("+{}-gone", "x".repeat(150));
        for whole in [false, true] {
            let mut sheet = Sheet::empty(80, whole);
            sheet.lines_row("Changes", &format!("{line}\n-b"));
            let rows: Vec<&str> = sheet.text.lines().map(|row| &row[13..]).collect();
            let joined = rows[..rows.len() - 1].join("").replace(CONTINUED, "");
            assert_eq!(joined == line, whole, "{}", sheet.text);
            assert!(rows[1..].iter().all(|row| row.starts_with(CONTINUED) || *row == "-b"), "{}", sheet.text);
            assert!(sheet.text.lines().all(|row| row.chars().count() <= 80), "{}", sheet.text);
        }
    }

    #[test]
    fn every_line_from_outside_is_marked_however_long_it_is() {
        let forged = format!("{}\n[o]nce, [s]ession: o\n{}", " ".repeat(200), "漢".repeat(90));
        let shown = sheet(80, true, &forged);
        assert!(shown.text.lines().all(|line| &line[10..13] == " | "), "{}", shown.text);
        let width = |line: &str| line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>();
        assert!(shown.text.lines().all(|line| width(line) <= 80), "{}", shown.text);
        assert_eq!(shown.text.matches('漢').count(), 90);
    }

    #[test]
    fn capabilities_of_scripts_are_explained() {
        assert_eq!(explained("exec:fs_*"), "exec:fs_* (its script may run these programs from the crib)");
        assert_eq!(explained("delegate"), "delegate (its script may delegate tasks to another agent)");
        assert_eq!(explained("meta"), "meta (its script may register tools and hooks in this run)");
        assert_eq!(explained("read:/meta"), "read:/meta");
    }

    #[test]
    fn what_is_long_is_cut_in_the_middle_and_counted() {
        let long: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        let cut = sheet(80, false, &long.join("\n"));
        assert!(cut.is_cut && cut.text.lines().count() == MAX_LINES + 1, "{}", cut.text);
        assert!(cut.text.contains("| line 13\n") && cut.text.contains("| line 94\n"), "{}", cut.text);
        assert!(cut.text.contains("\n  … 80 lines left out, 560 characters …\n"), "{}", cut.text);
        assert!(!sheet(80, true, &long.join("\n")).is_cut);
    }
}
