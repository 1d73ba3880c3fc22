//! `#[tool]`: keeps the function, and adds a type of its name that holds the arguments and implements the tool.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, Ident, ItemFn, Path, Result};

use crate::options::{HOOKS, Options, TextInput};
use crate::parameter::{self, One, Parameter};
use crate::{descriptor, node};

/// Word that the macro of a tool with a mistake passes to `tools!` in place of its steps.
pub(crate) const BROKEN: &str = "broken";
/// Maximum characters of a name that providers accept.
const MAX_CHARS: usize = 64;

/// Expands a function into itself and its tool. On an error the function stays, and `tools!` passes over it, so that the
/// compiler reports nothing else as missing.
pub(crate) fn expand(options: TokenStream, function: TokenStream) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(function) {
        Ok(function) => function,
        Err(error) => {
            return Error::new(error.span(), "`#[tool]` applies to a function").into_compile_error();
        }
    };
    let made = tool(options, &mut function);
    for input in &mut function.sig.inputs {
        if let syn::FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| !["arg", "args", "doc"].iter().any(|name| attribute.path().is_ident(name)));
        }
    }
    let made = made.unwrap_or_else(|error| {
        let (error, stand_in) = (error.into_compile_error(), stand_in(&function.sig.ident));
        quote!(#error #stand_in)
    });
    quote!(#function #made)
}

fn tool(options: TokenStream, function: &mut ItemFn) -> Result<TokenStream> {
    let options = Options::read(options)?;
    let signature = &mut function.sig;
    if let Some(word) = &signature.asyncness {
        return Err(Error::new_spanned(word, "a tool runs to its end by itself: take `async` away"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &signature.generics,
            "the types of a tool's arguments are known: take these away",
        ));
    }
    let description = node::docs(&function.attrs);
    if description.is_empty() {
        let message = "a tool says what it is for: write a doc comment (`/// …`) above it, which the model reads";
        return Err(Error::new_spanned(&signature.ident, message));
    }
    // With further arguments, the text is one of them.
    let takes_text =
        options.text.is_some() && signature.inputs.iter().filter(|input| !parameter::is_call(input)).count() < 2;
    let parameters = all(signature.inputs.iter_mut().map(|input| parameter::read(input, takes_text)))?;
    agree(&options, &parameters, &signature.ident)?;
    let name = name(&options, &signature.ident)?;
    let descriptor = descriptor::node(&name, &description, &options, &parameters, &signature.output);
    let arguments = arguments(function, &parameters, options.open.is_some());
    let run = run(&function.sig.ident, &parameters);
    let hooks = options.hooks.iter().map(|(hook, path)| hook_of(hook, path));
    let steps = steps(function, &options);
    let ident = &function.sig.ident;
    let defaults = ones(&parameters).filter_map(|one| one.arg.check(&one.ty));
    Ok(quote! {
        #arguments
        #steps
        #(#defaults)*
        const _: () = {
            const NODE: ::toolcrib_guest::Node = #descriptor;
            const LENGTH: usize = NODE.measure();
            const TEXT: [u8; LENGTH] = NODE.text();
            #[cfg(target_arch = "wasm32")]
            #[allow(unsafe_code)]
            #[used]
            #[unsafe(link_section = "toolcrib:tool")]
            static SECTION: [u8; LENGTH] = TEXT;
            impl ::toolcrib_guest::Tool for #ident {
                const NAME: &'static str = #name;
                const DESCRIPTOR: &'static [u8] = &TEXT;
                #run
                #(#hooks)*
            }
        };
    })
}

/// Collects all values, or one error for each mistake.
pub(crate) fn all<T>(results: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (mut values, mut mistakes) = (Vec::new(), None::<Error>);
    for result in results {
        match (result, &mut mistakes) {
            (Ok(value), _) => values.push(value),
            (Err(error), Some(mistakes)) => mistakes.combine(error),
            (Err(error), none) => *none = Some(error),
        }
    }
    mistakes.map_or(Ok(values), Err)
}

