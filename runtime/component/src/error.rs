//! The error type of this crate. Its messages name bytes, sections and items of the program and never a path of the host.

use wasmparser::BinaryReaderError;

/// A program, or a section of it, that cannot be read or is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not WebAssembly.
    #[error("not a WebAssembly component or module")]
    NotWebAssembly,
    /// The bytes are the text format of WebAssembly.
    #[error("in the text format of WebAssembly; convert it with `wasm-tools parse FILE -o FILE.wasm`")]
    TextFormat,
    /// The bytes begin with the magic number of WebAssembly and an unknown version.
    #[error("neither a component nor a core module of a known version")]
    UnknownVersion,
    /// The program ends inside its 8-byte header or inside a section.
    #[error("{}", truncation(*at))]
    Truncated {
        /// Offset of the section that is incomplete; 0 for the header.
        at: u64,
    },
    /// The binary format is broken.
    #[error(transparent)]
    Malformed(#[from] BinaryReaderError),
    /// The JSON of a descriptor is broken.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The program or a part of it exceeds a limit.
    #[error("{0}")]
    Limit(String),
    /// The program is well-formed and uses a feature that the host does not have.
    #[error("{0}")]
    Unsupported(String),
    /// The program contradicts itself, or its parts do not belong together.
    #[error("{0}")]
    Invalid(String),
    /// A custom section cannot be read.
    #[error("`{name}`: {source}")]
    Section {
        /// Name of the section.
        name: &'static str,
        /// Reason.
        source: Box<Error>,
    },
    /// A WIT package cannot be read.
    #[error("{message}")]
    Wit {
        /// Message of the WIT parser with its causes.
        message: String,
        /// Error of the WIT parser.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The result of reading a program.
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn truncation(at: u64) -> String {
    match at {
        0 => "truncated: the file ends within its first 8 bytes; copy or build it again".to_owned(),
        at => format!("truncated: the file ends before its section at byte {at} does; copy or build it again"),
    }
}

/// Beginnings of the text format.
const TEXTS: [&[u8]; 2] = [b"(component", b"(module"];

impl Error {
    /// Returns the error for a program or its first bytes, which are not WebAssembly.
    pub fn not_webassembly(program: &[u8]) -> Self {
        let text = program.trim_ascii_start();
        if TEXTS.iter().any(|begin| text.starts_with(begin)) { Self::TextFormat } else { Self::NotWebAssembly }
    }
}
