//! Parts that the interpreters of programs share: the tools that a program can call, and the text that it prints.

pub mod output;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tools;
