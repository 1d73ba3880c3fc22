//! Layout of text from outside: JSON over several lines, and lines cut or wrapped to a width.

use serde_json::{Map, Value};

/// Formats JSON over several lines and keeps every byte outside white space: parsing and writing it again could change it.
pub(super) fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    for c in json.chars() {
        match c {
            c if quoted => {
                quoted = c != '"' || escaped;
                escaped = c == '\\' && !escaped;
                text.push(c);
            }
            c if c.is_ascii_whitespace() => {}
            '{' | '[' => {
                depth += 1;
                text.push(c);
                line(&mut text, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                text.truncate(text.trim_end().len());
                if !text.ends_with(['{', '[']) {
                    line(&mut text, depth);
                }
                text.push(c);
            }
            ',' => {
                text.push(c);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            c => {
                quoted = c == '"';
                text.push(c);
            }
        }
    }
    text
}

/// Wraps `line` at `columns`, after a space unless that leaves most of the line empty.
pub(super) fn wrapped(line: &str, columns: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), line);
    while let Some(full) = longest(rest, columns) {
        let space = rest[..full].rfind(' ').map(|space| space + 1).filter(|space| *space > full / 4);
        let (part, more) = rest.split_at(space.unwrap_or(full));
        parts.push(part);
        rest = more;
    }
    parts.push(rest);
    parts
}

/// Byte index at which `line` must be cut; `None` if it fits. A non-ASCII character counts as two columns, the maximum.
pub(super) fn longest(line: &str, columns: usize) -> Option<usize> {
    let mut used = 0;
    line.find(|c: char| {
        used += if c.is_ascii() { 1 } else { 2 };
        used > columns
    })
}

/// Formats the arguments without the members of these names; `None` if the text says anything that its members do not, such as a
/// name twice.
pub(super) fn without(json: &str, names: &[String]) -> Option<Map<String, Value>> {
    let mut arguments: Map<String, Value> = serde_json::from_str(json).ok()?;
    let is_canonical = serde_json::to_string(&arguments).is_ok_and(|text| pretty(&text) == pretty(json));
    is_canonical.then(|| arguments.retain(|name, _| !names.contains(name)))?;
    Some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_shown_as_it_is_over_several_lines() {
        let json = r#"{"a" :1.0,"a":[ ],"b":{"c":"x,{\"}\\"},"d":[1e400, {}]}"#;
        let wanted = "{\n  \"a\": 1.0,\n  \"a\": [],\n  \"b\": {\n    \"c\": \"x,{\\\"}\\\\\"\n  },\n  \"d\": [\n    1e400,\n    {}\n  ]\n}";
        assert_eq!(pretty(json), wanted);
    }

    #[test]
    fn members_are_left_out_only_of_plain_arguments() {
        let names = ["a".to_owned()];
        let left = |json: &str| without(json, &names).map(|left| Value::from(left).to_string());
        assert_eq!(left(r#"{ "a": "x", "b": [1, {"a": 2}] }"#).as_deref(), Some(r#"{"b":[1,{"a":2}]}"#));
        assert_eq!(left(r#"{"a":"x"}"#).as_deref(), Some("{}"));
        for other in [r#"{"a":"x","a":"y"}"#, r#"{"b":{"c":1,"c":2}}"#, r#"{"b":1e400}"#, r#"{"\u0061":1}"#, "[]", "x"]
        {
            assert_eq!(left(other), None, "{other}");
        }
    }
}
