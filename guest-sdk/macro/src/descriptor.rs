//! Descriptor of one tool, as a constant.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ReturnType;
use syn::spanned::Spanned;

use crate::node::{self, Members};
use crate::options::Options;
use crate::parameter::Parameter;

/// Node of the whole descriptor.
pub(crate) fn node(
    name: &str,
    description: &str,
    options: &Options,
    parameters: &[Parameter],
    returned: &ReturnType,
) -> TokenStream {
    let mut members: Members = vec![("name".into(), node::text(name))];
    members.extend(node::described(description));
    if let Some(text) = &options.text {
        members.push(("text".into(), node::object(&text.members)));
    }
    if !parameters.iter().any(|parameter| matches!(parameter, Parameter::Text(_))) {
        members.push(("schema".into(), schema(options, parameters)));
    }
    if options.output {
        let ty = match returned {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => quote!(#ty),
        };
        let output = quote_spanned!(returned.span()=> *<#ty as ::toolcrib_guest::Output>::SCHEMA);
        members.push(("output".into(), output));
    }
    // An empty list of capabilities is written out: a descriptor without one would receive everything that the operator
    // grants to all tools.
    members.push(("capabilities".into(), node::object(&options.capabilities)));
    if !options.interface.is_empty() {
        members.push(("interface".into(), node::object(&options.interface)));
    }
    let says = options.hooks.iter().map(|(hook, _)| *hook);
    members.push(("says".into(), node::texts(says)));
    members.extend(options.members.iter().cloned());
    members.push(("package".into(), package()));
    node::object(&members)
}

/// Schema of the arguments.
fn schema(options: &Options, parameters: &[Parameter]) -> TokenStream {
    let mut fields = Vec::new();
    for parameter in parameters {
        match parameter {
            Parameter::Args(ty) => {
                let schema = node::schema(ty);
                return quote!(*#schema);
            }
            Parameter::One(one) => fields.push(one.property()),
            Parameter::Call(_) | Parameter::Text(_) => {}
        }
    }
    node::object(&node::object_schema(&fields, options.open.is_none()))
}

/// Author's package; the licence may be unknown.
fn package() -> TokenStream {
    quote! {
        ::toolcrib_guest::Node::Object(if ::core::env!("CARGO_PKG_LICENSE").is_empty() {
            &[
                ("name", ::toolcrib_guest::Node::Text(::core::env!("CARGO_PKG_NAME"))),
                ("version", ::toolcrib_guest::Node::Text(::core::env!("CARGO_PKG_VERSION"))),
            ]
        } else {
            &[
                ("name", ::toolcrib_guest::Node::Text(::core::env!("CARGO_PKG_NAME"))),
                ("version", ::toolcrib_guest::Node::Text(::core::env!("CARGO_PKG_VERSION"))),
                ("license", ::toolcrib_guest::Node::Text(::core::env!("CARGO_PKG_LICENSE"))),
            ]
        })
    }
}
