//! Conversion between JSON and values of a script. Supports what a general reader does not: integers of any size, the
//! order of an object's fields, and limits on depth and length that end in a message.

use std::fmt::{self, Write};

use starlark::collections::SmallMap;
use starlark::values::dict::{Dict, DictRef};
use starlark::values::float::StarlarkFloat;
use starlark::values::list::{AllocList, ListRef};
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, Value, ValueLike};

/// Maximum nesting of values, in both directions.
pub(crate) const MAX_DEPTH: usize = 128;

/// Maximum JSON text of a value, in bytes.
pub(crate) const MAX_TEXT: usize = 16 << 20;

/// Maximum digits of an integer: the time to read one grows with their square.
const MAX_DIGITS: usize = 4300;

/// Value as compact JSON. The error completes "… returned ".
pub(crate) fn encode(value: Value) -> Result<String, String> {
    let mut text = String::new();
    write(value, &mut text, 0)?;
    Ok(text)
}

fn write(value: Value, text: &mut String, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("a value nested deeper than {MAX_DEPTH}, or one that holds itself"));
    }
    if value.is_none() {
        text.push_str("null");
    } else if let Some(flag) = value.unpack_bool() {
        text.push_str(if flag { "true" } else { "false" });
    } else if let Some(string) = value.unpack_str() {
        write_string(string, text);
    } else if let Some(StarlarkFloat(number)) = value.downcast_ref() {
        if !number.is_finite() {
            return Err(format!("{number}, which JSON cannot hold; return a finite number"));
        }
        // Debug keeps the point, so a float stays a float.
        let _ = write!(text, "{number:?}");
    } else if value.get_type() == "int" {
        text.push_str(&value.to_str());
    } else if let Some(dict) = DictRef::from_value(value) {
        text.push('{');
        for (index, (key, value)) in dict.iter().enumerate() {
            let Some(key) = key.unpack_str() else {
                return Err(format!("a dict with a key of type {}; keys must be strings", key.get_type()));
            };
            if index > 0 {
                text.push(',');
            }
            write_string(key, text);
            text.push(':');
            write(value, text, depth + 1)?;
        }
        text.push('}');
    } else if let Some(list) = ListRef::from_value(value) {
        write_all(list.content(), text, depth)?;
    } else if let Some(tuple) = TupleRef::from_value(value) {
        write_all(tuple.content(), text, depth)?;
    } else {
        let found = value.get_type();
        return Err(format!("a value of type {found}; return dicts, lists, strings, numbers, booleans or None"));
    }
    if text.len() > MAX_TEXT {
        return Err(format!("more than {MAX_TEXT} bytes: the answer is larger than the limit"));
    }
    Ok(())
}

fn write_all(values: &[Value], text: &mut String, depth: usize) -> Result<(), String> {
    text.push('[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(*value, text, depth + 1)?;
    }
    text.push(']');
    Ok(())
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    let mut plain = 0;
    for (at, byte) in string.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        text.push_str(&string[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            _ => {
                let _ = write!(text, "\\u{byte:04x}");
            }
        }
    }
    text.push_str(&string[plain..]);
    text.push('"');
}

/// Reads one JSON text.
pub(crate) fn decode<'v>(text: &str, heap: Heap<'v>) -> Result<Value<'v>, Malformed> {
    let mut reader = Reader { text, at: 0, heap };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.wrong("something after the value"));
    }
    Ok(value)
}

/// Reason why a text is not JSON, or exceeds a limit.
#[derive(Debug)]
pub(crate) struct Malformed {
    what: String,
    line: usize,
    column: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {} column {}", self.what, self.line, self.column)
    }
}

struct Reader<'t, 'v> {
    text: &'t str,
    at: usize,
    heap: Heap<'v>,
}

