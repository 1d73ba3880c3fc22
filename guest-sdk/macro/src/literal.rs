//! Values that are written in attributes: literals, negative numbers, and lists of them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, ExprLit, ExprUnary, Lit, Result, UnOp};

use crate::node;

/// What a literal is in a constant.
pub(crate) fn node(expr: &Expr) -> Result<TokenStream> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(node::text(&text.value())),
        Expr::Array(array) => Ok(node::list(array.elems.iter().map(node).collect::<Result<Vec<_>>>()?)),
        other => Ok(node::raw(&scalar(other)?)),
    }
}

/// What a literal is when the tool runs.
pub(crate) fn value(expr: &Expr) -> TokenStream {
    match expr {
        Expr::Array(array) => {
            let values = array.elems.iter().map(value);
            quote!(::toolcrib_guest::Value::Array(::std::vec![#(#values),*]))
        }
        other => quote!(::toolcrib_guest::Value::from(#other)),
    }
}

/// The JSON of a number or a truth value.
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
        other => Err(Error::new_spanned(other, "this is not a literal: write text, a number, `true`, `false` or a list")),
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }))
}

/// The text of a literal.
pub(crate) fn text(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        other => Err(Error::new_spanned(other, "write a text in quotes here")),
    }
}
