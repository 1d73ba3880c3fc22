//! Stubs for TypeScript: one object of functions. Types of objects are written in place; only targets of references have
//! names.

use crate::stub::names::{Prefixes, TypeNames, is_identifier};
use crate::stub::shape::{Literal, Object, Tuple, Type};
use crate::stub::{Detail, MAX_NAME, Printed, Scope, StubLanguage, TypedTool, text};

/// Language of this file.
const TYPESCRIPT: StubLanguage = StubLanguage::Typescript;
/// Maximum characters of an object on one line.
const MAX_LINE: usize = 120;

/// Returns the stubs of all tools.
pub(super) fn stubs(tools: &[TypedTool<'_>], prefixes: &mut Prefixes<'_>) -> String {
    let (mut types, mut methods) = (String::new(), String::new());
    for tool in tools {
        let printed = print(tool, prefixes.types(tool.name), "  ");
        types += &printed.types;
        methods += &printed.function;
    }
    format!("declare class ToolError extends Error {{}}\n{types}declare const tools: {{\n{methods}}};\n")
}

/// Returns the types and the function of one tool.
pub(super) fn signature(tool: &TypedTool<'_>, prefixes: &mut Prefixes<'_>) -> String {
    let printed = print(tool, prefixes.types(tool.name), "");
    printed.types + &printed.function
}

/// Prints a tool with the most detail that is short enough.
fn print(tool: &TypedTool<'_>, names: TypeNames<'_>, indent: &str) -> Printed {
    if tool.name.len() > MAX_NAME {
        let function = format!("{indent}// {}: no stub\n", text::comment(tool.name, 60, TYPESCRIPT));
        return Printed { function, ..Printed::default() };
    }
    tool.printed(|detail| {
        let mut printer = Printer { tool, names: names.clone(), detail, types: String::new() };
        let function = printer.function(indent);
        Printed { types: printer.types, function, ..Printed::default() }
    })
}

/// State while a tool is printed.
struct Printer<'t, 'a> {
    tool: &'t TypedTool<'a>,
    names: TypeNames<'t>,
    detail: Detail,
    /// Definitions of types.
    types: String,
}

impl<'t, 'a> Printer<'t, 'a> {
    fn function(&mut self, indent: &str) -> String {
        let tool = self.tool;
        let arguments = self.arguments(indent.len());
        let result = match &tool.output {
            Some(shape) if self.detail > Detail::Open => {
                self.type_of(&shape.root, indent.len(), &mut Scope::new(shape))
            }
            _ => "any".to_owned(),
        };
        let description = text::block_comment(tool.description, tool.limits.description);
        let description = if description.is_empty() { description } else { format!("{indent}/** {description} */\n") };
        let name = match is_identifier(tool.name) && tool.name != "new" {
            true => tool.name.to_owned(),
            false => text::quoted(tool.name, TYPESCRIPT),
        };
        format!("{description}{indent}{name}({arguments}): Promise<{result}>;\n")
    }

    fn arguments(&mut self, indent: usize) -> String {
        const OPEN: &str = "args?: Record<string, any>";
        let tool = self.tool;
        if self.detail == Detail::Open {
            return OPEN.to_owned();
        }
        let scope = &mut Scope::new(&tool.input);
        if let Some(arguments) = tool.arguments() {
            if arguments.fields.is_empty() && arguments.rest.is_none() {
                return String::new();
            }
            let mark = if arguments.fields.iter().any(|field| field.is_required) { "" } else { "?" };
            return format!("args{mark}: {}", self.object(&arguments, indent, scope));
        }
        match tool.input.resolved() {
            Type::Map(_) => format!("args?: {}", self.type_of(&tool.input.root, indent, scope)),
            Type::Union(_) => format!("args: {}", self.type_of(&tool.input.root, indent, scope)),
            _ => OPEN.to_owned(),
        }
    }

    fn type_of(&mut self, value: &Type<'a>, indent: usize, scope: &mut Scope<'_, 'a>) -> String {
        match value {
            Type::Any => "any".to_owned(),
            Type::Never => "never".to_owned(),
            Type::Null => "null".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Integer | Type::Number => "number".to_owned(),
            Type::Text => "string".to_owned(),
            Type::Literal(Literal::Text(value)) => text::quoted(value, TYPESCRIPT),
            Type::Literal(Literal::Integer(value)) => value.to_string(),
            Type::Literal(Literal::Boolean(value)) => value.to_string(),
            Type::List(item) => {
                let text = self.type_of(item, indent, scope);
                if matches!(**item, Type::Union(_)) { format!("({text})[]") } else { format!("{text}[]") }
            }
            Type::Tuple(tuple) => self.tuple(tuple, indent, scope),
            Type::Map(item) => {
                let text = self.type_of(item, indent, scope);
                // A `Record` cannot contain itself.
                if item.has_name() { format!("{{ [key: string]: {text} }}") } else { format!("Record<string, {text}>") }
            }
            Type::Object(object) => self.object(object, indent, scope),
            Type::Named(index) => self.named(*index, scope),
            Type::Union(all) => {
                let all: Vec<_> = all.iter().map(|one| self.type_of(one, indent, scope)).collect();
                all.join(" | ")
            }
        }
    }

    fn tuple(&mut self, tuple: &Tuple<'a>, indent: usize, scope: &mut Scope<'_, 'a>) -> String {
        let mut items = Vec::new();
        for (place, item) in tuple.items.iter().enumerate() {
            let text = self.type_of(item, indent, scope);
            let is_union = matches!(item, Type::Union(_));
            items.push(match place < tuple.required {
                true => text,
                false if is_union => format!("({text})?"),
                false => format!("{text}?"),
            });
        }
        if let Some(rest) = &tuple.rest {
            let text = self.type_of(rest, indent, scope);
            items.push(if matches!(**rest, Type::Union(_)) {
                format!("...({text})[]")
            } else {
                format!("...{text}[]")
            });
        }
        format!("[{}]", items.join(", "))
    }

    fn named(&mut self, index: usize, scope: &mut Scope<'_, 'a>) -> String {
        if let Some(name) = &scope.names[index] {
            return name.clone();
        }
        let definition = &scope.shape.definitions[index];
        let name = self.names.add(definition.name);
        scope.names[index] = Some(name.clone());
        let value = self.type_of(&definition.value, 0, scope);
        self.types += &format!("type {name} = {value};\n");
        name
    }

    /// Returns the type of an object, on one line if it is short and has no comment.
    fn object(&mut self, object: &Object<'a>, indent: usize, scope: &mut Scope<'_, 'a>) -> String {
        let mut fields = Vec::new();
        for field in &object.fields {
            let name = match is_identifier(field.name) {
                true => field.name.to_owned(),
                false => text::quoted(field.name, TYPESCRIPT),
            };
            let mark = if field.is_required { "" } else { "?" };
            let value = self.type_of(&field.value, indent + 2, scope);
            fields.push((format!("{name}{mark}: {value}"), self.tool.comment(field, true, self.detail, TYPESCRIPT)));
        }
        if object.rest.is_some() {
            fields.push(("[key: string]: any".to_owned(), String::new()));
        }
        if fields.is_empty() {
            return "{}".to_owned();
        }
        let length: usize = fields.iter().map(|(text, _)| text.len() + 2).sum();
        if length <= MAX_LINE && fields.iter().all(|(text, comment)| comment.is_empty() && !text.contains('\n')) {
            let fields: Vec<_> = fields.into_iter().map(|(text, _)| text).collect();
            return format!("{{ {} }}", fields.join("; "));
        }
        let space = " ".repeat(indent);
        let mut lines = String::from("{\n");
        for (text, comment) in fields {
            let comment = if comment.is_empty() { comment } else { format!(" // {comment}") };
            lines += &format!("{space}  {text};{comment}\n");
        }
        format!("{lines}{space}}}")
    }
}
