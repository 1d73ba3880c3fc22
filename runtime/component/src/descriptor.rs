//! Descriptors: JSON objects that describe a component's tools, in custom sections named `toolcrib:tool`. This module reads
//! and writes them without interpreting their fields.

use serde::Deserialize as _;
use serde_json::{Deserializer, Value};
use toolcrib_foundation::json::{StrictValue, kind};

use crate::error::{Error, Result};
use crate::form::Form;
use crate::sections::{HEADER, MAX_DEPTH, MAX_SECTIONS, Sections, custom, id};

/// Name of the sections.
pub const SECTION: &str = "toolcrib:tool";

/// Maximum bytes of one section.
const MAX_BYTES: usize = 1 << 20;
/// Maximum descriptors of a program.
const MAX_OBJECTS: usize = 256;
/// Maximum nesting depth of arrays and objects in a descriptor.
const MAX_VALUE_DEPTH: usize = 64;

/// Returns a program's descriptors, one object per tool, from its top level, or else from the modules and components
/// inside of it, the outermost first.
///
/// # Errors
///
/// The program or a section cannot be read, or exceeds a limit.
pub fn sections(program: &[u8]) -> Result<Vec<Value>> {
    let mut tools = Vec::new();
    named(program, SECTION)?.into_iter().try_for_each(|text| read(text, &mut tools))?;
    Ok(tools)
}

/// Returns the contents of custom sections with a name: that of the top level, or else those in the modules and components inside
/// of it, the outermost first.
pub(crate) fn named<'a>(program: &'a [u8], wanted: &str) -> Result<Vec<&'a [u8]>> {
    let mut found = Vec::new();
    let mut count = 0;
    let mut level = vec![program];
    for depth in 0..=MAX_DEPTH {
        let mut below = Vec::new();
        for part in level {
            let mut has_one = false;
            let mut sections = Sections::of(part)?;
            while let Some(section) = sections.next()? {
                count += 1;
                if count > MAX_SECTIONS {
                    return Err(Error::Limit(format!("it has more than {MAX_SECTIONS} sections")));
                }
                let body = &part[section.range()];
                match section.id {
                    id::CUSTOM => {
                        let (name, text) = custom(body)?;
                        if name != wanted {
                            continue;
                        }
                        if std::mem::replace(&mut has_one, true) {
                            return Err(Error::Invalid(format!(
                                "`{wanted}` occurs twice in one part of it, and only one is allowed"
                            )));
                        }
                        found.push(text);
                    }
                    id::MODULE | id::COMPONENT if sections.form() == Form::Component => below.push(body),
                    _ => {}
                }
            }
            if depth == 0 && has_one {
                return Ok(found);
            }
        }
        if below.is_empty() {
            return Ok(found);
        }
        level = below;
    }
    Err(Error::Limit(format!("its parts are nested deeper than {MAX_DEPTH} levels")))
}

/// Returns the program with these descriptors at its top level. They replace those that it has there; an empty slice removes
/// the section.
///
/// # Errors
///
/// The program cannot be read, or the descriptors exceed a limit.
pub fn described(program: &[u8], tools: &[Value]) -> Result<Vec<u8>> {
    if tools.is_empty() {
        return with_section(program, SECTION, None);
    }
    let lines: String = tools.iter().map(|tool| format!("{tool}\n")).collect();
    read(lines.as_bytes(), &mut Vec::new())?;
    with_section(program, SECTION, Some(lines.as_bytes()))
}

/// Returns the program with one custom section of this name at its top level, or without any.
pub(crate) fn with_section(program: &[u8], name: &str, content: Option<&[u8]>) -> Result<Vec<u8>> {
    let mut sections = Sections::of(program)?;
    let mut with = program[..HEADER].to_vec();
    while let Some(section) = sections.next()? {
        if section.id != id::CUSTOM || custom(&program[section.range()])?.0 != name {
            with.extend_from_slice(&program[section.whole()]);
        }
    }
    if let Some(content) = content {
        let mut body = Vec::new();
        put_size(name.len(), &mut body);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(content);
        with.push(id::CUSTOM);
        put_size(body.len(), &mut with);
        with.append(&mut body);
    }
    Ok(with)
}

/// Parses descriptors from a text: a sequence of JSON objects as in a section, or one array with them.
///
/// # Errors
///
/// The text is not JSON of this form, or exceeds a limit.
pub fn parse(text: &str) -> Result<Vec<Value>> {
    let mut tools = Vec::new();
    if text.trim_start().starts_with('[') {
        for item in serde_json::from_str::<Vec<StrictValue>>(text)? {
            add(item, &mut tools)?;
        }
    } else {
        read_sequence(text, &mut tools)?;
    }
    Ok(tools)
}

/// Adds the objects of a section.
fn read(section: &[u8], tools: &mut Vec<Value>) -> Result<()> {
    let wrong = |source| Error::Section { name: SECTION, source: Box::new(source) };
    if section.len() > MAX_BYTES {
        return Err(wrong(Error::Limit(format!("{} bytes, and at most {MAX_BYTES} are read", section.len()))));
    }
    let text = std::str::from_utf8(section).map_err(|_| wrong(Error::Invalid("it is not UTF-8".to_owned())))?;
    read_sequence(text, tools).map_err(wrong)
}

