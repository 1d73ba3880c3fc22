//! `wasi:logging`: lines on the call's standard error, within its cap.

use wasmtime::component::{ComponentType, Lift, LinkerInstance};

use crate::sandbox::host::Host;
use crate::sandbox::tool_imports::note;

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

/// Links it.
pub(super) fn add(interface: &mut LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    interface.func_wrap("log", |mut store, (level, context, message): (Level, String, String)| {
        let context = if context.is_empty() { context } else { format!("{context}: ") };
        note(&mut store, &format!("{}: {context}{message}\n", level.as_str()))
    })
}
