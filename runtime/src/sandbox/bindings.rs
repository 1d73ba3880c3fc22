//! The contract of rich tools, `toolcrib:tool`, as the engine lifts and lowers it: the types of `wit/tool`, and the names
//! of its interfaces. What comes from a guest is as the guest sent it; nothing here believes it.

use wasmtime::component::{Component, ComponentExportIndex, ComponentType, Lift, Lower};

/// The interfaces that a tool may export. An export of any version of the first major one is found.
pub(super) const CALL: &str = "toolcrib:tool/call@1.1.0";
const VALIDATE: &str = "toolcrib:tool/validate@1.1.0";
const PREVIEW: &str = "toolcrib:tool/preview@1.1.0";
const PREPARE: &str = "toolcrib:tool/prepare@1.1.0";
const ROUTE: &str = "toolcrib:tool/route@1.1.0";
const PRESENT: &str = "toolcrib:tool/present@1.1.0";

/// Where a rich tool is asked what.
#[derive(Clone)]
pub(super) struct Exports {
    pub(super) run: ComponentExportIndex,
    pub(super) check: Option<ComponentExportIndex>,
    pub(super) preview: Option<ComponentExportIndex>,
    pub(super) prepare: Option<ComponentExportIndex>,
    pub(super) claim: Option<ComponentExportIndex>,
    pub(super) present: Option<ComponentExportIndex>,
}

impl Exports {
    /// The exports of a component; `None` where it is no rich tool.
    pub(super) fn of(component: &Component) -> Option<Self> {
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

/// What a call carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower)]
#[component(variant)]
pub(crate) enum Carried<'a> {
    #[component(name = "object")]
    Object(&'a str),
    #[component(name = "text")]
    Text(&'a str),
}

/// One call, as a guest gets it.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) payload: Carried<'a>,
    pub(crate) format: Option<&'a str>,
    pub(crate) metadata: &'a str,
    pub(crate) context: &'a str,
    pub(crate) prepared: Option<&'a str>,
}

/// Bytes of a kind.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Bytes {
    #[component(name = "mime-type")]
    pub(crate) mime_type: String,
    pub(crate) name: Option<String>,
    pub(crate) data: Vec<u8>,
}

/// Something that lies elsewhere.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Elsewhere {
    pub(crate) uri: String,
    pub(crate) name: Option<String>,
    #[component(name = "mime-type")]
    pub(crate) mime_type: Option<String>,
}

/// Content in the form of one provider's API.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Envelope {
    pub(crate) format: String,
    pub(crate) content: String,
}

/// A part of an answer.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(variant)]
pub(crate) enum Piece {
    #[component(name = "text")]
    Text(String),
    #[component(name = "json")]
    Json(String),
    #[component(name = "media")]
    Media(Bytes),
    #[component(name = "link")]
    Link(Elsewhere),
    #[component(name = "native")]
    Native(Envelope),
}

impl Piece {
    /// Bytes that it holds.
    pub(crate) fn len(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Piece::Text(text) | Piece::Json(text) => text.len(),
            Piece::Media(Bytes { mime_type, name, data }) => mime_type.len() + of(name) + data.len(),
            Piece::Link(Elsewhere { uri, name, mime_type }) => uri.len() + of(name) + of(mime_type),
            Piece::Native(Envelope { format, content }) => format.len() + content.len(),
        }
    }
}

/// What a call came to.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Answer {
    pub(crate) content: Vec<Piece>,
    pub(crate) display: Vec<Piece>,
}

/// Of which kind a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "the engine makes them of what a guest says")]
pub(crate) enum FailureKind {
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

/// Why a call came to nothing.
#[derive(Debug, Clone, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) details: Option<String>,
}

/// What a tool says to a call that may be its own.
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

/// An answer in the words of its tool.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Presentation {
    pub(crate) content: Option<Vec<Piece>>,
    pub(crate) display: Vec<Piece>,
    pub(crate) summary: Option<String>,
    pub(crate) transcript: Option<String>,
}

/// What a tool asks the model.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct ModelQuestion {
    pub(crate) system: Option<String>,
    pub(crate) prompt: String,
    #[component(name = "max-tokens")]
    pub(crate) max_tokens: Option<u32>,
}

/// What the model said.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(record)]
pub(crate) struct ModelAnswer {
    pub(crate) text: String,
    pub(crate) tokens: u64,
}

/// How much a note matters.
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
    /// The word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}
