//! The page with a call's form, and its buttons: preview, an item more or less, another kind of a value, and the
//! arguments as JSON. A button that changes the form renders it anew with everything that was typed.

use maud::{Markup, html};
use serde_json::{Value, json};
use toolcrib::source::digest;
use toolcrib::tool::Body;
use toolcrib::{Tool, ToolCall};
use toolcrib_base::render::{self, Advice, shortened};
use toolcrib_sources::tool_facts::disabled;

use super::super::form::{self, Fields, Form, Problems};
use super::super::layout::{self, MAX_BLOCK, hidden};
use super::super::query::{Query, parameter};
use super::super::response::{self, Answer};
use super::super::view::Views;
use super::super::visit::{Page, Tab, ViewError, Visit};
use super::desk::{Draft, FORM_PAGE, ID, Mode, PAGE, QuestionKind, Trial};

/// Maximum size of a call's form in bytes.
pub(crate) const MAX_FORM: usize = 1 << 20;
/// Maximum number of its fields.
pub(crate) const MAX_FIELDS: usize = 8_192;
/// Start of the message about arguments that do not match their schema.
const INVALID: &str = "invalid arguments: ";

/// Messages about a form.
#[derive(Default)]
struct Messages {
    about_all: Vec<String>,
    problems: Problems,
}

/// Returns the page with the form.
pub(crate) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let runtime = views.tools.runtime()?;
    let tool = tool(&runtime, visit.query.get("name"))?;
    let from =
        visit.query.get("from").and_then(|id| views.trials.find(id)).filter(|trial| trial.call.name == tool.name);
    let draft = match from {
        Some(trial) if trial.draft.schema == schema_digest(tool) => trial.draft.clone(),
        _ => first(tool),
    };
    Ok(shown(visit, &runtime, tool, &draft, &Messages::default()))
}

/// Returns the page with the form of a call whose arguments were wrong, with the messages at their fields.
pub(super) fn again(views: &Views, visit: &Visit, trial: &Trial, message: &str) -> Result<Page, ViewError> {
    let runtime = views.tools.runtime()?;
    let tool = tool(&runtime, Some(&trial.call.name))?;
    let mut messages = Messages { about_all: vec![message.to_owned()], ..Messages::default() };
    for one in message.strip_prefix(INVALID).unwrap_or_default().split("; ") {
        if let Some((pointer, text)) = one.split_once(": ").filter(|(pointer, _)| pointer.starts_with('/')) {
            messages.problems.insert(pointer.to_owned(), text.to_owned());
        }
    }
    Ok(shown(visit, &runtime, tool, &trial.draft, &messages))
}

fn tool<'r>(runtime: &'r toolcrib::Runtime, name: Option<&str>) -> Result<&'r Tool, ViewError> {
    let tool = name.and_then(|name| runtime.tool(name));
    tool.ok_or_else(|| ViewError::Unknown("No tool of this name is loaded.".to_owned()))
}

/// Schema of the arguments; a tool without one takes any.
fn schema(tool: &Tool) -> Value {
    tool.parameters.clone().unwrap_or_else(|| json!({ "type": "object" }))
}

fn schema_digest(tool: &Tool) -> String {
    digest(schema(tool).to_string().as_bytes())
}

/// Returns the draft that a form begins with.
fn first(tool: &Tool) -> Draft {
    let mode = if tool.text.is_some() { Mode::Text } else { Mode::Form };
    Draft { schema: schema_digest(tool), mode, text: String::new(), fields: Form(&schema(tool)).start() }
}

