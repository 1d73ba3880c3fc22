//! Programs that can never run, as far as their sections tell: each with what to do about it. Nothing is compiled.

use crate::source::imports::Known;
use crate::source::inspect::interface::{self, ImportedInterface, PREVIEW_1};
use crate::source::inspect::{self, ProgramKind};
use crate::source::name::shortened;
use crate::source::suggestion::listed;

/// The most names that one reason lists.
const MAX_LISTED: usize = 5;
/// How the names of WASI 0.3 are versioned.
const WASI_0_3: &str = "@0.3.";
/// The draft that came before preview 1.
const DRAFT: &str = "wasi_unstable";
/// The one advice for a component of WASI 0.3.
const BUILD_FOR_0_2: &str = "built for WASI 0.3, which is not supported; build it for WASI 0.2 (wasm32-wasip2)";

/// The words for a file that begins as WebAssembly does, and goes on otherwise.
pub(super) const FOREIGN: &str = "neither a component nor a core module of a version that is known";

/// The words for a file that ends within the section that begins at this byte.
pub(super) fn breaks_off(at: u64) -> String {
    if at == 0 {
        return "truncated: the file ends within its first 8 bytes; copy or build it again".to_owned();
    }
    format!("truncated: the file ends before its section at byte {at} does; copy or build it again")
}

/// Why a program cannot be linked, whatever it exports.
pub(super) fn unlinked(known: &Known) -> Option<String> {
    let is_0_3 = |name: &&str| name.starts_with("wasi:") && name.contains(WASI_0_3);
    let imported = known.imports.iter().map(|import| import.from.as_str()).filter(is_0_3).map(|name| ("imports", name));
    let exported = known.exports.iter().map(String::as_str).filter(is_0_3).map(|name| ("exports", name));
    if let Some((how, name)) = imported.chain(exported).next() {
        return Some(format!("{BUILD_FOR_0_2}: it {how} `{name}`"));
    }
    if known.is_asynchronous {
        return Some(format!("{BUILD_FOR_0_2}: it has asynchronous functions"));
    }
    let wrong = interface::unlinked(known);
    let first = wrong.first()?;
    match known.core_functions {
        Some(_) if first.name == PREVIEW_1 => {
            let functions = listed(names(&first.functions), MAX_LISTED);
            Some(format!("a core module that imports {functions} from `{PREVIEW_1}`, which has no such function"))
        }
        Some(_) if first.name == DRAFT => Some(format!(
            "a core module that imports `{DRAFT}`, a draft older than WASI preview 1; build it for `wasm32-wasip1`"
        )),
        Some(_) => Some(format!("a core module that imports `{}`; only `{PREVIEW_1}` can be linked", first.name)),
        None => Some(format!("it imports what cannot be linked: {}", listed(wrong.iter().map(said), MAX_LISTED))),
    }
}

/// An import with the reason for which it cannot be linked.
fn said(interface: &ImportedInterface) -> String {
    let version = interface.version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
    format!("`{}{version}` ({})", interface.name, interface.cannot_link.as_deref().unwrap_or_default())
}

/// Why a program that can be linked can be called in no way.
pub(super) fn uncallable(known: &Known) -> Option<String> {
    if let Some(functions) = &known.core_functions {
        if functions.iter().any(|name| name == "_start") {
            return None;
        }
        let kind = if functions.iter().any(|name| name == "_initialize") { "a reactor: it" } else { "it" };
        let exports =
            if functions.is_empty() { "no function".to_owned() } else { listed(names(functions), MAX_LISTED) };
        return Some(format!(
            "a core module that is no command, but {kind} exports {exports} and no `_start`; build it as a program with a \
             `main`, or as a component that exports functions"
        ));
    }
    if inspect::kind(true, Some(known)) != ProgramKind::Component {
        return None;
    }
    let exports =
        if known.exports.is_empty() { "nothing".to_owned() } else { listed(names(&known.exports), MAX_LISTED) };
    Some(format!(
        "no tool: it exports {exports}; a tool exports functions of its own, a command `wasi:cli/run`, a rich tool \
         `toolcrib:tool/call@1.1.0`"
    ))
}

fn names(names: &[String]) -> impl ExactSizeIterator<Item = String> {
    names.iter().map(|name| format!("`{}`", shortened(name)))
}
