//! Built-in names of every script: those of the language and the modules of this interpreter. They are created once and
//! are part of the snapshot of the component.

use std::sync::LazyLock;

use starlark::environment::{Globals, GlobalsBuilder, LibraryExtension};

use crate::modules;

static GLOBALS: LazyLock<Globals> = LazyLock::new(|| {
    let mut builder = GlobalsBuilder::extended_by(&[LibraryExtension::Print]);
    modules::add(&mut builder);
    builder.build()
});

/// Frozen built-in names.
pub(crate) fn get() -> &'static Globals {
    &GLOBALS
}