fn shown(visit: &Visit, runtime: &toolcrib::Runtime, tool: &Tool, draft: &Draft, messages: &Messages) -> Page {
    let state = disabled(runtime, tool);
    let schema = schema(tool);
    let preview = html! { button.allow name="do" value="preview" { "Preview" } };
    let others =
        [(Mode::Form, "Use the form"), (Mode::Json, "Write the arguments as JSON"), (Mode::Text, "Write text")];
    let others =
        others.into_iter().filter(|(mode, _)| *mode != draft.mode && (*mode != Mode::Text || tool.text.is_some()));
    let content = html! {
        h1 { "Try " (layout::link(&visit.path("tool"), "name", &tool.name, &layout::line(&tool.name, 120))) }
        @if let Some(description) = &tool.description { (layout::block(description, 1_000)) }
        @if let Some(reason) = state { p.problem { "The tool is disabled: " (layout::line(reason, 1_000)) } }
        @for message in &messages.about_all { p.problem role="alert" { (layout::line(message, MAX_BLOCK)) } }
        form.try method="post" action=(visit.path(FORM_PAGE)) {
            (hidden(visit, &[("name", &tool.name), ("schema", &draft.schema), ("mode", draft.mode.as_str())]))
            p { (preview) span.quiet { " shows the call and its decision before anything runs" } }
            @match draft.mode {
                Mode::Form => (form::shown(&Form(&schema).node(&draft.fields), &messages.problems)),
                Mode::Json => (area("Arguments, one JSON object", &draft.text)),
                Mode::Text => (area("Text", &draft.text)),
            }
            p { (preview) @for (mode, label) in others { " " button name="do" value=(mode.as_str()) { (label) } } }
        }
    };
    let title = format!("Try {}", render::one_line(&shortened(&tool.name, 80)));
    Page { title, tab: Tab::Tools, content }
}

fn area(label: &str, text: &str) -> Markup {
    let rows = text.lines().count().clamp(8, 30);
    html! {
        div.field {
            label for="text" { (label) }
            // The first line break in a text area is not a part of its text.
            textarea.json id="text" name="text" rows=(rows) spellcheck="false" { "\n" (text) }
        }
    }
}

/// Applies a button on the form or the page of a call.
pub(crate) fn act(views: &Views, visit: &Visit, page: &str, sent: &Query) -> Result<Result<Page, Answer>, ViewError> {
    if page == PAGE {
        return decide(views, visit, sent).map(Err);
    }
    let loaded = views.tools.load()?;
    let runtime = &loaded.runtime;
    let tool = tool(runtime, sent.get("name"))?;
    let mut draft = read(sent);
    let mut messages = Messages::default();
    if draft.schema != schema_digest(tool) {
        messages.about_all.push("The tool has changed since this form was shown. Fill in the form again.".to_owned());
        return Ok(Ok(shown(visit, runtime, tool, &first(tool), &messages)));
    }
    let button = sent.get("do").unwrap_or("show");
    if button != "preview" {
        change(tool, &mut draft, button, &mut messages);
        return Ok(Ok(shown(visit, runtime, tool, &draft, &messages)));
    }
    if matches!(&tool.body, Body::Script(script) if script.background) {
        messages
            .about_all
            .push("The tool runs in the background of a conversation, so only `toolcrib run` calls it.".to_owned());
        return Ok(Ok(shown(visit, runtime, tool, &draft, &messages)));
    }
    let id = format!("call_{:016x}", rand::random::<u64>());
    let call = match draft.mode {
        Mode::Text => ToolCall::text(id, &tool.name, &draft.text),
        Mode::Json => ToolCall::new(id, &tool.name, &draft.text),
        Mode::Form => match arguments(tool, &draft.fields, &mut messages) {
            Some(arguments) => ToolCall::new(id, &tool.name, arguments.to_string()),
            None => return Ok(Ok(shown(visit, runtime, tool, &draft, &messages))),
        },
    };
    let id = views.trials.begin(&loaded, call, draft)?;
    Ok(Err(response::lead(&format!("{}{}", visit.path(PAGE), parameter(ID, &id)))))
}

/// Reads what a form sent. A browser sends line breaks as two characters.
fn read(sent: &Query) -> Draft {
    let mut draft = Draft::default();
    for (name, text) in sent.all() {
        match name {
            "schema" => text.clone_into(&mut draft.schema),
            "mode" if text == Mode::Json.as_str() => draft.mode = Mode::Json,
            "mode" if text == Mode::Text.as_str() => draft.mode = Mode::Text,
            "text" => draft.text = text.replace("\r\n", "\n"),
            _ if name.get(1..2) == Some(":") => {
                draft.fields.insert(name.to_owned(), text.replace("\r\n", "\n"));
            }
            _ => {}
        }
    }
    draft
}

