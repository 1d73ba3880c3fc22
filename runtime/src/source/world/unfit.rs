//! Programs that can never run, by their sections alone, each with a reason and advice. Nothing is compiled.

use toolcrib_component::externs::Externs;
use toolcrib_component::interfaces::{self, ImportedInterface, preview1};
use toolcrib_component::{Form, ProgramKind};
use toolcrib_foundation::text::listed;

use crate::source::name::shortened;

/// Version of the WASI 0.3 interfaces.
const WASI_0_3: &str = "@0.3.";
/// Advice for a component of WASI 0.3.
const BUILD_FOR_0_2: &str = "built for WASI 0.3, which is not supported; build it for WASI 0.2 (wasm32-wasip2)";

/// Returns the reason why a program cannot be linked, whatever it exports. `skipped` lists the functions that cannot be tools, each
/// with the reason.
pub(super) fn unlinked(externs: &Externs, skipped: impl FnOnce() -> Vec<(String, String)>) -> Option<String> {
    let is_0_3 = |name: &&str| name.starts_with("wasi:") && name.contains(WASI_0_3);
    let imported = externs.imports.iter().map(|import| import.from.as_str());
    let exported = externs.exports.iter().map(String::as_str);
    let imported = imported.filter(is_0_3).map(|name| ("imports", name));
    let exported = exported.filter(is_0_3).map(|name| ("exports", name));
    if let Some((how, name)) = imported.chain(exported).next() {
        return Some(format!("{BUILD_FOR_0_2}: it {how} `{name}`"));
    }
    if externs.is_async {
        return Some(format!("{BUILD_FOR_0_2}: {}", asynchronous(&skipped())));
    }
    let unlinked = interfaces::unlinked(externs);
    let first = unlinked.first()?;
    match externs.core_functions {
        Some(_) if first.name == preview1::MODULE => {
            let functions = listed(quoted(&first.functions));
            let module = preview1::MODULE;
            Some(format!("a core module that imports {functions} from `{module}`, which has no such function"))
        }
        Some(_) if first.name == preview1::DRAFT => Some(format!(
            "a core module that imports `{}`, a draft older than WASI preview 1; build it for `wasm32-wasip1`",
            preview1::DRAFT
        )),
        Some(_) => {
            Some(format!("a core module that imports `{}`; only `{}` can be linked", first.name, preview1::MODULE))
        }
        None => {
            let each = listed(unlinked.iter().map(with_reason));
            Some(format!("it has imports that cannot be linked: {each}"))
        }
    }
}

/// Names the functions that keep a component from being loaded as a whole: one asynchronous part makes the engine
/// refuse all of the component.
fn asynchronous(skipped: &[(String, String)]) -> String {
    if skipped.is_empty() {
        return "it has asynchronous functions".to_owned();
    }
    let functions = listed(skipped.iter().map(|(place, why)| format!("`{}` ({why})", shortened(place))));
    format!(
        "{functions} cannot be loaded, and the other functions of the component only without it; remove it, give it other types, \
         such as a list in place of a stream, or build it into a component of its own"
    )
}

/// Returns an import with the reason why it cannot be linked.
fn with_reason(interface: &ImportedInterface) -> String {
    let version = interface.version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
    format!("`{}{version}` ({})", interface.name, interface.cannot_link.as_deref().unwrap_or_default())
}

/// Returns the reason why a program that can be linked has nothing to call.
pub(super) fn uncallable(externs: &Externs) -> Option<String> {
    if let Some(functions) = &externs.core_functions {
        if functions.iter().any(|name| name == "_start") {
            return None;
        }
        let kind = if functions.iter().any(|name| name == "_initialize") { "as a reactor, it" } else { "it" };
        let exports = if functions.is_empty() { "no function".to_owned() } else { listed(quoted(functions)) };
        return Some(format!(
            "a core module that is not a command: {kind} exports {exports} and no `_start`; build it as a program with a \
             `main`, or as a component that exports functions"
        ));
    }
    if ProgramKind::of(Form::Component, Some(externs)) != ProgramKind::Component {
        return None;
    }
    let exports = if externs.exports.is_empty() { "nothing".to_owned() } else { listed(quoted(&externs.exports)) };
    Some(format!(
        "not a tool: it exports {exports}; a tool exports functions of its own, a command `wasi:cli/run`, a rich tool \
         `toolcrib:tool/call@1.1.0`"
    ))
}

fn quoted(names: &[String]) -> impl ExactSizeIterator<Item = String> {
    names.iter().map(|name| format!("`{}`", shortened(name)))
}