impl<'v> Reader<'_, 'v> {
    fn value(&mut self, depth: usize) -> Result<Value<'v>, Malformed> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(format!("nested deeper than {MAX_DEPTH}")));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(self.heap.alloc(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::new_bool(true)),
            Some(b'f') => self.word("false", Value::new_bool(false)),
            Some(b'n') => self.word("null", Value::new_none()),
            Some(_) => Err(self.wrong("expected a value")),
            None => Err(self.wrong("the text ends too early")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'v>, Malformed> {
        let mut fields = SmallMap::new();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(self.heap.alloc(Dict::new(fields)));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("expected the name of a field in quotes"));
            }
            let name = self.heap.alloc_str(&self.string()?);
            self.space();
            if !self.take(b':') {
                return Err(self.wrong("expected `:` after the name of a field"));
            }
            let value = self.value(depth + 1)?;
            // Of two fields with one name the last is used, as elsewhere.
            fields.insert_hashed(name.get_hashed_value(), value);
            self.space();
            if self.take(b'}') {
                return Ok(self.heap.alloc(Dict::new(fields)));
            }
            if !self.take(b',') {
                return Err(self.wrong("expected `,` or `}`"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'v>, Malformed> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(self.heap.alloc(AllocList::EMPTY));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take(b']') {
                return Ok(self.heap.alloc(AllocList(items)));
            }
            if !self.take(b',') {
                return Err(self.wrong("expected `,` or `]`"));
            }
        }
    }

    fn number(&mut self) -> Result<Value<'v>, Malformed> {
        let start = self.at;
        self.take(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let digits = self.digits();
        if digits == 0 || (leading_zero && digits > 1) {
            return Err(self.wrong("a number that is not JSON"));
        }
        let mut float = false;
        if self.take(b'.') {
            float = true;
            if self.digits() == 0 {
                return Err(self.wrong("a number without digits after its point"));
            }
        }
        if self.take(b'e') || self.take(b'E') {
            float = true;
            let _ = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                return Err(self.wrong("a number without digits in its exponent"));
            }
        }
        let written = &self.text[start..self.at];
        if float {
            return match written.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(self.heap.alloc(number)),
                _ => Err(self.wrong("a number out of range")),
            };
        }
        if let Ok(number) = written.parse::<i64>() {
            return Ok(self.heap.alloc(number));
        }
        if digits > MAX_DIGITS {
            return Err(self.wrong(format!("an integer of {digits} digits, over the limit of {MAX_DIGITS}")));
        }
        written.parse::<num_bigint::BigInt>().map(|number| self.heap.alloc(number)).map_err(|error| self.wrong(error))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<String, Malformed> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' ')) else {
                self.at = self.text.len();
                return Err(self.wrong("a string that does not end"));
            };
            string.push_str(&rest[..plain]);
            self.at += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(string);
                }
                b'\\' => string.push(self.escape()?),
                _ => return Err(self.wrong("a control character in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Malformed> {
        let kind = self.text.as_bytes().get(self.at + 1);
        let plain = match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.wrong("an escape that is not JSON")),
        };
        self.at += 2;
        Ok(plain)
    }

    /// Reads `\u` with four digits, or two of them for a surrogate pair.
    fn unicode(&mut self) -> Result<char, Malformed> {
        let mut units = [self.unit()?, 0];
        let pair = matches!(units[0], 0xd800..0xdc00) && self.text[self.at..].starts_with("\\u");
        if pair {
            units[1] = self.unit()?;
        }
        match char::decode_utf16(units.into_iter().take(1 + usize::from(pair))).next() {
            Some(Ok(character)) => Ok(character),
            _ => Err(self.wrong("half of a surrogate pair")),
        }
    }

    fn unit(&mut self) -> Result<u16, Malformed> {
        let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(unit) = unit.and_then(|digits| u16::from_str_radix(digits, 16).ok()) else {
            return Err(self.wrong("`\\u` without four hexadecimal digits"));
        };
        self.at += 6;
        Ok(unit)
    }

    fn word(&mut self, word: &str, value: Value<'v>) -> Result<Value<'v>, Malformed> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, what: impl fmt::Display) -> Malformed {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        // Counts the bytes that start a character.
        let column = before[start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count() + 1;
        Malformed { what: what.to_string(), line, column }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