/// Returns the arguments that the fields are; otherwise adds the problems.
fn arguments(tool: &Tool, fields: &Fields, messages: &mut Messages) -> Option<Value> {
    let value = Form(&schema(tool)).node(fields).value(&mut messages.problems);
    if !messages.problems.is_empty() {
        messages.about_all.push("Some fields are invalid; each has a message.".to_owned());
        return None;
    }
    Some(value.unwrap_or_else(|| json!({})))
}

/// Changes the form by one of its buttons.
fn change(tool: &Tool, draft: &mut Draft, button: &str, messages: &mut Messages) {
    match (button, draft.mode) {
        ("json", Mode::Form) => {
            // Fields without a value yet are left out.
            let value =
                Form(&schema(tool)).node(&draft.fields).value(&mut Problems::new()).unwrap_or_else(|| json!({}));
            draft.text = serde_json::to_string_pretty(&value).unwrap_or_default();
            draft.mode = Mode::Json;
        }
        ("json", _) => *draft = Draft { mode: Mode::Json, text: "{}".to_owned(), ..std::mem::take(draft) },
        ("text", _) => *draft = Draft { mode: Mode::Text, text: String::new(), ..std::mem::take(draft) },
        ("form", Mode::Json) => {
            let text = if draft.text.trim().is_empty() { "{}" } else { &draft.text };
            match serde_json::from_str::<Value>(text).map(|value| Form(&schema(tool)).fill(&value)) {
                Ok(Some(fields)) => *draft = Draft { mode: Mode::Form, fields, ..std::mem::take(draft) },
                Ok(None) => {
                    messages
                        .about_all
                        .push("The form has no field for a part of these arguments, so they stay as JSON.".to_owned());
                }
                Err(error) => messages.about_all.push(format!("this is not JSON: {error}")),
            }
        }
        ("form", _) => {
            *draft = Draft { mode: Mode::Form, fields: Form(&schema(tool)).start(), ..std::mem::take(draft) }
        }
        _ => {
            // Another button shows the form with the kinds that were chosen.
            form::edit(&mut draft.fields, button);
        }
    }
}

/// Applies a click on the page of a call: it goes on, or ends.
fn decide(views: &Views, visit: &Visit, sent: &Query) -> Result<Answer, ViewError> {
    let trial = sent.get(ID).and_then(|id| views.trials.find(id));
    let trial = trial.ok_or_else(|| ViewError::Unknown("No call has this address.".to_owned()))?;
    let question = sent.get("question").and_then(|number| number.parse().ok());
    let gone = || ViewError::Unknown("The call no longer waits for this click.".to_owned());
    match sent.get("do") {
        Some("stop") => trial.stop.cancel(),
        Some("go") if trial.permissions != views.tools.permissions() => {
            trial.stop.cancel();
            let message = "permissions have changed since this call was prepared: it was stopped";
            return Err(Advice::new(message, "preview it again").into());
        }
        Some("go") => match question.and_then(|number| trial.take(number)).ok_or_else(gone)? {
            QuestionKind::Asked(_, answer) => {
                answer.send(toolcrib::policy::ApprovalAnswer::Once).map_err(|_| gone())?;
            }
            held @ QuestionKind::Held(_) => drop(held),
        },
        Some("no") => match question.and_then(|number| trial.take(number)).ok_or_else(gone)? {
            QuestionKind::Asked(_, answer) => {
                let _ = answer.send(toolcrib::policy::ApprovalAnswer::No);
            }
            held @ QuestionKind::Held(_) => {
                trial.stop.cancel();
                drop(held);
            }
        },
        _ => return Err(ViewError::Unknown("The form has no answer.".to_owned())),
    }
    Ok(response::lead(&format!("{}{}", visit.path(PAGE), parameter(ID, &trial.id))))
}
