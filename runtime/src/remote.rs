//! Calls of tools on remote servers. An embedder speaks the protocol of a server; each byte to the server and from it passes the
//! network gate, which has the grant of the call, its limits, its secrets and its record.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::call::Part;
use crate::error::ToolError;
use crate::tool::Remote;

/// Maximum number of progress reports that wait to be shown. More are dropped.
const MAX_WAITING: usize = 16;

/// Request to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRequest {
    /// Method, in capital letters.
    pub method: String,
    /// Absolute URL.
    pub url: String,
    /// Headers, without those of the connection, the framing and the secrets, which the gate sets.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Response of a server, as far as its head.
pub struct GateResponse {
    /// Status.
    pub status: u16,
    /// Headers with names in lower case. A value that is not text is left out.
    pub headers: Vec<(String, String)>,
    /// Body in parts, as they arrive. Dropping it closes the connection.
    pub body: BoxStream<'static, Result<Vec<u8>, ToolError>>,
}

impl GateResponse {
    /// Returns the first value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The only way to a server. A redirect is a response like any other: nothing is followed.
pub trait Gate: Send + Sync {
    /// Sends a request, and returns the response after its head has arrived.
    ///
    /// # Errors
    ///
    /// The reason why the request was not sent or not answered, worded for a model.
    fn send(&self, request: GateRequest) -> BoxFuture<'_, Result<GateResponse, ToolError>>;
}

/// Call of a tool on a remote server.
#[non_exhaustive]
pub struct RemoteCall<'a> {
    /// Tool with its pinned definition.
    pub remote: &'a Remote,
    /// Arguments, which have passed the checks.
    pub arguments: &'a Value,
    /// Identifier of the conversation; `None` outside of one. A server may keep state for a conversation, and for nothing else.
    pub conversation: Option<&'a str>,
    pub(crate) progress: mpsc::Sender<Part>,
}

impl<'a> RemoteCall<'a> {
    /// Creates a call, and the receiver of its progress.
    pub(crate) fn new(
        remote: &'a Remote,
        arguments: &'a Value,
        conversation: Option<&'a str>,
    ) -> (Self, mpsc::Receiver<Part>) {
        let (progress, receiver) = mpsc::channel(MAX_WAITING);
        (Self { remote, arguments, conversation, progress }, receiver)
    }

    /// Reports the progress of the call. A report is dropped if too many wait.
    pub fn progress(&self, done: u64, total: Option<u64>) {
        // Nobody waits for a report.
        let _ = self.progress.try_send(Part::Progress { done, total });
    }
}

/// Answer of a remote tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteAnswer {
    /// Content in parts.
    pub content: Vec<RemoteContent>,
    /// Structured answer as JSON, which the model gets instead of the texts in the content.
    pub structured: Option<String>,
    /// `true` for a failure of the tool.
    pub is_error: bool,
}

/// Part of a remote tool's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteContent {
    /// Text.
    Text(String),
    /// Bytes with a media type.
    Media {
        /// Media type.
        mime_type: String,
        /// File name.
        name: Option<String>,
        /// Content.
        data: Vec<u8>,
    },
    /// Reference to a resource, which is not followed.
    Link {
        /// Address of the resource.
        uri: String,
        /// Name of the resource.
        name: Option<String>,
        /// Media type of the resource.
        mime_type: Option<String>,
    },
}

/// Error of a remote call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteError {
    /// The server refused the token or misses one, so nothing was done. The call is made once more if a fresh token is available.
    Unauthorized(ToolError),
    /// Any other error.
    Failed(ToolError),
}

impl From<ToolError> for RemoteError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// Client for the servers of remote tools.
pub trait RemoteTools: Send + Sync {
    /// Makes one call, through this gate alone. Dropping the future abandons it.
    ///
    /// # Errors
    ///
    /// The error of the call, worded for a model. A call with an effect is never repeated by itself.
    fn call<'a>(&'a self, call: RemoteCall<'a>, gate: &'a dyn Gate)
    -> BoxFuture<'a, Result<RemoteAnswer, RemoteError>>;
}
