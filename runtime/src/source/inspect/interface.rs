//! Which capability stands behind what a program imports, and what of it cannot be linked.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::source::imports::Known;
use crate::source::typed;
use crate::tool::Import;

use super::{Capability, CapabilityRequest, MAX_NAME_LEN, ProgramKind, cut};

/// What a program uses of something that it imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImportedInterface {
    /// Its name without the version, or the module of a core module.
    pub name: String,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// The functions, in the order of the program.
    pub functions: Vec<String>,
    /// Why it cannot be linked, where that is so: a program that imports it is refused before anything of it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_link: Option<String>,
}

/// The versions of a package that are linked: how they begin, and how that is told.
type Versions = (&'static str, &'static str);

const WASI: Versions = ("0.2.", "0.2");
const CONTRACT: Versions = ("1.", "1");

/// The package of our own contract, and that of the interpreter of scripts.
const OURS: &str = "toolcrib:tool/";
const SCRIPT: &str = "toolcrib:script/";
/// The one module that a core module can import from.
pub(in crate::source) const PREVIEW_1: &str = "wasi_snapshot_preview1";

/// All that is imported, by what it is for.
pub(super) fn asked(imports: &[Import], kind: ProgramKind) -> Vec<CapabilityRequest> {
    let mut found: BTreeMap<Capability, Vec<ImportedInterface>> = BTreeMap::new();
    for import in imports {
        if kind == ProgramKind::Module && import.from == PREVIEW_1 {
            of_preview_1(import, &mut found);
            continue;
        }
        let (capability, cannot_link) = match judge(import, kind) {
            Ok(capability) => (capability, None),
            Err(why) => (Capability::Unknown, Some(why)),
        };
        // The names of core modules have no version.
        let (name, version) = match import.from.split_once('@').filter(|_| kind != ProgramKind::Module) {
            Some((name, version)) => (name, Some(cut(version, MAX_NAME_LEN))),
            None => (import.from.as_str(), None),
        };
        let functions = import.functions.iter().map(|name| cut(name, MAX_NAME_LEN)).collect();
        let interface = ImportedInterface { name: cut(name, MAX_NAME_LEN), version, functions, cannot_link };
        found.entry(capability).or_default().push(interface);
    }
    let asked = found.into_iter().map(|(capability, interfaces)| CapabilityRequest {
        capability,
        granted: capability.granted(),
        flags: capability.flags(),
        interfaces,
    });
    asked.collect()
}

/// What a program imports that cannot be linked.
pub(in crate::source) fn unlinked(known: &Known) -> Vec<ImportedInterface> {
    let kind = match super::kind(known.core_functions.is_none(), Some(known)) {
        // A command that exports functions of its own is linked as one of functions.
        ProgramKind::Command if known.exports.iter().any(|name| !typed::is_contract(name)) => ProgramKind::Functions,
        kind => kind,
    };
    let interfaces = asked(&known.imports, kind).into_iter().flat_map(|asked| asked.interfaces);
    interfaces.filter(|interface| interface.cannot_link.is_some()).collect()
}

/// What an import is for, or why it cannot be linked.
fn judge(import: &Import, kind: ProgramKind) -> Result<Capability, String> {
    if kind == ProgramKind::Module {
        return Err(format!("of a core module only imports from `{PREVIEW_1}` can be linked"));
    }
    let (name, version) = import.from.split_once('@').unwrap_or((&import.from, ""));
    if let Some((capability, versions)) = known(name) {
        let is_linked = |(beginning, _): &Versions| version.starts_with(beginning);
        if versions.is_empty() || versions.iter().any(is_linked) {
            return match name.starts_with(OURS) && kind == ProgramKind::Command {
                _ if import.functions.is_empty() => Ok(Capability::Types),
                true => Err("a command is not given it, only tools with the contract `toolcrib:tool`".to_owned()),
                false => Ok(capability),
            };
        }
        let linked: Vec<_> = versions.iter().map(|(_, told)| format!("`{told}`")).collect();
        let found = if version.is_empty() { "no version" } else { "another version" };
        return Err(format!("it has {found}, and {} is linked", linked.join(" or ")));
    }
    if name.starts_with(SCRIPT) {
        return Err("only the interpreter of scripts is given it".to_owned());
    }
    if import.functions.is_empty() {
        return Ok(Capability::Types);
    }
    Err("no tool is given it".to_owned())
}

