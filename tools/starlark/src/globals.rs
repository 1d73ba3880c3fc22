//! Built-in names of every script: those of the language and the modules of this interpreter. They are created once and
//! are part of the snapshot of the component.

use std::sync::LazyLock;

use starlark::environment::{Globals, GlobalsBuilder, LibraryExtension};

use crate::bindings::exports::toolcrib::script::interpreter::{Entry, Script};
use crate::{check, evaluate, modules};

static GLOBALS: LazyLock<Globals> = LazyLock::new(|| {
    let mut builder = GlobalsBuilder::extended_by(&[LibraryExtension::Print]);
    modules::add(&mut builder);
    builder.build()
});

/// Frozen built-in names.
pub(crate) fn get() -> &'static Globals {
    &GLOBALS
}

/// Creates everything that the first call would create, by making such a call: the frozen names and the method tables
/// of every type, which the language builds on first use.
///
/// The seed of the standard library's hash maps is requested from the host here and stays in the snapshot. Such maps
/// hold only names of scripts; the dicts of scripts do not use them.
pub(crate) fn warm() {
    let script = Script { name: "warm".to_owned(), source: WARM.to_owned() };
    // The result is not needed, and a failure would show in the first call as well.
    let _ = evaluate::run(&script, r#"{"text":"a b","numbers":[1,2.5,true,null]}"#);
    let _ = check::check(&script, Entry::Run, None);
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
        let script = Script { name: "warm".to_owned(), source: WARM.to_owned() };
        let returned = evaluate::run(&script, r#"{"text":"a b","numbers":[2,1]}"#).expect("it runs");
        assert_eq!(
            returned,
            r#"{"words":["A","B","121","222"],"counts":{"A":1,"B":1,"total":3},"pair":[1,2.0],"json":"{\"A\":1,\"B\":1,\"total\":3}"}"#
        );
        assert!(check::check(&script, Entry::Run, None).is_empty());
    }
}
