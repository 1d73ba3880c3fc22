//! Stubs for Python: methods with arguments by keyword, and a `TypedDict` for each object.

use std::collections::BTreeSet;

use crate::stub::names::{Prefixes, TypeNames, is_python_name};
use crate::stub::shape::{Literal, Object, Type};
use crate::stub::{Detail, MAX_NAME, Printed, Scope, StubLanguage, TypedTool, text};

/// Language of this file.
const PYTHON: StubLanguage = StubLanguage::Python;
/// Maximum characters of a function on one line.
const MAX_LINE: usize = 200;
/// Names in types, each also with its module.
const WORDS: [(&str, &str); 11] = [
    ("bool", "builtins.bool"),
    ("dict", "builtins.dict"),
    ("float", "builtins.float"),
    ("int", "builtins.int"),
    ("list", "builtins.list"),
    ("str", "builtins.str"),
    ("Any", "typing.Any"),
    ("Literal", "typing.Literal"),
    ("Never", "typing.Never"),
    ("NotRequired", "typing.NotRequired"),
    ("TypedDict", "typing.TypedDict"),
];
/// Modules of these names.
const MODULES: [&str; 2] = ["builtins", "typing"];

/// Returns the stubs of all tools.
pub(super) fn stubs(tools: &[TypedTool<'_>], prefixes: &mut Prefixes<'_>) -> String {
    let mut imports = BTreeSet::new();
    let (mut types, mut methods) = (String::new(), String::new());
    let is_word = |name: &&str| WORDS.iter().any(|(word, _)| word == name);
    let shadowed: Vec<&str> = tools.iter().map(|tool| tool.name).filter(is_word).collect();
    for tool in tools {
        let printed = print(tool, prefixes.types(tool.name), &shadowed, "  ");
        imports.extend(printed.imports);
        types += &printed.types;
        methods += &printed.function;
    }
    let words: Vec<&str> = imports.iter().filter(|word| !word.contains('.')).copied().collect();
    let mut text = String::new();
    for module in MODULES {
        if imports.iter().any(|word| word.strip_prefix(module).is_some_and(|rest| rest.starts_with('.'))) {
            text += &format!("import {module}\n");
        }
    }
    if !words.is_empty() {
        text += &format!("from typing import {}\n", words.join(", "));
    }
    text += "class ToolError(Exception): ...\n";
    text += &types;
    text += "# A call returns its result. It can also be awaited.\nclass Tools:\n";
    text += if methods.is_empty() { "  ...\n" } else { &methods };
    // A class of comments alone is none.
    if !methods.is_empty() && methods.lines().all(|line| line.starts_with("  # ")) {
        text += "  ...\n";
    }
    text + "tools: Tools\n"
}

/// Returns the types and the function of one tool.
pub(super) fn signature(tool: &TypedTool<'_>, prefixes: &mut Prefixes<'_>) -> String {
    let printed = print(tool, prefixes.types(tool.name), &[tool.name], "");
    printed.types + &printed.function
}

/// Prints a tool with the most detail that is short enough.
fn print(tool: &TypedTool<'_>, names: TypeNames<'_>, shadowed: &[&str], indent: &str) -> Printed {
    if !is_python_name(tool.name) || tool.name.len() > MAX_NAME || MODULES.contains(&tool.name) {
        let function = format!("{indent}# no stub: {}\n", text::comment(tool.name, 60, PYTHON));
        return Printed { function, ..Printed::default() };
    }
    tool.printed(|detail| {
        let imports = BTreeSet::new();
        let mut printer = Printer { tool, names: names.clone(), shadowed, detail, types: String::new(), imports };
        let function = printer.function(indent);
        let Printer { types, imports, .. } = printer;
        Printed { types, function, imports }
    })
}

/// State while a tool is printed.
struct Printer<'t, 'a> {
    tool: &'t TypedTool<'a>,
    names: TypeNames<'t>,
    /// Words that methods have as their names, which hides them in the class.
    shadowed: &'t [&'t str],
    detail: Detail,
    /// Definitions of types.
    types: String,
    imports: BTreeSet<&'static str>,
}

