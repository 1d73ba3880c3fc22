//! Types of the package `toolcrib:tool`, under the names that the host uses, and its interfaces' names. Its imports are
//! linked by hand, because some of them need the store, end the call, or exist in two packages.

use wasmtime::component::{Component, ComponentExportIndex};

pub(crate) use super::generated::tool::exports::toolcrib::tool::present::Presentation;
pub(crate) use super::generated::tool::exports::toolcrib::tool::route::Opinion;
pub(in crate::sandbox) use super::generated::tool::toolcrib::tool::log::Level;
pub(crate) use super::generated::tool::toolcrib::tool::model::{Completion as ModelAnswer, Question as ModelQuestion};
pub(crate) use super::generated::tool::toolcrib::tool::types::{
    Answer, Failure as GuestFailure, FailureKind as GuestFailureKind, Invocation, Link as GuestLink,
    Media as GuestMedia, Native as GuestNative, Part as GuestPart, Payload as GuestPayload,
};

/// Interfaces that a tool may export. An export of any version of the first major one is found.
pub(in crate::sandbox) const CALL: &str = "toolcrib:tool/call@1.1.0";
const VALIDATE: &str = "toolcrib:tool/validate@1.1.0";
const PREVIEW: &str = "toolcrib:tool/preview@1.1.0";
const PREPARE: &str = "toolcrib:tool/prepare@1.1.0";
const ROUTE: &str = "toolcrib:tool/route@1.1.0";
const PRESENT: &str = "toolcrib:tool/present@1.1.0";

/// Exported functions of a rich tool.
#[derive(Clone)]
pub(in crate::sandbox) struct Exports {
    pub(in crate::sandbox) run: ComponentExportIndex,
    pub(in crate::sandbox) check: Option<ComponentExportIndex>,
    pub(in crate::sandbox) preview: Option<ComponentExportIndex>,
    pub(in crate::sandbox) prepare: Option<ComponentExportIndex>,
    pub(in crate::sandbox) claim: Option<ComponentExportIndex>,
    pub(in crate::sandbox) present: Option<ComponentExportIndex>,
}

/// Interface and function that check arguments in a command or in a component with functions of its own.
const CHECK: (&str, &str) = ("toolcrib:tool/validate@0.1.0", "check");

/// Returns the component's export that checks arguments, if any.
pub(in crate::sandbox) fn check_export(component: &Component) -> Option<ComponentExportIndex> {
    let interface = component.get_export_index(None, CHECK.0)?;
    component.get_export_index(Some(&interface), CHECK.1)
}

impl Exports {
    /// Returns the exports of a component; `None` if it is no rich tool.
    pub(in crate::sandbox) fn of(component: &Component) -> Option<Self> {
        let export = |interface: &str, function: &str| {
            let interface = component.get_export_index(None, interface)?;
            component.get_export_index(Some(&interface), function)
        };
        Some(Self {
            run: export(CALL, "run")?,
            check: export(VALIDATE, "check"),
            preview: export(PREVIEW, "preview"),
            prepare: export(PREPARE, "prepare"),
            claim: export(ROUTE, "claim"),
            present: export(PRESENT, "present"),
        })
    }
}

impl GuestPart {
    /// Returns the size of the part in bytes.
    pub(crate) fn len(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            GuestPart::Text(text) | GuestPart::Json(text) => text.len(),
            GuestPart::Media(GuestMedia { mime_type, name, data }) => mime_type.len() + of(name) + data.len(),
            GuestPart::Link(GuestLink { uri, name, mime_type }) => uri.len() + of(name) + of(mime_type),
            GuestPart::Native(GuestNative { format, content }) => format.len() + content.len(),
        }
    }
}

impl Level {
    /// Returns the name of the level.
    pub(in crate::sandbox) fn as_str(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}
