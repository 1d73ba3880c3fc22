//! Permissions for some tools only: a value such as `fs_*:docs` or `@./tools.json:docs` starts with the names of tools,
//! or with the tools' source after `@`.

use std::path::{Path, PathBuf};

use toolcrib::policy::{Permission, ToolSelection};
use toolcrib::tool::{Destination, Glob};
use toolcrib_base::folders::in_home;

/// Value of an option that grants or denies everything.
pub const ALL: &str = "*";
/// Separator of a selection and its value.
const SEPARATOR: char = ':';
/// Mark of a source in place of tool names.
const SOURCE: char = '@';

/// Values of one option, separated by commas. All values are limited to the same tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited<T> {
    tools: Option<ToolSelection>,
    values: Vec<T>,
}

impl<T: Clone> Limited<T> {
    /// Creates a value for all tools.
    pub fn for_all(value: T) -> Self {
        Self { tools: None, values: vec![value] }
    }

    /// Parses a text that may start with a selection; `parse` reads the values after it.
    fn parse<E: ToString>(text: &str, parse: impl FnOnce(&str) -> Result<Vec<T>, E>) -> Result<Self, String> {
        let (prefix, rest) = split(text);
        if prefix.starts_with(SOURCE) && rest.starts_with("//") {
            return Err(format!(
                "`{text}`: a reference cannot select tools; name an installed bundle by its name, as in \
                 `@acme/weather:VALUE`, or a pulled file by its path"
            ));
        }
        let tools = if prefix.is_empty() { None } else { Some(selection(prefix)?) };
        if tools.is_some() && rest.is_empty() {
            return Err(format!("nothing follows the tools: write `{prefix}VALUE`"));
        }
        Ok(Self { tools, values: parse(rest).map_err(|error| error.to_string())? })
    }

    /// Parses values that are separated by commas. No value but the first may follow a selection.
    fn parse_list<E: ToString>(text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<Self, String> {
        let part = |part: &str| match split(part) {
            ("", value) => parse(value).map_err(|error| error.to_string()),
            _ => Err(format!("`{part}`: repeat the option to name other tools")),
        };
        Self::parse(text, |values| values.split(',').map(part).collect::<Result<Vec<_>, _>>())
    }

    /// Returns the values without the tools.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// Returns the permissions of the values.
    pub fn permissions(&self, permission: impl Fn(T) -> Permission) -> impl Iterator<Item = Permission> {
        let limited = move |permission: Permission| match &self.tools {
            Some(tools) => permission.limited_to(tools.clone()),
            None => permission,
        };
        self.values.iter().cloned().map(permission).map(limited)
    }
}

/// Parses folders.
pub fn folders(text: &str) -> Result<Limited<PathBuf>, String> {
    Limited::parse_list(text, folder)
}

/// Parses one folder, in which a comma separates nothing.
pub fn one_folder(text: &str) -> Result<Limited<PathBuf>, String> {
    Limited::parse(text, |part| folder(part).map(|folder| vec![folder]))
}

/// Parses texts.
pub fn texts(text: &str) -> Result<Limited<String>, String> {
    Limited::parse_list(text, |part| Ok::<_, String>(part.to_owned()))
}

/// Parses names or patterns of them.
pub fn globs(text: &str) -> Result<Limited<Glob>, String> {
    Limited::parse_list(text, |name| match name.strip_prefix(SOURCE) {
        None if name.is_empty() => Err("a name is empty".to_owned()),
        None => name.parse::<Glob>().map_err(|error| error.to_string()),
        Some(_) => {
            Err(format!("`{name}` selects tools, and no name follows: write `{name}:NAME`, or `{name}:*` for all"))
        }
    })
}

/// Parses destinations, in which a comma may also separate methods.
pub fn destinations(text: &str) -> Result<Limited<Destination>, String> {
    check_meaning(text)?;
    let values = split_destination(text).1;
    match values.len() == text.len() {
        true => Destination::parse_list(text)
            .map(|values| Limited { tools: None, values })
            .map_err(|error| error.to_string()),
        false => Limited::parse(text, Destination::parse_list),
    }
}

/// Refuses a destination that reads as every port, and would be `https` alone for every tool.
pub(crate) fn check_meaning(text: &str) -> Result<(), String> {
    match text.trim() {
        "*:*" => Err("`*:*` is not a destination: write `*` for every host over https, or `*:PORT` for one port over \
                      http and https"
            .to_owned()),
        _ => Ok(()),
    }
}

/// Splits a value like [`split`]. Names of tools with a dot would be hosts with a wrong port.
pub(crate) fn split_destination(text: &str) -> (&str, &str) {
    match split(text) {
        (names, _) if names.contains('.') && !names.starts_with(SOURCE) => ("", text),
        parts => parts,
    }
}

/// Parses a folder of the command line. A shell leaves `~` after `=` as it is.
///
/// # Errors
///
/// It is empty, or it can only be a selection of tools without a folder.
fn folder(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("the path is empty: write `.` for the current directory".to_owned());
    }
    let is_selection = text != ALL && (text.starts_with(SOURCE) || text.contains(['*', '?']));
    if is_selection && !Path::new(text).exists() {
        return Err(format!(
            "`{text}` selects tools, and no folder follows: write `{text}:DIR`, or `./{text}` for a path"
        ));
    }
    Ok(in_home(text).unwrap_or_else(|| text.into()))
}

