//! Check of a default when the tool is compiled: its type, the values of its type, and its bounds. Whatever cannot be decided
//! here, such as a pattern, is left to the check of the component.

use crate::Node;

/// Decimal places that numbers are compared with.
const PLACES: u32 = 9;
/// Maximum digits of a number before its point.
const MAX_DIGITS: usize = 18;
/// Maximum depth of lists in a default.
const MAX_DEPTH: usize = 16;

/// Fails the build if a default, in JSON, is not valid for the schema of its argument.
#[track_caller]
pub const fn check_default(schema: &Node, json: &str) {
    check(schema, json.as_bytes(), 0);
}

#[track_caller]
const fn check(schema: &Node, json: &[u8], depth: usize) {
    let kind = kind(json);
    if let Some(Node::Text(expected)) = schema.member("type") {
        let is_same = same(kind.as_bytes(), expected.as_bytes());
        let is_number = same(kind.as_bytes(), b"integer") && same(expected.as_bytes(), b"number");
        assert!(is_same || is_number, "the default is not of the type of its argument");
    }
    if let (Some(Node::List(values)), true) = (schema.member("enum"), same(kind.as_bytes(), b"string")) {
        assert!(is_listed(values, json), "the default is none of the values of its argument");
    }
    if let Some(value) = number(json) {
        check_number(schema, value);
    }
    if same(kind.as_bytes(), b"string") {
        let length = characters(json);
        assert!(
            is_within(schema, length, "minLength", "maxLength"),
            "the default has a length that its argument does not allow"
        );
    }
    if same(kind.as_bytes(), b"array") && depth < MAX_DEPTH {
        let length = check_items(schema, json, depth);
        assert!(
            is_within(schema, length, "minItems", "maxItems"),
            "the default has more or fewer items than its argument allows"
        );
    }
}

/// Returns the type of a value in the words of JSON Schema.
const fn kind(json: &[u8]) -> &'static str {
    match json.first() {
        Some(b'"') => "string",
        Some(b'[') => "array",
        Some(b'{') => "object",
        Some(b't' | b'f') => "boolean",
        Some(b'n') | None => "null",
        Some(_) => {
            let mut at = 0;
            while at < json.len() {
                if matches!(json[at], b'.' | b'e' | b'E') {
                    return "number";
                }
                at += 1;
            }
            "integer"
        }
    }
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Returns `true` if a string is one of the listed values, and for a string or a list of which that is unknown.
const fn is_listed(values: &[Node], json: &[u8]) -> bool {
    let mut at = 0;
    while at < values.len() {
        match &values[at] {
            Node::Text(text) if !is_text(text.as_bytes(), json) => {}
            Node::Raw(text) if !same(text.as_bytes(), json) => {}
            _ => return true,
        }
        at += 1;
    }
    false
}

/// Returns `true` if a JSON string has this text, and for every string with an escape.
const fn is_text(text: &[u8], json: &[u8]) -> bool {
    let mut at = 0;
    while at < json.len() {
        if json[at] == b'\\' {
            return true;
        }
        at += 1;
    }
    let mut at = 0;
    while at < text.len() && at + 2 < json.len() && text[at] == json[at + 1] {
        at += 1;
    }
    at == text.len() && at + 2 == json.len()
}

#[track_caller]
const fn check_number(schema: &Node, value: i128) {
    if let Some(bound) = bound(schema, "minimum") {
        assert!(value >= bound, "the default is below the minimum of its argument");
    }
    if let Some(bound) = bound(schema, "maximum") {
        assert!(value <= bound, "the default is above the maximum of its argument");
    }
    if let Some(bound) = bound(schema, "exclusiveMinimum") {
        assert!(value > bound, "the default is not above the exclusive minimum of its argument");
    }
    if let Some(bound) = bound(schema, "exclusiveMaximum") {
        assert!(value < bound, "the default is not below the exclusive maximum of its argument");
    }
    if let Some(unit) = bound(schema, "multipleOf") {
        assert!(unit <= 0 || value % unit == 0, "the default is not a multiple of what its argument requires");
    }
}

/// Returns `true` if a length lies between two bounds that are known.
const fn is_within(schema: &Node, length: usize, least: &str, most: &str) -> bool {
    let length = length as i128 * scale();
    let is_enough = match bound(schema, least) {
        Some(least) => length >= least,
        None => true,
    };
    let is_little = match bound(schema, most) {
        Some(most) => length <= most,
        None => true,
    };
    is_enough && is_little
}

