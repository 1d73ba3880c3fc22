//! `#[derive(Schema)]`: the schema of a type, as serde reads the type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Error, Field, Fields, Result, Variant};

use crate::arg::Arg;
use crate::node::{self, Members};
use crate::parameter::is_option;
use crate::serde_attributes::{Case, Serde};

pub(crate) fn expand(item: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let serde = Serde::read(&input.attrs)?;
    let mut members = node::described(&node::docs(&input.attrs));
    let schema = match &input.data {
        Data::Struct(data) => match form(&data.fields, &serde, serde.rename_all)? {
            Form::Object(object) => {
                members.extend(object);
                node::object(&members)
            }
            Form::Other(schema) => over(&schema, &members),
        },
        Data::Enum(data) => {
            members.extend(variants(data, &serde)?);
            node::object(&members)
        }
        Data::Union(data) => {
            return Err(Error::new(data.union_token.span(), "a union has no schema: make it a struct or an enum"));
        }
    };
    let ident = &input.ident;
    // The schemas of the parameters of a generic type are unknown here.
    let defaults = match input.generics.params.is_empty() {
        true => defaults(&input.data)?,
        false => Vec::new(),
    };
    let (implementation, types, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #(#defaults)*
        impl #implementation ::toolcrib_guest::Schema for #ident #types #bounds {
            const SCHEMA: &'static ::toolcrib_guest::Node = &#schema;
        }
    })
}

