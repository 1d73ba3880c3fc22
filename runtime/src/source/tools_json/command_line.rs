//! Fields of an entry for a program that takes arguments instead of JSON: `argv`, `stdin`, `output` and `successCodes`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolcrib_foundation::text::listed;

use crate::source::diagnostics::Diagnostics;
use crate::source::shape::kind;
use crate::tool::{
    ArgvGroup, ArgvItem, CommandLine, END_OF_OPTIONS, GroupCondition, MAX_ARGUMENTS, OutputForm, Template,
};

/// Maximum number of placeholders in one text.
const MAX_PLACEHOLDERS: usize = 64;
/// Fields of a group in `argv`.
const GROUP_KEYS: &[&str] = &["when", "each", "argv", "options"];

/// Fields of an entry, unread.
pub(super) struct Fields {
    pub(super) argv: Option<Value>,
    pub(super) stdin: Option<Value>,
    pub(super) output: Option<Value>,
    pub(super) success_codes: Option<Value>,
}

impl Fields {
    /// Reads the fields; `None` if there are none of them, or they are faulty.
    pub(super) fn read(self, report: &mut Diagnostics) -> Option<CommandLine> {
        let Self { argv, stdin, output, success_codes } = self;
        if argv.is_none() && stdin.is_none() && output.is_none() && success_codes.is_none() {
            return None;
        }
        let argv = argv.map(|argv| read_argv(argv, report));
        let stdin = stdin.map(|stdin| report.value(template("stdin", &stdin)));
        let output = output.map(|output| report.value(read_output(&output)));
        let codes = success_codes.map_or(Some(BTreeSet::new()), |codes| report.value(read_codes(&codes)));
        // A program that does not read JSON hardly writes it.
        let usual = (argv.is_some() || stdin.is_some()).then_some(OutputForm::Text);
        Some(CommandLine {
            argv: argv.map_or(Some(None), |read| read.map(Some))?,
            stdin: stdin.map_or(Some(None), |read| read.map(Some))?,
            output: output.map_or(Some(usual), |read| read.map(Some))?,
            success_codes: codes?,
        })
    }
}

fn read_argv(argv: Value, report: &mut Diagnostics) -> Option<Vec<ArgvItem>> {
    let items = report.value(array("argv", argv))?;
    if items.len() > MAX_ARGUMENTS {
        report.error(&format!("argv has {} items, more than the {MAX_ARGUMENTS} arguments of a program", items.len()));
        return None;
    }
    let read: Vec<_> = items.into_iter().enumerate().map(|(index, item)| read_item(index, item, report)).collect();
    read.into_iter().collect()
}

fn read_item(index: usize, item: Value, report: &mut Diagnostics) -> Option<ArgvItem> {
    let at = format!("argv[{index}]");
    let mut fields = match item {
        Value::Object(fields) => fields,
        other => return report.value(template(&at, &other)).map(ArgvItem::One),
    };
    let (when, each) = (fields.shift_remove("when"), fields.shift_remove("each"));
    let condition = match (when, each) {
        (Some(Value::String(name)), None) => Some(GroupCondition::When(name)),
        (None, Some(Value::String(name))) => Some(GroupCondition::Each(name)),
        _ => {
            report.error(&format!("{at} must have `when` or `each`, the name of one argument"));
            None
        }
    };
    let argv = fields.shift_remove("argv").ok_or(format!("{at}.argv is required"));
    let argv = report.value(argv.and_then(|argv| array(&format!("{at}.argv"), argv)));
    let argv = argv.and_then(|argv| report.value(not_empty(&at, argv)));
    let argv = argv.map(|argv| {
        let words = argv.iter().enumerate();
        words.map(|(word, text)| report.value(template(&format!("{at}.argv[{word}]"), text))).collect::<Vec<_>>()
    });
    let options = match fields.shift_remove("options") {
        None => Some(false),
        Some(Value::Bool(options)) => Some(options),
        Some(other) => {
            report.error(&format!("{at}.options must be true or false, found {}", kind(&other)));
            None
        }
    };
    report.unknown(&format!("{at}: "), &fields, GROUP_KEYS);
    Some(ArgvItem::Group(ArgvGroup {
        condition: condition?,
        argv: argv?.into_iter().collect::<Option<_>>()?,
        options: options?,
    }))
}

fn not_empty(at: &str, items: Vec<Value>) -> Result<Vec<Value>, String> {
    if items.is_empty() { Err(format!("{at}.argv is empty: a group has at least one argument")) } else { Ok(items) }
}

fn array(field: &str, value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(format!("{field} must be an array, found {}", kind(&other))),
    }
}

