//! Unit tests of tools on the native target: calls that are parsed like real ones, and stand-ins for the host. Settings
//! apply to the thread of the test.
//!
//! ```
//! use toolcrib_guest::testing;
//!
//! testing::model(|question| Ok(question.prompt.to_uppercase()));
//! let (answer, seen) = testing::record(|| {
//!     toolcrib_guest::progress::text("asking");
//!     toolcrib_guest::model::ask("why")
//! });
//! assert_eq!(answer.expect("an answer"), "WHY");
//! assert_eq!(seen.parts, [toolcrib_guest::Part::text("asking")]);
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::log::Level;
use crate::model::Question;
use crate::tool::Tool;
use crate::{Answer, Call, Part, Payload, Result, json};

/// Output of a tool while it ran.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    /// Progress parts.
    pub parts: Vec<Part>,
    /// Progress reports, each with the steps done and the total.
    pub measures: Vec<(u64, Option<u64>)>,
    /// Log messages.
    pub notes: Vec<(Level, String)>,
}

/// Stand-in for the model or for other tools.
type Reply<Request> = Box<dyn FnMut(Request) -> Result<String, String>>;

#[derive(Default)]
struct Host {
    seen: Seen,
    cache: BTreeMap<String, String>,
    secrets: Vec<String>,
    model: Option<Reply<Question>>,
    tools: Option<Reply<(String, Value)>>,
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::default();
}

fn host<T>(with: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with_borrow_mut(with)
}

/// Runs a closure and records its output.
pub fn record<T>(run: impl FnOnce() -> T) -> (T, Seen) {
    host(|host| host.seen = Seen::default());
    let returned = run();
    (returned, host(|host| std::mem::take(&mut host.seen)))
}

/// Sets the stand-in for the model.
pub fn model(mut reply: impl FnMut(&Question) -> Result<String, String> + 'static) {
    host(|host| host.model = Some(Box::new(move |question| reply(&question))));
}

/// Sets the stand-in for other tools, with their results as a model would receive them.
pub fn tools(mut reply: impl FnMut(&str, &Value) -> Result<String, String> + 'static) {
    host(|host| host.tools = Some(Box::new(move |(name, arguments)| reply(&name, &arguments))));
}

/// Grants secrets of these names.
pub fn secrets<T: Into<String>>(names: impl IntoIterator<Item = T>) {
    host(|host| host.secrets = names.into_iter().map(T::into).collect());
}

/// Creates a call of a tool: its text if `payload` is a string, otherwise its arguments. The other fields can be
/// changed afterwards.
pub fn invocation<T: Tool>(payload: &Value) -> Call {
    Call {
        id: "call_1".into(),
        tool: T::NAME.into(),
        name: Some(T::NAME.into()),
        payload: match payload {
            Value::String(text) => Payload::Text(text.clone()),
            object => Payload::Object(object.to_string()),
        },
        format: None,
        metadata: "{}".into(),
        context: json!({ "trigger_source": "test" }).to_string(),
        prepared: None,
    }
}

/// Calls a tool as the host does: `testing::call::<greet>(json!({ "name": "Ada" }))`.
///
/// # Errors
///
/// If the arguments do not match, or the tool fails.
#[expect(clippy::needless_pass_by_value, reason = "it is called with `json!`")]
pub fn call<T: Tool>(payload: Value) -> Result<Answer> {
    T::run(&invocation::<T>(&payload))
}

/// Descriptor of a tool, as the host reads it.
///
/// # Panics
///
/// If the descriptor is not JSON, which only a hand-written schema can cause.
pub fn descriptor<T: Tool>() -> Value {
    serde_json::from_slice(T::DESCRIPTOR).expect("a descriptor is JSON")
}

/// Functions of the host.
pub(crate) mod host {
    pub(crate) mod progress {
        pub(crate) fn measure(done: u64, total: Option<u64>) {
            crate::testing::host(|host| host.seen.measures.push((done, total)));
        }

        pub(crate) fn show(part: &crate::Part) {
            crate::testing::host(|host| host.seen.parts.push(part.clone()));
        }
    }

    pub(crate) mod log {
        pub(crate) fn log(level: crate::log::Level, message: &str) {
            crate::testing::host(|host| host.seen.notes.push((level, message.to_owned())));
        }
    }

    pub(crate) mod cache {
        pub(crate) fn get(key: &str) -> Option<String> {
            crate::testing::host(|host| host.cache.get(key).cloned())
        }

        pub(crate) fn set(key: &str, value: &str) -> Result<(), String> {
            crate::testing::host(|host| host.cache.insert(key.to_owned(), value.to_owned()));
            Ok(())
        }
    }

    pub(crate) mod model {
        use crate::model::{Completion, Question};

        pub(crate) fn complete(question: &Question) -> Result<Completion, String> {
            // Taken out while it runs, so that it can use the host itself.
            let mut reply = crate::testing::host(|host| host.model.take())
                .ok_or("no model answers in this test: set one with `testing::model`")?;
            let text = reply(question.clone());
            crate::testing::host(|host| host.model = host.model.take().or(Some(reply)));
            Ok(Completion { text: text?, tokens: 0 })
        }
    }

    pub(crate) mod tools {
        pub(crate) fn call(name: &str, arguments: &str) -> Result<String, String> {
            let arguments = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
            let mut reply = crate::testing::host(|host| host.tools.take())
                .ok_or("no tool answers in this test: set one with `testing::tools`")?;
            let answer = reply((name.to_owned(), arguments));
            crate::testing::host(|host| host.tools = host.tools.take().or(Some(reply)));
            answer
        }
    }

    pub(crate) mod secrets {
        pub(crate) fn granted() -> Vec<String> {
            crate::testing::host(|host| host.secrets.clone())
        }
    }
}
