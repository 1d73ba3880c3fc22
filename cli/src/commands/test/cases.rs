//! A tool's cases as in their file: each call with its expected outcome. Whatever the format does not know is refused,
//! for a case with a slip in it would pass for the wrong reason.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde_json::{Map, Value};
use toolcrib::{Outcome, ToolCall, ToolResult};
use toolcrib_base::render::{Advice, shortened};
use toolcrib_base::suggestion;

const FILE_KEYS: [&str; 1] = ["cases"];
const CASE_KEYS: [&str; 7] = ["name", "tool", "arguments", "text", "expect", "files", "after"];
const EXPECTATIONS: [&str; 4] = ["answer", "contains", "error", "outcome"];
/// Maximum characters shown of an expected or actual value.
const MAX_SHOWN: usize = 400;

/// A test case: one call and its expected result.
#[derive(Debug, PartialEq)]
pub(super) struct Case {
    pub(super) name: String,
    /// Name of the tool, required if there are several.
    pub(super) tool: Option<String>,
    payload: Payload,
    expect: Expect,
    /// Files in the folder that the tool may read and write; `None` gives it no folder.
    pub(super) files: Option<BTreeMap<String, String>>,
    /// Expected contents after the call; `None` expects the file to be deleted.
    pub(super) after: BTreeMap<String, Option<String>>,
}

#[derive(Debug, PartialEq)]
enum Payload {
    Arguments(String),
    Text(String),
}

#[derive(Debug, PartialEq)]
enum Expect {
    /// This exact value; a text answer is a JSON string.
    Answer(Value),
    /// An answer that contains this text.
    Contains(String),
    /// A failure with this text in the message for the model.
    Error(String),
    /// This outcome.
    Outcome(Outcome),
}

impl Case {
    /// Builds the call of the named tool.
    pub(super) fn call(&self, id: String, tool: &str) -> ToolCall {
        match &self.payload {
            Payload::Arguments(arguments) => ToolCall::new(id, tool, arguments),
            Payload::Text(text) => ToolCall::text(id, tool, text),
        }
    }

    /// Returns the expected and actual results if they differ.
    pub(super) fn difference(&self, result: &ToolResult) -> Option<(String, String)> {
        let content = result.content();
        let value = || serde_json::from_str::<Value>(&result.line()).ok();
        let (met, wanted) = match &self.expect {
            Expect::Answer(answer) => (!result.is_error() && value().as_ref() == Some(answer), answer.to_string()),
            Expect::Contains(part) => {
                (!result.is_error() && content.contains(part), format!("an answer with `{part}`"))
            }
            Expect::Error(part) => {
                let matches = |error: &toolcrib::ToolError| error.message.contains(part) || content.contains(part);
                (result.outcome.as_ref().is_err_and(matches), format!("an error with `{part}`"))
            }
            Expect::Outcome(outcome) => (result.receipt.outcome == *outcome, format!("the outcome `{outcome}`")),
        };
        (!met).then(|| {
            let actual = if let Expect::Answer(_) = self.expect { result.line() } else { content };
            let found = format!("{} (outcome `{}`)", shortened(&actual, MAX_SHOWN), result.receipt.outcome);
            (shortened(&wanted, MAX_SHOWN).into_owned(), found)
        })
    }
}

/// Parses a file of cases.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Case>> {
    let value = serde_json::from_str(text).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut file = Fields::of("the file", value, &FILE_KEYS)?;
    let Some(Value::Array(cases)) = file.members.remove("cases") else {
        return Err(
            Advice::new("`cases` must be an array", "write `{\"cases\": [{\"name\": …, \"expect\": …}]}`").into()
        );
    };
    if cases.is_empty() {
        return Err(Advice::new("`cases` is empty", "add at least one case").into());
    }
    cases.into_iter().enumerate().map(|(at, case)| case_of(format!("cases[{at}]"), case)).collect()
}

fn case_of(at: String, value: Value) -> anyhow::Result<Case> {
    let mut fields = Fields::of(&at, value, &CASE_KEYS)?;
    let name = fields.text("name")?.filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| fields.wrong("`name` is required"))?;
    fields.at = format!("{at} {name:?}");
    let payload = match (fields.members.remove("arguments"), fields.text("text")?) {
        (Some(_), Some(_)) => return Err(fields.wrong("`arguments` and `text` exclude each other")),
        (None, Some(text)) => Payload::Text(text),
        // Arguments that are not an object are passed on, so that the tool's refusal can be tested.
        (Some(arguments), None) => Payload::Arguments(arguments.to_string()),
        (None, None) => Payload::Arguments("{}".to_owned()),
    };
    let expect = fields.members.remove("expect").ok_or_else(|| fields.wrong("`expect` is required"))?;
    let expect = expectation(format!("{}: `expect`", fields.at), expect)?;
    let is_text = |(path, content): (String, Option<String>)| match content {
        Some(content) => Ok((path, content)),
        None => Err(anyhow::anyhow!("{}: `files`: `{path}` must be text", at)),
    };
    let files = fields.files("files")?.map(|files| files.into_iter().map(is_text).collect()).transpose()?;
    let after = fields.files("after")?.unwrap_or_default();
    if files.is_none() && !after.is_empty() {
        return Err(fields.wrong("`after` needs `files`: add it, if only as `{}`"));
    }
    Ok(Case { name, tool: fields.text("tool")?, payload, expect, files, after })
}

