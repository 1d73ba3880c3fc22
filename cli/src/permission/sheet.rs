//! What a person is shown before they answer. All that comes from outside stands right of a `|`, on lines that are never
//! longer than the terminal is wide, in characters that no terminal obeys: it cannot pass for a line of ours.

use std::fmt::Write;

use serde_json::json;
use toolcrib::policy::ApprovalRequest;
use toolcrib::tool::{Body, Fact, Tool};

use crate::render::{from_here, inert_json, one_line};

/// Columns of a label and its mark.
const MARGIN: usize = 12;
/// The narrowest that text from outside gets: where the terminal is narrower, nothing can be read anyway.
const MIN_WIDTH: usize = 2;
/// The most lines of one label, and how many of them are the last ones.
const MAX_LINES: usize = 24;
const LAST: usize = 8;

/// What is shown, and whether something was left out in the middle.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) text: String,
    pub(super) is_cut: bool,
    width: usize,
    whole: bool,
}

impl Sheet {
    /// A question for a terminal of `width` columns; `whole` where nothing is to be left out.
    pub(super) fn new(question: &ApprovalRequest<'_>, width: usize, whole: bool) -> Self {
        let ApprovalRequest { tool, approval, .. } = question;
        let mut sheet = Self { text: "may this call run?\n".to_owned(), is_cut: false, width, whole };
        sheet.row("tool", &one_line(&tool.name));
        sheet.row("from", &one_line(&from(tool)));
        if let Some(fixed) = fixed(&tool.body) {
            sheet.row("fixed", &one_line(&inert_json(&fixed)));
        }
        sheet.row("with", &pretty(&inert_json(question.arguments)));
        if let Some(preview) = question.preview {
            sheet.row("it says", &preview.lines().map(one_line).collect::<Vec<_>>().join("\n"));
        }
        sheet.row("it is", &facts(tool));
        let granted = question.granted.iter().map(|granted| one_line(&spelled(granted))).collect::<Vec<_>>().join("\n");
        sheet.row("may use", if granted.is_empty() { "nothing" } else { &granted });
        sheet.row("asked by", &one_line(question.rests_on));
        if let Some(reason) = &tool.interface.permission.approval_reason.value {
            sheet.row("because", &one_line(reason));
        }
        if let Some(approval) = approval {
            let covered = "that `{rule}` asks about, as long as its program, fixed arguments, description, schema, \
                           limits, source and what it may use stay the same";
            let covered = covered.replace("{rule}", &one_line(&approval.rule));
            sheet.row(
                "s and a",
                &format!("cover calls of `{}` {covered} ({})", one_line(&approval.tool), one_line(&approval.digest)),
            );
        }
        sheet.row("call", &one_line(question.invocation));
        sheet
    }

    /// A label of ours with text from outside, every line of which is marked.
    fn row(&mut self, label: &str, text: &str) {
        let columns = self.width.saturating_sub(MARGIN).max(MIN_WIDTH);
        let lines: Vec<&str> = text.split('\n').flat_map(|line| wrapped(line, columns)).collect();
        let left_out = if self.whole || lines.len() <= MAX_LINES { 0..0 } else { MAX_LINES - LAST..lines.len() - LAST };
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            if at == left_out.start && !left_out.is_empty() {
                let characters: usize = lines[left_out.clone()].iter().map(|line| line.chars().count()).sum();
                // No line from outside is without its mark.
                let _ = writeln!(self.text, "  … {} lines left out, {characters} characters …", left_out.len());
                self.is_cut = true;
            }
            if !left_out.contains(&at) {
                let _ = writeln!(self.text, "{label:>9} | {line}");
            }
        }
    }
}

/// What was granted, with what it means where the word alone does not tell.
fn spelled(granted: &str) -> String {
    let meaning = match granted.split_once(':') {
        Some(("call", _)) => "it may call these tools, each under its own grant",
        None if granted == "model" => "it may ask the run's model",
        Some(("exec", _)) => "its script may run these programs of the crib",
        None if granted == "delegate" => "its script may hand tasks to another agent",
        None if granted == "meta" => "its script may add tools and hooks to this run",
        _ => return granted.to_owned(),
    };
    format!("{granted} ({meaning})")
}

/// Where a tool and its program are from.
fn from(tool: &Tool) -> String {
    let index = tool.origin.index.map(|index| format!(" (tool[{index}])")).unwrap_or_default();
    let program = match &tool.body {
        Body::Script(script) => format!(", script {}", script.digest),
        body => body.program().map(|program| format!(", program {}", from_here(program).display())).unwrap_or_default(),
    };
    format!("{}{index}{program}", from_here(&tool.origin.path).display())
}

