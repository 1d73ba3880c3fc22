//! The functions of WASI preview 1, the only module that a core module can import from.

use crate::capability::Capability;

use super::Effect;

/// Name of the module.
pub const MODULE: &str = "wasi_snapshot_preview1";
/// Name of the draft that came before it.
pub const DRAFT: &str = "wasi_unstable";

/// Returns the capability that a function belongs to, and its effect. Without `path_open`, the functions on descriptors
/// reach the standard streams alone.
pub fn find(function: &str) -> Option<(Capability, Effect)> {
    Some(match function {
        "args_get" | "args_sizes_get" | "environ_get" | "environ_sizes_get" => (Capability::Environment, Effect::None),
        "clock_res_get" | "clock_time_get" | "poll_oneoff" | "sched_yield" => (Capability::Clock, Effect::None),
        "random_get" => (Capability::Random, Effect::None),
        "proc_exit" | "proc_raise" => (Capability::Exit, Effect::None),
        "sock_accept" | "sock_recv" | "sock_send" | "sock_shutdown" => (Capability::Sockets, Effect::Network),
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
        | "fd_write" => (Capability::Streams, Effect::None),
        "fd_pread"
        | "fd_prestat_dir_name"
        | "fd_prestat_get"
        | "fd_readdir"
        | "path_filestat_get"
        | "path_readlink" => (Capability::Files, Effect::None),
        "fd_allocate"
        | "fd_fdstat_set_rights"
        | "fd_filestat_set_size"
        | "fd_filestat_set_times"
        | "fd_pwrite"
        | "path_create_directory"
        | "path_filestat_set_times"
        | "path_link"
        | "path_open"
        | "path_remove_directory"
        | "path_rename"
        | "path_symlink"
        | "path_unlink_file" => (Capability::Files, Effect::Files),
        _ => return None,
    })
}

/// Returns the effect of a function. Every socket function counts as network, also an unknown one.
pub fn effect(function: &str) -> Effect {
    match find(function) {
        Some((_, effect)) => effect,
        None if function.starts_with("sock_") => Effect::Network,
        None => Effect::Other,
    }
}
