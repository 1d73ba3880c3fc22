//! `#[arg(…)]`: facts about one argument beyond its type and its doc comment.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Meta, Result, Token};

use crate::literal;
use crate::node::{self, Members};

/// Keys of the attribute, and their names in JSON Schema.
const BOUNDS: [(&str, &str); 15] = [
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("exclusive_minimum", "exclusiveMinimum"),
    ("exclusive_maximum", "exclusiveMaximum"),
    ("multiple_of", "multipleOf"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("pattern", "pattern"),
    ("format", "format"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("unique_items", "uniqueItems"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
    ("examples", "examples"),
];

/// Content of the attributes of one argument.
#[derive(Default)]
pub(crate) struct Arg {
    /// Name, if it differs from the parameter's.
    pub(crate) name: Option<String>,
    /// Default, as JSON.
    pub(crate) default: Option<String>,
    /// Place of the default.
    span: Option<Span>,
    /// Members of the argument's schema.
    pub(crate) bounds: Members,
    /// Members of the schema of its items.
    pub(crate) items: Members,
}

impl Arg {
    /// Reads every `#[arg(…)]` among the attributes.
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut arg = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("arg")) {
            for meta in attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
                arg.take(meta)?;
            }
        }
        if let Some(default) = &arg.default {
            arg.bounds.push(("default".into(), node::raw(default)));
        }
        Ok(arg)
    }

    fn take(&mut self, meta: Meta) -> Result<()> {
        match meta {
            Meta::NameValue(pair) if pair.path.is_ident("default") => {
                self.default = Some(literal::json(&pair.value)?);
                self.span = Some(pair.value.span());
            }
            Meta::NameValue(pair) if pair.path.is_ident("name") => {
                self.name = Some(literal::text(&pair.value)?);
            }
            Meta::List(list) if list.path.is_ident("items") => {
                for meta in list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
                    self.items.push(bound(&meta)?);
                }
            }
            other => self.bounds.push(bound(&other)?),
        }
        Ok(())
    }

    /// Check of the default against the schema, when the tool is compiled; compile errors point at the default.
    pub(crate) fn check(&self, ty: &syn::Type) -> Option<TokenStream> {
        let (default, schema) = (self.default.as_ref()?, self.schema(ty, ""));
        let span = self.span.unwrap_or_else(Span::call_site);
        Some(quote_spanned!(span=> const _: () = ::toolcrib_guest::__private::check_default(&#schema, #default);))
    }

    /// Schema of a type, with the members of this attribute.
    pub(crate) fn schema(&self, ty: &syn::Type, description: &str) -> TokenStream {
        let base = node::schema(ty);
        let mut members = node::described(description);
        if !self.items.is_empty() {
            let items = node::with(&quote::quote!(#base.items()), &self.items);
            members.push(("items".into(), items));
        }
        members.extend(self.bounds.iter().cloned());
        node::with(&base, &members)
    }
}

fn bound(meta: &Meta) -> Result<(String, TokenStream)> {
    let word = meta.path().to_token_stream().to_string();
    let Some((_, key)) = BOUNDS.iter().find(|(known, _)| *known == word) else {
        let known: Vec<&str> = BOUNDS.iter().map(|(known, _)| *known).collect();
        let known = known.join("`, `");
        let message = format!("unknown word `{word}`: use `name`, `default`, `items(…)`, `{known}`");
        return Err(Error::new_spanned(meta.path(), message));
    };
    match meta {
        Meta::NameValue(pair) => Ok(((*key).to_owned(), node::raw(&literal::json(&pair.value)?))),
        Meta::Path(_) if *key == "uniqueItems" => Ok(((*key).to_owned(), node::raw("true"))),
        other => Err(Error::new_spanned(other, format!("`{word}` needs a value: write `{word} = …`"))),
    }
}
