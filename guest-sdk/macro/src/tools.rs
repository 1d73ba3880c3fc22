//! `tools!`: collects the implemented steps of each tool through the macro of its name, and exports those interfaces
//! only.

use proc_macro2::{Group, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Path, Result, Token, bracketed};

use crate::options::HOOKS;
use crate::tool::BROKEN;

/// Reads the list, and expands the macro of the first tool.
pub(crate) fn begin(list: TokenStream) -> Result<TokenStream> {
    let paths = Punctuated::<Path, Token![,]>::parse_terminated.parse2(list)?;
    next(&[], paths.into_iter().collect())
}

/// Adds the steps of one tool, and expands the macro of the next.
pub(crate) fn advance(state: TokenStream) -> Result<TokenStream> {
    let State { mut listed, tool, hooks, rest } = syn::parse2(state)?;
    if !hooks.iter().any(|word| word == BROKEN) {
        listed.push((tool, hooks));
    }
    match rest.is_empty() {
        // The compiler has reported the mistakes of all tools.
        true if listed.is_empty() => Ok(TokenStream::new()),
        true => Ok(export(&listed)),
        false => next(&listed, rest),
    }
}

/// Tool with its implemented steps.
type Listed = (Path, Vec<Ident>);

/// Expands the macro of the first tool in `rest`.
fn next(listed: &[Listed], mut rest: Vec<Path>) -> Result<TokenStream> {
    if rest.is_empty() {
        let message = "a component has at least one tool: name the functions that have `#[tool]`";
        return Err(Error::new(proc_macro2::Span::call_site(), message));
    }
    let next = rest.remove(0);
    let listed = listed.iter().map(|(tool, hooks)| quote!([#tool] [#(#hooks)*]));
    Ok(quote!(#next! { [#(#listed)*] [#next] [#(#rest,)*] }))
}

/// Groups `[[TOOL] [STEP…]…] [TOOL] [STEP…] [TOOL,…]`.
struct State {
    listed: Vec<Listed>,
    tool: Path,
    hooks: Vec<Ident>,
    rest: Vec<Path>,
}

impl Parse for State {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (done, next);
        bracketed!(done in input);
        let mut listed = Vec::new();
        while !done.is_empty() {
            listed.push(listed_tool(&done)?);
        }
        let (tool, hooks) = listed_tool(input)?;
        bracketed!(next in input);
        let rest = Punctuated::<Path, Token![,]>::parse_terminated(&next)?.into_iter().collect();
        Ok(Self { listed, tool, hooks, rest })
    }
}

fn listed_tool(input: ParseStream<'_>) -> Result<Listed> {
    let tool: Group = input.parse()?;
    let hooks;
    bracketed!(hooks in input);
    let mut words = Vec::new();
    while !hooks.is_empty() {
        words.push(hooks.parse()?);
    }
    Ok((syn::parse2(tool.stream())?, words))
}

/// Generates the exports, and marks every tool as listed.
fn export(listed: &[Listed]) -> TokenStream {
    let tools: Vec<&Path> = listed.iter().map(|(tool, _)| tool).collect();
    let toolbox = tools.iter().rev().fold(quote!(()), |rest, tool| quote!((#tool, #rest)));
    let used = HOOKS.iter().filter(|hook| listed.iter().any(|(_, hooks)| hooks.iter().any(|own| own == *hook)));
    let modules = ["tool"].iter().chain(used).map(|module| Ident::new(module, proc_macro2::Span::call_site()));
    quote! {
        #(impl ::toolcrib_guest::Listed for #tools {})*
        const _: () = ::toolcrib_guest::__private::distinct(&[#(<#tools as ::toolcrib_guest::Tool>::NAME),*]);
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, unreachable_pub, missing_docs, clippy::all)]
        const _: () = {
            type Component = ::toolcrib_guest::__private::Component<#toolbox>;
            #(::toolcrib_guest::bindings::#modules::export!(
                Component with_types_in ::toolcrib_guest::bindings::#modules
            );)*
        };
    }
}