/// Checks of the defaults of all fields.
fn defaults(data: &Data) -> Result<Vec<TokenStream>> {
    let all: Vec<&Fields> = match data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|variant| &variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let checks = all.into_iter().flatten().map(|field| Ok(Arg::read(&field.attrs)?.check(&field.ty)));
    Ok(checks.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Schema of fields.
enum Form {
    /// Members of an object schema.
    Object(Members),
    /// Any other schema, as a node.
    Other(TokenStream),
}

fn over(schema: &TokenStream, members: &Members) -> TokenStream {
    match members.is_empty() {
        true => schema.clone(),
        false => node::with(&quote!(&#schema), members),
    }
}

fn form(fields: &Fields, serde: &Serde, case: Option<Case>) -> Result<Form> {
    match fields {
        Fields::Named(named) if serde.transparent => match named.named.first() {
            Some(field) => other(field),
            None => Err(Error::new_spanned(fields, "`transparent` needs the one field that it shows")),
        },
        Fields::Named(named) => {
            let properties = named.named.iter().map(|field| property(field, serde.default, case));
            let properties: Vec<_> = properties.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
            Ok(Form::Object(node::object_schema(&properties, serde.deny_unknown_fields)))
        }
        Fields::Unnamed(unnamed) => match unnamed.unnamed.len() {
            1 => other(&unnamed.unnamed[0]),
            count => {
                let items = unnamed.unnamed.iter().map(|field| schema_of(field, "")).collect::<Result<Vec<_>>>()?;
                let (items, count) = (node::list(items), node::raw(&count.to_string()));
                let members = [("type", node::text("array")), ("prefixItems", items)];
                let bounds = [("minItems", count.clone()), ("maxItems", count)];
                let members = members.into_iter().chain(bounds).map(|(key, node)| (key.to_owned(), node)).collect();
                Ok(Form::Other(node::object(&members)))
            }
        },
        Fields::Unit => Ok(Form::Other(node::object(&vec![("type".into(), node::text("null"))]))),
    }
}

fn other(field: &Field) -> Result<Form> {
    Ok(Form::Other(schema_of(field, &node::docs(&field.attrs))?))
}

fn schema_of(field: &Field, description: &str) -> Result<TokenStream> {
    Ok(Arg::read(&field.attrs)?.schema(&field.ty, description))
}

/// Converts a field into a property; `None` if serde does not read the field.
fn property(field: &Field, all_default: bool, case: Option<Case>) -> Result<Option<(String, TokenStream, bool)>> {
    let serde = Serde::read(&field.attrs)?;
    if serde.skip {
        return Ok(None);
    }
    let arg = Arg::read(&field.attrs)?;
    let may_miss = serde.default || all_default;
    if arg.default.is_some() && !may_miss {
        let message = "a default here only describes it: let serde set it with `#[serde(default = \"a_function\")]`";
        return Err(Error::new_spanned(field, message));
    }
    if arg.name.is_some() {
        return Err(Error::new_spanned(field, "rename a field with `#[serde(rename = \"…\")]`, which counts for both"));
    }
    let own = field.ident.as_ref().map(|ident| ident.unraw().to_string()).unwrap_or_default();
    let name = serde.rename.unwrap_or_else(|| case.map_or(own.clone(), |case| case.field(&own)));
    let schema = arg.schema(&field.ty, &node::docs(&field.attrs));
    Ok(Some((name, schema, !may_miss && !is_option(&field.ty))))
}

/// Schema of variants: an `enum` of names, or a choice of schemas.
fn variants(data: &DataEnum, serde: &Serde) -> Result<Members> {
    let mut read = Vec::new();
    for variant in &data.variants {
        let own = Serde::read(&variant.attrs)?;
        if !own.skip {
            let plain = variant.ident.unraw().to_string();
            let name = own
                .rename
                .clone()
                .unwrap_or_else(|| serde.rename_all.map_or(plain.clone(), |case| case.variant(&plain)));
            read.push((name, variant, own));
        }
    }
    let plain = serde.tag.is_none() && !serde.untagged;
    if plain && read.iter().all(|(_, variant, _)| matches!(variant.fields, Fields::Unit)) {
        let names = node::texts(read.iter().map(|(name, ..)| name));
        return Ok(vec![("type".into(), node::text("string")), ("enum".into(), names)]);
    }
    let choices = read.iter().map(|(name, variant, own)| choice(name, variant, own, serde));
    let choices = node::list(choices.collect::<Result<Vec<_>>>()?);
    // Untagged variants may overlap; serde takes the first that matches.
    let key = if serde.untagged { "anyOf" } else { "oneOf" };
    Ok(vec![(key.into(), choices)])
}

/// Schema of one variant, in the form that the tags of its type require.
fn choice(name: &str, variant: &Variant, own: &Serde, serde: &Serde) -> Result<TokenStream> {
    let named = |key: &str, node: TokenStream| (key.to_owned(), node, true);
    let constant = node::object(&vec![("const".into(), node::text(name))]);
    let described = node::described(&node::docs(&variant.attrs));
    let object = |fields: &[(String, TokenStream, bool)], closed: bool| {
        let mut members = described.clone();
        members.extend(node::object_schema(fields, closed));
        node::object(&members)
    };
    let whole = || -> Result<TokenStream> {
        let inner = Serde { deny_unknown_fields: serde.deny_unknown_fields, ..Serde::default() };
        Ok(match form(&variant.fields, &inner, own.rename_all)? {
            Form::Object(members) => node::object(&members),
            Form::Other(schema) => schema,
        })
    };
    let unit = matches!(variant.fields, Fields::Unit);
    match (&serde.tag, &serde.content) {
        _ if serde.untagged => Ok(over(&whole()?, &described)),
        (None, _) if unit => Ok(over(&constant, &described)),
        (None, _) => Ok(object(&[named(name, whole()?)], true)),
        (Some(tag), Some(content)) => {
            let mut fields = vec![named(tag, constant)];
            if !unit {
                fields.push(named(content, whole()?));
            }
            Ok(object(&fields, serde.deny_unknown_fields))
        }
        (Some(tag), None) => {
            let mut fields = vec![named(tag, constant)];
            match &variant.fields {
                Fields::Unit => {}
                Fields::Named(inner) => {
                    for field in &inner.named {
                        fields.extend(property(field, false, own.rename_all)?);
                    }
                }
                Fields::Unnamed(_) => {
                    let message =
                        "a derived schema cannot put a tag into another type: give this variant fields with names";
                    return Err(Error::new_spanned(variant, message));
                }
            }
            Ok(object(&fields, serde.deny_unknown_fields))
        }
    }
}
