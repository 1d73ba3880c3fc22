//! Typed stubs of tools for models that write programs: a `.pyi` or a `.d.ts` from the tools' JSON Schemas. A stub is shorter
//! than the schemas. It states names, types, defaults and descriptions; a call checks the rest.
//!
//! Schemas, names and descriptions are strangers'. Every stub passes the strict checks of mypy, Pyright and TypeScript,
//! whatever they hold.

mod members;
mod names;
mod python;
mod reader;
mod shape;
mod text;
mod typescript;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use crate::schema::text_within;
use crate::tool::Tool;

use names::Prefixes;
use shape::{Field, Object, Shape, Type};

/// Maximum bytes of one tool in a stub. A longer one loses the descriptions of its arguments, then its types.
const MAX_TOOL: usize = 16 << 10;
/// Maximum bytes of a schema. A longer one, which can take long to read, is stated as any arguments or any result.
pub(crate) const MAX_SCHEMA: usize = 32 << 10;
/// Maximum bytes of a tool's name. A tool with a longer one has no stub.
const MAX_NAME: usize = 200;
/// Limits of descriptions where all tools are listed.
const LISTED: Limits = Limits { description: 200, field: 100, detail: Detail::Full };
/// Limits of descriptions in the shortest list of all tools.
const OUTLINED: Limits = Limits { description: 100, field: 0, detail: Detail::Types };
/// Limits of descriptions where a model asked for the tool.
const ASKED: Limits = Limits { description: 600, field: 200, detail: Detail::Full };

/// Language of the stubs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StubLanguage {
    /// A `.pyi` for Python 3.12 and newer.
    Python,
    /// A `.d.ts`.
    Typescript,
}

/// Tool in a stub.
#[derive(Debug, Clone, Copy)]
pub struct StubTool<'a> {
    /// Name in programs.
    pub name: &'a str,
    /// Description for a model; empty if there is none.
    pub description: &'a str,
    /// JSON Schema of the arguments, which are an object.
    pub input: &'a Value,
    /// JSON Schema of the result. Without one, the result is any value.
    pub output: Option<&'a Value>,
}

/// Maximum characters of descriptions, and maximum detail.
#[derive(Clone, Copy)]
struct Limits {
    description: usize,
    field: usize,
    detail: Detail,
}

/// Amount of detail in a stub of one tool.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Detail {
    /// A description, and any arguments.
    Open,
    /// Types of the arguments and the result.
    Types,
    /// Types, and descriptions of arguments and fields.
    Full,
}

/// Tool with the types of its schemas.
struct TypedTool<'a> {
    name: &'a str,
    description: &'a str,
    input: Shape<'a>,
    /// `true` if Python passes a single dict as all arguments. It is the first argument if that may be an object.
    takes_whole: bool,
    /// `true` if the schema of the arguments states an empty list of properties, and nothing about further ones.
    has_no_properties: bool,
    output: Option<Shape<'a>>,
    limits: Limits,
}

impl<'a> StubTool<'a> {
    /// Takes a tool with its name in programs, and the schema of its arguments for a model.
    pub fn of(name: &'a str, tool: &'a Tool, input: Option<&'a Value>) -> Self {
        Self {
            name,
            description: tool.description.as_deref().unwrap_or_default(),
            input: input.unwrap_or(&Value::Null),
            output: tool.interface.schemas.output_schema.value.as_ref(),
        }
    }
}

