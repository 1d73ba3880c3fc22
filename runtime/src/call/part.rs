//! What an answer is made of where it is more than a line of JSON.

use bytes::Bytes;

/// A part of what a tool says.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// A JSON text.
    Json(String),
    /// Bytes of a kind.
    Media(Media),
    /// Something that lies elsewhere.
    Link(Link),
    /// How far a call is.
    Progress {
        /// The steps that are done.
        done: u64,
        /// All of them, where their number is known.
        total: Option<u64>,
    },
}

/// Bytes of a kind: an image, a sound, a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// What they are, such as `image/png`: lower case, a type and a subtype and nothing else.
    pub mime_type: String,
    /// A file name for them, without a folder.
    pub name: Option<String>,
    /// The bytes.
    pub data: Bytes,
}

/// Something that lies elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where.
    pub uri: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub mime_type: Option<String>,
}

/// How the line of an answer is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// It is told as it is.
    #[default]
    Json,
    /// It is a JSON string, and what it holds is told.
    Text,
    /// It is an object with the member `content`, an array, which stays structured for one provider's API.
    Native {
        /// The API, such as `openai.chat_completions`.
        format: String,
    },
}
