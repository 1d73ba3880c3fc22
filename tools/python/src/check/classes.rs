//! Classes: bodies that the compiler refuses, and special methods that the interpreter ignores without an error.

use ruff_python_ast::{CmpOp, Expr, Stmt, StmtClassDef, StmtFunctionDef, UnaryOp};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use super::findings::Findings;

/// Checks a class.
pub(super) fn class(class: &StmtClassDef, source: &str, found: &mut Findings) {
    if !class.bases().is_empty() || !class.keywords().is_empty() {
        found.syntax(keyword(class, source), inheritance(class));
    }
    for statement in &class.body {
        match statement {
            Stmt::FunctionDef(method) => self::method(class, method, found),
            Stmt::Assign(assign) if matches!(&assign.targets[..], [Expr::Name(_)]) => {}
            Stmt::AnnAssign(assign) if assign.target.is_name_expr() || assign.value.is_none() => {}
            Stmt::Pass(_) => {}
            Stmt::Expr(text) if text.value.is_string_literal_expr() || text.value.is_ellipsis_literal_expr() => {}
            other => {
                let message =
                    "the body of a class can only hold methods and `name = value`: put this outside of the class";
                found.syntax(other.range(), message);
            }
        }
    }
}

/// Place of the word `class`, where the compiler reports too.
fn keyword(class: &StmtClassDef, source: &str) -> TextRange {
    let start = class.decorator_list.last().map_or(class.start(), |decorator| decorator.end());
    let before = &source[TextRange::new(start, class.name.start())];
    let offset = before.rfind("class").and_then(|offset| TextSize::try_from(offset).ok()).unwrap_or_default();
    TextRange::empty(start + offset)
}

fn inheritance(class: &StmtClassDef) -> String {
    let base = match class.bases().first() {
        Some(Expr::Name(name)) => name.id.as_str(),
        Some(Expr::Attribute(attribute)) => attribute.attr.as_str(),
        _ => "",
    };
    let name = class.name.as_str();
    let instead = match base {
        "object" | "ABC" | "Protocol" | "Generic" => format!("write `class {name}:`"),
        "Enum" | "IntEnum" | "StrEnum" | "Flag" | "IntFlag" => format!("write `class {name}:` with `NAME = value`"),
        "NamedTuple" => "use `collections.namedtuple` or `@dataclass`".to_owned(),
        "TypedDict" => "use a dict".to_owned(),
        "dict" | "list" | "set" | "str" | "int" | "float" | "tuple" => "keep the value in an attribute".to_owned(),
        _ if base.ends_with("Exception") || base.ends_with("Error") => {
            "raise a built-in exception, such as `ValueError(text)`".to_owned()
        }
        _ => "write the methods into each class, or as functions".to_owned(),
    };
    format!("there is no inheritance of classes: {instead}")
}

fn method(class: &StmtClassDef, method: &StmtFunctionDef, found: &mut Findings) {
    if let Some(decorator) = method.decorator_list.first() {
        let message = match decorator.expression.as_name_expr().map(|name| name.id.as_str()) {
            Some("property") => "there is no `property`: write a method and call it, as in `x.area()`",
            Some("staticmethod") => "there is no `staticmethod`: write a function outside of the class",
            Some("classmethod") => {
                "there is no `classmethod`: write a function outside of the class that creates the value"
            }
            _ => "methods cannot have decorators: leave them out",
        };
        found.syntax(method.range, message);
    }
    let (name, class) = (method.name.as_str(), class.name.as_str());
    let instead = match name {
        "__len__" => "write a method `size`, and call it instead of `len(x)` and `if x`",
        "__bool__" => "write a method, and call it instead of `if x`",
        "__ne__" if !negates_equality(method) => "write a method, and call it instead of `!=`",
        "__format__" => "write a method, and call it in the f-string",
        "__new__" => "use `__init__`, or a function that creates the value",
        _ => return,
    };
    found.feature(method.name.range, format!("`{class}.{name}` would be ignored: {instead}"));
}

/// Returns `true` if `__ne__` does what the interpreter does by itself.
fn negates_equality(method: &StmtFunctionDef) -> bool {
    let Some(Stmt::Return(result)) = method.body.last() else { return false };
    match result.value.as_deref() {
        Some(Expr::UnaryOp(operation)) if operation.op == UnaryOp::Not => match operation.operand.as_ref() {
            Expr::Compare(comparison) => *comparison.ops == [CmpOp::Eq],
            Expr::Call(call) => {
                call.func.as_attribute_expr().is_some_and(|attribute| attribute.attr.as_str() == "__eq__")
            }
            _ => false,
        },
        _ => false,
    }
}