fn expectation(at: String, value: Value) -> anyhow::Result<Expect> {
    let mut fields = Fields::of(&at, value, &EXPECTATIONS)?;
    if fields.members.len() != 1 {
        return Err(fields.wrong(&format!("one of `{}` is required", EXPECTATIONS.join("`, `"))));
    }
    if let Some(answer) = fields.members.remove("answer") {
        return Ok(Expect::Answer(answer));
    }
    if let Some(part) = fields.text("contains")? {
        return Ok(Expect::Contains(part));
    }
    if let Some(part) = fields.text("error")? {
        return Ok(Expect::Error(part));
    }
    let word = fields.text("outcome")?.unwrap_or_default();
    let known = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == word);
    let words = Outcome::ALL.map(Outcome::as_str);
    known.map(Expect::Outcome).ok_or_else(|| unknown(&at, "outcome", &word, &words))
}

/// Unread members of an object.
struct Fields {
    at: String,
    members: Map<String, Value>,
}

impl Fields {
    fn of(at: &str, value: Value, known: &[&str]) -> anyhow::Result<Self> {
        let Value::Object(members) = value else { anyhow::bail!("{at} must be an object, found `{value}`") };
        match members.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(unknown(at, "key", key, known)),
            None => Ok(Self { at: at.to_owned(), members }),
        }
    }

    fn text(&mut self, key: &str) -> anyhow::Result<Option<String>> {
        match self.members.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(&format!("`{key}` must be text, found `{other}`"))),
        }
    }

    /// Reads files by relative path.
    fn files(&mut self, key: &str) -> anyhow::Result<Option<BTreeMap<String, Option<String>>>> {
        let files = match self.members.remove(key) {
            None => return Ok(None),
            Some(Value::Object(files)) => files,
            Some(_) => return Err(self.wrong(&format!("`{key}` must be an object from paths to texts"))),
        };
        let file = |(path, content): (String, Value)| {
            let plain = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
            if path.is_empty() || !plain {
                return Err(self.wrong(&format!("`{key}`: `{path}` must be a relative path without `..`")));
            }
            match content {
                Value::String(content) => Ok((path, Some(content))),
                Value::Null => Ok((path, None)),
                _ => Err(self.wrong(&format!("`{key}`: `{path}` must be text"))),
            }
        };
        files.into_iter().map(file).collect::<anyhow::Result<_>>().map(Some)
    }

    fn wrong(&self, what: &str) -> anyhow::Error {
        anyhow::anyhow!("{}: {what}", self.at)
    }
}

/// Error about an unknown word, with the nearest known one.
fn unknown(at: &str, what: &str, word: &str, known: &[&str]) -> anyhow::Error {
    let hint = suggestion::hint(word, known);
    Advice::new(format!("{at}: unknown {what} `{}`", shortened(word, MAX_SHOWN)), hint).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(case: &str) -> String {
        let error = parse(&format!("{{\"cases\":[{case}]}}")).expect_err(case);
        let hint = error.downcast_ref::<Advice>().map(|advice| format!(" | {}", advice.hint())).unwrap_or_default();
        format!("{error}{hint}")
    }

    #[test]
    fn a_slip_is_refused_with_its_place() {
        for (case, wanted) in [
            ("{}", "cases[0]: `name` is required"),
            (r#"{"name":"a"}"#, r#"cases[0] "a": `expect` is required"#),
            (r#"{"name":"a","expects":{}}"#, "cases[0]: unknown key `expects` | did you mean `expect`?"),
            (r#"{"name":"a","expect":{}}"#, "one of `answer`, `contains`, `error`, `outcome` is required"),
            (r#"{"name":"a","expect":{"contain":""}}"#, "unknown key `contain` | did you mean `contains`?"),
            (r#"{"name":"a","expect":{"outcome":"denid"}}"#, "unknown outcome `denid` | did you mean `denied`?"),
            (r#"{"name":"a","expect":{"error":1}}"#, "`error` must be text, found `1`"),
            (r#"{"name":"a","text":"","arguments":{},"expect":{"answer":1}}"#, "exclude each other"),
            (r#"{"name":"a","files":{"../b":""},"expect":{"answer":1}}"#, "`../b` must be a relative path"),
            (r#"{"name":"a","files":{"b":null},"expect":{"answer":1}}"#, "`files`: `b` must be text"),
            (r#"{"name":"a","after":{"b":null},"expect":{"answer":1}}"#, "`after` needs `files`"),
        ] {
            let output = refused(case);
            assert!(output.contains(wanted), "{case}: {output}");
        }
        assert!(parse("{\"cases\":[]}").is_err() && parse("{}").is_err() && parse("[]").is_err());
    }

    #[test]
    fn a_whole_case_is_read() {
        let text = r#"{"cases":[{"name":"a","tool":"t","text":"x","files":{"b":"c"},"after":{"b":null},"expect":{"outcome":"ok"}}]}"#;
        let case = Case {
            name: "a".into(),
            tool: Some("t".into()),
            payload: Payload::Text("x".into()),
            expect: Expect::Outcome(Outcome::Ok),
            files: Some([("b".into(), "c".into())].into()),
            after: [("b".into(), None)].into(),
        };
        assert_eq!(parse(text).expect("sound"), [case]);
    }
}
