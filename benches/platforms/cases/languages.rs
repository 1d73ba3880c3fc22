//! The examples in other languages, as `guest-sdk/examples/build` has built them: one contract, one answer.

use std::path::Path;

use crate::crib::target;

use super::{Case, case, write};

/// Languages, with `true` if their component is so large that it compiles for minutes under emulation.
const LANGUAGES: [(&str, bool); 4] = [("c", false), ("go", true), ("javascript", true), ("python", true)];

/// Time for a compilation under emulation.
const PATIENT: &str = "--set=limits.compile_timeout=10m";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (language, is_long) in LANGUAGES {
        let path = format!("../../../../examples/words_{language}.wasm");
        let source = format!("--tools={path}");
        let call = |name, arguments| {
            case(
                "languages",
                format!("{language}: {name} {arguments}"),
                note,
                &[&["call", name, arguments, &source, "--allow-read=work", PATIENT]],
            )
        };
        let mut calls = vec![
            call("count", r#"{"text":"The the  cät\tthe","options":{"letters":"lowered"}}"#),
            call("count", r#"{"text":"The the","options":{"letters":"as-written","shortest":4}}"#),
            call("most_frequent", r#"{"text":"The the  cät\tthe","limit":1}"#),
            call("most_frequent", r#"{"text":"","limit":256}"#),
            call("checksum", r#"{"data":"MTIzNDU2Nzg5"}"#),
            call("read", r#"{"path":"note.txt"}"#),
            call("read", r#"{"path":"../note.txt"}"#),
        ];
        calls.iter_mut().for_each(|case| case.is_long = is_long);
        cases.extend(calls.into_iter().filter(|_| target().join(format!("examples/words_{language}.wasm")).is_file()));
    }
    cases
}

fn note(folder: &Path) {
    write(folder, "work/note.txt", "The the cät");
}
