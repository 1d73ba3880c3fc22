//! Descriptor: a component's description of one tool, with the fields in a `tools.json` entry and a few more. A wrong
//! value is an error; an unknown field is a warning.

use serde_json::{Map, Value};

use crate::tool::{
    Basis, Capabilities, Enablement, Fact, FactValue, Glob, Grammar, LimitRequest, Limits, RichExports, Syntax,
    TextInput, Tool,
};

use crate::source::agent_tool::take;
use crate::source::diagnostics::Diagnostics;
use crate::source::interface::Statement;
use crate::source::shape::{kind, members};
use crate::source::{capabilities, name};

const FIELDS: [&str; 18] = [
    "name",
    "aliases",
    "description",
    "schema",
    "text",
    "output",
    "capabilities",
    "timeoutSec",
    "limits",
    "interface",
    "tags",
    "requiredTags",
    "forbiddenTags",
    "models",
    "provider",
    "says",
    "package",
    "$schema",
];
/// Optional parts of the contract.
const SAYS: [&str; 5] = ["validate", "preview", "prepare", "route", "present"];
/// Abilities of model servers.
const ABILITIES: [&str; 2] = ["custom_tools", "media_results"];
/// Fields that a descriptor states itself and not a second time in `interface`.
const OWN: [&str; 5] = ["name", "aliases", "description", "runtime_input_schema", "output_schema"];

/// A component's description of one tool.
pub(super) struct Descriptor {
    pub(super) name: String,
    description: Option<String>,
    parameters: Option<Value>,
    text: Option<TextInput>,
    requested: Option<Capabilities>,
    limits: LimitRequest,
    stated: Statement,
    enablement: Enablement,
    /// Optional parts of the contract that concern this tool; `None` for all.
    says: Option<Vec<String>>,
    package: Option<Value>,
}

impl Descriptor {
    /// Reads a descriptor and reports its problems.
    pub(super) fn read(index: usize, value: Value, several: bool, report: &mut Diagnostics) -> Option<Self> {
        let place = if several { format!("descriptor[{index}]") } else { "descriptor".to_owned() };
        let mut fields = report.value(members(&place, value))?;
        let name = fields.shift_remove("name").and_then(String::read).filter(|name| !name.trim().is_empty());
        report.enter(match &name {
            Some(name) => format!("{place} {:?}: ", name::shortened(name)),
            None => format!("{place}: "),
        });
        report.require(name.is_some(), "name is required, a string that is not empty");
        let name = name?;
        report.value(name::check_length(&name));
        let description = take::<String>(report, &mut fields, "description");
        let schema = fields.shift_remove("schema");
        if let Some(schema) = schema.as_ref().filter(|schema| !schema.is_object()) {
            report.error(&format!("schema must be an object, found {}", kind(schema)));
        }
        let text = fields.shift_remove("text").and_then(|text| report.value(text_input(text)));
        if let (Some(schema), Some(text)) = (&schema, &text) {
            report.require(
                text.is_carried_by(schema),
                &format!("schema must have the string `{}`, which text names, and require no other field", text.field),
            );
        }
        let mut stated = Statement::default();
        if let Some(interface) =
            fields.shift_remove("interface").and_then(|value| report.value(members("interface", value)))
        {
            stated.read("interface", interface, &OWN, report);
        }
        if let Some(output) = fields.shift_remove("output") {
            report.require(output.is_object(), &format!("output must be an object, found {}", kind(&output)));
            stated.interface.schemas.output_schema = Fact { value: Some(output), basis: Basis::Declared };
        }
        if let Some(aliases) = take::<Vec<String>>(report, &mut fields, "aliases") {
            stated.interface.identity.aliases = Fact { value: aliases, basis: Basis::Declared };
        }
        let safety = &mut stated.interface.safety;
        if safety.is_concurrency_safe.value && !safety.is_read_only.value {
            report.warn(
                "is_concurrency_safe is declared true, but it is not read-only: parallel calls can conflict, so each runs \
                 alone",
            );
            safety.is_concurrency_safe = Fact::default(false);
        }
        let requested = match fields.shift_remove("capabilities") {
            Some(stated) => Some(report.values(capabilities::of_program(Some(stated)))?),
            None => None,
        };
        let limits = report.values(capabilities::limits(fields.shift_remove("limits")))?;
        let seconds = take::<usize>(report, &mut fields, "timeoutSec").map(|seconds| seconds as u64);
        let deadline = report.value(stated.deadline(seconds))?;
        let models = take(report, &mut fields, "models").unwrap_or_default();
        let enablement = Enablement {
            tags: take(report, &mut fields, "tags").unwrap_or_default(),
            required_tags: take(report, &mut fields, "requiredTags").unwrap_or_default(),
            forbidden_tags: take(report, &mut fields, "forbiddenTags").unwrap_or_default(),
            models: globs(report, models),
            provider: take(report, &mut fields, "provider").unwrap_or_default(),
        };
        let says = take::<Vec<String>>(report, &mut fields, "says");
        for word in says.iter().flatten().filter(|word| !SAYS.contains(&word.as_str())) {
            report.unknown_at(None, "says: ", word, &SAYS);
        }
        for word in enablement.provider.iter().filter(|word| !ABILITIES.contains(&word.as_str())) {
            report.unknown_at(None, "provider: ", word, &ABILITIES);
        }
        let package = fields.shift_remove("package");
        fields.shift_remove("$schema");
        report.unknown("", &fields, &FIELDS);
        name::warn_of_servers(&name, None, report);
        let parameters = schema.or_else(|| text.as_ref().map(TextInput::schema));
        let limits = LimitRequest { deadline, ..limits };
        Some(Self { name, description, parameters, text, requested, limits, stated, enablement, says, package })
    }

