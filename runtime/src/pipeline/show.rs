//! A call in the words of its tool's record, for people and for transcripts. It is never told to a model.

use serde_json::Value;

use crate::error::Outcome;
use crate::tool::Rendering;

/// The most characters of one argument in a line.
const LONGEST_VALUE: usize = 120;
/// The most characters of a line.
const LONGEST_LINE: usize = 1000;

/// Whether the record has any words for a call.
pub(super) fn has_any(rendering: &Rendering) -> bool {
    let Rendering {
        ui_summary,
        activity_description,
        rejected_render_hint,
        error_render_hint,
        transcript_search_text,
        ..
    } = rendering;
    [ui_summary, activity_description, rejected_render_hint, error_render_hint, transcript_search_text]
        .iter()
        .any(|template| template.value.is_some())
}

/// The call and how it ended, in one line.
pub(super) fn display(rendering: &Rendering, outcome: Outcome, arguments: &Value) -> Option<String> {
    let summary = &rendering.ui_summary.value;
    let template = match outcome {
        Outcome::Ok => summary,
        Outcome::Denied => {
            rendering.rejected_render_hint.value.as_ref().map_or(summary, |_| &rendering.rejected_render_hint.value)
        }
        _ => rendering.error_render_hint.value.as_ref().map_or(summary, |_| &rendering.error_render_hint.value),
    };
    template.as_deref().map(|template| filled(template, arguments))
}

/// What the call is about to do.
pub(super) fn preview(rendering: &Rendering, arguments: &Value) -> Option<String> {
    let template = rendering.activity_description.value.as_ref().or(rendering.ui_summary.value.as_ref());
    template.map(|template| filled(template, arguments))
}

/// The words under which a transcript finds the call.
pub(super) fn transcript(rendering: &Rendering, arguments: &Value) -> Option<String> {
    rendering.transcript_search_text.value.as_deref().map(|template| filled(template, arguments))
}

/// A template with each `{argument}` replaced by the argument of that name; one that is not there leaves nothing.
fn filled(template: &str, arguments: &Value) -> String {
    let mut line = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        line.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            line.push('{');
            rest = after;
            continue;
        };
        match arguments.get(name) {
            Some(Value::String(text)) => line.extend(text.chars().take(LONGEST_VALUE)),
            Some(value) => line.extend(value.to_string().chars().take(LONGEST_VALUE)),
            None => {}
        }
        rest = after;
    }
    line.push_str(rest);
    line.chars().take(LONGEST_LINE).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_filled_once_and_bounded() {
        let arguments = json!({"path": "{n}", "n": 3, "long": "x".repeat(5000)});
        assert_eq!(filled("read {path} from {n}{gone} {", &arguments), "read {n} from 3 {");
        assert_eq!(filled("{long}", &arguments).len(), LONGEST_VALUE);
    }
}
