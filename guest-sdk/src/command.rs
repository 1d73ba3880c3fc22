//! Contract of command tools: JSON on stdin, one line of JSON on stdout, one line `{"error":"…"}` on stderr. Knows no
//! tool.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, json};

/// Runs a tool as a program: reads its arguments from stdin, calls `run`, and prints its result.
///
/// The exit code is 0 after a result and 1 after an error.
pub fn command<Args, Output>(run: impl FnOnce(Args) -> Result<Output, Error>) -> ExitCode
where
    Args: DeserializeOwned,
    Output: Serialize,
{
    let mut input = Vec::new();
    let answered = io::stdin()
        .read_to_end(&mut input)
        .map_err(Error::from)
        .and_then(|_| answer(&input, run))
        .and_then(|line| Ok(print(io::stdout().lock(), &line)?));
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let line = json!({ "error": error.to_string() }).to_string();
            // If stderr is closed too, the error cannot be reported.
            let _ = print(io::stderr().lock(), &line);
            ExitCode::FAILURE
        }
    }
}

/// Runs the tool and formats its result as one line.
fn answer<Args, Output>(input: &[u8], run: impl FnOnce(Args) -> Result<Output, Error>) -> Result<String, Error>
where
    Args: DeserializeOwned,
    Output: Serialize,
{
    let input = match input.trim_ascii() {
        [] => b"{}",
        text => text,
    };
    let args = serde_json::from_slice(input).map_err(|error| Error::new(format!("arguments: {error}")))?;
    let output = run(args)?;
    serde_json::to_string(&output).map_err(|error| Error::new(format!("result: {error}")))
}

/// Writes a line at once, so that a reader never sees part of it.
fn print(mut stream: impl Write, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes())?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        name: Option<String>,
    }

    fn name(args: Named) -> Result<Option<String>, Error> {
        Ok(args.name)
    }

    fn refused(input: &str) -> String {
        answer(input.as_bytes(), name).expect_err("refused").to_string()
    }

    #[test]
    fn empty_input_is_an_empty_object() {
        for input in ["", " \n", "{}"] {
            assert_eq!(answer(input.as_bytes(), name).expect("answered"), "null");
        }
    }

    #[test]
    fn line_breaks_in_a_result_stay_on_one_line() {
        let line = answer(br#"{"name":"a\nb\r\u2028c"}"#, name).expect("answered");
        assert_eq!(line, "\"a\\nb\\r\u{2028}c\"");
    }

    #[test]
    fn bad_arguments_name_what_is_wrong() {
        assert!(refused(r#"{"nmae":1}"#).starts_with("arguments: unknown field `nmae`, expected `name`"));
        assert!(refused(r#"{"name":1}"#).starts_with("arguments: invalid type: integer `1`, expected a string"));
        assert!(refused("nonsense").starts_with("arguments: expected ident"));
        assert!(refused("{} {}").starts_with("arguments: trailing characters"));
        assert!(answer(b"\"\xff\"", name).is_err());
    }

    #[test]
    fn an_error_of_the_tool_is_passed_on_as_it_is() {
        let failed = answer(b"", |_: Value| Err::<(), _>(Error::new("out of luck")));
        assert_eq!(failed.expect_err("failed").to_string(), "out of luck");
    }
}
