//! The capabilities that a program could request by its imports, and the imports that cannot be linked.

use std::collections::BTreeMap;

use serde::Serialize;
use toolcrib_foundation::text::{MAX_MESSAGE, truncate};

use crate::capability::{Capability, Granted};
use crate::externs::{Externs, Import};
use crate::form::Form;
use crate::functions;
use crate::kind::ProgramKind;

use super::{CODE, Link, SCRIPT, find, preview1, split};

/// Use of one imported interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImportedInterface {
    /// Name without the version, or the module of a core module.
    pub name: String,
    /// Version, if it has one.
    pub version: Option<String>,
    /// Imported functions, in the order of the program.
    pub functions: Vec<String>,
    /// Reason why it cannot be linked. A program with such an import is refused before anything of it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_link: Option<String>,
}

/// One capability that a program could request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CapabilityRequest {
    /// The capability.
    pub capability: Capability,
    /// Authority that decides about it.
    pub granted: Granted,
    /// Flags that grant it, if any do.
    pub flags: &'static [&'static str],
    /// Interfaces that request it, in the order of the program.
    pub interfaces: Vec<ImportedInterface>,
}

impl CapabilityRequest {
    fn new(capability: Capability, interfaces: Vec<ImportedInterface>) -> Self {
        Self { capability, granted: capability.granted(), flags: capability.flags(), interfaces }
    }
}

/// Groups imports by the capability that they belong to.
pub fn requests(imports: &[Import], kind: ProgramKind) -> Vec<CapabilityRequest> {
    let mut found: BTreeMap<Capability, Vec<ImportedInterface>> = BTreeMap::new();
    for import in imports {
        if kind == ProgramKind::Module && import.from == preview1::MODULE {
            add_preview1(import, &mut found);
            continue;
        }
        let (capability, cannot_link) = match link(import, kind) {
            Ok(capability) => (capability, None),
            Err(reason) => (Capability::Unknown, Some(reason)),
        };
        // The module names of core modules have no version.
        let (name, version) = match import.from.split_once('@').filter(|_| kind != ProgramKind::Module) {
            Some((name, version)) => (name, Some(truncate(version, MAX_MESSAGE))),
            None => (import.from.as_str(), None),
        };
        let functions = import.functions.iter().map(|name| truncate(name, MAX_MESSAGE)).collect();
        let interface = ImportedInterface { name: truncate(name, MAX_MESSAGE), version, functions, cannot_link };
        found.entry(capability).or_default().push(interface);
    }
    found.into_iter().map(|(capability, interfaces)| CapabilityRequest::new(capability, interfaces)).collect()
}

/// Returns the imports of a program that cannot be linked.
pub fn unlinked(externs: &Externs) -> Vec<ImportedInterface> {
    let form = if externs.core_functions.is_none() { Form::Component } else { Form::Module };
    let kind = match ProgramKind::of(form, Some(externs)) {
        // A command that exports functions of its own is linked as a component of functions.
        ProgramKind::Command if functions::has_own_exports(externs) => ProgramKind::Functions,
        kind => kind,
    };
    let interfaces = requests(&externs.imports, kind).into_iter().flat_map(|request| request.interfaces);
    interfaces.filter(|interface| interface.cannot_link.is_some()).collect()
}

/// Returns the capability of an import, or the reason why it cannot be linked.
fn link(import: &Import, kind: ProgramKind) -> Result<Capability, String> {
    if kind == ProgramKind::Module {
        return Err(format!("of a core module only imports from `{}` can be linked", preview1::MODULE));
    }
    let (name, version) = split(&import.from);
    match find(name) {
        Some(known) if !known.versions.contain(version) => {
            let found = if version.is_empty() { "no version" } else { "another version" };
            Err(format!("it has {found}, and `{}` is linked", known.versions.as_str()))
        }
        Some(known) if known.link == Link::Tools && kind == ProgramKind::Command => match import.functions.is_empty() {
            true => Ok(Capability::Types),
            false => Err("available only to tools with the contract `toolcrib:tool`, not to commands".to_owned()),
        },
        _ if name.starts_with(CODE) && kind == ProgramKind::Interpreter => Ok(Capability::Types),
        _ if name.starts_with(CODE) => Err("available only to interpreters of programs".to_owned()),
        _ if name.starts_with(SCRIPT) => Err("available only to the script interpreter".to_owned()),
        _ if import.functions.is_empty() => Ok(Capability::Types),
        Some(known) => Ok(known.capability),
        None => Err("not available to tools".to_owned()),
    }
}