/// Adds the objects of a sequence.
fn read_sequence(text: &str, tools: &mut Vec<Value>) -> Result<()> {
    let mut rest = Deserializer::from_str(text);
    while rest.end().is_err() {
        add(StrictValue::deserialize(&mut rest)?, tools)?;
    }
    Ok(())
}

/// Adds one descriptor.
fn add(descriptor: StrictValue, tools: &mut Vec<Value>) -> Result<()> {
    let tool = descriptor.value();
    if !tool.is_object() {
        let found = kind(&tool);
        return Err(Error::Invalid(format!("a sequence of JSON objects, one per tool, is expected, found {found}")));
    }
    if is_deeper(&tool, MAX_VALUE_DEPTH) {
        return Err(Error::Limit(format!("a descriptor is nested deeper than {MAX_VALUE_DEPTH} levels")));
    }
    if tools.len() == MAX_OBJECTS {
        return Err(Error::Limit(format!("more than {MAX_OBJECTS} tools")));
    }
    tools.push(tool);
    Ok(())
}

/// Returns `true` if arrays and objects are nested deeper than `max` levels. [`StrictValue`] bounds the recursion.
fn is_deeper(value: &Value, max: usize) -> bool {
    let deeper = |inner: &Value| max == 0 || is_deeper(inner, max - 1);
    match value {
        Value::Array(items) => max == 0 || items.iter().any(deeper),
        Value::Object(members) => max == 0 || members.values().any(deeper),
        _ => false,
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
        section(id::CUSTOM, &[&body, name.as_bytes(), content.as_bytes()].concat())
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
        assert_eq!(sections(&component(&[custom("other", "")])).unwrap(), Vec::<Value>::new());
        assert_eq!(names(&[MODULE, &custom(SECTION, r#"{"name":"e"}"#)].concat()), "e");
    }

    #[test]
    fn a_written_descriptor_is_read_again_and_everything_else_stays() {
        let inside = [module(r#"{"name":"a"}"#), custom("producers", "x")].concat();
        let plain = component(std::slice::from_ref(&inside));
        let long = json!({"name": "b", "description": "x".repeat(300)});
        let first = described(&plain, &[json!({"name": "a"}), long.clone()]).unwrap();
        assert!(first.starts_with(&plain));
        assert_eq!(sections(&first).unwrap(), [json!({"name": "a"}), long]);
        let second = described(&first, &[json!({"name": "c"})]).unwrap();
        assert_eq!(sections(&second).unwrap(), [json!({"name": "c"})]);
        assert_eq!(described(&second, &[]).unwrap(), plain);
    }

    #[test]
    fn an_ambiguous_or_too_large_descriptor_is_refused() {
        let refusal = |content: &str| sections(&component(&[custom(SECTION, content)])).unwrap_err().to_string();
        assert!(refusal("[]").contains("found an array"));
        assert!(refusal(r#"{"a":1,"a":2}"#).contains("occurs twice"));
        assert!(refusal("{} nonsense").contains("`toolcrib:tool`"));
        assert!(refusal(&"{}".repeat(MAX_OBJECTS + 1)).contains("more than 256"));
        assert!(refusal(&" ".repeat(MAX_BYTES + 1)).contains("1048577 bytes"));
        let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        assert!(refusal(&nested(MAX_VALUE_DEPTH + 1)).contains("deeper than 64"));
        assert!(sections(&component(&[custom(SECTION, &nested(MAX_VALUE_DEPTH))])).is_ok());
        assert!(refusal(&nested(5000)).contains("recursion"));
        let twice = [custom(SECTION, "{}"), custom(SECTION, "{}")];
        assert!(sections(&component(&twice)).unwrap_err().to_string().contains("occurs twice"));
        assert!(described(&component(&[]), &[json!("a")]).unwrap_err().to_string().contains("found a string"));
        let many = vec![json!({"a": "x".repeat(1000)}); 1100];
        assert!(described(&component(&[]), &many).unwrap_err().to_string().contains("at most"));
        let deep = (0..=MAX_DEPTH).fold(component(&[]), |inner, _| component(&[section(4, &inner)]));
        assert!(sections(&deep).unwrap_err().to_string().contains("deeper than 100"));
    }

    #[test]
    fn a_text_is_one_object_a_line_or_an_array() {
        let both = [json!({"name": "a"}), json!({"name": "b"})];
        assert_eq!(parse("{\"name\":\"a\"}\n{\n \"name\":\"b\"}\n").unwrap(), both);
        assert_eq!(parse(" [{\"name\":\"a\"},{\"name\":\"b\"}] ").unwrap(), both);
        assert_eq!(parse(" \n").unwrap(), Vec::<Value>::new());
        for wrong in ["[{}", "[1]", "[] []", "{} 1", "[[{}]]", r#"[{"a":1,"a":2}]"#] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn truncated_bytes_are_refused_at_every_length() {
        let whole = component(&[module(r#"{"name":"a"}"#)]);
        for length in 0..whole.len() {
            let cut = sections(&whole[..length]);
            assert_eq!(cut.is_ok(), length == HEADER, "{length}: {cut:?}");
        }
    }
}
