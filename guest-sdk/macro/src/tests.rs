//! Refusals of the macros: each message states the fix and points at the mistake.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{derive, tool, tools};

/// First error message among tokens; empty if there is none.
fn first_message(tokens: TokenStream) -> String {
    let text = tokens.to_string();
    let found = text.split_once("compile_error").and_then(|(_, rest)| rest.split('"').nth(1)).unwrap_or_default();
    found.to_owned()
}

fn refused(options: TokenStream, function: TokenStream) -> String {
    first_message(tool::expand(options, function))
}

fn underivable(item: TokenStream) -> String {
    derive::expand(item).expect_err("refused").to_string()
}

/// Asserts the start of an error message.
macro_rules! begins {
    ($refusal:expr, $start:literal) => {
        let refusal = $refusal;
        assert!(refusal.starts_with($start), "{refusal}");
    };
}

#[test]
fn a_sound_tool_is_not_refused() {
    let function = quote!(
        /// Greets.
        fn greet(name: String, #[arg(default = 1, maximum = 3)] times: u8, call: &Call) -> String {
            name
        }
    );
    let options = quote!(timeout = "5s", network("a.example"), preview = show);
    let written = tool::expand(options, function);
    assert_eq!(first_message(written.clone()), "");
    let text = written.to_string();
    assert!(text.contains("struct greet") && text.contains("fn greet (name : String , times : u8 , call : & Call)"));
}

