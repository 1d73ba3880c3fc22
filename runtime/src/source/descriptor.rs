//! What a component says of its tools: custom sections of JSON, read from its bytes without running anything, and written
//! into them. What the objects mean is not known here.

use serde::Deserialize as _;
use serde_json::{Deserializer, Value};
use wasmparser::{BinaryReader, BinaryReaderError, Parser};

use crate::schema::StrictValue;

/// The name of the sections.
pub const SECTION: &str = "toolcrib:tool";

/// The most bytes of one section.
const MAX_BYTES: usize = 1 << 20;
/// The most objects of a program.
const MAX_OBJECTS: usize = 256;
/// The deepest that arrays and objects of a descriptor may be nested.
const MAX_DEPTH: usize = 64;
/// The deepest that modules and components may be nested.
const MAX_PART_DEPTH: usize = 100;
/// The most sections of a program.
const MAX_SECTIONS: usize = 100_000;
/// The bytes before the first section: a mark and a version.
const HEADER: usize = 8;

/// The number of a custom section, and those of a component's sections with a module or a component inside.
const CUSTOM: u8 = 0;
const PARTS: [u8; 2] = [1, 4];

/// The descriptors of a program, one object a tool: those of its top level, and where that has none, those of the modules and
/// components inside of it, the outermost first.
///
/// # Errors
///
/// A text that says what is wrong, with the program or with a section of it.
pub fn sections(program: &[u8]) -> Result<Vec<Value>, String> {
    let mut tools = Vec::new();
    let mut sections = 0;
    let mut level = vec![program];
    for depth in 0..=MAX_PART_DEPTH {
        let mut below = Vec::new();
        for part in level {
            let mut described = false;
            for section in Sections::of(part)? {
                let section = section?;
                sections += 1;
                if sections > MAX_SECTIONS {
                    return Err(format!("it has more than {MAX_SECTIONS} sections"));
                }
                if let Some((SECTION, text)) = section.custom {
                    if std::mem::replace(&mut described, true) {
                        return Err(format!("`{SECTION}` stands twice in one part of it, and only one can be meant"));
                    }
                    read(text, &mut tools)?;
                } else if PARTS.contains(&section.id) && Parser::is_component(part) {
                    below.push(section.body);
                }
            }
            if depth == 0 && described {
                return Ok(tools);
            }
        }
        if below.is_empty() {
            return Ok(tools);
        }
        level = below;
    }
    Err(format!("its parts are nested deeper than {MAX_PART_DEPTH} levels"))
}

/// The program with these descriptors at its top level, in the place of any that stand there. Where there are none, it has none
/// at its top level.
///
/// # Errors
///
/// A text that says what is wrong with the program, or that the descriptors could not be read again.
pub fn described(program: &[u8], tools: &[Value]) -> Result<Vec<u8>, String> {
    if tools.is_empty() {
        return with_section(program, SECTION, None);
    }
    let lines: String = tools.iter().map(|tool| format!("{tool}\n")).collect();
    read(lines.as_bytes(), &mut Vec::new())?;
    with_section(program, SECTION, Some(lines.as_bytes()))
}

/// The program with this as its one custom section of a name at its top level, or without any.
pub(super) fn with_section(program: &[u8], name: &str, content: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let mut with = program.get(..HEADER).unwrap_or_default().to_vec();
    for section in Sections::of(program)? {
        let section = section?;
        if section.custom.is_none_or(|(known, _)| known != name) {
            with.extend_from_slice(section.whole);
        }
    }
    if let Some(content) = content {
        let mut body = Vec::new();
        put_size(name.len(), &mut body);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(content);
        with.push(CUSTOM);
        put_size(body.len(), &mut with);
        with.append(&mut body);
    }
    Ok(with)
}

/// Descriptors in a text: a sequence of JSON objects as in a section, or one array of them.
///
/// # Errors
///
/// A text that says what is wrong.
pub fn parse(text: &str) -> Result<Vec<Value>, String> {
    let mut tools = Vec::new();
    if text.trim_start().starts_with('[') {
        let items = serde_json::from_str::<Vec<StrictValue>>(text).map_err(|error| error.to_string())?;
        for item in items {
            add(item, &mut tools)?;
        }
    } else {
        sequence(text, &mut tools)?;
    }
    Ok(tools)
}