/// Returns a number of a schema, as [`number`] does.
const fn bound(schema: &Node, key: &str) -> Option<i128> {
    match schema.member(key) {
        Some(Node::Raw(text)) => number(text.as_bytes()),
        Some(Node::Number(number)) => Some(*number as i128 * scale()),
        _ => None,
    }
}

const fn scale() -> i128 {
    10_i128.pow(PLACES)
}

/// Returns a number in units of its last decimal place here; `None` for other values, exponents and more digits.
const fn number(json: &[u8]) -> Option<i128> {
    let (is_negative, mut at) = match json.first() {
        Some(b'-') => (true, 1),
        _ => (false, 0),
    };
    let (mut value, mut digits, mut places, mut is_fraction) = (0_i128, 0, 0, false);
    while at < json.len() {
        match json[at] {
            digit @ b'0'..=b'9' => {
                value = value * 10 + (digit - b'0') as i128;
                if is_fraction { places += 1 } else { digits += 1 }
            }
            b'.' if !is_fraction => is_fraction = true,
            _ => return None,
        }
        if places > PLACES || digits > MAX_DIGITS {
            return None;
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    let value = value * 10_i128.pow(PLACES - places);
    Some(if is_negative { -value } else { value })
}

/// Returns the number of characters of a JSON string. An escape is one character, as the macro writes it.
const fn characters(json: &[u8]) -> usize {
    let (mut at, mut count) = (1, 0);
    while at + 1 < json.len() {
        at += match json[at] {
            b'\\' if json[at + 1] == b'u' => 6,
            b'\\' => 2,
            _ => 1,
        };
        // Further bytes of the same character.
        while at + 1 < json.len() && json[at] & 0b1100_0000 == 0b1000_0000 {
            at += 1;
        }
        count += 1;
    }
    count
}

/// Checks the items of a JSON array, and returns their number.
#[track_caller]
const fn check_items(schema: &Node, json: &[u8], depth: usize) -> usize {
    let (mut at, mut start, mut nested, mut count, mut is_text) = (1, 1, 0_usize, 0, false);
    while at < json.len() {
        let byte = json[at];
        match byte {
            b'\\' if is_text => at += 1,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'[' | b'{' => nested += 1,
            b']' | b'}' if nested > 0 => nested -= 1,
            b',' | b']' if nested == 0 => {
                if at > start {
                    if let Some(items) = schema.member("items") {
                        check(items, json.split_at(at).0.split_at(start).1, depth + 1);
                    }
                    count += 1;
                }
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &Node =
        &Node::Object(&[("type", Node::Text("integer")), ("minimum", Node::Number(0)), ("maximum", Node::Raw("255"))]);
    const MODE: &Node = &Node::Object(&[
        ("type", Node::Text("string")),
        ("enum", Node::List(&[Node::Text("fast"), Node::Text("slow")])),
    ]);
    const NAME: &Node = &Node::Object(&[("type", Node::Text("string")), ("maxLength", Node::Raw("3"))]);
    const LIST: &Node = &Node::With(
        &Node::Object(&[("type", Node::Text("array")), ("items", *SMALL)]),
        &[("maxItems", Node::Number(2))],
    );
    const SHARE: &Node = &Node::Object(&[
        ("type", Node::Text("number")),
        ("exclusiveMinimum", Node::Raw("-0.5")),
        ("multipleOf", Node::Raw("0.25")),
    ]);

    #[test]
    fn a_default_that_fits_is_accepted() {
        for (schema, json) in [
            (SMALL, "0"),
            (SMALL, "255"),
            (MODE, r#""slow""#),
            (MODE, r#""fas\u0074""#),
            (NAME, r#""""#),
            (NAME, r#""é\"漢""#),
            (LIST, "[]"),
            (LIST, "[1,255]"),
            (SHARE, "3"),
            (SHARE, "-0.25"),
            (SHARE, "1e300"),
            (&Node::Object(&[]), "[\"a,]\",{}]"),
        ] {
            check_default(schema, json);
        }
    }

    #[test]
    fn a_default_that_does_not_fit_fails_the_build() {
        for (schema, json) in [
            (SMALL, "\"1\""),
            (SMALL, "1.5"),
            (SMALL, "true"),
            (SMALL, "256"),
            (SMALL, "-1"),
            (MODE, "\"fats\""),
            (MODE, "\"fast \""),
            (MODE, "1"),
            (NAME, "\"abcd\""),
            (LIST, "1"),
            (LIST, "[256]"),
            (LIST, "[1,2,3]"),
            (LIST, "[\"a\"]"),
            (SHARE, "-0.5"),
            (SHARE, "0.3"),
        ] {
            assert!(std::panic::catch_unwind(|| check_default(schema, json)).is_err(), "{json}");
        }
    }
}
