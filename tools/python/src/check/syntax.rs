//! Statements and operators that the interpreter lacks. The compiler reports the first of its own alone; here are all of them,
//! each with what to write instead.

use ruff_python_ast::{Comprehension, Expr, ExprBinOp, Number, Operator, Stmt, UnaryOp};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use super::findings::Findings;
use super::names::{BUILTINS, Names};

const BOOL_ARITHMETIC: &str = "there is no arithmetic with bool: use `int(...)`, as in `n += int(x > 1)`";

/// Checks a statement. `handles_type` says whether an enclosing `try` handles `TypeError`.
pub(super) fn statement(statement: &Stmt, handles_type: bool, found: &mut Findings) {
    match statement {
        Stmt::Delete(delete) => {
            let message = match delete.targets.first() {
                Some(Expr::Subscript(item)) if item.slice.is_slice_expr() => {
                    "there is no `del`: build a new list, as in `a = a[:1] + a[3:]`"
                }
                Some(Expr::Subscript(_)) => "there is no `del`: use `d.pop(key)`",
                _ => "there is no `del`: leave it out, or assign `None`",
            };
            found.syntax(delete.range, message);
        }
        Stmt::Match(choice) => found.syntax(choice.range, "there is no `match`: use `if` and `elif`"),
        Stmt::TypeAlias(alias) => found.syntax(alias.range, "there is no `type` statement: leave it out"),
        Stmt::For(each) => {
            if each.is_async {
                found.syntax(each.range, "there is no `async for`: await a list, then use `for`");
            }
            targets(&each.target, found);
        }
        Stmt::With(with) => {
            if with.is_async {
                found.syntax(with.range, "there is no `async with`: use `with`, or `try` and `finally`");
            }
            for target in with.items.iter().filter_map(|item| item.optional_vars.as_deref()) {
                targets(target, found);
            }
        }
        Stmt::Try(attempt) if attempt.is_star => {
            found.syntax(attempt.range, "there is no `except*`: use `except`");
        }
        Stmt::ImportFrom(import) if import.names.iter().any(|alias| alias.name.as_str() == "*") => {
            found.syntax(import.range, "there is no `import *`: import the names that the program uses");
        }
        Stmt::Assign(assign) => {
            for target in &assign.targets {
                targets(target, found);
                slice(target, handles_type, found);
            }
        }
        Stmt::AugAssign(assign) => {
            slice(&assign.target, handles_type, found);
            match assign.op {
                Operator::MatMult => found.syntax(assign.range, "there is no `@=`: use loops"),
                Operator::Add | Operator::Sub if is_bool(&assign.value) && !handles_type => {
                    found.feature(assign.value.range(), BOOL_ARITHMETIC);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Checks a generator of a comprehension.
pub(super) fn comprehension(comprehension: &Comprehension, found: &mut Findings) {
    if comprehension.is_async {
        found.syntax(comprehension.range, "there is no `async for`: await a list, then use `for`");
    }
    targets(&comprehension.target, found);
}

/// Checks an expression, without its parts.
pub(super) fn expression(expression: &Expr, handles_type: bool, names: &Names<'_>, found: &mut Findings) {
    match expression {
        Expr::Yield(_) | Expr::YieldFrom(_) => {
            found.syntax(expression.range(), "there is no `yield`: append to a list and return it");
        }
        Expr::NumberLiteral(number) if matches!(number.value, Number::Complex { .. }) => {
            found.syntax(number.range, "there are no complex numbers: keep two floats");
        }
        Expr::TString(text) => found.syntax(text.range, "there are no t-strings: use an f-string"),
        Expr::BinOp(operation) if !handles_type => operator(operation, names, found),
        Expr::Call(call) if !handles_type && names.origin(&call.func) == Some((BUILTINS, "sum")) => {
            let item = match call.arguments.find_positional(0) {
                Some(Expr::Generator(items)) => Some(&items.elt),
                Some(Expr::ListComp(items)) => Some(&items.elt),
                _ => None,
            };
            if let Some(item) = item.filter(|item| is_bool(item)) {
                found.feature(item.range(), "there is no arithmetic with bool: write `sum(int(x > 1) for x in xs)`");
            }
        }
        _ => {}
    }
}

fn operator(operation: &ExprBinOp, names: &Names<'_>, found: &mut Findings) {
    let ExprBinOp { left, right, range, .. } = operation;
    let is_dict = |side: &Expr| match side {
        Expr::Dict(_) | Expr::DictComp(_) => true,
        Expr::Call(call) => names.origin(&call.func) == Some((BUILTINS, "dict")),
        _ => false,
    };
    match operation.op {
        Operator::Mod if left.is_string_literal_expr() || left.is_bytes_literal_expr() || left.is_f_string_expr() => {
            found.feature(*range, "there is no `%` on strings: use an f-string, as in `f\"{x:.2f} {name}\"`");
        }
        Operator::BitOr if is_dict(left) || is_dict(right) => {
            found.feature(*range, "there is no `|` on dicts: write `{**a, **b}`");
        }
        Operator::Add | Operator::Sub => {
            if let Some(side) = [left, right].into_iter().find(|side| is_bool(side)) {
                found.feature(side.range(), BOOL_ARITHMETIC);
            }
        }
        _ => {}
    }
}

/// Returns `true` if the value of an expression can only be a bool.
fn is_bool(expression: &Expr) -> bool {
    match expression {
        Expr::Compare(_) | Expr::BooleanLiteral(_) => true,
        Expr::UnaryOp(operation) => operation.op == UnaryOp::Not,
        _ => false,
    }
}

/// Reports items and attributes among several targets.
fn targets(target: &Expr, found: &mut Findings) {
    let items = match target {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        _ => return,
    };
    for item in items {
        match item {
            Expr::Subscript(_) | Expr::Attribute(_) => {
                let message = "an item or attribute cannot be one of several targets: assign each by itself, as in \
                               `x = a[i]; a[i] = a[j]; a[j] = x`";
                // One report for each statement.
                found.syntax(TextRange::empty(first(items).unwrap_or(item.start())), message);
            }
            Expr::Tuple(_) | Expr::List(_) => targets(item, found),
            _ => {}
        }
    }
}

/// Start of the first target that is an item or attribute.
fn first(targets: &[Expr]) -> Option<TextSize> {
    targets.iter().find(|target| target.is_subscript_expr() || target.is_attribute_expr()).map(|target| target.start())
}

fn slice(target: &Expr, handles_type: bool, found: &mut Findings) {
    if let Expr::Subscript(item) = target
        && item.slice.is_slice_expr()
        && !handles_type
    {
        let message = "a slice cannot be assigned: build a new list, as in `a = a[:1] + [9] + a[3:]`";
        found.feature(item.range, message);
    }
}
