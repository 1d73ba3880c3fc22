//! Types of the package `toolcrib:tool`, as the engine lifts and lowers them, and the names of its interfaces.

use wasmtime::component::{Component, ComponentExportIndex, ComponentType, Lift, Lower};

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

/// Interface by which a command or a component with functions of its own checks arguments, and its function.
const CHECK: (&str, &str) = ("toolcrib:tool/validate@0.1.0", "check");

/// Returns the export by which a component checks arguments, if any.
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

/// Payload of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower)]
#[component(variant)]
pub(crate) enum GuestPayload<'a> {
    #[component(name = "object")]
    Object(&'a str),
    #[component(name = "text")]
    Text(&'a str),
}

/// One call, as a guest receives it.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Invocation<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) payload: GuestPayload<'a>,
    pub(crate) format: Option<&'a str>,
    pub(crate) metadata: &'a str,
    pub(crate) context: &'a str,
    pub(crate) prepared: Option<&'a str>,
}

/// Bytes with a media type.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct GuestMedia {
    #[component(name = "mime-type")]
    pub(crate) mime_type: String,
    pub(crate) name: Option<String>,
    pub(crate) data: Vec<u8>,
}

/// Link to a resource.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct GuestLink {
    pub(crate) uri: String,
    pub(crate) name: Option<String>,
    #[component(name = "mime-type")]
    pub(crate) mime_type: Option<String>,
}

/// Content in the format of one provider's API.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct GuestNative {
    pub(crate) format: String,
    pub(crate) content: String,
}

/// Part of an answer.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(variant)]
pub(crate) enum GuestPart {
    #[component(name = "text")]
    Text(String),
    #[component(name = "json")]
    Json(String),
    #[component(name = "media")]
    Media(GuestMedia),
    #[component(name = "link")]
    Link(GuestLink),
    #[component(name = "native")]
    Native(GuestNative),
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

/// Answer of a call.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Answer {
    pub(crate) content: Vec<GuestPart>,
    pub(crate) display: Vec<GuestPart>,
}

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "the engine makes them of what a guest says")]
pub(crate) enum GuestFailureKind {
    #[component(name = "invalid")]
    Invalid,
    #[component(name = "not-found")]
    NotFound,
    #[component(name = "conflict")]
    Conflict,
    #[component(name = "unavailable")]
    Unavailable,
    #[component(name = "failed")]
    Failed,
}

/// Failure of a call.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct GuestFailure {
    pub(crate) kind: GuestFailureKind,
    pub(crate) message: String,
    pub(crate) details: Option<String>,
}

/// Claim of a tool on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "the engine makes them of what a guest says")]
pub(crate) enum Opinion {
    #[component(name = "claims")]
    Claims,
    #[component(name = "rejects")]
    Rejects,
    #[component(name = "no-opinion")]
    None,
}

/// Presentation of an outcome, in the words of its tool.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Presentation {
    pub(crate) content: Option<Vec<GuestPart>>,
    pub(crate) display: Vec<GuestPart>,
    pub(crate) summary: Option<String>,
    pub(crate) transcript: Option<String>,
}

/// Request of a tool to the model.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct ModelQuestion {
    pub(crate) system: Option<String>,
    pub(crate) prompt: String,
    #[component(name = "max-tokens")]
    pub(crate) max_tokens: Option<u32>,
}

/// Response of the model.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(record)]
pub(crate) struct ModelAnswer {
    pub(crate) text: String,
    pub(crate) tokens: u64,
}

/// Level of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "the engine makes them of what a guest says")]
pub(crate) enum Level {
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
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
