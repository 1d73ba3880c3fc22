//! Targets for programs: each reads any bytes with one reader of `toolcrib-component`.

use std::path::Path;

use toolcrib_component::externs::Externs;
use toolcrib_component::{descriptor, functions, interfaces, preflight};

use super::target::{Act, Target};

/// All targets. All read programs, so they share their saved inputs.
pub(crate) const ALL: [Target; 5] = [
    Target { name: "inspect", corpus: "component", open: inspection },
    Target { name: "imports", corpus: "component", open: imports },
    Target { name: "functions", corpus: "component", open: typed },
    Target { name: "describe", corpus: "component", open: describe },
    Target { name: "preflight", corpus: "component", open: checked },
];

/// An inspection is bounded, and a program that is proven pure imports no function.
fn inspection(_: &Path) -> Act {
    Box::new(|program| {
        let Ok(about) = toolcrib_component::inspect(program) else { return };
        let interfaces = || about.asks.iter().flatten().flat_map(|request| &request.interfaces);
        let calls_nothing = interfaces().all(|interface| interface.functions.is_empty());
        assert!(about.pure.is_none() || (about.asks.is_some() && calls_nothing), "pure, and it can call something");
        assert!(interfaces().count() <= 2000 && about.notes.len() < 30, "unbounded");
        assert!(serde_json::to_string(&about).is_ok(), "it has no JSON");
    })
}

/// The imports are bounded, and each that cannot be linked has a reason.
fn imports(_: &Path) -> Act {
    Box::new(|program| {
        let Ok(externs) = Externs::of(program) else { return };
        let names = externs.imports.iter().map(|import| 1 + import.functions.len()).sum::<usize>();
        assert!(names + externs.exports.len() <= 2000, "unbounded");
        let unlinked = interfaces::unlinked(&externs);
        assert!(unlinked.iter().all(|interface| interface.cannot_link.is_some()), "{unlinked:?}");
    })
}

/// The functions are bounded, and their names differ.
fn typed(_: &Path) -> Act {
    Box::new(|program| {
        let Ok(exported) = functions::read(program) else { return };
        assert!(exported.functions.len() + exported.skipped.len() <= 256, "unbounded");
        let Ok(names) = functions::names(&exported.functions) else { return };
        let mut short: Vec<_> = names.iter().map(|name| &name.short).collect();
        short.sort();
        assert!(short.windows(2).all(|pair| pair[0] != pair[1]), "{short:?}");
    })
}

/// Descriptors that are read can be written, and are read again as they were.
fn describe(_: &Path) -> Act {
    Box::new(|program| {
        let Ok(tools) = descriptor::sections(program) else { return };
        assert!(tools.len() <= 256 && tools.iter().all(serde_json::Value::is_object), "{tools:?}");
        let Ok(described) = descriptor::described(program, &tools) else { return };
        if !tools.is_empty() {
            assert_eq!(descriptor::sections(&described).expect("the written descriptors"), tools);
        }
    })
}

/// A program that passes is WebAssembly, and a refusal has a reason.
fn checked(_: &Path) -> Act {
    let limits = preflight::Limits::default();
    Box::new(move |program| match preflight::check(program, &limits) {
        Ok(()) => assert!(program.starts_with(b"\0asm"), "not WebAssembly"),
        Err(error) => assert!(!error.to_string().is_empty(), "no reason"),
    })
}
