//! What follows about a tool from what its program imports and what it asks for, where its source says nothing itself.
//! Only what the sandbox enforces is taken as proof: a program reaches nothing but what it imports, and a tool writes
//! nothing unless it asks to.

use crate::tool::{Access, Basis, Capabilities, Fact, FileRequest, Format, Import, Tool};

/// The interfaces of WASI 0.2 by which nothing outside the sandbox can be changed or reached.
const HARMLESS: [&str; 19] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];
/// The parts of our own contract by which a rich tool reaches nobody but who watches its call. What it keeps in a
/// cache is seen by its other calls.
const OUR_HARMLESS: [&str; 4] =
    ["toolcrib:tool/log", "toolcrib:tool/progress", "toolcrib:tool/secrets", "toolcrib:tool/types"];
/// What components for other hosts import besides, in any draft: settings, notes for people, and sockets, of which every
/// use is refused.
const FOREIGN_HARMLESS: [&str; 3] = ["wasi:config/store", "wasi:config/runtime", "wasi:logging/logging"];
const SOCKETS: &str = "wasi:sockets/";
/// By these a program keeps values for its later calls.
const KEEPS: [&str; 3] = ["wasi:keyvalue/atomics", "wasi:keyvalue/batch", "wasi:keyvalue/store"];
/// The functions of files that change none; `open-at` is not among them, for it creates and truncates.
const FILES: &str = "wasi:filesystem/types";
const LOOKS_AT_FILES: [&str; 16] = [
    "filesystem-error-code",
    "[method]descriptor.advise",
    "[method]descriptor.get-flags",
    "[method]descriptor.get-type",
    "[method]descriptor.is-same-object",
    "[method]descriptor.metadata-hash",
    "[method]descriptor.metadata-hash-at",
    "[method]descriptor.read",
    "[method]descriptor.read-directory",
    "[method]descriptor.read-via-stream",
    "[method]descriptor.readlink-at",
    "[method]descriptor.stat",
    "[method]descriptor.stat-at",
    "[method]descriptor.sync",
    "[method]descriptor.sync-data",
    "[method]directory-entry-stream.read-directory-entry",
];
/// The functions of WASI preview 1 that change no file and reach no network; without `path_open`, `fd_write` reaches
/// the standard streams alone.
const PREVIEW_1: &str = "wasi_snapshot_preview1";
const PREVIEW_1_HARMLESS: [&str; 29] = [
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_filestat_get",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_filestat_get",
    "path_readlink",
    "poll_oneoff",
    "proc_exit",
    "proc_raise",
    "random_get",
    "sched_yield",
];
const PREVIEW_1_CHANGES: [&str; 13] = [
    "fd_allocate",
    "fd_fdstat_set_rights",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pwrite",
    "path_create_directory",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
];

/// Fills in what is proven and not declared.
pub(super) fn infer(tool: &mut Tool) {
    let Some(imports) = tool.imports.as_deref() else { return };
    let reach = Reach::of(imports);
    if reach.network.is_some() || reach.unknown {
        return;
    }
    let interface = &mut tool.interface;
    interface.safety.is_open_world.infer(false);
    let keeps = reach.keeps && (tool.requested.cache || !tool.requested.stated);
    if !keeps && (!reach.files || !asks_to_write(&tool.requested)) {
        interface.safety.is_read_only.infer(true);
    }
    // A tool that declares that it only reads is granted nothing to write, so the rest follows either way.
    if interface.safety.is_read_only.value {
        interface.infer_read_only();
    }
}

/// Takes back what a record of a stranger's declares and only its program could prove; says so in a sentence.
pub(super) fn doubt(tool: &mut Tool) -> Option<String> {
    let told = unsafe_together(tool).filter(|_| tool.origin.format == Format::AgentTool)?;
    tool.interface.safety.is_concurrency_safe = Fact::default(false);
    Some(format!("{told}, so each runs alone"))
}

/// What a source declares against what is known, each in a sentence.
pub(super) fn contradictions(tool: &Tool) -> Vec<String> {
    let safety = &tool.interface.safety;
    let mut told = Vec::new();
    let network = tool.imports.as_deref().and_then(|imports| Reach::of(imports).network);
    if let Some(network) = network.filter(|_| declared(&safety.is_open_world, false)) {
        told.push(format!("is_open_world is declared false, but its program imports `{network}`"));
    }
    // An artifact says in a word of its own that its calls go on beside others.
    told.extend(unsafe_together(tool).filter(|_| tool.origin.format != Format::Markdown).map(str::to_owned));
    if declared(&safety.is_read_only, true) && declared(&safety.is_destructive, true) {
        told.push("is_read_only and is_destructive are both declared true".to_owned());
    }
    if declared(&safety.is_read_only, true) && tool.requested.stated && asks_to_write(&tool.requested) {
        told.push("is_read_only is declared true, but its capabilities ask to write: that is not granted".to_owned());
    }
    told
}

fn unsafe_together(tool: &Tool) -> Option<&'static str> {
    let safety = &tool.interface.safety;
    (declared(&safety.is_concurrency_safe, true) && !safety.is_read_only.value)
        .then_some("is_concurrency_safe is declared true, but it is not read-only: calls at once can meet")
}

fn declared(fact: &Fact<bool>, value: bool) -> bool {
    fact.basis == Basis::Declared && fact.value == value
}

/// Whether a tool may be granted something to write.
fn asks_to_write(requested: &Capabilities) -> bool {
    match &requested.files {
        FileRequest::None => !requested.stated,
        FileRequest::Workspace(access) => *access == Access::Write,
        FileRequest::Folders(folders) => folders.iter().any(|folder| folder.access == Access::Write),
    }
}

/// What a program can do by what it imports.
#[derive(Default)]
struct Reach {
    /// Change files, if it is granted any.
    files: bool,
    /// Keep values, if it may.
    keeps: bool,
    /// Reach a network, by this import.
    network: Option<String>,
    /// Something that is not known here.
    unknown: bool,
}

impl Reach {
    fn of(imports: &[Import]) -> Self {
        let mut reach = Self::default();
        for import in imports {
            if import.from == PREVIEW_1 {
                reach.add_preview_1(&import.functions);
                continue;
            }
            let (interface, version) = import.from.split_once('@').unwrap_or((&import.from, ""));
            let known = version.starts_with("0.2.");
            if interface.starts_with("wasi:http/") {
                reach.network.get_or_insert(import.from.clone());
            } else if FOREIGN_HARMLESS.contains(&interface) || (known && interface.starts_with(SOCKETS)) {
                continue;
            } else if KEEPS.contains(&interface) {
                reach.keeps = true;
            } else if known && interface == FILES {
                reach.files |= import.functions.iter().any(|name| !LOOKS_AT_FILES.contains(&name.as_str()));
            } else if version.starts_with("1.") && OUR_HARMLESS.contains(&interface) {
                continue;
            } else if !known || !HARMLESS.contains(&interface) {
                reach.unknown = true;
            }
        }
        reach
    }

    fn add_preview_1(&mut self, functions: &[String]) {
        for function in functions {
            let name = function.as_str();
            if name.starts_with("sock_") {
                self.network.get_or_insert(format!("{PREVIEW_1}.{name}"));
            } else if PREVIEW_1_CHANGES.contains(&name) {
                self.files = true;
            } else if !PREVIEW_1_HARMLESS.contains(&name) {
                self.unknown = true;
            }
        }
    }
}