fn template(field: &str, value: &Value) -> Result<Template, String> {
    let text = value.as_str().ok_or_else(|| format!("{field} must be a string, found {}", kind(value)))?;
    if text.contains('\0') {
        return Err(format!("{field} has the character NUL, which no argument of a program can have"));
    }
    let template: Template = text.parse().map_err(|error| format!("{field} has {error}"))?;
    match template.placeholders().count() {
        0..=MAX_PLACEHOLDERS => Ok(template),
        more => Err(format!("{field} has {more} placeholders, more than the {MAX_PLACEHOLDERS} allowed")),
    }
}

fn read_output(value: &Value) -> Result<OutputForm, String> {
    let form = value.as_str().and_then(|name| OutputForm::ALL.iter().find(|form| form.0 == name));
    form.map(|form| form.1).ok_or_else(|| {
        let names = OutputForm::ALL.iter().map(|(name, _)| format!("`{name}`"));
        let found = value.as_str().map_or_else(|| kind(value).to_owned(), |text| format!("{text:?}"));
        format!("output must be one of {}, found {found}", listed(names))
    })
}

fn read_codes(value: &Value) -> Result<BTreeSet<i32>, String> {
    let code = |value: &Value| value.as_u64().filter(|code| *code <= 255).and_then(|code| i32::try_from(code).ok());
    let codes: Option<BTreeSet<i32>> = value.as_array().and_then(|codes| codes.iter().map(code).collect());
    codes
        .filter(|codes| !codes.is_empty())
        .ok_or_else(|| "successCodes must be an array of exit codes from 0 to 255, such as [0, 1]".to_owned())
}

/// Checks the placeholders against the schema: each names a property, one in the middle of a text always has a value, and each
/// property is used.
pub(super) fn check(line: &CommandLine, schema: &Value, report: &mut Diagnostics) {
    let properties = properties_of(schema);
    let required: BTreeSet<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    // Other keywords can define properties too.
    let is_whole = !["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| schema.get(keyword).is_some());
    let mut used = BTreeSet::new();
    let mut check_one = |at: String, name: &str, is_certain: bool, report: &mut Diagnostics| {
        used.insert(name.to_owned());
        if !properties.contains_key(name) {
            let message = format!("{at} names `{name}`, which is no property at the root of the schema");
            if is_whole { report.error(&message) } else { report.warn(&message) }
        } else if !is_certain && !required.contains(name) {
            report.error(&format!(
                "{at} needs `{name}`, which the schema does not require: put it into a group, {{\"when\": \"{name}\", \"argv\": […]}}"
            ));
        }
    };
    for (index, item) in line.argv.iter().flatten().enumerate() {
        let at = format!("argv[{index}]");
        match item {
            ArgvItem::One(template) => {
                let is_alone = template.as_placeholder().is_some();
                template.placeholders().for_each(|name| check_one(at.clone(), name, is_alone, report));
            }
            ArgvItem::Group(group) => {
                let own = group.condition.argument();
                check_one(at.clone(), own, true, report);
                for (word, template) in group.argv.iter().enumerate() {
                    let at = format!("{at}.argv[{word}]");
                    template.placeholders().for_each(|name| check_one(at.clone(), name, name == own, report));
                }
            }
        }
    }
    check_end_of_options(line, &properties, &required, report);
    for name in line.stdin.iter().flat_map(Template::placeholders) {
        check_one("stdin".to_owned(), name, true, report);
    }
    let reads_json = line.argv.is_none() && line.stdin.is_none();
    for name in properties.keys().filter(|name| !reads_json && !used.contains(*name)) {
        report.warn(&format!("schema: neither argv nor stdin uses the argument `{name}`"));
    }
}

fn properties_of(schema: &Value) -> Cow<'_, Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object).map_or_else(|| Cow::Owned(Map::new()), Cow::Borrowed)
}

/// Checks that no option can take the `--` after its value as its value: values after a `--` count as no options.
fn check_end_of_options(
    line: &CommandLine,
    properties: &Map<String, Value>,
    required: &BTreeSet<&str>,
    report: &mut Diagnostics,
) {
    let can_be_nothing = |name: &&str| {
        let types = properties.get(*name).and_then(|property| property.get("type"));
        let is_one = types.and_then(Value::as_str).is_some_and(|one| !matches!(one, "array" | "null"));
        !required.contains(name) || !is_one
    };
    for (index, items) in line.argv.iter().flat_map(|items| items.windows(3)).enumerate() {
        let [ArgvItem::One(option), ArgvItem::One(value), ArgvItem::One(end)] = items else { continue };
        let is_option = option.as_text().is_some_and(|text| text.starts_with('-') && text != END_OF_OPTIONS);
        if end.as_text() != Some(END_OF_OPTIONS) || !is_option {
            continue;
        }
        if let Some(name) = value.as_placeholder().filter(can_be_nothing) {
            report.error(&format!(
                "argv[{}] is nothing if `{name}` is absent or empty, so that argv[{index}] could take the `--` after it: put both \
                 into a group, {{\"when\": \"{name}\", \"argv\": […]}}, or require `{name}` as one value",
                index + 1
            ));
        }
    }
}
