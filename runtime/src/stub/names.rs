//! Names of types, and names that can be written without quotation marks.

use std::collections::{HashMap, HashSet};

/// Maximum characters of each part of a type's name.
const MAX_PART: usize = 40;

/// Words that are no identifiers in Python.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Returns `true` if a name is an ASCII identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_part)
}

/// Returns `true` if Python takes a name as that of a method or an argument. A class changes names that start with `__`.
pub(super) fn is_python_name(name: &str) -> bool {
    is_identifier(name) && !name.starts_with("__") && !KEYWORDS.contains(&name)
}

/// Prefixes for the types of each tool, different for all tools.
pub(super) struct Prefixes<'a> {
    tools: HashSet<&'a str>,
    taken: HashMap<String, usize>,
}

impl<'a> Prefixes<'a> {
    pub(super) fn new(tools: impl Iterator<Item = &'a str>) -> Self {
        Self { tools: tools.collect(), taken: HashMap::new() }
    }

    /// Returns the names for the types of a tool.
    pub(super) fn types(&mut self, tool: &str) -> TypeNames<'_> {
        let prefix = numbered(&mut self.taken, pascal(tool), |_| true);
        TypeNames { prefix, tools: &self.tools, taken: HashMap::new() }
    }
}

/// Names for the types of one tool. An underscore separates them from the types of the languages' libraries.
#[derive(Clone)]
pub(super) struct TypeNames<'a> {
    prefix: String,
    tools: &'a HashSet<&'a str>,
    taken: HashMap<String, usize>,
}

impl TypeNames<'_> {
    /// Returns a new name.
    pub(super) fn add(&mut self, part: &str) -> String {
        let name = format!("{}_{}", self.prefix, pascal(part));
        let tools = self.tools;
        numbered(&mut self.taken, name, |name| !tools.contains(name))
    }
}

/// Returns a name with the first number that makes it new and free.
fn numbered(taken: &mut HashMap<String, usize>, name: String, is_free: impl Fn(&str) -> bool) -> String {
    let mut number = taken.get(&name).copied().unwrap_or_default();
    loop {
        number += 1;
        let candidate = if number == 1 { name.clone() } else { format!("{name}{number}") };
        if is_free(&candidate) && (number == 1 || !taken.contains_key(&candidate)) {
            taken.insert(name, number);
            taken.entry(candidate.clone()).or_insert(1);
            return candidate;
        }
    }
}

/// Returns the letters and digits of a name, with a capital at the start of each word.
fn pascal(name: &str) -> String {
    let mut part = String::new();
    let mut starts = true;
    for c in name.chars().take(4 * MAX_PART) {
        if !c.is_ascii_alphanumeric() {
            starts = true;
        } else if part.len() < MAX_PART {
            part.push(if starts { c.to_ascii_uppercase() } else { c });
            starts = false;
        }
    }
    if part.is_empty() || part.starts_with(|c: char| c.is_ascii_digit()) { format!("T{part}") } else { part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_name_is_new_and_no_tool() {
        let mut prefixes = Prefixes::new(["a_b", "a-b", "AB_Row2"].into_iter());
        let mut types = prefixes.types("a_b");
        assert_eq!(
            ["row", "row", "ROW", "", "日本"].map(|part| types.add(part)),
            ["AB_Row", "AB_Row3", "AB_ROW", "AB_T", "AB_T2"]
        );
        assert_eq!(types.add("row3"), "AB_Row32", "another type has that name");
        assert_eq!(prefixes.types("a-b").add("row"), "AB2_Row");
        assert!(prefixes.types("x").add(&"y".repeat(100_000)).len() < 100);
    }

    #[test]
    fn keywords_and_mangled_names_are_no_python_names() {
        for name in ["from", "", "a b", "1a", "é", "__init__", "a\n"] {
            assert!(!is_python_name(name), "{name}");
        }
        assert!(is_python_name("type") && is_python_name("_a1"));
    }
}