/// Splits a value into its selection with the separator, which may be empty, and the rest.
pub fn split(text: &str) -> (&str, &str) {
    let end = match text.strip_prefix(SOURCE) {
        Some(source) => end_of_source(source).map(|end| end + SOURCE.len_utf8()),
        None => text.find(SEPARATOR).filter(|end| is_selection(&text[..*end], &text[end + 1..])),
    };
    text.split_at(end.map_or(0, |end| end + 1))
}

/// Finds the separator after a source, past the separator of a drive (`C:\tools`).
fn end_of_source(source: &str) -> Option<usize> {
    let drive = source.char_indices().nth(1).filter(|(_, second)| *second == SEPARATOR).map_or(0, |(at, _)| at + 1);
    let is_drive = drive > 0 && source[drive..].starts_with(['\\', '/']);
    let start = if is_drive { drive } else { 0 };
    source[start..].find(SEPARATOR).map(|end| start + end)
}

/// Returns `true` if the text before a separator can only be names of tools: it is no drive, no scheme, and no host with a port.
fn is_selection(names: &str, value: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_-.*?".contains(c);
    // A list of destinations may follow the first port.
    let port = value.split(',').next().unwrap_or_default();
    let is_port = !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
    let is_drive = names.len() == 1 && names != "*" && (cfg!(windows) || value.starts_with('\\'));
    let is_path = is_drive || names.starts_with('.');
    names.chars().all(is_name)
        && !names.is_empty()
        && !is_path
        && !is_port
        && !value.starts_with(':')
        && !value.starts_with("//")
}

fn selection(prefix: &str) -> Result<ToolSelection, String> {
    let text = prefix.strip_suffix(SEPARATOR).unwrap_or(prefix);
    match text.strip_prefix(SOURCE) {
        Some("") => Err(format!("`{prefix}` names no source: write `@builtin`, or `@` and the path of `--tools`")),
        Some(path) => Ok(ToolSelection::Source(Path::new(path).to_path_buf())),
        None => text.parse::<Glob>().map(ToolSelection::Names).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_base::folders::home_folder;

    #[test]
    fn a_value_starts_with_the_tools_that_it_is_for() {
        for (text, prefix, value) in [
            ("fs_*:docs", "fs_*:", "docs"),
            ("fs_read_file:/srv/a:b", "fs_read_file:", "/srv/a:b"),
            ("*:docs", "*:", "docs"),
            ("@builtin:docs", "@builtin:", "docs"),
            ("@./tools.json:docs", "@./tools.json:", "docs"),
            (r"@C:\crib:D:\docs", r"@C:\crib:", r"D:\docs"),
            ("fetch_*:localhost:8080", "fetch_*:", "localhost:8080"),
            ("fetch_page:GET,HEAD example.com", "fetch_page:", "GET,HEAD example.com"),
            ("fetch_page:http://example.com", "fetch_page:", "http://example.com"),
            ("fs_*:", "fs_*:", ""),
            #[cfg(not(windows))]
            ("w:docs", "w:", "docs"),
        ] {
            assert_eq!(split(text), (prefix, value), "{text}");
        }
        for text in [
            "docs",
            "./a:b",
            "../a:b",
            "/srv/a:b",
            r"C:\docs",
            #[cfg(windows)]
            "C:docs",
            "localhost:8080",
            "*.example.com:443",
            "*:443",
            "http://example.com",
            "https://example.com:8443",
            "[::1]:80",
            "fe80::1",
            "10.0.0.0/8:443",
            "GET host:80",
            "GET,HEAD host:80",
            "localhost:80,other.example:443",
            "maps@maps.example.com:8443#query:key",
            "*",
            "",
            ":docs",
            "@builtin",
        ] {
            assert_eq!(split(text), ("", text), "{text}");
        }
    }

    #[test]
    fn one_selection_is_for_all_values_and_another_needs_an_option_of_its_own() {
        let both = folders("fs_*:docs,notes").unwrap();
        let all: Vec<_> = both.permissions(Permission::Read).collect();
        let tools = ToolSelection::Names("fs_*".parse().unwrap());
        assert_eq!(all, ["docs", "notes"].map(|path| Permission::Read(path.into()).limited_to(tools.clone())));
        for wrong in [
            "fs_*:docs,x_*:notes",
            "docs,fs_*:notes",
            "fs_*:",
            "@:docs",
            "",
            ",",
            "docs,",
            "fs_*:docs,",
            "@src",
            "u_*",
            "@oci://a.example/b:1:docs",
        ] {
            assert!(folders(wrong).is_err(), "{wrong}");
        }
        assert!(one_folder("").is_err() && one_folder("@src").is_err() && globs("@src").is_err() && globs("").is_err());
        assert_eq!(folders("*").unwrap().values, [PathBuf::from("*")]);
        assert_eq!(one_folder("a,b").unwrap().values, [PathBuf::from("a,b")]);
    }

    #[test]
    fn the_home_folder_is_meant_by_its_mark() {
        let home = home_folder().unwrap();
        for (text, path) in [("~", home.clone()), ("~/docs", home.join("docs")), ("fs_*:~/a", home.join("a"))] {
            assert_eq!(folders(text).unwrap().values, [path], "{text}");
        }
        for text in ["~docs", "a/~"] {
            assert_eq!(folders(text).unwrap().values, [PathBuf::from(text)]);
        }
    }
}