/// Adds the objects of a section.
fn read(section: &[u8], tools: &mut Vec<Value>) -> Result<(), String> {
    let wrong = |what: String| format!("`{SECTION}`: {what}");
    if section.len() > MAX_BYTES {
        return Err(wrong(format!("{} bytes, and at most {MAX_BYTES} are read", section.len())));
    }
    let text = std::str::from_utf8(section).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    sequence(text, tools).map_err(wrong)
}

/// Adds objects that stand one after the other.
fn sequence(text: &str, tools: &mut Vec<Value>) -> Result<(), String> {
    let mut rest = Deserializer::from_str(text);
    while rest.end().is_err() {
        add(StrictValue::deserialize(&mut rest).map_err(|error| error.to_string())?, tools)?;
    }
    Ok(())
}

/// Adds one descriptor, if it can be one.
fn add(descriptor: StrictValue, tools: &mut Vec<Value>) -> Result<(), String> {
    let tool = descriptor.value();
    if !tool.is_object() {
        let found = super::shape::kind(&tool);
        return Err(format!("a sequence of JSON objects is expected, one a tool, found {found}"));
    }
    if is_deeper(&tool, MAX_DEPTH) {
        return Err(format!("a descriptor is nested deeper than {MAX_DEPTH} levels"));
    }
    if tools.len() == MAX_OBJECTS {
        return Err(format!("more than {MAX_OBJECTS} tools"));
    }
    tools.push(tool);
    Ok(())
}

/// Whether arrays and objects are nested deeper than so many levels. The text of the value was read with a bound of its own.
fn is_deeper(value: &Value, most: usize) -> bool {
    let deeper = |inner: &Value| most == 0 || is_deeper(inner, most - 1);
    match value {
        Value::Array(items) => most == 0 || items.iter().any(deeper),
        Value::Object(members) => most == 0 || members.values().any(deeper),
        _ => false,
    }
}

/// A section of a module or a component.
struct Section<'a> {
    id: u8,
    /// It with its number and its size.
    whole: &'a [u8],
    body: &'a [u8],
    /// Its name and what it holds, where it is a custom section.
    custom: Option<(&'a str, &'a [u8])>,
}

/// The sections of one part, none of which is looked into any further.
struct Sections<'a> {
    part: &'a [u8],
    at: usize,
}

impl<'a> Sections<'a> {
    fn of(part: &'a [u8]) -> Result<Self, String> {
        if Parser::is_component(part) || Parser::is_core_wasm(part) {
            Ok(Self { part, at: HEADER })
        } else {
            Err("not a WebAssembly component or module".to_owned())
        }
    }

    fn section(&mut self) -> Result<Section<'a>, BinaryReaderError> {
        let left = &self.part[self.at..];
        let mut reader = BinaryReader::new(left, self.at);
        let id = reader.read_u8()?;
        let size = reader.read_var_u32()?;
        let body = reader.read_bytes(size as usize)?;
        let length = left.len() - reader.bytes_remaining();
        self.at += length;
        let mut within = BinaryReader::new(body, 0);
        let name = if id == CUSTOM { Some(within.read_string()?) } else { None };
        let custom = name.map(|name| (name, &body[body.len() - within.bytes_remaining()..]));
        Ok(Section { id, whole: &left[..length], body, custom })
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Result<Section<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.part.len() {
            return None;
        }
        let section = self.section().map_err(|error| {
            self.at = self.part.len();
            error.to_string()
        });
        Some(section)
    }
}

