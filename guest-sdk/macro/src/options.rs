//! Options of `#[tool(…)]`: each key at most once, with its span.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, Meta, MetaList, Path, Result, Token};

use crate::literal;
use crate::node::{self, Members};
use crate::tool::all;

/// Steps of a call that a tool can implement.
pub(crate) const HOOKS: [&str; 5] = ["validate", "preview", "prepare", "route", "present"];
/// Facts of the interface with a key of their own.
const FACTS: [(&str, &str); 3] =
    [("read_only", "is_read_only"), ("destructive", "is_destructive"), ("open_world", "is_open_world")];
/// Lists of text at the top level of a descriptor.
const LISTS: [(&str, &str); 6] = [
    ("aliases", "aliases"),
    ("tags", "tags"),
    ("required_tags", "requiredTags"),
    ("forbidden_tags", "forbiddenTags"),
    ("models", "models"),
    ("provider", "provider"),
];
/// Limits, with their names in `tools.json`.
const LIMITS: [(&str, &str); 7] = [
    ("memory_mb", "memoryMb"),
    ("output_kb", "outputKb"),
    ("disk_mb", "diskMb"),
    ("disk_entries", "diskEntries"),
    ("fuel", "fuel"),
    ("requests", "requests"),
    ("received_kb", "receivedKb"),
];

/// Free-text input of a tool.
#[derive(Default)]
pub(crate) struct TextInput {
    /// Members that describe it.
    pub(crate) members: Members,
    /// Name of the argument that carries the text, if stated.
    pub(crate) field: Option<String>,
}

/// Options of a tool.
#[derive(Default)]
pub(crate) struct Options {
    /// Name, if it differs from the function's.
    pub(crate) name: Option<(String, Span)>,
    /// Free-text input, if the tool accepts it.
    pub(crate) text: Option<TextInput>,
    /// Set if the tool accepts arguments that its schema does not name.
    pub(crate) open: Option<Span>,
    /// `true` if the answer has a schema.
    pub(crate) output: bool,
    /// Members of the descriptor without further meaning here.
    pub(crate) members: Members,
    /// Requested capabilities.
    pub(crate) capabilities: Members,
    /// Facts of the interface.
    pub(crate) interface: Members,
    /// Functions for the steps of a call.
    pub(crate) hooks: Vec<(&'static str, Path)>,
    secrets: Vec<TokenStream>,
}

impl Options {
    pub(crate) fn read(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<String> = Vec::new();
        all(Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens)?.iter().map(|meta| {
            let word = meta.path().to_token_stream().to_string();
            if seen.contains(&word) && word != "secret" {
                return Err(Error::new_spanned(meta, format!("`{word}` occurs twice: take one away")));
            }
            options.take(&word, meta)?;
            seen.push(word);
            Ok(())
        }))?;
        if !options.secrets.is_empty() {
            options.capabilities.push(("secrets".into(), node::list(std::mem::take(&mut options.secrets))));
        }
        Ok(options)
    }

    fn take(&mut self, word: &str, meta: &Meta) -> Result<()> {
        let key = |table: &[(&str, &str)]| table.iter().find(|row| row.0 == word).map(|row| row.1.to_owned());
        if let Some(hook) = HOOKS.into_iter().find(|hook| *hook == word) {
            self.hooks.push((hook, path(meta)?));
        } else if let Some(fact) = key(&FACTS) {
            self.interface.push((fact, flag(meta)?));
        } else if let Some(list) = key(&LISTS) {
            self.members.push((list, node::texts(texts(meta)?)));
        } else {
            match word {
                "name" => self.name = Some((text(meta)?, span(meta))),
                "open" => self.open = Some(word_alone(meta)?),
                "output" => self.output = word_alone(meta).map(|_| true)?,
                "text" => self.text = Some(text_input(meta)?),
                "timeout" => self.members.push(("timeoutSec".into(), node::raw(&seconds(meta)?))),
                "summary" => {
                    let rendering = vec![("ui_summary".into(), node::text(&text(meta)?))];
                    self.interface.push(("rendering".into(), node::object(&rendering)));
                }
                "interface" => self.interface.extend(table(meta, None)?),
                "limits" => self.members.push(("limits".into(), node::object(&table(meta, Some(&LIMITS))?))),
                "secret" => self.secrets.push(node::object(&table(meta, None)?)),
                "files" => self.capabilities.push(("files".into(), files(meta)?)),
                "env" => self.capabilities.push(("env".into(), node::texts(texts(meta)?))),
                "network" | "tools" => self.capabilities.push((word.into(), all_or_some(meta)?)),
                "cache" | "model" => self.capabilities.push((word.into(), flag(meta)?)),
                _ => return Err(unknown(word, meta)),
            }
        }
        Ok(())
    }
}

fn unknown(word: &str, meta: &Meta) -> Error {
    let own = ["name", "text", "open", "output", "timeout", "summary", "interface", "limits", "secret"];
    let capabilities = ["files", "env", "network", "tools", "cache", "model"];
    let tables = FACTS.iter().chain(&LISTS).map(|row| row.0);
    let words: Vec<&str> = own.into_iter().chain(capabilities).chain(tables).chain(HOOKS).collect();
    Error::new_spanned(meta.path(), format!("unknown word `{word}` for a tool: use `{}`", words.join("`, `")))
}

fn span(meta: &Meta) -> Span {
    syn::spanned::Spanned::span(meta)
}

fn wrong<T>(meta: &Meta, form: &str) -> Result<T> {
    Err(Error::new_spanned(meta, format!("write `{form}`")))
}

