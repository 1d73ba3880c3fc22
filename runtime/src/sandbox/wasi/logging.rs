//! `wasi:logging`: log messages on the call's standard error, within its cap.

use wasmtime::component::{ComponentType, Lift, LinkerInstance};

use super::state::WasiStore;

#[derive(Debug, Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "guests make them")]
enum Level {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
    #[component(name = "critical")]
    Critical,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
            Level::Critical => "critical",
        }
    }
}

/// Links the interface.
pub(super) fn add_to_linker<T: WasiStore>(interface: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    interface.func_wrap("log", |mut store, (level, context, message): (Level, String, String)| {
        let context = if context.is_empty() { context } else { format!("{context}: ") };
        store.data_mut().wasi().log(format!("{}: {context}{message}\n", level.as_str()))
    })
}