impl<'t, 'a> Printer<'t, 'a> {
    fn function(&mut self, indent: &str) -> String {
        let tool = self.tool;
        let parameters = self.parameters();
        let result = match &tool.output {
            Some(shape) if self.detail > Detail::Open => self.type_of(&shape.root, "Result", &mut Scope::new(shape)),
            _ => self.word("Any").to_owned(),
        };
        let own = if indent.is_empty() { None } else { Some("self") };
        let is_short = parameters.iter().all(|(_, comment)| comment.is_empty());
        let on_one: Vec<&str> = own.into_iter().chain(parameters.iter().map(|(text, _)| text.as_str())).collect();
        let on_one = on_one.join(", ");
        let parameters = if is_short && on_one.len() <= MAX_LINE {
            on_one
        } else {
            let mut lines = String::from(own.map_or("", |_| "self,"));
            for (place, (text, comment)) in parameters.iter().enumerate() {
                if text == "*" {
                    lines += if place == 0 && own.is_some() { " *," } else { "*," };
                    continue;
                }
                let comma = if text == "/" || text.starts_with("**") { "" } else { "," };
                lines += &format!("\n{indent}  {text}{comma}");
                if !comment.is_empty() {
                    lines += &format!("  # {comment}");
                }
            }
            format!("{lines}\n{indent}")
        };
        let documentation = text::docstring(tool.description, tool.limits.description);
        let body = match documentation.as_str() {
            "\"\"\"\"\"\"" => " ...".to_owned(),
            text => format!("\n{indent}  {text}"),
        };
        format!("{indent}def {}({parameters}) -> {result}:{body}\n", tool.name)
    }

    /// Returns the parameters, each with its comment.
    fn parameters(&mut self) -> Vec<(String, String)> {
        let tool = self.tool;
        let any = |printer: &mut Self| vec![(format!("**arguments: {}", printer.word("Any")), String::new())];
        if self.detail == Detail::Open {
            return any(self);
        }
        let scope = &mut Scope::new(&tool.input);
        if let Some(arguments) = tool.arguments()
            && arguments.fields.iter().all(|field| is_python_name(field.name) && field.name != "self")
        {
            return self.keywords(&arguments, scope);
        }
        match tool.input.resolved() {
            Type::Map(value) => {
                vec![(format!("**arguments: {}", self.type_of(value, "Argument", scope)), String::new())]
            }
            Type::Object(_) | Type::Union(_) if tool.takes_whole => {
                // Some names cannot be written as keywords.
                let whole = self.type_of(&tool.input.root, "Arguments", scope);
                let is_optional = matches!(tool.input.resolved(), Type::Object(object) if object.fields.iter().all(|field| !field.is_required));
                let default = if is_optional { " = ..." } else { "" };
                vec![(format!("arguments: {whole}{default}"), String::new()), ("/".to_owned(), String::new())]
            }
            Type::Object(_) | Type::Union(_) => {
                let whole = self.type_of(&tool.input.root, "Arguments", scope);
                vec![(format!("**arguments: {}", self.word("Any")), format!("**{whole}"))]
            }
            _ => any(self),
        }
    }

    fn keywords(&mut self, arguments: &Object<'a>, scope: &mut Scope<'_, 'a>) -> Vec<(String, String)> {
        let mut parameters = Vec::new();
        if !arguments.fields.is_empty() {
            parameters.push(("*".to_owned(), String::new()));
        }
        for field in &arguments.fields {
            let value = self.type_of(&field.value, field.name, scope);
            let default = match field.default.filter(|default| field.value.accepts(default)) {
                _ if field.is_required => String::new(),
                default => {
                    let literal = default.and_then(|default| text::default(default, PYTHON));
                    format!(" = {}", literal.as_deref().unwrap_or("..."))
                }
            };
            parameters.push((
                format!("{}: {value}{default}", field.name),
                self.tool.comment(field, false, self.detail, PYTHON),
            ));
        }
        if let Some(rest) = &arguments.rest {
            let mut name = "extra".to_owned();
            while arguments.fields.iter().any(|field| field.name == name) {
                name.push('_');
            }
            let value = self.type_of(rest, "Extra", scope);
            parameters.push((format!("**{name}: {value}"), String::new()));
        }
        parameters
    }

