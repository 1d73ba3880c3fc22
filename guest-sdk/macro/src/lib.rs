//! Macros of `toolcrib-guest`. The front page of that crate explains them with examples.

mod arg;
mod derive;
mod descriptor;
mod literal;
mod node;
mod options;
mod parameter;
mod serde_attributes;
mod tool;
mod tools;

use proc_macro::TokenStream;

/// Turns a function into a tool: see the front page of `toolcrib_guest`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(options.into(), function.into()).into()
}

/// Exports the tools of a component: `tools!(greet, part);`, once, in the root of the crate.
#[proc_macro]
pub fn tools(list: TokenStream) -> TokenStream {
    tools::begin(list.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

#[doc(hidden)]
#[proc_macro]
pub fn __tools(state: TokenStream) -> TokenStream {
    tools::advance(state.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives the JSON Schema of a type: see the trait of the same name in `toolcrib_guest`.
#[proc_macro_derive(Schema, attributes(arg, serde))]
pub fn schema(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

#[cfg(test)]
mod tests;