/// The fixed arguments with which every call of a program starts, as JSON.
fn fixed(body: &Body) -> Option<String> {
    match body {
        Body::Command { argv, .. } => argv.get(1..).filter(|fixed| !fixed.is_empty()).map(|fixed| json!(fixed)),
        Body::Typed(typed) => Some(json!([typed.function.to_string()])),
        Body::Rich(rich) => Some(json!([rich.tool])),
        _ => None,
    }
    .map(|fixed| fixed.to_string())
}

fn facts(tool: &Tool) -> String {
    let safety = &tool.interface.safety;
    let fact = |fact: &Fact<bool>, yes: &str, no: &str| told(if fact.value { yes } else { no }, fact);
    let risk = &tool.interface.permission.risk_level;
    [
        fact(&safety.is_read_only, "read-only", "not read-only"),
        fact(&safety.is_destructive, "destructive", "not destructive"),
        fact(&safety.is_open_world, "open-world", "not open-world"),
        told(&format!("{} risk", risk.value.as_str()), risk),
    ]
    .join(", ")
}

/// A value with its basis: what nobody said or proved is no promise.
fn told<T>(value: &str, fact: &Fact<T>) -> String {
    format!("{value} ({})", format!("{:?}", fact.basis).to_lowercase())
}

/// JSON over several lines, every byte outside white space as it was: parsed and written anew it could be something else.
fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    for c in json.chars() {
        match c {
            c if quoted => {
                quoted = c != '"' || escaped;
                escaped = c == '\\' && !escaped;
                text.push(c);
            }
            c if c.is_ascii_whitespace() => {}
            '{' | '[' => {
                depth += 1;
                text.push(c);
                line(&mut text, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                text.truncate(text.trim_end().len());
                if !text.ends_with(['{', '[']) {
                    line(&mut text, depth);
                }
                text.push(c);
            }
            ',' => {
                text.push(c);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            c => {
                quoted = c == '"';
                text.push(c);
            }
        }
    }
    text
}

/// `line` in parts of at most so many columns, after a space where there is one in the second half of a part.
fn wrapped(line: &str, columns: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), line);
    while let Some(full) = longest(rest, columns) {
        let space = rest[..full].rfind(' ').map(|space| space + 1).filter(|space| *space > full / 2);
        let (part, more) = rest.split_at(space.unwrap_or(full));
        parts.push(part);
        rest = more;
    }
    parts.push(rest);
    parts
}

/// Where `line` has to be cut to fit; `None` where it fits. A character beyond ASCII counts as two columns, the most that
/// one takes.
fn longest(line: &str, columns: usize) -> Option<usize> {
    let mut used = 0;
    line.find(|c: char| {
        used += if c.is_ascii() { 1 } else { 2 };
        used > columns
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(width: usize, whole: bool, text: &str) -> Sheet {
        let mut sheet = Sheet { text: String::new(), is_cut: false, width, whole };
        sheet.row("with", text);
        sheet
    }

    #[test]
    fn every_line_from_outside_is_marked_however_long_it_is() {
        let forged = format!("{}\n[o]nce, [s]ession: o\n{}", " ".repeat(200), "漢".repeat(90));
        let shown = sheet(80, true, &forged);
        assert!(shown.text.lines().all(|line| &line[9..12] == " | "), "{}", shown.text);
        let width = |line: &str| line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum::<usize>();
        assert!(shown.text.lines().all(|line| width(line) <= 80), "{}", shown.text);
        assert_eq!(shown.text.matches('漢').count(), 90);
    }

    #[test]
    fn what_a_script_may_ask_of_the_crib_is_told_in_words() {
        assert_eq!(spelled("exec:fs_*"), "exec:fs_* (its script may run these programs of the crib)");
        assert_eq!(spelled("delegate"), "delegate (its script may hand tasks to another agent)");
        assert_eq!(spelled("meta"), "meta (its script may add tools and hooks to this run)");
        assert_eq!(spelled("read:/meta"), "read:/meta");
    }

    #[test]
    fn what_is_long_is_cut_in_the_middle_and_counted() {
        let long: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        let cut = sheet(80, false, &long.join("\n"));
        assert!(cut.is_cut && cut.text.lines().count() == MAX_LINES + 1, "{}", cut.text);
        assert!(cut.text.contains("| line 15\n") && cut.text.contains("| line 92\n"), "{}", cut.text);
        assert!(cut.text.contains("\n  … 76 lines left out, 532 characters …\n"), "{}", cut.text);
        assert!(!sheet(80, true, &long.join("\n")).is_cut);
    }

    #[test]
    fn json_is_shown_as_it_is_over_several_lines() {
        let json = r#"{"a" :1.0,"a":[ ],"b":{"c":"x,{\"}\\"},"d":[1e400, {}]}"#;
        let wanted = "{\n  \"a\": 1.0,\n  \"a\": [],\n  \"b\": {\n    \"c\": \"x,{\\\"}\\\\\"\n  },\n  \"d\": [\n    1e400,\n    {}\n  ]\n}";
        assert_eq!(pretty(json), wanted);
    }
}