/// Adds the functions of preview 1, each to its capability.
fn add_preview1(import: &Import, found: &mut BTreeMap<Capability, Vec<ImportedInterface>>) {
    for function in &import.functions {
        let capability = preview1::find(function).map_or(Capability::Unknown, |(capability, _)| capability);
        let interfaces = found.entry(capability).or_default();
        match interfaces.iter_mut().find(|interface| interface.name == preview1::MODULE) {
            Some(interface) => interface.functions.push(truncate(function, MAX_MESSAGE)),
            None => interfaces.push(ImportedInterface {
                name: preview1::MODULE.to_owned(),
                version: None,
                functions: vec![truncate(function, MAX_MESSAGE)],
                cannot_link: (capability == Capability::Unknown)
                    .then(|| format!("`{}` has no such function", preview1::MODULE)),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: &str, functions: &[&str], kind: ProgramKind) -> (Capability, Option<String>) {
        let functions = functions.iter().map(|name| (*name).to_owned()).collect();
        let request = requests(&[Import { from: from.to_owned(), functions }], kind).remove(0);
        (request.capability, request.interfaces[0].cannot_link.clone())
    }

    #[test]
    fn each_import_is_for_something() {
        for (from, capability) in [
            ("wasi:filesystem/types@0.2.6", Capability::Files),
            ("wasi:http/outgoing-handler@0.2.99", Capability::Http),
            ("wasi:sockets/tcp@0.2.0", Capability::Sockets),
            ("wasi:config/store@0.2.0-draft", Capability::Config),
            ("wasi:keyvalue/store@0.2.0-draft2", Capability::KeyValue),
            ("wasi:logging/logging@0.1.0-draft", Capability::Logging),
            ("wasi:logging/logging", Capability::Logging),
            ("toolcrib:tool/model@1.0.0", Capability::Model),
        ] {
            assert_eq!(link(from, &["f"], ProgramKind::Rich), (capability, None), "{from}");
        }
        for types in ["a:b/c", "wasi:io/error@0.2.0", "toolcrib:tool/types@1.1.0"] {
            assert_eq!(link(types, &[], ProgramKind::Command), (Capability::Types, None));
        }
    }

    #[test]
    fn what_cannot_be_linked_has_a_reason() {
        for (from, kind, reason) in [
            ("a:b/c@0.2.0", ProgramKind::Rich, "not available to tools"),
            ("wasi:clocks/timezone@0.2.0", ProgramKind::Command, "not available to tools"),
            ("wasi:http/incoming-handler@0.2.0", ProgramKind::Rich, "not available to tools"),
            ("wasi:filesystem/types@0.3.0", ProgramKind::Command, "it has another version, and `0.2` is linked"),
            ("wasi:filesystem/types", ProgramKind::Command, "it has no version, and `0.2` is linked"),
            ("toolcrib:tool/model@2.0.0", ProgramKind::Rich, "it has another version, and `1` is linked"),
            ("toolcrib:tool/model@1.1.0", ProgramKind::Command, "not to commands"),
            ("toolcrib:script/exec@0.1.0", ProgramKind::Rich, "available only to the script interpreter"),
            ("env", ProgramKind::Module, "only imports from `wasi_snapshot_preview1`"),
            ("wasi:io/poll@0.2.0", ProgramKind::Module, "only imports from `wasi_snapshot_preview1`"),
        ] {
            let (capability, why) = link(from, &["f"], kind);
            assert_eq!(capability, Capability::Unknown, "{from}");
            assert!(why.as_ref().is_some_and(|why| why.contains(reason)), "{from}: {why:?}");
        }
    }

    #[test]
    fn the_functions_of_a_core_module_are_told_apart() {
        let functions = ["fd_write", "path_open", "fd_prestat_get", "sock_send", "no_such", "fd_read"];
        let import = Import { from: preview1::MODULE.to_owned(), functions: functions.map(str::to_owned).to_vec() };
        let requests = requests(&[import], ProgramKind::Module);
        let found: Vec<_> = requests.iter().map(|it| (it.capability, it.interfaces[0].functions.join(" "))).collect();
        let expected = [
            (Capability::Unknown, "no_such"),
            (Capability::Sockets, "sock_send"),
            (Capability::Files, "path_open fd_prestat_get"),
            (Capability::Streams, "fd_write fd_read"),
        ];
        assert_eq!(found, expected.map(|(capability, functions)| (capability, functions.to_owned())));
        assert!(requests[0].interfaces[0].cannot_link.is_some() && requests[1].interfaces[0].cannot_link.is_none());
    }
}
