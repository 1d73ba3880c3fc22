//! Fields of a hook: its event, its priority and its condition.

use crate::source::capabilities::globs;
use crate::source::diagnostics::{Diagnostics, Fault};
use crate::source::name::shortened;
use crate::source::suggestion::nearest;
use crate::tool::{Glob, HookPoint, Place, When};

use super::node::{Data, Fields, Node};

/// Maximum length of an expression, in characters.
const MAX_EXPRESSION: usize = 4096;

/// Reads the event of a hook.
pub(super) fn event(fields: &mut Fields, label: &str, owner: &str, report: &mut Diagnostics) -> Option<HookPoint> {
    let stated = fields.take("event");
    let place = stated.as_ref().map_or(fields.place, |node| node.place);
    let word = report.parsed(stated.map(|node| node.text("event")).transpose())?.unwrap_or_default();
    if word.trim().is_empty() {
        report.invalid(place, format!("{owner}: event field is required in frontmatter"));
        return None;
    }
    let event = word.parse::<HookPoint>().ok();
    if event.is_none() {
        let known = HookPoint::BUILTIN.map(|event| event.to_string());
        let hint = match nearest(&word, known.iter().map(String::as_str)) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; there are `{}` and `custom.NAME`", known.join("`, `")),
        };
        report.invalid(place, format!("{label}.event {:?} is invalid{hint}", shortened(&word)));
    }
    event
}

/// Reads the priority of a hook.
pub(super) fn priority(node: Node, field: &str) -> Result<i32, Fault> {
    let place = node.place;
    let priority = node.integer(field)?;
    i32::try_from(priority)
        .map_err(|_| Fault { place, message: format!("{field} must be from {} to {}", i32::MIN, i32::MAX) })
}

/// Reads the condition of a hook: an expression, or patterns over the tool's name and over its string arguments.
pub(super) fn when(stated: Node, field: &str) -> Result<When, Fault> {
    let mut when = When::default();
    let mut fields = match stated.data {
        Data::Text(expression) => {
            let chars = expression.chars().count();
            if chars > MAX_EXPRESSION {
                let message =
                    format!("{field}: an expression of {chars} characters, more than the {MAX_EXPRESSION} allowed");
                return Err(Fault { place: stated.place, message });
            }
            when.expression = Some(expression).filter(|text| !text.trim().is_empty());
            return Ok(when);
        }
        Data::Map(_) => stated.fields(field)?,
        _ => return Err(stated.not(field, "an expression in a string, or a map")),
    };
    if let Some(node) = fields.take("tool") {
        let place = node.place;
        let written = match node.data {
            Data::Text(one) => vec![one],
            _ => node.texts("when.tool")?,
        };
        when.tools = patterns("when.tool", written, place)?;
    }
    if let Some(node) = fields.take("args") {
        let place = node.place;
        let (names, written): (Vec<_>, Vec<_>) = node.fields("when.args")?.rest().into_iter().unzip();
        let written = written.into_iter().map(|node| node.text("when.args")).collect::<Result<_, _>>()?;
        let names = names.into_iter().map(|key| key.name);
        when.arguments = names.zip(patterns("when.args", written, place)?).collect();
    }
    match fields.rest().into_iter().next() {
        Some((key, _)) => {
            let message = format!("when: unknown field `{}`, expected one of `tool`, `args`", key.name);
            Err(Fault { place: key.place, message })
        }
        None => Ok(when),
    }
}

fn patterns(field: &str, written: Vec<String>, place: Option<Place>) -> Result<Vec<Glob>, Fault> {
    globs(field, written).map_err(|message| Fault { place, message })
}
