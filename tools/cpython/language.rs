//! Descriptions of the language of each build, for the guest and for the section of its component.

/// Description of a language.
pub(crate) struct Language {
    /// Name of the language.
    pub(crate) name: &'static str,
    /// Version of the language that programs may assume.
    pub(crate) version: &'static str,
    /// Name and version of the interpreter.
    pub(crate) implementation: &'static str,
    /// Part of the language that programs may use, for a model.
    pub(crate) guide: &'static str,
}

/// CPython with its standard library.
pub(crate) const PLAIN: Language = Language {
    name: "python",
    version: "3.14",
    implementation: "CPython 3.14.8",
    guide: include_str!("guide/plain.txt"),
};

/// CPython with packages to compute.
pub(crate) const NUMERIC: Language = Language {
    name: "python",
    version: "3.15",
    implementation: "CPython 3.15.0 with numpy 2.5.2 and pandas 3.0.6",
    guide: include_str!("guide/numeric.txt"),
};

const _: () = assert!(PLAIN.guide.len() <= 2_000 && NUMERIC.guide.len() <= 2_000);