/// What an interface is for that is linked or known, and its versions; none, where any will do.
fn known(name: &str) -> Option<(Capability, &'static [Versions])> {
    let capability = match name {
        "wasi:cli/environment" => Capability::Environment,
        "wasi:cli/exit" => Capability::Exit,
        "wasi:cli/stdin" | "wasi:cli/stdout" | "wasi:cli/stderr" => Capability::Streams,
        "wasi:cli/terminal-input" | "wasi:cli/terminal-output" => Capability::Streams,
        "wasi:cli/terminal-stdin" | "wasi:cli/terminal-stdout" | "wasi:cli/terminal-stderr" => Capability::Streams,
        "wasi:clocks/monotonic-clock" | "wasi:clocks/wall-clock" => Capability::Clock,
        "wasi:filesystem/preopens" | "wasi:filesystem/types" => Capability::Files,
        "wasi:http/outgoing-handler" | "wasi:http/types" => Capability::Http,
        "wasi:io/error" | "wasi:io/poll" | "wasi:io/streams" => Capability::Io,
        "wasi:random/insecure" | "wasi:random/insecure-seed" | "wasi:random/random" => Capability::Random,
        // Drafts, each linked under the name that it is imported by.
        "wasi:config/store" | "wasi:config/runtime" => return Some((Capability::Config, &[])),
        "wasi:keyvalue/atomics" | "wasi:keyvalue/batch" | "wasi:keyvalue/store" => {
            return Some((Capability::KeyValue, &[]));
        }
        "wasi:logging/logging" => return Some((Capability::Logging, &[])),
        _ if name.starts_with("wasi:sockets/") => Capability::Sockets,
        _ => {
            let capability = match name.strip_prefix(OURS)? {
                "progress" => Capability::Progress,
                "log" => Capability::Logging,
                "cache" => Capability::Cache,
                "model" => Capability::Model,
                "tools" => Capability::Tools,
                "secrets" => Capability::Secrets,
                "types" => Capability::Types,
                _ => return None,
            };
            return Some((capability, &[CONTRACT]));
        }
    };
    Some((capability, &[WASI]))
}

/// The functions of WASI preview 1, each with what it is for.
fn of_preview_1(import: &Import, found: &mut BTreeMap<Capability, Vec<ImportedInterface>>) {
    for function in &import.functions {
        let capability = match function.as_str() {
            "args_get" | "args_sizes_get" | "environ_get" | "environ_sizes_get" => Capability::Environment,
            "clock_res_get" | "clock_time_get" | "poll_oneoff" | "sched_yield" => Capability::Clock,
            "random_get" => Capability::Random,
            "proc_exit" | "proc_raise" => Capability::Exit,
            "sock_accept" | "sock_recv" | "sock_send" | "sock_shutdown" => Capability::Sockets,
            // Numbers of streams that are open already, and of files, where one was opened by a path.
            "fd_advise"
            | "fd_close"
            | "fd_datasync"
            | "fd_fdstat_get"
            | "fd_fdstat_set_flags"
            | "fd_filestat_get"
            | "fd_read"
            | "fd_renumber"
            | "fd_seek"
            | "fd_sync"
            | "fd_tell"
            | "fd_write" => Capability::Streams,
            "fd_allocate"
            | "fd_fdstat_set_rights"
            | "fd_filestat_set_size"
            | "fd_filestat_set_times"
            | "fd_pread"
            | "fd_prestat_dir_name"
            | "fd_prestat_get"
            | "fd_pwrite"
            | "fd_readdir" => Capability::Files,
            "path_create_directory"
            | "path_filestat_get"
            | "path_filestat_set_times"
            | "path_link"
            | "path_open"
            | "path_readlink"
            | "path_remove_directory"
            | "path_rename"
            | "path_symlink"
            | "path_unlink_file" => Capability::Files,
            _ => Capability::Unknown,
        };
        let unknown = (capability == Capability::Unknown).then(|| format!("`{PREVIEW_1}` has no such function"));
        let interfaces = found.entry(capability).or_default();
        let known = interfaces.iter_mut().find(|interface| interface.name == PREVIEW_1);
        match known {
            Some(interface) => interface.functions.push(cut(function, MAX_NAME_LEN)),
            None => interfaces.push(ImportedInterface {
                name: PREVIEW_1.to_owned(),
                version: None,
                functions: vec![cut(function, MAX_NAME_LEN)],
                cannot_link: unknown,
            }),
        }
    }
}

