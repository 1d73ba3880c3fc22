//! Tokens that build a `toolcrib_guest::Node`: JSON in constants.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Type};

/// Members of an object.
pub(crate) type Members = Vec<(String, TokenStream)>;

pub(crate) fn raw(json: &str) -> TokenStream {
    quote!(::toolcrib_guest::Node::Raw(#json))
}

pub(crate) fn text(text: &str) -> TokenStream {
    quote!(::toolcrib_guest::Node::Text(#text))
}

pub(crate) fn texts<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> TokenStream {
    list(all.into_iter().map(|one| text(one.as_ref())))
}

pub(crate) fn list(nodes: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let nodes = nodes.into_iter();
    quote!(::toolcrib_guest::Node::List(&[#(#nodes),*]))
}

pub(crate) fn object(members: &Members) -> TokenStream {
    let members = slice(members);
    quote!(::toolcrib_guest::Node::Object(#members))
}

/// Adds members to `base`, a reference to a node; returns `base` if there are none.
pub(crate) fn with(base: &TokenStream, members: &Members) -> TokenStream {
    if members.is_empty() {
        return quote!(*#base);
    }
    let members = slice(members);
    quote!(::toolcrib_guest::Node::With(#base, #members))
}

fn slice(members: &Members) -> TokenStream {
    let members = members.iter().map(|(key, node)| quote!((#key, #node)));
    quote!(&[#(#members),*])
}

/// Reference to the schema of a type; compile errors point at the type.
pub(crate) fn schema(ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> <#ty as ::toolcrib_guest::Schema>::SCHEMA)
}

/// Members of an object schema; `fields` are names, nodes, and `true` if required.
pub(crate) fn object_schema(fields: &[(String, TokenStream, bool)], closed: bool) -> Members {
    let properties = fields.iter().map(|(name, node, _)| (name.clone(), node.clone())).collect();
    let mut members = vec![("type".into(), text("object")), ("properties".into(), object(&properties))];
    let required: Vec<&String> = fields.iter().filter(|field| field.2).map(|field| &field.0).collect();
    if !required.is_empty() {
        members.push(("required".into(), texts(required)));
    }
    if closed {
        members.push(("additionalProperties".into(), raw("false")));
    }
    members
}

/// Text of an item's doc comments, line by line.
pub(crate) fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let text: Vec<String> = lines
        .flat_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>())
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
        .collect();
    text.join("\n").trim().to_owned()
}

/// Member `description`, unless the text is empty.
pub(crate) fn described(description: &str) -> Members {
    match description {
        "" => Members::new(),
        description => vec![("description".into(), text(description))],
    }
}