    /// Returns a word for types, with its module if a method has its name.
    fn word(&mut self, word: &'static str) -> &'static str {
        let (_, qualified) = WORDS.iter().find(|(known, _)| *known == word).expect("the word is in the list");
        let written = if self.shadowed.contains(&word) { qualified } else { word };
        if written != word || qualified.starts_with("typing.") {
            self.imports.insert(written);
        }
        written
    }

    /// Returns a type. Objects are defined with a name from `hint`.
    fn type_of(&mut self, value: &Type<'a>, hint: &str, scope: &mut Scope<'_, 'a>) -> String {
        match value {
            Type::Any => self.word("Any").to_owned(),
            Type::Never => self.word("Never").to_owned(),
            Type::Null => "None".to_owned(),
            Type::Boolean => self.word("bool").to_owned(),
            Type::Integer => self.word("int").to_owned(),
            Type::Number => self.word("float").to_owned(),
            Type::Text => self.word("str").to_owned(),
            Type::Literal(literal) => format!("{}[{}]", self.word("Literal"), written(literal)),
            Type::List(item) => format!("{}[{}]", self.word("list"), self.type_of(item, hint, scope)),
            // A result is a list, and a list has one type of items.
            Type::Tuple(tuple) => {
                let item = Type::union(tuple.items.iter().chain(tuple.rest.as_deref()).cloned());
                format!("{}[{}]", self.word("list"), self.type_of(&item, hint, scope))
            }
            Type::Map(item) => {
                let item = self.type_of(item, hint, scope);
                format!("{}[{}, {item}]", self.word("dict"), self.word("str"))
            }
            Type::Object(object) => {
                let name = self.names.add(hint);
                self.define(&name, object, scope);
                self.open(name, object)
            }
            Type::Named(index) => self.named(*index, scope),
            Type::Union(all) => self.union(all, hint, scope),
        }
    }

    fn union(&mut self, all: &[Type<'a>], hint: &str, scope: &mut Scope<'_, 'a>) -> String {
        let literals: Vec<_> =
            all.iter().filter_map(|one| if let Type::Literal(one) = one { Some(written(one)) } else { None }).collect();
        let mut parts = Vec::new();
        let mut is_first = true;
        for one in all {
            match one {
                Type::Literal(_) if std::mem::take(&mut is_first) => {
                    parts.push(format!("{}[{}]", self.word("Literal"), literals.join(", ")));
                }
                Type::Literal(_) => {}
                other => parts.push(self.type_of(other, hint, scope)),
            }
        }
        parts.join(" | ")
    }

    fn named(&mut self, index: usize, scope: &mut Scope<'_, 'a>) -> String {
        let shape = scope.shape;
        let definition = &shape.definitions[index];
        let name = match &scope.names[index] {
            Some(name) => name.clone(),
            None => {
                let name = self.names.add(definition.name);
                scope.names[index] = Some(name.clone());
                match &definition.value {
                    Type::Object(object) => self.define(&name, object, scope),
                    other => {
                        let other = self.type_of(other, definition.name, scope);
                        self.types += &format!("type {name} = {other}\n");
                    }
                }
                name
            }
        };
        match &definition.value {
            Type::Object(object) => self.open(name, object),
            _ => name,
        }
    }

    /// Returns the type of an object that may have further fields: a `TypedDict` has none.
    fn open(&mut self, name: String, object: &Object<'a>) -> String {
        match object.rest {
            Some(_) => format!("{name} | {}[{}, {}]", self.word("dict"), self.word("str"), self.word("Any")),
            None => name,
        }
    }

    fn define(&mut self, name: &str, object: &Object<'a>, scope: &mut Scope<'_, 'a>) {
        // In a class, a field would hide what has its name in the types of the others.
        let hides = |name: &str| {
            WORDS.iter().any(|(word, _)| *word == name)
                || MODULES.contains(&name)
                || name.starts_with(|c: char| c.is_ascii_uppercase()) && name.contains('_')
        };
        let is_class = object.fields.iter().all(|field| is_python_name(field.name) && !hides(field.name));
        let mut lines = String::new();
        for field in &object.fields {
            let mut value = self.type_of(&field.value, field.name, scope);
            if !field.is_required {
                value = format!("{}[{value}]", self.word("NotRequired"));
            }
            let comment = self.tool.comment(field, true, self.detail, PYTHON);
            let comment = if comment.is_empty() { comment } else { format!("  # {comment}") };
            lines += &match is_class {
                true => format!("  {}: {value}{comment}\n", field.name),
                false => format!("  {}: {value},{comment}\n", text::quoted(field.name, PYTHON)),
            };
        }
        let base = self.word("TypedDict");
        self.types += &match is_class {
            true if lines.is_empty() => format!("class {name}({base}): ...\n"),
            true => format!("class {name}({base}):\n{lines}"),
            false => format!("{name} = {base}(\"{name}\", {{\n{lines}}})\n"),
        };
    }
}

fn written(literal: &Literal<'_>) -> String {
    match literal {
        Literal::Text(value) => text::quoted(value, PYTHON),
        Literal::Integer(value) => value.to_string(),
        Literal::Boolean(true) => "True".to_owned(),
        Literal::Boolean(false) => "False".to_owned(),
    }
}
