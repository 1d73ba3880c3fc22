//! Puts stored answers into the arguments of a call, where the model refers to them: `{"$result": REFERENCE, "path": POINTER}`.
//! Everything after it judges the values themselves. The model need not have seen them.

use std::borrow::Cow;
use std::time::Instant;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout_at;

use crate::call::{ToolCall, clipped};
use crate::error::{Outcome, ToolError};
use crate::flow::Label;
use crate::pipeline::prepared::compute::{MAX_SIDE_TIME, aside};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Pipeline};
use crate::schema::{JSON_SPACE, MAX_ARGUMENT_BYTES, Members, check_line};
use crate::store::results::{Results, StoredResult};

/// Member that makes an object a reference.
const RESULT: &str = "$result";
/// Begin of its value. Everything else is data.
const REFERENCE: &str = "\"res_";
/// Maximum number of references in one call.
const MAX_REFERENCES: usize = 16;
/// Maximum bytes of a stored answer that is read for an argument.
const MAX_STORED_BYTES: u64 = 16 << 20;

/// Arguments with the answers in place.
struct Replaced {
    text: String,
    used: Vec<StoredResult>,
}

/// Returns `true` if the arguments of a call may have references.
pub(crate) fn may_refer(call: &ToolCall) -> bool {
    let text = &call.arguments;
    // Most arguments do not have the character.
    text.as_bytes().contains(&b'$') && text.contains(RESULT) && text.len() <= MAX_ARGUMENT_BYTES
}

/// Replaces the references in the arguments of a call, and returns the call with the label of their answers.
///
/// # Errors
///
/// [`Outcome::BadArguments`] for a reference that leads nowhere, or too many or too long ones.
pub(crate) async fn put_results<'c>(
    pipeline: &Pipeline,
    call: Cow<'c, ToolCall>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(Cow<'c, ToolCall>, Label), ToolError> {
    let (sent, results) = (call.arguments.clone(), scope.results(pipeline));
    let since = Instant::now();
    let until = since + MAX_SIDE_TIME;
    let late = || bad("the results took too long to read: pass shorter ones".to_owned());
    // As many at once as there are arguments that are masked: both hold large texts.
    let permit = timeout_at(until.into(), pipeline.maskings.clone().acquire_owned()).await;
    let permit = permit.ok().and_then(Result::ok).ok_or_else(late)?;
    let replace = move || {
        let _permit = permit;
        replace(&sent, results.as_ref())
    };
    let replaced = aside(until, replace).await;
    recorder.budget.spend(since.elapsed());
    let Some(Replaced { text, used }) = replaced.ok_or_else(late)?? else {
        return Ok((call, Label::default()));
    };
    let mut label = Label::default();
    for stored in &used {
        match scope.memory.label_of_stored(&stored.reference) {
            Some(known) => label.join(&known),
            None => label.join(&Label::of_stored(stored)),
        }
    }
    recorder.set_used_results(used.into_iter().map(|stored| stored.reference));
    Ok((Cow::Owned(ToolCall { arguments: text, ..call.into_owned() }), label))
}

/// Replaces the references in a text; `None` if it has none.
fn replace(text: &str, results: Option<&Results>) -> Result<Option<Replaced>, ToolError> {
    // Text that is not valid is described by the check of the arguments.
    if check_line(text).is_err() {
        return Ok(None);
    }
    let mut replacing = Replacing { results, text: String::new(), used: Vec::new(), count: 0, bytes: 0 };
    replacing.copy(text.trim_matches(JSON_SPACE), &mut String::new())?;
    let Replacing { text, used, count, .. } = replacing;
    Ok((count > 0).then_some(Replaced { text, used }))
}

struct Replacing<'r> {
    results: Option<&'r Results>,
    /// Arguments with the answers so far.
    text: String,
    used: Vec<StoredResult>,
    count: usize,
    bytes: usize,
}

