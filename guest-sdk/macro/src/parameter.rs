//! Parameters of a tool's function: each is one argument, all arguments, the call, or the text.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Error, FnArg, Ident, Pat, PatType, Result, Type, TypeReference};

use crate::arg::Arg;
use crate::node;

/// Source of a parameter's value.
pub(crate) enum Parameter {
    /// One argument.
    One(Box<One>),
    /// All arguments.
    Args(Box<Type>),
    /// The call; `true` if passed by reference.
    Call(bool),
    /// The text; `true` if passed by reference.
    Text(bool),
}

/// One argument.
pub(crate) struct One {
    /// Field in the type of the arguments.
    pub(crate) field: Ident,
    /// Name in the object.
    pub(crate) name: String,
    /// Type of the field.
    pub(crate) ty: Type,
    /// `true` if passed as `&str`.
    pub(crate) borrowed: bool,
    docs: String,
    pub(crate) arg: Arg,
}

impl One {
    /// Name, schema, and `true` if required.
    pub(crate) fn property(&self) -> (String, TokenStream, bool) {
        let required = self.arg.default.is_none() && !is_option(&self.ty);
        (self.name.clone(), self.arg.schema(&self.ty, &self.docs), required)
    }

    /// Takes the argument out of the fields of a call.
    pub(crate) fn taken(&self) -> TokenStream {
        let name = &self.name;
        match &self.arg.default {
            Some(default) => quote!(fields.or(#name, #default)?),
            None if is_option(&self.ty) => quote!(fields.or(#name, "null")?),
            None => quote!(fields.required(#name)?),
        }
    }

    /// Doc attributes of the field.
    pub(crate) fn docs(&self) -> String {
        match self.docs.as_str() {
            "" => format!("The argument `{}`.", self.name),
            docs => docs.to_owned(),
        }
    }
}

/// Reads a parameter, and removes the attributes that the compiler must not see.
pub(crate) fn read(input: &mut FnArg, takes_text: bool) -> Result<Parameter> {
    let FnArg::Typed(typed) = input else {
        return Err(Error::new_spanned(input, "a tool is a function by itself: take `self` away"));
    };
    let attributes = std::mem::take(&mut typed.attrs);
    let (ours, others): (Vec<Attribute>, Vec<Attribute>) = attributes.into_iter().partition(is_ours);
    typed.attrs = others;
    let whole = ours.iter().any(|attribute| attribute.path().is_ident("args"));
    let (ty, borrowed) = match &*typed.ty {
        Type::Reference(TypeReference { mutability: None, elem, .. }) => (&**elem, true),
        ty => (ty, false),
    };
    if is_call_type(ty) {
        return Ok(Parameter::Call(borrowed));
    }
    let is_str = borrowed && last(ty).is_some_and(|name| name == "str");
    if takes_text {
        return match is_str || (!borrowed && last(ty).is_some_and(|name| name == "String")) {
            true => Ok(Parameter::Text(borrowed)),
            false => Err(Error::new_spanned(
                &typed.ty,
                "a tool that takes text has one `String` or `&str`, and at most a `&Call`",
            )),
        };
    }
    if borrowed && !is_str {
        return Err(Error::new_spanned(
            &typed.ty,
            "take this argument by value; `&str` and `&Call` alone are borrowed",
        ));
    }
    if whole {
        return Ok(Parameter::Args(Box::new(ty.clone())));
    }
    let ty = if is_str { syn::parse_quote!(::std::string::String) } else { ty.clone() };
    one(typed, &ours, ty, is_str)
}

fn one(typed: &PatType, attributes: &[Attribute], ty: Type, borrowed: bool) -> Result<Parameter> {
    let Pat::Ident(pattern) = &*typed.pat else {
        return Err(Error::new_spanned(&typed.pat, "give this argument a name, and take it apart in the function"));
    };
    let arg = Arg::read(attributes)?;
    let field = format_ident!("{}", pattern.ident);
    let spoken = field.to_string();
    let name = match &arg.name {
        Some(name) => name.clone(),
        // A parameter that the function does not use keeps its name in the schema.
        None => spoken.trim_start_matches("r#").trim_start_matches('_').to_owned(),
    };
    if name.is_empty() {
        return Err(Error::new_spanned(&typed.pat, "an argument has a name: give it one"));
    }
    Ok(Parameter::One(Box::new(One { field, name, ty, borrowed, docs: node::docs(attributes), arg })))
}

/// Returns `true` if a parameter is the call.
pub(crate) fn is_call(input: &FnArg) -> bool {
    match input {
        FnArg::Typed(PatType { ty, .. }) => match &**ty {
            Type::Reference(TypeReference { mutability: None, elem, .. }) => is_call_type(elem),
            ty => is_call_type(ty),
        },
        FnArg::Receiver(_) => false,
    }
}

fn is_call_type(ty: &Type) -> bool {
    last(ty).is_some_and(|name| name == "Call")
}

fn is_ours(attribute: &Attribute) -> bool {
    ["arg", "args", "doc"].iter().any(|name| attribute.path().is_ident(name))
}

/// Last name in the path of a type.
pub(crate) fn last(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

pub(crate) fn is_option(ty: &Type) -> bool {
    last(ty).is_some_and(|name| name == "Option")
}
