//! Accepted and refused JSON of scripts, and its limits.

use serde_json as peer;
use starlark::environment::Module;

use super::*;

/// Reads a text and writes it again.
fn round(text: &str) -> Result<String, String> {
    Module::with_temp_heap(|module| {
        let value = decode(text, module.heap()).map_err(|error| error.to_string())?;
        encode(value)
    })
}

#[test]
fn values_come_back_as_they_went() {
    for text in [
        "null",
        "true",
        "-0.5",
        "0",
        "-9223372036854775808",
        "18446744073709551616",
        "123456789123456789123456789",
        "1.0",
        "1e300",
        r#""""#,
        r#""a\"b\\c\nd\u0001ü€😀""#,
        "[]",
        "{}",
        r#"{"z":1,"a":[1,2.5,{"b":null}],"m":{}}"#,
    ] {
        assert_eq!(round(text).as_deref(), Ok(text));
    }
    assert_eq!(round(r#" { "a" : [ 1 , 2 ] , "a" : "\u00e9\ud83d\ude00\/" } "#).as_deref(), Ok(r#"{"a":"é😀/"}"#));
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, message) in [
        ("", "the text ends too early at line 1 column 1"),
        ("[1,\n2,]", "expected a value at line 2 column 3"),
        (r#"{"ü":1 x"#, "expected `,` or `}` at line 1 column 8"),
        (r#"{"a" 1}"#, "expected `:` after the name of a field at line 1 column 6"),
        (r#"{a:1}"#, "expected the name of a field in quotes at line 1 column 2"),
        ("01", "a number that is not JSON at line 1 column 3"),
        ("1.", "a number without digits after its point at line 1 column 3"),
        ("1e", "a number without digits in its exponent at line 1 column 3"),
        ("1e999", "a number out of range at line 1 column 6"),
        ("nul", "expected a value at line 1 column 1"),
        ("1 2", "something after the value at line 1 column 3"),
        (r#""abc"#, "a string that does not end at line 1 column 5"),
        ("\"a\nb\"", "a control character in a string at line 1 column 3"),
        (r#""\x""#, "an escape that is not JSON at line 1 column 2"),
        (r#""\u00g0""#, "`\\u` without four hexadecimal digits at line 1 column 2"),
        (r#""\ud800""#, "half of a surrogate pair at line 1 column 8"),
    ] {
        assert_eq!(round(text), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn depth_is_bounded_both_ways() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let deepest = nested(MAX_DEPTH + 1);
    assert_eq!(round(&deepest).as_deref(), Ok(deepest.as_str()));
    assert_eq!(
        round(&nested(MAX_DEPTH + 2)),
        Err(format!("nested deeper than {MAX_DEPTH} at line 1 column {}", MAX_DEPTH + 2))
    );
    assert!(round(&nested(1_000_000)).is_err());
}

#[test]
fn an_integer_has_a_bound() {
    let digits = "9".repeat(MAX_DIGITS);
    assert_eq!(round(&digits).as_deref(), Ok(digits.as_str()));
    assert!(round(&"9".repeat(MAX_DIGITS + 1)).is_err_and(|error| error.contains("over the limit")));
}

/// Changes each byte of valid texts in every way, and compares the accepted texts with those of another JSON reader.
#[test]
fn it_accepts_what_a_known_reader_accepts() {
    let seeds = [r#"{"a":[1,-2.5e3,"\u00e9\n",null,true],"b":{"c":"\ud83d\ude00"}}"#, "[0.1,1E+2,{},[]]"];
    let others = ["", "0", "e", ".", "-", "\"", "\\", "{", "}", "[", "]", ",", ":", " ", "\n", "\t", "\u{1}", "u", "d"];
    for seed in seeds {
        for at in 0..seed.len() {
            for other in others {
                let text = format!("{}{other}{}", &seed[..at], &seed[at + 1..]);
                let known = peer::from_str::<peer::Value>(&text);
                assert_eq!(round(&text).is_ok(), known.is_ok(), "{text}");
            }
        }
    }
}