/// Writes a number in bytes of seven bits each, the lowest first.
fn put_size(mut size: usize, bytes: &mut Vec<u8>) {
    while size > 0x7f {
        bytes.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    bytes.push(size as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn section(id: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![id];
        put_size(body.len(), &mut bytes);
        [bytes, body.to_vec()].concat()
    }

    fn custom(name: &str, content: &str) -> Vec<u8> {
        let mut body = Vec::new();
        put_size(name.len(), &mut body);
        section(CUSTOM, &[&body, name.as_bytes(), content.as_bytes()].concat())
    }

    fn component(sections: &[Vec<u8>]) -> Vec<u8> {
        [COMPONENT, &sections.concat()].concat()
    }

    fn module(content: &str) -> Vec<u8> {
        section(1, &[MODULE, &custom(SECTION, content)].concat())
    }

    #[test]
    fn descriptors_are_found_inside_unless_the_top_level_has_one() {
        let inside = [module(r#"{"name":"a"}{"name":"b"}"#), custom("other", "}"), module("\n{\"name\":\"c\"} ")];
        let names = |program: &[u8]| {
            let tools = sections(program).unwrap();
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<String>()
        };
        assert_eq!(names(&component(&inside)), "abc");
        assert_eq!(names(&component(&[section(4, &component(&inside))])), "abc");
        assert_eq!(names(&component(&[inside.concat(), custom(SECTION, r#"{"name":"d"}"#)])), "d");
        assert_eq!(sections(&component(&[custom("other", "")])), Ok(Vec::new()));
        assert_eq!(names(&[MODULE, &custom(SECTION, r#"{"name":"e"}"#)].concat()), "e");
    }

    #[test]
    fn what_is_written_is_read_again_and_everything_else_stays() {
        let inside = [module(r#"{"name":"a"}"#), custom("producers", "x")].concat();
        let plain = component(std::slice::from_ref(&inside));
        let long = json!({"name": "b", "description": "x".repeat(300)});
        let first = described(&plain, &[json!({"name": "a"}), long.clone()]).unwrap();
        assert!(first.starts_with(&plain));
        assert_eq!(sections(&first), Ok(vec![json!({"name": "a"}), long]));
        let second = described(&first, &[json!({"name": "c"})]).unwrap();
        assert_eq!(sections(&second), Ok(vec![json!({"name": "c"})]));
        assert_eq!(described(&second, &[]), Ok(plain));
    }

    #[test]
    fn what_cannot_be_meant_or_is_beyond_a_bound_is_refused() {
        let told = |content: &str| sections(&component(&[custom(SECTION, content)])).unwrap_err();
        assert!(told("[]").contains("found an array"));
        assert!(told(r#"{"a":1,"a":2}"#).contains("stands twice"));
        assert!(told("{} nonsense").contains("`toolcrib:tool`"));
        assert!(told(&"{}".repeat(MAX_OBJECTS + 1)).contains("more than 256"));
        assert!(told(&" ".repeat(MAX_BYTES + 1)).contains("1048577 bytes"));
        let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        assert!(told(&nested(MAX_DEPTH + 1)).contains("deeper than 64"));
        assert!(sections(&component(&[custom(SECTION, &nested(MAX_DEPTH))])).is_ok());
        assert!(told(&nested(5000)).contains("recursion"));
        let twice = [custom(SECTION, "{}"), custom(SECTION, "{}")];
        assert!(sections(&component(&twice)).unwrap_err().contains("stands twice"));
        assert!(described(&component(&[]), &[json!("a")]).unwrap_err().contains("found a string"));
        let many = vec![json!({"a": "x".repeat(1000)}); 1100];
        assert!(described(&component(&[]), &many).unwrap_err().contains("at most"));
        let deep = (0..=MAX_PART_DEPTH).fold(component(&[]), |inner, _| component(&[section(4, &inner)]));
        assert!(sections(&deep).unwrap_err().contains("deeper than 100"));
    }

    #[test]
    fn a_text_is_one_object_a_line_or_an_array() {
        let both = Ok(vec![json!({"name": "a"}), json!({"name": "b"})]);
        assert_eq!(parse("{\"name\":\"a\"}\n{\n \"name\":\"b\"}\n"), both);
        assert_eq!(parse(" [{\"name\":\"a\"},{\"name\":\"b\"}] "), both);
        assert_eq!(parse(" \n"), Ok(Vec::new()));
        for wrong in ["[{}", "[1]", "[] []", "{} 1", "[[{}]]", r#"[{"a":1,"a":2}]"#] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_that_break_off_are_refused_wherever_they_do() {
        let whole = component(&[module(r#"{"name":"a"}"#)]);
        for length in 0..whole.len() {
            let cut = sections(&whole[..length]);
            assert_eq!(cut.is_ok(), length == HEADER, "{length}: {cut:?}");
        }
    }
}
