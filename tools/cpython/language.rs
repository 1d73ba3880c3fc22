//! Description of the language, for the guest and for the section of its component.

/// Name of the language.
pub(crate) const LANGUAGE: &str = "python";
/// Version of the language that programs may assume.
pub(crate) const VERSION: &str = "3.14";
/// Name and version of the interpreter.
pub(crate) const IMPLEMENTATION: &str = "CPython 3.14.8";
/// Part of the language that programs may use, for a model.
pub(crate) const GUIDE: &str = include_str!("guide.txt");