fn name_of(meta: &Meta) -> String {
    meta.path().to_token_stream().to_string()
}

fn word_alone(meta: &Meta) -> Result<Span> {
    match meta {
        Meta::Path(_) => Ok(span(meta)),
        _ => wrong(meta, &name_of(meta)),
    }
}

/// Reads `key`, `key = true` or `key = false`.
fn flag(meta: &Meta) -> Result<TokenStream> {
    match meta {
        Meta::Path(_) => Ok(node::raw("true")),
        Meta::NameValue(pair) if matches!(&pair.value, Expr::Lit(ExprLit { lit: Lit::Bool(_), .. })) => {
            Ok(node::raw(&literal::json(&pair.value)?))
        }
        _ => wrong(meta, &format!("{0}` or `{0} = false", name_of(meta))),
    }
}

fn text(meta: &Meta) -> Result<String> {
    match meta {
        Meta::NameValue(pair) => literal::text(&pair.value),
        _ => wrong(meta, &format!("{} = \"…\"", name_of(meta))),
    }
}

fn path(meta: &Meta) -> Result<Path> {
    match meta {
        Meta::NameValue(pair) if matches!(&pair.value, Expr::Path(_)) => syn::parse2(pair.value.to_token_stream()),
        _ => wrong(meta, &format!("{} = a_function", name_of(meta))),
    }
}

fn texts(meta: &Meta) -> Result<Vec<String>> {
    match meta {
        Meta::List(list) => {
            let texts = list.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated)?;
            texts.iter().map(literal::text).collect()
        }
        _ => wrong(meta, &format!("{}(\"…\")", name_of(meta))),
    }
}

/// Reads `key` for everything, or `key("…")` for a selection.
fn all_or_some(meta: &Meta) -> Result<TokenStream> {
    match meta {
        Meta::Path(_) => Ok(node::text("allow")),
        Meta::List(_) => Ok(node::texts(texts(meta)?)),
        Meta::NameValue(_) => wrong(meta, &format!("{0}` or `{0}(\"…\")", name_of(meta))),
    }
}

fn files(meta: &Meta) -> Result<TokenStream> {
    match text(meta)?.as_str() {
        access @ ("read" | "write") => Ok(node::text(access)),
        _ => wrong(meta, "files = \"read\"` or `files = \"write\""),
    }
}

/// Reads whole seconds, such as `"5s"` or `"2m"`.
fn seconds(meta: &Meta) -> Result<String> {
    let duration = text(meta)?;
    let parse = |unit: char, each: u32| duration.strip_suffix(unit)?.parse::<u32>().ok()?.checked_mul(each);
    match parse('s', 1).or_else(|| parse('m', 60)) {
        Some(seconds) if seconds > 0 => Ok(seconds.to_string()),
        _ => wrong(meta, "timeout = \"5s\"` or `timeout = \"2m\""),
    }
}

/// Reads `key(name = value, …)`; with a table, only its names.
fn table(meta: &Meta, known: Option<&[(&str, &str)]>) -> Result<Members> {
    let mut members = Members::new();
    for meta in pairs(meta)? {
        let Meta::NameValue(pair) = &meta else {
            return wrong(&meta, &format!("{} = …", name_of(&meta)));
        };
        let word = name_of(&meta);
        let key = match known {
            None => word,
            Some(known) => match known.iter().find(|row| row.0 == word) {
                Some(row) => row.1.to_owned(),
                None => {
                    let known: Vec<&str> = known.iter().map(|row| row.0).collect();
                    let message = format!("unknown word `{word}`: use `{}`", known.join("`, `"));
                    return Err(Error::new_spanned(&pair.path, message));
                }
            },
        };
        members.push((key, node::raw(&literal::json(&pair.value)?)));
    }
    Ok(members)
}

fn pairs(meta: &Meta) -> Result<Punctuated<Meta, Token![,]>> {
    match meta {
        Meta::List(list) => MetaList::parse_args_with(list, Punctuated::parse_terminated),
        _ => wrong(meta, &format!("{}(… = …)", name_of(meta))),
    }
}

/// Reads `text`, or `text(field = "…", description = "…", lark = "…")` with at most one grammar.
fn text_input(meta: &Meta) -> Result<TextInput> {
    let TextInput { mut members, mut field } = TextInput::default();
    if let Meta::Path(_) = meta {
        return Ok(TextInput { members, field });
    }
    for meta in pairs(meta)? {
        let word = name_of(&meta);
        let (key, node) = match word.as_str() {
            "field" => ("field", node::text(field.insert(text(&meta)?))),
            "description" => ("description", node::text(&text(&meta)?)),
            "lark" | "regex" => ("grammar", grammar(&word, node::text(&text(&meta)?))),
            "lark_file" => {
                let file = text(&meta)?;
                let path = quote!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #file));
                ("grammar", grammar("lark", quote!(::toolcrib_guest::Node::Text(::core::include_str!(#path)))))
            }
            _ => {
                let message = format!(
                    "unknown word `{word}`: use `field`, `description`, and one of `lark`, `lark_file`, `regex`"
                );
                return Err(Error::new_spanned(meta.path(), message));
            }
        };
        if members.iter().any(|(stated, _)| stated == key) {
            return Err(Error::new_spanned(&meta, format!("a text has one {key}: take one away")));
        }
        members.push((key.to_owned(), node));
    }
    Ok(TextInput { members, field })
}

fn grammar(syntax: &str, definition: TokenStream) -> TokenStream {
    node::object(&vec![("syntax".into(), node::text(syntax)), ("definition".into(), definition)])
}