#[test]
fn a_function_that_is_no_tool_is_refused() {
    begins!(
        refused(
            quote!(),
            quote!(
                struct A;
            )
        ),
        "`#[tool]` applies to a function"
    );
    begins!(
        refused(
            quote!(),
            quote!(
                fn a() {}
            )
        ),
        "a tool says what it is for"
    );
    begins!(
        refused(
            quote!(),
            quote!(
                #[doc = "A."]
                async fn a() {}
            )
        ),
        "a tool runs to its end by itself"
    );
    begins!(
        refused(
            quote!(),
            quote!(
                #[doc = "A."]
                fn a<T>(b: T) {}
            )
        ),
        "the types of a tool's arguments are known"
    );
    begins!(
        refused(
            quote!(),
            quote!(
                #[doc = "A."]
                fn a(&self) {}
            )
        ),
        "a tool is a function by itself"
    );
    begins!(
        refused(
            quote!(),
            quote!(
                #[doc = "A."]
                fn a((b, c): (u8, u8)) {}
            )
        ),
        "give this argument a name"
    );
    begins!(
        refused(
            quote!(),
            quote!(
                #[doc = "A."]
                fn a(b: &Path) {}
            )
        ),
        "take this argument by value"
    );
    begins!(
        refused(
            quote!(name = "a b"),
            quote!(
                #[doc = "A."]
                fn a() {}
            )
        ),
        "a tool's name has 1 to 64"
    );
    begins!(
        refused(
            quote!(text),
            quote!(
                #[doc = "A."]
                fn a() {}
            )
        ),
        "a tool that takes text has one parameter"
    );
    begins!(
        refused(
            quote!(text),
            quote!(
                #[doc = "A."]
                fn a(b: u8) {}
            )
        ),
        "a tool that takes text has one `String`"
    );
    for (function, start) in [
        (
            quote!(
                fn a(b: String, c: Option<u8>) {}
            ),
            "the text is the argument `t`",
        ),
        (
            quote!(
                fn a(t: u8, c: Option<u8>) {}
            ),
            "the text is the argument `t`",
        ),
        (
            quote!(
                fn a(t: Option<String>, c: Option<u8>) {}
            ),
            "the text is the argument `t`",
        ),
        (
            quote!(
                fn a(t: String, c: u8) {}
            ),
            "a call with text lacks `c`",
        ),
        (
            quote!(
                fn a(t: &str, c: Option<u8>) {}
            ),
            "",
        ),
    ] {
        let function = quote!(#[doc = "A."] #function);
        let refusal = refused(quote!(text(field = "t")), function);
        assert!(refusal.starts_with(start) && refusal.is_empty() == start.is_empty(), "{refusal}");
    }
    begins!(
        refused(
            quote!(),
            quote!(
                #[doc = "A."]
                fn a(#[args] b: B, c: u8) {}
            )
        ),
        "`#[args]` takes every argument"
    );
    begins!(
        refused(
            quote!(open),
            quote!(
                #[doc = "A."]
                fn a(#[args] b: B) {}
            )
        ),
        "`open` is for arguments one by one"
    );
}

#[test]
fn a_word_that_nobody_knows_is_refused() {
    let about = |options| {
        refused(
            options,
            quote!(
                #[doc = "A."]
                fn a() {}
            ),
        )
    };
    begins!(about(quote!(colour)), "unknown word `colour` for a tool: use `name`");
    begins!(about(quote!(cache, cache)), "`cache` occurs twice");
    begins!(about(quote!(timeout = "soon")), "write `timeout = ");
    begins!(about(quote!(timeout = "0s")), "write `timeout = ");
    begins!(about(quote!(files = "all")), "write `files = ");
    begins!(about(quote!(read_only = 1)), "write `read_only` or `read_only = false`");
    begins!(about(quote!(preview)), "write `preview = a_function`");
    begins!(about(quote!(limits(memory = 1))), "unknown word `memory`: use `memory_mb`");
    begins!(about(quote!(text(lark = "a", regex = "b"))), "a text has one grammar");
    let arg = |attribute: TokenStream| refused(quote!(), quote!(#[doc = "A."] fn a(#attribute b: u8) {}));
    begins!(arg(quote!(#[arg(least = 1)])), "unknown word `least`: use `name`");
    begins!(arg(quote!(#[arg(minimum)])), "`minimum` needs a value");
    begins!(arg(quote!(#[arg(default = B)])), "this is not a literal");
}

#[test]
fn a_type_whose_form_cannot_be_followed_is_refused() {
    let flattened = quote!(
        struct A {
            #[serde(flatten)]
            b: B,
        }
    );
    begins!(underivable(flattened), "a derived schema cannot follow this attribute: write the fields out");
    begins!(
        underivable(quote!(
            struct A {
                #[arg(default = 1)]
                b: u8,
            }
        )),
        "a default here only describes it"
    );
    begins!(
        underivable(quote!(
            struct A {
                #[arg(name = "c")]
                b: u8,
            }
        )),
        "rename a field with"
    );
    begins!(
        underivable(quote!(
            #[serde(rename_all = "odd")]
            struct A;
        )),
        "`odd` is not a case that serde knows"
    );
    begins!(
        underivable(quote!(
            #[serde(tag = "t")]
            enum A {
                B(C),
            }
        )),
        "a derived schema cannot put a tag"
    );
    begins!(underivable(quote!(union A { b: u8 })), "a union has no schema");
}

#[test]
fn tools_are_listed_by_their_paths() {
    let expanded = tools::begin(quote!(a, b::c)).expect("expanded").to_string();
    assert_eq!(expanded, "a ! { [] [a] [b :: c ,] }");
    let expanded = tools::advance(quote!([] [a] [preview] [b::c,])).expect("expanded").to_string();
    assert_eq!(expanded, "b :: c ! { [[a] [preview]] [b :: c] [] }");
    let written = tools::advance(quote!([[a] [preview]] [b::c] [preview route] [])).expect("written").to_string();
    let exported = |module| written.matches(&format!("bindings :: {module} :: export")).count();
    assert_eq!(["tool", "preview", "route", "validate"].map(exported), [1, 1, 1, 0]);
    begins!(tools::begin(quote!()).expect_err("refused").to_string(), "a component has at least one tool");
}

#[test]
fn each_mistake_is_one_error_and_the_list_passes_over_the_tool() {
    let function = quote!(
        /// Greets.
        fn greet(name: String) -> String {
            name
        }
    );
    let text = tool::expand(quote!(nme = "x", tmeout = "1s"), function).to_string();
    assert_eq!(text.matches("compile_error").count(), 2, "{text}");
    assert!(text.contains("unknown word `nme`") && text.contains("unknown word `tmeout`"), "{text}");
    assert!(text.contains("[broken]") || text.contains("[broken ]"), "{text}");
    let alone = tools::advance(quote!([] [greet] [broken] [])).expect("no other tool");
    assert_eq!(alone.to_string(), "");
    let others = tools::advance(quote!([[part] []] [greet] [broken] [])).expect("another tool").to_string();
    assert!(others.contains("part") && !others.contains("greet"), "{others}");
}
