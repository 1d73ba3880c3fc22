//! Puts stored answers into the arguments of a call, where the model refers to them: `{"$result": REFERENCE, "path": POINTER}`.
//! Everything after it judges the values themselves. The model need not have seen them.

use std::borrow::Cow;
use std::time::Instant;

use serde_json::{Map, Value};

use crate::call::{ToolCall, clipped};
use crate::error::{Error, Outcome, ToolError};
use crate::flow::Label;
use crate::pipeline::prepared::compute::{MAX_SIDE_TIME, aside};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Pipeline};
use crate::schema::{MAX_ARGUMENT_BYTES, parse};
use crate::store::results::{Results, StoredResult};

/// Member that makes an object a reference.
const RESULT: &str = "$result";
/// Maximum number of references in one call.
const MAX_REFERENCES: usize = 16;
/// Maximum bytes of a stored answer that is read for an argument.
const MAX_STORED_BYTES: u64 = 16 << 20;

/// Arguments with the answers in place.
struct Replaced {
    text: String,
    used: Vec<StoredResult>,
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
    let is_meant = call.arguments.contains(RESULT) && call.arguments.len() <= MAX_ARGUMENT_BYTES;
    if !is_meant {
        return Ok((call, Label::default()));
    }
    Box::pin(replaced(pipeline, call, scope, recorder)).await
}

async fn replaced<'c>(
    pipeline: &Pipeline,
    call: Cow<'c, ToolCall>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(Cow<'c, ToolCall>, Label), ToolError> {
    let (sent, results) = (call.arguments.clone(), pipeline.results.clone());
    let replace = move || replace(&sent, results.as_ref());
    let since = Instant::now();
    let replaced = aside(since + MAX_SIDE_TIME, replace).await;
    recorder.budget.spend(since.elapsed());
    let late = || bad("the results took too long to read: pass shorter ones".to_owned());
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
    let Ok(mut value) = parse(text) else { return Ok(None) };
    let mut replacing = Replacing { results, used: Vec::new(), count: 0, bytes: 0 };
    replacing.walk(&mut value, &mut String::new())?;
    Ok((replacing.count > 0).then(|| Replaced { text: value.to_string(), used: replacing.used }))
}

struct Replacing<'r> {
    results: Option<&'r Results>,
    used: Vec<StoredResult>,
    count: usize,
    bytes: usize,
}

impl Replacing<'_> {
    /// Replaces the references in a value at `place`, a JSON pointer.
    fn walk(&mut self, value: &mut Value, place: &mut String) -> Result<(), ToolError> {
        let len = place.len();
        match value {
            Value::Object(members) if is_reference(members) => {
                let found = self.resolve(members).map_err(|why| bad(format!("`{}`: {why}", clipped(place))))?;
                *value = found;
            }
            Value::Object(members) => {
                for (name, member) in members {
                    place.push('/');
                    place.push_str(name);
                    self.walk(member, place)?;
                    place.truncate(len);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    place.push('/');
                    place.push_str(&index.to_string());
                    self.walk(item, place)?;
                    place.truncate(len);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resolve(&mut self, members: &Map<String, Value>) -> Result<Value, String> {
        let text = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!("`{name}` of a reference is a text")),
        };
        let (reference, path, form) = (text(RESULT)?.unwrap_or_default(), text("path")?, text("as")?);
        let is_text = match form {
            None => false,
            Some("text") => true,
            Some(other) => return Err(format!("`as` is `text` or left out, not `{}`", clipped(other))),
        };
        self.count += 1;
        if self.count > MAX_REFERENCES {
            return Err(format!("a call has at most {MAX_REFERENCES} references"));
        }
        let results = self.results.ok_or("no result store is configured")?;
        let part = results.open(reference, ..MAX_STORED_BYTES + 1).map_err(|fault: Error| fault.to_string())?;
        if part.stored.bytes > MAX_STORED_BYTES {
            let bytes = part.stored.bytes;
            return Err(format!(
                "the result has {bytes} bytes, more than the {MAX_STORED_BYTES} of an argument's source"
            ));
        }
        let whole = std::str::from_utf8(&part.content).ok().and_then(|text| parse(text).ok());
        let mut whole = whole.ok_or("the result is no JSON")?;
        let found = match path.filter(|path| !path.is_empty()) {
            None => Some(whole),
            Some(path) if path.starts_with('/') => whole.pointer_mut(path).map(Value::take),
            // Without its first character, a pointer means the same.
            Some(path) => whole.pointer_mut(&format!("/{path}")).map(Value::take),
        };
        let found =
            found.ok_or_else(|| format!("the result has nothing at `{}`", clipped(path.unwrap_or_default())))?;
        let found = match found {
            Value::String(_) => found,
            found if is_text => Value::String(found.to_string()),
            found => found,
        };
        self.bytes += found.to_string().len();
        if self.bytes > MAX_ARGUMENT_BYTES {
            return Err(format!("arguments are more than the {MAX_ARGUMENT_BYTES} bytes allowed with this result"));
        }
        if !self.used.contains(&part.stored) {
            self.used.push(part.stored);
        }
        Ok(found)
    }
}

/// Returns `true` for an object that can only be meant as a reference.
fn is_reference(members: &Map<String, Value>) -> bool {
    members.contains_key(RESULT) && members.keys().all(|name| matches!(name.as_str(), RESULT | "path" | "as"))
}

fn bad(why: String) -> ToolError {
    ToolError::new(Outcome::BadArguments, why)
}