impl<'a> TypedTool<'a> {
    fn new(tool: &StubTool<'a>, limits: Limits) -> Self {
        let StubTool { name, description, input, output } = *tool;
        let is_short = |schema: &&Value| text_within(schema, MAX_SCHEMA).is_some();
        let tool = &StubTool {
            name,
            description,
            input: Some(input).filter(is_short).unwrap_or(&Value::Null),
            output: output.filter(is_short),
        };
        let first = tool.input.get("properties").and_then(Value::as_object).and_then(|all| all.values().next());
        let kind = first.and_then(|first| first.get("type")).and_then(Value::as_str);
        let input = reader::read(tool.input);
        Self {
            name,
            description,
            takes_whole: kind.is_some_and(|kind| kind != "object"),
            has_no_properties: tool.input.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty)
                && ["additionalProperties", "patternProperties"]
                    .iter()
                    .all(|keyword| tool.input.get(keyword).is_none())
                && matches!(input.root, Type::Map(_)),
            input,
            output: tool.output.map(reader::read),
            limits,
        }
    }

    /// Returns the arguments; `None` if they are not stated by name. An input without properties has no arguments.
    fn arguments(&self) -> Option<Cow<'_, Object<'a>>> {
        match self.input.resolved() {
            Type::Object(object) => Some(Cow::Borrowed(object)),
            _ if self.has_no_properties => Some(Cow::Owned(Object { fields: Vec::new(), rest: None })),
            _ => None,
        }
    }

    /// Returns the comment of an argument or field: its default on request, its bounds, and its description if that says more
    /// than the names. Empty if there is none.
    fn comment(&self, field: &Field<'a>, with_default: bool, detail: Detail, language: StubLanguage) -> String {
        if detail < Detail::Full {
            return String::new();
        }
        let default = field.default.filter(|_| with_default && !field.is_required);
        let default = default.and_then(|value| text::default(value, language));
        let default = default.map(|value| format!("= {}", text::comment(&value, usize::MAX, language)));
        let description = field.description.map(|text| text::comment(text, self.limits.field, language));
        let description = description.filter(|text| text::adds(text, &[field.name, self.name]));
        let parts = default.into_iter().chain(field.range.clone()).chain(description);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// Returns the text with the most detail that is short enough.
    fn printed(&self, print: impl Fn(Detail) -> Printed) -> Printed {
        let details = [Detail::Full, Detail::Types].into_iter().filter(|detail| *detail <= self.limits.detail);
        let mut printed = details.map(&print);
        printed.find(|one| one.len() <= MAX_TOOL).unwrap_or_else(|| print(Detail::Open))
    }
}

/// Text of one tool.
#[derive(Default)]
struct Printed {
    /// Definitions of types.
    types: String,
    function: String,
    /// Names that the text needs from modules of Python.
    imports: BTreeSet<&'static str>,
}

impl Printed {
    fn len(&self) -> usize {
        self.types.len() + self.function.len()
    }
}

/// Named types of one shape, with the names of the printed ones.
struct Scope<'t, 'a> {
    shape: &'t Shape<'a>,
    names: Vec<Option<String>>,
}

impl<'t, 'a> Scope<'t, 'a> {
    fn new(shape: &'t Shape<'a>) -> Self {
        Self { shape, names: vec![None; shape.definitions.len()] }
    }
}

/// Returns the stubs of tools: the text of a `.pyi` or a `.d.ts`, in the order of the tools. Of several tools with a name, the
/// first has it. A tool has at most 16 KiB of text, and one with a schema of
/// more than 32 KiB states no types; the caller limits their number.
pub fn stubs(language: StubLanguage, tools: &[StubTool<'_>]) -> String {
    let mut seen = HashSet::new();
    let tools: Vec<_> =
        tools.iter().filter(|tool| seen.insert(tool.name)).map(|tool| TypedTool::new(tool, LISTED)).collect();
    let mut prefixes = Prefixes::new(tools.iter().map(|tool| tool.name));
    match language {
        StubLanguage::Python => python::stubs(&tools, &mut prefixes),
        StubLanguage::Typescript => typescript::stubs(&tools, &mut prefixes),
    }
}

/// Returns the stub of one tool, for a model that asks for it: its types, its function and longer descriptions than in the
/// stubs of all tools. The text has at most 16 KiB.
pub fn signature(language: StubLanguage, tool: &StubTool<'_>) -> String {
    signature_within(language, tool, ASKED)
}

/// Returns the stub of one tool with its types and the start of its description, for a list of all tools that a model always sees.
pub fn outline(language: StubLanguage, tool: &StubTool<'_>) -> String {
    signature_within(language, tool, OUTLINED)
}

fn signature_within(language: StubLanguage, tool: &StubTool<'_>, limits: Limits) -> String {
    let typed = TypedTool::new(tool, limits);
    let mut prefixes = Prefixes::new([tool.name].into_iter());
    match language {
        StubLanguage::Python => python::signature(&typed, &mut prefixes),
        StubLanguage::Typescript => typescript::signature(&typed, &mut prefixes),
    }
}

#[cfg(test)]
mod tests;