impl Replacing<'_> {
    /// Copies a value at `place`, a JSON pointer, and replaces the references in it. All other bytes stay.
    fn copy(&mut self, text: &str, place: &mut String) -> Result<(), ToolError> {
        let len = place.len();
        let invalid = |error: serde_json::Error| bad(error.to_string());
        match text.as_bytes().first() {
            Some(b'{') if text.contains(RESULT) => {
                let Members(members) = serde_json::from_str(text).map_err(invalid)?;
                if is_reference(&members) {
                    let found = self.resolve(&members).map_err(|why| bad(format!("`{}`: {why}", clipped(place))))?;
                    self.text.push_str(&found);
                    return Ok(());
                }
                self.text.push('{');
                for (at, (name, member)) in members.iter().enumerate() {
                    self.text.push_str(if at == 0 { "" } else { "," });
                    self.text.push_str(&Value::from(name.as_str()).to_string());
                    self.text.push(':');
                    place.push('/');
                    place.push_str(name);
                    self.copy(member.get(), place)?;
                    place.truncate(len);
                }
                self.text.push('}');
            }
            Some(b'[') if text.contains(RESULT) => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(invalid)?;
                self.text.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.text.push_str(if at == 0 { "" } else { "," });
                    place.push('/');
                    place.push_str(&at.to_string());
                    self.copy(item.get(), place)?;
                    place.truncate(len);
                }
                self.text.push(']');
            }
            _ => self.text.push_str(text),
        }
        Ok(())
    }

    /// Returns the text of the value that a reference means.
    fn resolve(&mut self, members: &[(String, &RawValue)]) -> Result<String, String> {
        let text = |name: &str| match members.iter().find(|(known, _)| known == name) {
            None => Ok(None),
            Some((_, text)) => serde_json::from_str::<String>(text.get())
                .map(Some)
                .map_err(|_| format!("`{name}` of a reference is a text")),
        };
        let (reference, path, form) = (text(RESULT)?.unwrap_or_default(), text("path")?, text("as")?);
        let is_text = match form.as_deref() {
            None => false,
            Some("text") => true,
            Some(other) => return Err(format!("`as` is `text` or left out, not `{}`", clipped(other))),
        };
        self.count += 1;
        if self.count > MAX_REFERENCES {
            return Err(format!("a call has at most {MAX_REFERENCES} references"));
        }
        let results = self.results.ok_or("no result store is configured")?;
        let opened = results.open(&reference, ..MAX_STORED_BYTES + 1);
        let part = opened.map_err(|fault| ToolError::of_fault(&fault).message)?;
        if part.stored.bytes > MAX_STORED_BYTES {
            let bytes = part.stored.bytes;
            return Err(format!(
                "the result has {bytes} bytes, more than the {MAX_STORED_BYTES} of an argument's source"
            ));
        }
        let whole = std::str::from_utf8(&part.content).ok().map(|text| text.trim_matches(JSON_SPACE));
        let whole = whole.filter(|text| check_line(text).is_ok()).ok_or("the result is no JSON")?;
        let path = path.unwrap_or_default();
        let found = at(whole, &path).ok_or_else(|| format!("the result has nothing at `{}`", clipped(&path)))?;
        let found = match found.as_bytes().first() {
            Some(b'"') => found.to_owned(),
            _ if is_text => Value::from(found).to_string(),
            _ => found.to_owned(),
        };
        self.bytes += found.len();
        if self.bytes > MAX_ARGUMENT_BYTES {
            return Err(format!("arguments are more than the {MAX_ARGUMENT_BYTES} bytes allowed with this result"));
        }
        if !self.used.contains(&part.stored) {
            self.used.push(part.stored);
        }
        Ok(found)
    }
}

/// Returns the text at a JSON pointer. Without its first character, a pointer means the same.
fn at<'t>(whole: &'t str, path: &str) -> Option<&'t str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(whole);
    }
    path.split('/').try_fold(whole, |text, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        match text.as_bytes().first()? {
            b'{' => {
                let Members(members) = serde_json::from_str(text).ok()?;
                members.into_iter().find(|(name, _)| *name == step).map(|(_, member)| member.get())
            }
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                items.get(step.parse::<usize>().ok()?).map(|item| item.get())
            }
            _ => None,
        }
    })
}

/// Returns `true` for an object that can only be meant as a reference.
fn is_reference(members: &[(String, &RawValue)]) -> bool {
    let names = |name: &RawValue| name.get().starts_with(REFERENCE);
    members.iter().any(|(name, value)| name == RESULT && names(value))
        && members.iter().all(|(name, _)| matches!(name.as_str(), RESULT | "path" | "as"))
}

fn bad(why: String) -> ToolError {
    ToolError::new(Outcome::BadArguments, why)
}
