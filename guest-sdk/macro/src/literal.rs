//! Values in attributes: literals, negative numbers, and lists of them.

use syn::{Error, Expr, ExprLit, ExprUnary, Lit, Result, UnOp};

/// JSON of a literal.
pub(crate) fn json(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(quoted(&text.value())),
        Expr::Array(array) => {
            let items = array.elems.iter().map(json).collect::<Result<Vec<_>>>()?;
            Ok(format!("[{}]", items.join(",")))
        }
        other => scalar(other),
    }
}

fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '\0'..' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// JSON of a number or a boolean.
fn scalar(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Bool(truth), .. }) => Ok(truth.value.to_string()),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Ok(number.base10_digits().to_owned()),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => {
            let digits = number.base10_digits();
            Ok(if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() })
        }
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr: number, .. }) if is_number(number) => {
            Ok(format!("-{}", scalar(number)?))
        }
        other => {
            Err(Error::new_spanned(other, "this is not a literal: write text, a number, `true`, `false` or a list"))
        }
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }))
}

/// Text of a string literal.
pub(crate) fn text(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        other => Err(Error::new_spanned(other, "write a text in quotes here")),
    }
}