    /// Returns the optional parts, of those that the component exports, that concern this tool.
    pub(super) fn exports(&self, all: RichExports) -> RichExports {
        let Some(own) = &self.says else { return all };
        let own = |name: &str| own.iter().any(|one| one == name);
        RichExports {
            validate: all.validate && own("validate"),
            preview: all.preview && own("preview"),
            prepare: all.prepare && own("prepare"),
            route: all.route && own("route"),
            present: all.present && own("present"),
        }
    }

    /// Fills in the fields that a tool leaves open.
    pub(super) fn fill(&self, mut tool: Tool) -> Tool {
        tool.description = tool.description.or_else(|| self.description.clone());
        if tool.parameters.is_none() {
            tool.parameters = self.parameters.clone();
            tool.text = self.text.clone();
        }
        if let Some(requested) = self.requested.as_ref().filter(|_| !tool.requested.declared) {
            tool.requested = requested.clone();
        }
        // No program raises the limits that an entry leaves open.
        tool.limits = tool.limits.or(self.limits.capped_at(&Limits::default()));
        tool.interface.fill(&self.stated.interface);
        tool.enablement = self.enablement.clone();
        tool.origin.unknown.extend(self.stated.unknown.clone());
        tool.origin.unknown.extend(self.package.as_ref().map(|package| ("package".to_owned(), package.clone())));
        tool
    }
}

fn text_input(value: Value) -> Result<TextInput, String> {
    let mut fields = members("text", value)?;
    let string = |field: &str, value: Option<Value>| match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("text.{field} must be a string, found {}", kind(&other))),
    };
    let field = string("field", fields.shift_remove("field"))?.unwrap_or_else(|| TextInput::DEFAULT_FIELD.to_owned());
    if field.is_empty() {
        return Err("text.field is empty".to_owned());
    }
    let description = string("description", fields.shift_remove("description"))?;
    let grammar = match fields.shift_remove("grammar") {
        None | Some(Value::Null) => None,
        Some(grammar) => Some(self::grammar(members("text.grammar", grammar)?)?),
    };
    match fields.keys().next() {
        None => Ok(TextInput { grammar, field, description }),
        Some(key) => Err(format!("text: unknown field `{key}`, expected one of `grammar`, `field`, `description`")),
    }
}

fn grammar(mut fields: Map<String, Value>) -> Result<Grammar, String> {
    let syntax = fields.shift_remove("syntax").unwrap_or_default();
    let found = syntax.to_string();
    let syntax = Syntax::read(syntax).ok_or_else(|| {
        format!("text.grammar.syntax must be {}, found {}", Syntax::EXPECTED, name::shortened(&found))
    })?;
    match fields.shift_remove("definition") {
        Some(Value::String(definition)) if !definition.is_empty() => Ok(Grammar { syntax, definition }),
        _ => Err("text.grammar.definition must be a string that is not empty".to_owned()),
    }
}

fn globs(report: &mut Diagnostics, written: Vec<String>) -> Vec<Glob> {
    report.value(capabilities::globs("models", written)).unwrap_or_default()
}
