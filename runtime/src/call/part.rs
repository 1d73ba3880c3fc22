//! Answer parts beside the JSON line: text, media, links and progress.

use bytes::Bytes;

/// Part of a tool's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// A JSON text.
    Json(String),
    /// Bytes with a media type.
    Media(Media),
    /// Reference to a resource.
    Link(Link),
    /// Progress of a running call.
    Progress {
        /// Number of steps that are done.
        done: u64,
        /// Number of all steps, if known.
        total: Option<u64>,
    },
}

/// Bytes with a media type: an image, a sound, a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Media {
    /// Media type such as `image/png`: a type and a subtype in lower case, without parameters.
    pub mime_type: String,
    /// File name, without a folder.
    pub name: Option<String>,
    /// Content.
    pub data: Bytes,
}

impl Media {
    /// Creates media of a type.
    pub fn new(mime_type: impl Into<String>, name: Option<String>, data: impl Into<Bytes>) -> Self {
        Self { mime_type: mime_type.into(), name, data: data.into() }
    }
}

/// Reference to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// Address of the resource.
    pub uri: String,
    /// Name of the resource.
    pub name: Option<String>,
    /// Media type of the resource.
    pub mime_type: Option<String>,
}

/// Meaning of an answer's line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// A JSON value, which the model gets as it is.
    #[default]
    Json,
    /// A JSON string. The model gets its text.
    Text,
    /// An object with the member `content`, an array, which stays structured for one provider's API.
    Native {
        /// The API, such as `openai.chat_completions`.
        format: String,
    },
}
