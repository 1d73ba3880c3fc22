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
    let own = load::parse(include_str!("definitions.jq"), |parser| parser.defs());
    let own = own.ok_or_else(|| error!("the definitions do not parse"))?;
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(own);
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
                Err(Err(exception)) => match exception.get_halt() {
                    Ok(0) => return Ok(()),
                    Ok(code) => return Err(error!("filter: it halted with the exit code {code}")),
                    Err(_) => return Err(error!("filter: it ended without a result")),
                },
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

    /// Outputs of a filter for one value.
    fn outputs(filter: &str, json: &str) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        let keep = |output: Box<RawValue>| {
            all.push(output.get().to_owned());
            true
        };
        let program = compile(filter).map_err(|error| error.to_string())?;
        run(&program, json.as_bytes(), keep).map_err(|error| error.to_string())?;
        Ok(all)
    }

    #[test]
    fn filters_of_jq_that_the_library_lacks_are_defined() {
        for (filter, json, expected) in [
            ("@csv", r#"["a\"b",1,null,true,2.5]"#, r#""\"a\"\"b\",1,,true,2.5""#),
            ("@tsv", r#"["a\tb\\c\n",1,null]"#, r#""a\\tb\\\\c\\n\t1\t""#),
            ("join(\",\")", r#"["a",null,1,true]"#, r#""a,,1,true""#),
            ("join(\",\")", "[]", r#""""#),
            ("join(\"-\")", "[null]", r#""""#),
            (".[] | IN(2, 3)", "[2, 4]", "true false"),
            ("IN(.[]; 9)", "[2, 4]", "false"),
            ("[tostream] | tojson", r#"{"a":[1]}"#, r#""[[[\"a\",0],1],[[\"a\",0]],[[\"a\"]]]""#),
            ("toarray", "1", "[1]"),
            ("del(.[0,1])", "[1,2,3,4]", "[3,4]"),
            ("del(.[2], .[0])", "[1,2,3,4]", "[2,4]"),
            ("delpaths([[0], [1]])", "[1,2,3]", "[3]"),
            ("del(.a, .b[0]) | .b, keys", r#"{"a":1,"b":[1,2],"c":3}"#, r#"[2] ["b","c"]"#),
            (
                "from_entries",
                r#"[{"k":"a","v":1},{"key":2,"value":null},{"name":"n","Value":false}]"#,
                r#"{"a":1,"2":null,"n":false}"#,
            ),
            ("to_entries | from_entries", r#"{"a":1}"#, r#"{"a":1}"#),
            ("halt", "1", ""),
            ("trimstr(\"a\")", r#""aba""#, r#""b""#),
            ("INDEX(.id)", r#"[{"id":1}]"#, r#"{"1":{"id":1}}"#),
            ("\"\\(1 + 1) and \\(.[0])\"", "[3]", r#""2 and 3""#),
            ("@csv \"\\(.)\"", r#"["a"]"#, r#""\"a\"""#),
        ] {
            assert_eq!(outputs(filter, json).expect(filter).join(" "), expected, "{filter}");
        }
        assert!(outputs("@csv", "[[1]]").expect_err("no cell").contains("array is no cell of a row of csv"));
        assert!(outputs("@tsv", "1").expect_err("no row").contains("number is no row of tsv"));
        assert!(outputs("join(\",\")", "[[1]]").is_err());
        assert!(outputs("1, halt_error", "1").expect_err("halted").contains("exit code 5"));
    }

    /// Filters of the manual of jq that are neither in the library nor here, and how they are refused. A call has one input,
    /// and no variables.
    const UNKNOWN: &[&str] = &[
        "$ENV.HOME: filter: unknown variable `$ENV`",
        "fromstream(tostream): filter: unknown filter `fromstream`",
        "have_decnum: filter: unknown filter `have_decnum`",
        "have_literal_numbers: filter: unknown filter `have_literal_numbers`",
        "input: filter: unknown filter `input`",
        "inputs: filter: unknown filter `inputs`",
        "input_filename: filter: unknown filter `input_filename`",
        "input_line_number: filter: unknown filter `input_line_number`",
        "truncate_stream(1; tostream): filter: unknown filter `truncate_stream`",
        "@base32: filter: unknown filter `@base32`",
        "@base32d: filter: unknown filter `@base32d`",
        ".a as [$x] ?// $x | $x: filter: expected | at character 12, found `?`",
    ];

    #[test]
    fn every_filter_of_the_manual_is_known_or_is_refused_by_name() {
        let known = include_str!("manual.txt").lines().filter(|line| !line.is_empty());
        let mut unknown = Vec::new();
        for filter in known {
            match compile(filter) {
                Ok(_) => {}
                Err(error) => unknown.push(format!("{filter}: {error}")),
            }
        }
        assert_eq!(unknown, UNKNOWN);
    }

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        assert_eq!(depth(br#"{"a":["[[\"[",[]]}"#), 3);
        assert_eq!(depth(b"[] [] {}"), 1);
        assert_eq!(depth(b""), 0);
    }
}
