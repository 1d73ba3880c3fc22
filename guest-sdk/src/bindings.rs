//! Rust bindings of the WIT package in `wit/tool`, generated: one module per world. The types are generated once, in
//! [`tool`].

#![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]

/// World of every rich tool.
pub mod tool {
    wit_bindgen::generate!({
        path: "../wit/tool",
        world: "tool",
        pub_export_macro: true,
        export_macro_name: "export",
        additional_derives: [PartialEq],
    });
}

/// Generates a module for the world of one optional export.
macro_rules! optional {
    ($($name:ident: $world:literal,)*) => {$(
        #[doc = $world]
        pub mod $name {
            wit_bindgen::generate!({
                path: "../wit/tool",
                world: $world,
                pub_export_macro: true,
                export_macro_name: "export",
                with: { "toolcrib:tool/types@1.1.0": crate::bindings::tool::toolcrib::tool::types },
            });
        }
    )*};
}

optional! {
    validate: "validating",
    preview: "previewing",
    prepare: "preparing",
    route: "routing",
    present: "presenting",
}
