//! Errors of the client.
//!
//! No variant holds a secret, a query of a URL or free text of a registry: hosts, digests, sizes and codes only, each
//! bounded and escaped.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::address::Role;
use crate::digest::{Digest, DigestError};
use crate::reference::ReferenceError;

/// Failure of a call to a registry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reference cannot be used for the operation.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The credentials could not be read, stored or used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The TLS configuration or HTTP client could not be created.
    #[error("cannot set up the HTTPS client")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The host would be reached without TLS, and the caller did not allow that.
    #[error(
        "`{host}` would be reached over plain HTTP; this is allowed for loopback and for hosts named by the operator"
    )]
    PlainHttp {
        /// Host and port.
        host: String,
    },
    /// A credential would be sent without TLS to another server than the registry.
    #[error(
        "a credential of the registry would be sent to `{host}` over plain HTTP, and goes so to the registry alone"
    )]
    PlainHttpCredential {
        /// Host and port.
        host: String,
    },
    /// The address policy refused an address.
    #[error("`{host}` has the address `{address}`, which the address policy refuses for this purpose: {role:?}")]
    AddressRefused {
        /// Host as written in the URL.
        host: String,
        /// Refused address.
        address: IpAddr,
        /// Purpose of the connection.
        role: Role,
    },
    /// A redirect was refused.
    #[error("`{host}` redirected, but {reason}")]
    Redirect {
        /// Host that answered with the redirect.
        host: String,
        /// Reason of the refusal.
        reason: RedirectError,
    },
    /// The connection failed or broke.
    #[error("the connection to `{host}` failed")]
    Connection {
        /// Host and port.
        host: String,
        /// Cause, without the URL.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No byte arrived or left for too long.
    #[error("no data from or to `{host}` for {} s", limit.as_secs_f32())]
    Stalled {
        /// Host and port.
        host: String,
        /// Time allowed without data.
        limit: Duration,
    },
    /// One exchange took too long.
    #[error("`{host}` did not complete its response within {} s", limit.as_secs_f32())]
    Slow {
        /// Host and port.
        host: String,
        /// Time allowed for one exchange.
        limit: Duration,
    },
    /// The whole call took too long.
    #[error("the operation did not end within {} s", limit.as_secs_f32())]
    Deadline {
        /// Time allowed for the call.
        limit: Duration,
    },
    /// The registry does not have the content.
    #[error("{what} not found in the registry")]
    NotFound {
        /// Kind of content.
        what: What,
    },
    /// The registry or token server refuses the caller.
    #[error("`{host}` refuses access to {what} (status {status}); credentials were {}", if *sent { "sent: check them and their permissions" } else { "not found: log in" })]
    Unauthorized {
        /// Host that refused.
        host: String,
        /// Kind of content.
        what: What,
        /// HTTP status.
        status: u16,
        /// `true` if credentials were available.
        sent: bool,
    },
    /// The registry answered with an unexpected status.
    #[error("unexpected status {status} for {what}{}", code.as_deref().map(|code| format!(" (`{code}`)")).unwrap_or_default())]
    Status {
        /// Kind of content.
        what: What,
        /// HTTP status.
        status: u16,
        /// First error code of the response, uppercase letters and `_` only.
        code: Option<String>,
        /// Pause that the server asked for.
        retry_after: Option<Duration>,
    },
    /// The server asks for a longer pause than allowed.
    #[error("`{host}` asks to wait {} s, which is longer than the limit of {} s; try again later", wait.as_secs(), limit.as_secs())]
    RetryLater {
        /// Host and port.
        host: String,
        /// Pause that the server asked for.
        wait: Duration,
        /// Longest pause allowed.
        limit: Duration,
    },
    /// A size is over its limit.
    #[error("{what} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// Kind of content.
        what: What,
        /// Limit in bytes.
        limit: u64,
    },
    /// A count is over its limit.
    #[error("{what} is over the limit of {limit} items")]
    TooMany {
        /// Kind of content.
        what: What,
        /// Limit.
        limit: usize,
    },
    /// The content has another size than its descriptor.
    #[error("{what} has {found} bytes, expected {expected}")]
    Size {
        /// Kind of content.
        what: What,
        /// Size in the descriptor.
        expected: u64,
        /// Size found or announced.
        found: u64,
    },
    /// The content ended early.
    #[error("{what} ended after {found} of {expected} bytes")]
    Truncated {
        /// Kind of content.
        what: What,
        /// Size in the descriptor.
        expected: u64,
        /// Bytes received.
        found: u64,
    },
    /// The content has another digest than asked for or announced.
    #[error("{what} has the digest `{found}`, expected `{expected}`")]
    DigestMismatch {
        /// Kind of content.
        what: What,
        /// Expected digest.
        expected: Digest,
        /// Digest of the content, or the one announced.
        found: Digest,
    },
    /// The media type is not one that was asked for, or contradicts the content.
    #[error("{what} has the media type `{found}`, expected {expected}")]
    MediaType {
        /// Kind of content.
        what: What,
        /// Media type found, escaped and cut.
        found: String,
        /// Expectation.
        expected: &'static str,
    },
    /// The response cannot be understood.
    #[error("{what} is malformed: {reason}")]
    Malformed {
        /// Kind of content.
        what: What,
        /// Reason, without content.
        reason: String,
    },
    /// The upload address is on another host or without TLS.
    #[error("`{registry}` names an upload address that is not its own: `{found}`")]
    UploadLocation {
        /// Host and port of the registry.
        registry: String,
        /// Scheme, host and port of the upload address.
        found: String,
    },
    /// A file could not be opened, read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// Action, for example `read`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The partial file is in use by another transfer.
    #[error("the partial file `{}` is in use by another transfer", path.display())]
    PartialInUse {
        /// Path of the file.
        path: PathBuf,
    },
    /// The writer of the caller failed.
    #[error("cannot write the content")]
    Writer(#[source] io::Error),
}

