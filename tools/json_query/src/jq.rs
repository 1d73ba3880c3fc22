//! The jq language, through the `jaq` crates: JSON text in, JSON texts out. Knows no files, and no limit except on
//! nesting.

use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Exn, Filter, Vars};
use jaq_json::{Val, read};
use serde_json::value::RawValue;
use toolcrib_guest::{Error, error};

/// Maximum nesting: the reader is recursive, and deeper JSON would exhaust the stack.
const MAX_DEPTH: usize = 500;
/// Maximum characters of a value in an error.
const MAX_SHOWN_CHARS: usize = 400;

pub(crate) type Program = Filter<JustLut<Val>>;

pub(crate) fn compile(filter: &str) -> Result<Program, Error> {
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules =
        Loader::new(defs).load(&arena, File { code: filter, path: () }).map_err(|problems| syntax(filter, problems))?;
    Compiler::default().with_funs(funs).compile(modules).map_err(|problems| {
        let mut unknown = problems.into_iter().flat_map(|(_, found)| found);
        match unknown.next() {
            Some((name, kind)) => error!("filter: unknown {} `{name}`", kind.as_str()),
            None => error!("filter: it does not compile"),
        }
    })
}

fn syntax(filter: &str, problems: load::Errors<&str, ()>) -> Error {
    let message = problems.into_iter().find_map(|(_, problem)| match problem {
        load::Error::Io(all) => all.first().map(|(name, _)| format!("there is no module `{name}`")),
        load::Error::Lex(all) => all.first().map(|(want, at)| expected(filter, want.as_str(), at)),
        load::Error::Parse(all) => all.first().map(|(want, at)| expected(filter, want.as_str(), at)),
    });
    error!("filter: {}", message.unwrap_or_else(|| "it does not parse".into()))
}

fn expected(filter: &str, wanted: &str, at: &str) -> String {
    let column = filter[..load::span(filter, at).start].chars().count() + 1;
    match at.chars().next() {
        None => format!("expected {wanted} at the end"),
        Some(found) => format!("expected {wanted} at character {column}, found `{found}`"),
    }
}

/// Passes each output of the program for each JSON value in `json` to `keep`, until the program ends or halts, or
/// `keep` returns `false`.
pub(crate) fn run(program: &Program, json: &[u8], mut keep: impl FnMut(Box<RawValue>) -> bool) -> Result<(), Error> {
    if depth(json) > MAX_DEPTH {
        return Err(error!("the JSON is nested deeper than {MAX_DEPTH} levels"));
    }
    for value in read::parse_many(json) {
        let value = value.map_err(|problem| error!("the JSON is not valid: {problem}"))?;
        let context = Ctx::<JustLut<Val>>::new(&program.lut, Vars::new([]));
        for result in program.id.run((context, value)) {
            let result = match result.map_err(Exn::get_err) {
                Ok(result) => result,
                Err(Ok(problem)) => return Err(error!("filter: {}", cut(&problem.to_string()))),
                Err(Err(_halt)) => return Ok(()),
            };
            if !keep(text(&result)?) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Value as JSON. The values of jaq are a superset of JSON: they include numbers that are not finite, bytes, and keys
/// of any type.
fn text(value: &Val) -> Result<Box<RawValue>, Error> {
    RawValue::from_string(value.to_string())
        .map_err(|_| error!("filter: it made a value that JSON cannot hold: `{}`", cut(&value.to_string())))
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

/// Nesting depth of the arrays and objects.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        assert_eq!(depth(br#"{"a":["[[\"[",[]]}"#), 3);
        assert_eq!(depth(b"[] [] {}"), 1);
        assert_eq!(depth(b""), 0);
    }
}
