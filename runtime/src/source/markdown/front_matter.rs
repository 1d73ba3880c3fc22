//! The two parts of a Markdown file: the front matter between two lines `---`, and the body after it.

use crate::source::diagnostics::Fault;
use crate::tool::Place;

/// Parts of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Parts<'a> {
    /// Front matter with the opening delimiter, so that its line numbers match the file.
    pub(super) yaml: &'a str,
    /// Text after the closing delimiter.
    pub(super) body: &'a str,
}

/// Splits the text of a file.
pub(super) fn split(text: &str) -> Result<Parts<'_>, Fault> {
    let fault = |message: &str| Err(Fault { place: Some(Place { line: 1, column: 1 }), message: message.to_owned() });
    let mut lines = text.split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| is_delimiter(line)) else {
        return fault("markdown file must start with --- frontmatter delimiter");
    };
    let mut end = opening.len();
    for line in lines {
        if is_delimiter(line) {
            return Ok(Parts { yaml: &text[..end], body: &text[end + line.len()..] });
        }
        end += line.len();
    }
    if text[opening.len()..].trim().is_empty() {
        return fault("no content after opening --- delimiter");
    }
    fault("no closing --- delimiter found for frontmatter")
}

fn is_delimiter(line: &str) -> bool {
    line.trim_end() == "---"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_file_are_what_stands_between_and_behind_the_delimiters() {
        for (text, yaml, body) in [
            ("---\na: 1\n---\nbody\n---\nmore", "---\na: 1\n", "body\n---\nmore"),
            ("---\r\na: 1\r\n---\r\nbody\r\n", "---\r\na: 1\r\n", "body\r\n"),
            ("--- \na: |\n  ---\n---", "--- \na: |\n  ---\n", ""),
            ("---\n---\n", "---\n", ""),
        ] {
            assert_eq!(split(text), Ok(Parts { yaml, body }), "{text:?}");
        }
    }

    #[test]
    fn a_file_without_its_delimiters_is_refused_in_the_formats_words() {
        let starts = "markdown file must start with --- frontmatter delimiter";
        let closing = "no closing --- delimiter found for frontmatter";
        for (text, expected) in [
            ("", starts),
            ("# run\n", starts),
            ("\n---\na: 1\n---\n", starts),
            ("----\na: 1\n---\n", starts),
            ("--- a: 1\n---\n", starts),
            ("---", "no content after opening --- delimiter"),
            ("---\n\n", "no content after opening --- delimiter"),
            ("---\na: 1\n", closing),
            ("---\na: 1\n ---\n", closing),
        ] {
            let fault = split(text).unwrap_err();
            assert_eq!(
                (fault.message.as_str(), fault.place),
                (expected, Some(Place { line: 1, column: 1 })),
                "{text:?}"
            );
        }
    }
}
