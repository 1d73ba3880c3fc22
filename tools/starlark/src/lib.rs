//! Interpreter of scripts as a guest: implements the WIT package `wit/script` for the Starlark language. Connects the
//! contract with the modules here, and owns the state that a snapshot of the component keeps; knows no tool and no
//! hook.

mod ahead;
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "only images use it"))]
mod changes;
mod check;
mod dialect;
mod evaluate;
mod globals;
#[cfg_attr(not(target_arch = "wasm32"), path = "image_native.rs")]
mod image;
mod json;
mod modules;
mod problem;

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({ path: "../../wit/script", world: "interpreter-guest" });
    use super::Interpreter;
    export!(Interpreter);
}

use bindings::exports::toolcrib::script::interpreter::{Entry, Guest, Problem, Script};

struct Interpreter;

impl Guest for Interpreter {
    fn check(script: Script, entry: Entry, when: Option<String>) -> Vec<Problem> {
        image::begin();
        check::check(&script, entry, when.as_deref())
    }

    fn run(script: Script, arguments: String) -> Result<String, Problem> {
        image::begin();
        evaluate::run(script, arguments)
    }

    fn handle(script: Script, when: Option<String>, event: String, payload: String) -> Result<Option<String>, Problem> {
        image::begin();
        evaluate::handle(script, when.as_deref(), event, payload)
    }

    fn read(script: Script, entry: Entry, when: Option<String>) -> Option<Vec<u8>> {
        image::begin();
        ahead::read(script, entry, when)
    }

    fn run_image(image: Vec<u8>, arguments: String) -> Result<String, Problem> {
        image::apply(&image);
        ahead::run(arguments)
    }

    fn handle_image(image: Vec<u8>, event: String, payload: String) -> Result<Option<String>, Problem> {
        image::apply(&image);
        ahead::handle(event, payload)
    }
}

/// Entry point of the snapshot: creates everything that no call changes. The only import that it calls is
/// `wasi:random/insecure-seed`.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "the name is the one that the snapshot's maker calls")]
#[unsafe(export_name = "wizer-initialize")]
extern "C" fn initialize() {
    wit_bindgen::rt::run_ctors_once();
    image::prepare(warm);
}

/// Creates everything that the first call would create, by making such a call: the frozen names and the method tables
/// of every type, which the language builds on first use.
///
/// The seed of the standard library's hash maps is requested from the host here and stays in the snapshot. Such maps
/// hold only names of scripts; the dicts of scripts do not use them.
fn warm() {
    let script = || Script { name: "warm".to_owned(), source: WARM.to_owned() };
    // The result is not needed, and a failure would show in the first call as well.
    let _ = evaluate::run(script(), r#"{"text":"a b","numbers":[1,2.5,true,null]}"#.to_owned());
    let _ = check::check(&script(), Entry::Run, None);
}

/// Script with one value of every type, and a method of each.
const WARM: &str = r#"
def show(value, width = 1, *rest, **named):
    return "%s" % value + "{}".format(width) + f"{value}"

def run(args):
    words = [word.upper() for word in args["text"].split(" ") if word]
    counts = {word: len(word) for word in words}
    counts.update(total = max(1, 3))
    numbers = [n for n in args.get("numbers", []) if type(n) == "int"]
    for index, number in enumerate(sorted(numbers)):
        words.append(show(number + index // 2, width = 2))
    return {"words": words, "counts": counts, "pair": (1, 2.0), "json": json.encode(counts)}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_that_warms_does_not_fail() {
        warm();
        let script = || Script { name: "warm".to_owned(), source: WARM.to_owned() };
        let returned = evaluate::run(script(), r#"{"text":"a b","numbers":[2,1]}"#.to_owned()).expect("it runs");
        assert_eq!(
            returned,
            r#"{"words":["A","B","121","222"],"counts":{"A":1,"B":1,"total":3},"pair":[1,2.0],"json":"{\"A\":1,\"B\":1,\"total\":3}"}"#
        );
        assert!(check::check(&script(), Entry::Run, None).is_empty());
    }
}