/// Checks that the parameters fit each other and the options.
fn agree(options: &Options, parameters: &[Parameter], ident: &Ident) -> Result<()> {
    let count = |is: fn(&Parameter) -> bool| parameters.iter().filter(|parameter| is(parameter)).count();
    let (texts, wholes) = (count(|p| matches!(p, Parameter::Text(_))), count(|p| matches!(p, Parameter::Args(_))));
    let ones: Vec<&One> = ones(parameters).collect();
    match &options.text {
        Some(text) if texts == 0 && ones.len() > 1 => beside_text(text, &ones, ident)?,
        Some(_) if texts != 1 => {
            return Err(Error::new_spanned(
                ident,
                "a tool that takes text has one parameter for it: `text: String` or `text: &str`",
            ));
        }
        _ => {}
    }
    if wholes > 1 || (wholes == 1 && !ones.is_empty()) {
        return Err(Error::new_spanned(ident, "`#[args]` takes every argument: make the others fields of its type"));
    }
    if let Some(span) = options.open.filter(|_| wholes > 0 || options.text.is_some()) {
        return Err(Error::new(
            span,
            "`open` is for arguments one by one; with `#[args]` their type says what it takes",
        ));
    }
    for (at, one) in ones.iter().enumerate() {
        if ones[..at].iter().any(|other| other.name == one.name) {
            return Err(Error::new(one.field.span(), format!("two arguments are called `{}`: rename one", one.name)));
        }
    }
    Ok(())
}

/// Checks that one argument carries the text, and that a call with text alone lacks none of the others.
fn beside_text(text: &TextInput, ones: &[&One], ident: &Ident) -> Result<()> {
    let field = text.field.as_deref().unwrap_or("input");
    match ones.iter().find(|one| one.name == field) {
        Some(one)
            if one.property().2 && (one.borrowed || parameter::last(&one.ty).is_some_and(|ty| ty == "String")) => {}
        _ => {
            let message = format!("the text is the argument `{field}`, a `String` or `&str` without a default: add it");
            return Err(Error::new_spanned(ident, message));
        }
    }
    match ones.iter().find(|one| one.name != field && one.property().2) {
        None => Ok(()),
        Some(one) => {
            let message = format!("a call with text lacks `{}`: make it an `Option`, or give it a default", one.name);
            Err(Error::new(one.field.span(), message))
        }
    }
}

fn ones(parameters: &[Parameter]) -> impl Iterator<Item = &One> {
    parameters.iter().filter_map(|parameter| match parameter {
        Parameter::One(one) => Some(&**one),
        _ => None,
    })
}

fn name(options: &Options, ident: &Ident) -> Result<String> {
    let (name, span) = options.name.clone().unwrap_or_else(|| (ident.unraw().to_string(), ident.span()));
    let sound = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match sound && (1..=MAX_CHARS).contains(&name.len()) {
        true => Ok(name),
        false => {
            let message =
                format!("a tool's name has 1 to {MAX_CHARS} of the characters `A-Z a-z 0-9 _ -`, not `{name}`");
            Err(Error::new(span, message))
        }
    }
}