/// Kind of content that an error speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// Manifest or index.
    Manifest,
    /// Blob.
    Blob,
    /// Upload of a blob.
    Upload,
    /// List of tags.
    Tags,
    /// List of referrers.
    Referrers,
    /// Header fields of a response.
    Headers,
    /// Authentication challenge.
    Challenge,
    /// Response of the token server.
    Token,
    /// API check of the registry.
    Registry,
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Manifest => "the manifest",
            Self::Blob => "the blob",
            Self::Upload => "the upload",
            Self::Tags => "the list of tags",
            Self::Referrers => "the list of referrers",
            Self::Headers => "the response header",
            Self::Challenge => "the authentication challenge",
            Self::Token => "the token response",
            Self::Registry => "the registry API",
        })
    }
}

/// Reason why a redirect was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// The response has no usable `Location`.
    #[error("without a valid location")]
    NoLocation,
    /// The location is too long.
    #[error("the location is longer than {} bytes", crate::limits::MAX_URL_BYTES)]
    TooLong,
    /// The scheme is neither `https` nor `http`.
    #[error("to a scheme other than https")]
    Scheme,
    /// The redirect leads from HTTPS to HTTP.
    #[error("from https to http")]
    Downgrade,
    /// The location contains a user name or password.
    #[error("to a location with a user name or password")]
    UserInfo,
    /// The redirect limit is reached.
    #[error("this is more than {} redirects", crate::limits::MAX_REDIRECTS)]
    TooMany,
    /// The operation does not follow redirects.
    #[error("redirects are not followed for this operation")]
    NotFollowed,
}

/// Failure of reading, storing or using credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// A user name or password is empty, too long or has characters that cannot be sent.
    #[error("the user name, password or token is empty, too long or has characters that cannot be sent")]
    NotUsable,
    /// A credential file could not be read or written.
    #[error("cannot {action} the credential file `{}`", path.display())]
    File {
        /// Action, for example `read`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A credential file is not a regular file.
    #[error("the credential file `{}` is not a regular file", path.display())]
    NotAFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// A credential file is too large.
    #[error("the credential file `{}` is larger than {limit} bytes", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Limit in bytes.
        limit: u64,
    },
    /// A credential file does not have the format of Docker.
    #[error("the credential file `{}` is malformed: {reason}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Reason, without content.
        reason: String,
    },
    /// The name of a credential helper is not valid.
    #[error("`{found}` is not the name of a credential helper: letters, digits, `-` and `_` only")]
    HelperName {
        /// Name found, escaped and cut.
        found: String,
    },
    /// A credential helper is not installed in the search path.
    #[error("the credential helper `docker-credential-{name}` was not found in an absolute folder of the search path")]
    HelperNotFound {
        /// Name of the helper.
        name: String,
    },
    /// A credential helper could not be run.
    #[error("the credential helper `docker-credential-{name}` could not be run")]
    HelperStart {
        /// Name of the helper.
        name: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A credential helper failed.
    #[error("the credential helper `docker-credential-{name}` failed: {reason}")]
    Helper {
        /// Name of the helper.
        name: String,
        /// Reason, without output of the helper.
        reason: &'static str,
    },
    /// No credential file is configured, so nothing can be stored.
    #[error("no credential file is configured; set `$DOCKER_CONFIG` or `$HOME`")]
    NoStore,
}

impl Error {
    /// Creates [`Error::Malformed`] from a JSON error: its place, none of its content.
    pub(crate) fn json(what: What, error: &serde_json::Error) -> Self {
        Self::Malformed { what, reason: json_place(error) }
    }

    /// Creates [`Error::Malformed`].
    pub(crate) fn malformed(what: What, reason: impl Into<String>) -> Self {
        Self::Malformed { what, reason: reason.into() }
    }

    /// Returns `true` if another attempt may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Stalled { .. } | Self::Slow { .. } | Self::Truncated { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }
}

impl From<DigestError> for Error {
    fn from(error: DigestError) -> Self {
        Self::Reference(ReferenceError::Digest(error))
    }
}

/// Describes a JSON error without its message, which may quote the content.
pub(crate) fn json_place(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Data => "a field is missing or has the wrong type",
        serde_json::error::Category::Eof => "the JSON ends early",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "the JSON is not valid",
    };
    format!("{kind} (line {}, column {})", error.line(), error.column())
}
