//! Patterns for calls, written `NAME` or `NAME(ARGUMENT=PATTERN, …)`, where a class such as `@writes` can take the place of
//! `NAME`, or `flow MARK -> WAY`.

use std::str::FromStr;

use crate::flow::{FlowPattern, FlowPatternError};
use crate::tool::names::NameRules;
use crate::tool::{Glob, GlobError};

use super::class::ToolClass;
use super::path::resolve_path;

/// Pattern for calls, by the name of the tool and by arguments.
#[derive(Debug, Clone)]
pub struct Pattern {
    pub(super) text: String,
    pub(super) tool: Glob,
    /// Tool class in place of a name.
    pub(super) class: Option<ToolClass>,
    /// Flow in place of a name.
    flow: Option<Box<FlowPattern>>,
    pub(super) arguments: Vec<ArgumentPattern>,
}

/// Pattern for one argument.
#[derive(Debug, Clone)]
pub(super) struct ArgumentPattern {
    /// Key of the argument, or a JSON pointer to it.
    pub(super) name: String,
    /// Globs: as written, and as the path that it means.
    pub(super) globs: Vec<Glob>,
    /// Glob over folded paths, on a system on which different spellings are one file.
    pub(super) folded: Option<(NameRules, Glob)>,
}

/// The text is not a pattern for calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The list of arguments is not closed.
    #[error("`{pattern}`: the last `)` is missing")]
    Unclosed {
        /// Text of the pattern.
        pattern: String,
    },
    /// The name of the tool is missing or malformed.
    #[error("`{pattern}`: write it like `fs_*` or `fs_write_file(path=out/*)`")]
    Name {
        /// Text of the pattern.
        pattern: String,
    },
    /// The class of tools is unknown.
    #[error("`{pattern}`: the classes of tools are `@destructive`, `@overwrites` and `@writes`")]
    Class {
        /// Text of the pattern.
        pattern: String,
    },
    /// An argument has no `=`.
    #[error("`{pattern}`: `{argument}` is not like `path=out/*`")]
    Argument {
        /// Text of the pattern.
        pattern: String,
        /// Text of the argument.
        argument: String,
    },
    /// A glob contains characters that require double quotes.
    #[error("`{pattern}`: `{glob}` must be in double quotes")]
    Unquoted {
        /// Text of the pattern.
        pattern: String,
        /// Text of the glob.
        glob: String,
    },
    /// A pattern for flows is malformed.
    #[error(transparent)]
    Flow(#[from] FlowPatternError),
    /// A glob is invalid.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

impl Pattern {
    /// Text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the pattern for flows, if it is one.
    pub(crate) fn flow(&self) -> Option<&FlowPattern> {
        self.flow.as_deref()
    }

    /// Returns `true` if the name matches a tool of this name, with any arguments. A class or a flow matches no name.
    pub fn matches_tool(&self, name: &str) -> bool {
        self.names_tools() && self.tool.is_match(name)
    }

    /// Returns `true` if the pattern is about a flow, and not about calls.
    pub fn is_about_flows(&self) -> bool {
        self.flow.is_some()
    }

    /// Returns `true` if the pattern names tools. A rule can ask about a class of tools or a flow, or deny it, but not allow it:
    /// both depend on more than a name.
    pub fn names_tools(&self) -> bool {
        self.class.is_none() && self.flow.is_none()
    }

    /// Parses a pattern for a system with these rules for names.
    pub(super) fn parse(text: &str, names: NameRules) -> Result<Self, PatternError> {
        let text = text.trim();
        let pattern = || text.to_owned();
        if FlowPattern::is_meant(text) {
            let flow: FlowPattern = text.parse()?;
            let (text, tool) = (flow.to_string(), parse_glob("*")?);
            return Ok(Self { text, tool, class: None, flow: Some(Box::new(flow)), arguments: Vec::new() });
        }
        let (name, list) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let list = rest.strip_suffix(')').ok_or_else(|| PatternError::Unclosed { pattern: pattern() })?;
                (name.trim(), Some(list))
            }
        };
        if name.is_empty() || name.contains([' ', ',', '=', ')']) {
            return Err(PatternError::Name { pattern: pattern() });
        }
        let class = ToolClass::parse(name);
        if name.starts_with('@') && class.is_none() {
            return Err(PatternError::Class { pattern: pattern() });
        }
        let mut arguments = Vec::new();
        for part in split(list.unwrap_or_default()) {
            let Some((argument, glob)) = part.split_once('=') else {
                return Err(PatternError::Argument { pattern: pattern(), argument: part.trim().to_owned() });
            };
            let glob = glob.trim();
            let quoted = glob.strip_prefix('"').and_then(|glob| glob.strip_suffix('"'));
            if quoted.is_none() && glob.contains(['(', ')', '"']) {
                return Err(PatternError::Unquoted { pattern: pattern(), glob: glob.to_owned() });
            }
            let glob = quoted.unwrap_or(glob);
            let path = resolve_path(glob, &['/']);
            let mut globs = vec![parse_glob(glob)?];
            if path != glob && !path.is_empty() {
                globs.push(parse_glob(&path)?);
            }
            let path = names.fold_glob(glob).map(|glob| resolve_path(&glob, &['/']));
            let folded = match path.filter(|path| !path.is_empty()) {
                Some(path) => Some((names, parse_glob(&path)?)),
                None => None,
            };
            arguments.push(ArgumentPattern { name: argument.trim().to_owned(), globs, folded });
        }
        Ok(Self { text: text.to_owned(), tool: parse_glob(name)?, class, flow: None, arguments })
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::parse(text, NameRules::HERE)
    }
}

fn parse_glob(text: &str) -> Result<Glob, PatternError> {
    Ok(text.parse()?)
}

/// Splits a list at the commas outside quotes.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let parts = list.split(move |c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    parts.filter(|part| !part.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_an_error() {
        for text in ["", "(a=b)", "x(a=b", "x(a)", "a b", "x,y", "x(a=b))", "x(a=(b)"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