/// Type of the arguments. It has the name of the function: one is a type, the other a value.
fn arguments(function: &ItemFn, parameters: &[Parameter], open: bool) -> TokenStream {
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    let ones: Vec<&One> = ones(parameters).collect();
    let (fields, types): (Vec<_>, Vec<_>) = ones.iter().map(|one| (&one.field, &one.ty)).unzip();
    let docs = ones.iter().map(|one| one.docs());
    let names = ones.iter().map(|one| &one.name);
    let known = if open { quote!(None) } else { quote!(Some(&[#(#names),*])) };
    let taken = ones.iter().map(|one| one.taken());
    let doc = format!("The arguments of the tool `{ident}`, and the tool itself.");
    let read = (!parameters.iter().any(|p| matches!(p, Parameter::Text(_) | Parameter::Args(_)))).then(|| {
        quote! {
            impl<'de> ::toolcrib_guest::__private::serde::Deserialize<'de> for #ident {
                fn deserialize<D: ::toolcrib_guest::__private::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<Self, D::Error> {
                    #[allow(unused_mut, unused_variables)]
                    let mut fields = ::toolcrib_guest::__private::Fields::read(deserializer, #known)?;
                    Ok(Self { #(#fields: #taken),* })
                }
            }
        }
    });
    quote! {
        #[doc = #doc]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #ident {
            #(#[doc = #docs] #visibility #fields: #types,)*
        }
        #read
    }
}

/// Generates one call: converts the payload into the parameters, and the returned value into the answer.
fn run(ident: &Ident, parameters: &[Parameter]) -> TokenStream {
    let fields: Vec<&Ident> = ones(parameters).map(|one| &one.field).collect();
    let whole = parameters.iter().any(|parameter| matches!(parameter, Parameter::Args(_)));
    let text = parameters.iter().any(|parameter| matches!(parameter, Parameter::Text(_)));
    // The tool's own names cannot collide with these: they are fields.
    let read = match whole || text {
        true => quote!(),
        false => quote!(let #ident { #(#fields),* } = __call.args()?;),
    };
    let values = parameters.iter().map(|parameter| match parameter {
        Parameter::One(one) => {
            let field = &one.field;
            if one.borrowed { quote!(&#field) } else { quote!(#field) }
        }
        Parameter::Args(_) => quote!(__call.args()?),
        Parameter::Call(true) => quote!(__call),
        Parameter::Call(false) => quote!(::core::clone::Clone::clone(__call)),
        Parameter::Text(true) => quote!(__call.text()?),
        Parameter::Text(false) => quote!(__call.text()?.to_owned()),
    });
    quote! {
        fn run(__call: &::toolcrib_guest::Call) -> ::toolcrib_guest::Result<::toolcrib_guest::Answer> {
            #read
            ::toolcrib_guest::IntoAnswer::into_answer(#ident(#(#values),*))
        }
    }
}

/// Generates the tool's function for one step.
fn hook_of(hook: &str, path: &Path) -> TokenStream {
    match hook {
        "validate" => quote! {
            fn validate(call: &::toolcrib_guest::Call) -> ::toolcrib_guest::Result<()> { #path(call) }
        },
        "preview" => quote! {
            fn preview(call: &::toolcrib_guest::Call) -> ::core::option::Option<::std::string::String> {
                ::toolcrib_guest::IntoPreview::into_preview(#path(call))
            }
        },
        "prepare" => quote! {
            fn prepare(
                preparation: &::toolcrib_guest::Preparation,
            ) -> ::toolcrib_guest::Result<::std::string::String> {
                ::toolcrib_guest::__private::prepared(#path(preparation))
            }
        },
        "route" => quote! {
            fn route(call: &::toolcrib_guest::Call) -> ::toolcrib_guest::Opinion { #path(call) }
        },
        _ => quote! {
            fn present(
                call: &::toolcrib_guest::Call,
                outcome: ::toolcrib_guest::Result<::toolcrib_guest::Answer>,
            ) -> ::toolcrib_guest::Presentation { #path(call, outcome) }
        },
    }
}

/// Generates the macro of a tool with a mistake, which `tools!` passes over.
fn stand_in(ident: &Ident) -> TokenStream {
    let word = Ident::new(BROKEN, Span::call_site());
    macro_of(ident, &quote!(#word))
}

/// Generates a macro with the name of the tool, which passes the implemented steps to `tools!`.
fn steps(function: &ItemFn, options: &Options) -> TokenStream {
    let hooks = HOOKS.iter().filter(|hook| options.hooks.iter().any(|(own, _)| own == *hook));
    let hooks = hooks.map(|hook| Ident::new(hook, Span::call_site()));
    macro_of(&function.sig.ident, &quote!(#(#hooks)*))
}

/// Generates the macro of a tool, which passes `words` to `tools!`.
fn macro_of(ident: &Ident, words: &TokenStream) -> TokenStream {
    let own = format_ident!("__tool_{}", ident.unraw(), span = Span::call_site());
    quote! {
        #[doc(hidden)]
        #[allow(unused_macros)]
        macro_rules! #own {
            ($listed:tt $tool:tt $rest:tt) => {
                ::toolcrib_guest::__private::__tools! { $listed $tool [#words] $rest }
            };
        }
        #[doc(hidden)]
        #[allow(unused_imports)]
        pub(crate) use #own as #ident;
    }
}