/// Whether an interface of this name and some version of it is linked for a tool.
#[cfg(test)]
pub(crate) fn is_known(name: &str) -> bool {
    known(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(from: &str, functions: &[&str], kind: ProgramKind) -> (Capability, Option<String>) {
        let functions = functions.iter().map(|name| (*name).to_owned()).collect();
        let asked = asked(&[Import { from: from.to_owned(), functions }], kind).remove(0);
        (asked.capability, asked.interfaces[0].cannot_link.clone())
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
            assert_eq!(one(from, &["f"], ProgramKind::Rich), (capability, None), "{from}");
        }
        for types in ["a:b/c", "wasi:io/error@0.2.0", "toolcrib:tool/types@1.1.0"] {
            assert_eq!(one(types, &[], ProgramKind::Command), (Capability::Types, None));
        }
    }

    #[test]
    fn what_cannot_be_linked_is_told_with_why() {
        for (from, kind, told) in [
            ("a:b/c@0.2.0", ProgramKind::Rich, "no tool is given it"),
            ("wasi:clocks/timezone@0.2.0", ProgramKind::Command, "no tool is given it"),
            ("wasi:http/incoming-handler@0.2.0", ProgramKind::Rich, "no tool is given it"),
            ("wasi:filesystem/types@0.3.0", ProgramKind::Command, "it has another version, and `0.2` is linked"),
            ("wasi:filesystem/types", ProgramKind::Command, "it has no version, and `0.2` is linked"),
            ("toolcrib:tool/model@2.0.0", ProgramKind::Rich, "it has another version, and `1` is linked"),
            ("toolcrib:tool/model@1.1.0", ProgramKind::Command, "a command is not given it"),
            ("toolcrib:script/exec@0.1.0", ProgramKind::Rich, "only the interpreter of scripts is given it"),
            ("env", ProgramKind::Module, "only imports from `wasi_snapshot_preview1`"),
            ("wasi:io/poll@0.2.0", ProgramKind::Module, "only imports from `wasi_snapshot_preview1`"),
        ] {
            let (capability, why) = one(from, &["f"], kind);
            assert_eq!(capability, Capability::Unknown, "{from}");
            assert!(why.as_ref().is_some_and(|why| why.contains(told)), "{from}: {why:?}");
        }
    }

    #[test]
    fn the_functions_of_a_core_module_are_told_apart() {
        let functions = ["fd_write", "path_open", "fd_prestat_get", "sock_send", "no_such", "fd_read"];
        let import = Import { from: PREVIEW_1.to_owned(), functions: functions.map(str::to_owned).to_vec() };
        let asked = asked(&[import], ProgramKind::Module);
        let told: Vec<_> = asked.iter().map(|it| (it.capability, it.interfaces[0].functions.join(" "))).collect();
        let expected = [
            (Capability::Unknown, "no_such"),
            (Capability::Sockets, "sock_send"),
            (Capability::Files, "path_open fd_prestat_get"),
            (Capability::Streams, "fd_write fd_read"),
        ];
        assert_eq!(told, expected.map(|(capability, functions)| (capability, functions.to_owned())));
        assert!(asked[0].interfaces[0].cannot_link.is_some() && asked[1].interfaces[0].cannot_link.is_none());
    }
}
