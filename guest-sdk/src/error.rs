//! Errors of tools: one message for the model, and the kind of the failure. Contains the messages for errors of files.

use std::error::Error as StdError;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path};

use serde_json::{Value, json};

use crate::FailureKind;
use crate::bindings::tool::toolcrib::tool::types::Failure;

/// Maximum ends of a missing path that are looked for.
const MAX_ENDS: usize = 16;
/// Actions for which another path may be suggested, because they change nothing.
const READING: [&str; 5] = ["describe", "list", "look at", "read", "search"];

/// Result of a tool's function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of a tool, as the model reads it: lowercase, without a full stop, values in backticks.
///
/// `?` converts every [`std::error::Error`], causes included. Use [`error!`](crate::error!) for a message of your own,
/// and [`PathContext::at`] for errors of files. The kind, which a rich tool reports to the host, is `failed` unless
/// another constructor is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    kind: FailureKind,
    message: String,
    details: Option<String>,
}

impl Error {
    /// Creates an error of the kind `failed`.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Failed, message)
    }

    /// Creates an error of a kind.
    pub fn of(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: None }
    }

    /// The call is invalid; the caller can correct it.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Invalid, message)
    }

    /// The requested object does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::of(FailureKind::NotFound, message)
    }

    /// The current state conflicts with the call.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Conflict, message)
    }

    /// An external service does not respond; a later call may succeed.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Unavailable, message)
    }

    /// Adds details, a JSON object such as `json!({ "found": 3 })`.
    #[must_use]
    pub fn details(self, details: Value) -> Self {
        let object = match details {
            Value::Object(_) => details,
            other => json!({ "value": other }),
        };
        Self { details: Some(object.to_string()), ..self }
    }

    /// Kind of the failure.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Details of the failure: text of a JSON object.
    pub fn more(&self) -> Option<&str> {
        self.details.as_deref()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { kind: error.kind, message: error.message, details: error.details }
    }
}

impl Error {
    /// Converts a failure that the host passes to `present`.
    pub(crate) fn from_failure(failure: Failure) -> Self {
        Self { kind: failure.kind, message: failure.message, details: failure.details }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// `Error` does not implement `std::error::Error`: this impl, which `?` needs, would then overlap with `From<T> for T`.
impl<E: StdError> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many errors already end with their cause.
            if !message.ends_with(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self::new(message)
    }
}

/// Creates an [`Error`] from a message, formatted as by [`format!`].
#[macro_export]
macro_rules! error {
    ($($message:tt)+) => {
        $crate::Error::new(::std::format!($($message)+))
    };
}

/// Adds the attempted action and the path to an I/O error.
pub trait PathContext<T> {
    /// Converts an I/O error into an [`Error`] that states the action, the path and the reason.
    ///
    /// ```
    /// use toolcrib_guest::PathContext;
    ///
    /// let failed = std::fs::read("no/such/file").at("read", "no/such/file");
    /// assert_eq!(failed.expect_err("no file").to_string(), "read `no/such/file`: no such file or folder");
    /// ```
    fn at(self, action: &str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T> PathContext<T> for io::Result<T> {
    fn at(self, action: &str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|error| {
            let path = path.as_ref();
            let kind = match error.kind() {
                ErrorKind::NotFound => FailureKind::NotFound,
                ErrorKind::AlreadyExists => FailureKind::Conflict,
                _ => FailureKind::Failed,
            };
            Error::of(kind, format!("{action} `{}`: {}", path.display(), reason(action, &error, path)))
        })
    }
}

/// Error number of a system that refuses a file by its own permissions. A grant refuses with another one.
const ACCESS: i32 = if cfg!(target_family = "wasm") { 2 } else { 13 };

/// Message of an I/O error. A path that leaves the granted folder, and a write with a grant to read only, are both
/// [`ErrorKind::PermissionDenied`] to a guest.
fn reason(action: &str, error: &io::Error, path: &Path) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied if error.raw_os_error() == Some(ACCESS) => {
            "the system refuses it: its permissions do not allow it, or it is read-only".into()
        }
        ErrorKind::PermissionDenied if leads_out(path) => {
            "permission denied by the grant: the path leads out of the granted folder".into()
        }
        ErrorKind::PermissionDenied => {
            let access = if READING.contains(&action) { "read" } else { "write" };
            format!("permission denied by the grant (see --allow-{access})")
        }
        // If the root is missing too, the tool was started without any folder.
        ErrorKind::NotFound if fs::metadata("/").is_err() => "no folder is granted".into(),
        ErrorKind::NotFound => match existing_end(path).filter(|_| READING.contains(&action)) {
            Some(end) => format!(
                "no such file or folder; paths are relative to the granted folder: did you mean `{}`?",
                end.display()
            ),
            None => "no such file or folder".into(),
        },
        ErrorKind::AlreadyExists => "it already exists".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::NotADirectory => "it, or a part of its path, is not a folder".into(),
        ErrorKind::DirectoryNotEmpty => "the folder is not empty".into(),
        ErrorKind::CrossesDevices => "the two paths lie in different granted folders".into(),
        ErrorKind::InvalidFilename => "the name is too long or not a valid one".into(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "no space is left".into(),
        _ => plain(&error.to_string()),
    }
}

/// Returns `true` if a path leaves its root by its names alone.
fn leads_out(path: &Path) -> bool {
    let mut depth = 0_usize;
    path.components().any(|part| {
        match part {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
        false
    })
}

/// Returns the longest end of a path that exists in the granted folder, if the path starts above that folder, as a path of the
/// host does: the folder has no entry with the name of its first part.
fn existing_end(path: &Path) -> Option<&Path> {
    let path = path.strip_prefix("/").unwrap_or(path);
    let has_entry = |path: &Path| {
        let entry = path.components().next().map(|name| fs::symlink_metadata(name.as_os_str()));
        // A link could lead out of the folder.
        entry.is_some_and(|entry| entry.is_ok_and(|entry| !entry.is_symlink()))
    };
    if path.components().any(|part| part == Component::ParentDir) || has_entry(path) {
        return None;
    }
    let mut parts = path.components();
    let ends = std::iter::from_fn(|| parts.next().map(|_| parts.as_path()));
    ends.take(MAX_ENDS).find(|end| has_entry(end) && fs::symlink_metadata(end).is_ok())
}

/// Adapts a message of the system: starts it in lowercase, and removes the error number.
fn plain(words: &str) -> String {
    let mut words = words.split(" (os error").next().unwrap_or(words).to_string();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_path_names_the_flag_of_the_grant() {
        let denied = |action: &str, path: &str| {
            let denied: io::Result<()> = Err(ErrorKind::PermissionDenied.into());
            denied.at(action, path).expect_err("denied").to_string()
        };
        assert_eq!(denied("read", "a/../b"), "read `a/../b`: permission denied by the grant (see --allow-read)");
        assert_eq!(denied("write", "b"), "write `b`: permission denied by the grant (see --allow-write)");
        let out = "permission denied by the grant: the path leads out of the granted folder";
        for path in ["..", "../b", "a/../../b", "/../b"] {
            assert_eq!(denied("read", path), format!("read `{path}`: {out}"));
        }
    }

    #[test]
    fn a_refusal_of_the_system_is_not_blamed_on_the_grant() {
        let refused: io::Result<()> = Err(io::Error::from_raw_os_error(ACCESS));
        let message = refused.at("read", "notes.md").expect_err("refused").to_string();
        assert!(message.starts_with("read `notes.md`: the system refuses it"), "{message}");
    }

    #[test]
    fn a_path_that_starts_above_the_folder_is_explained() {
        let missing = |path: &str| fs::metadata(path).at("read", path).expect_err("missing").to_string();
        let told = "no such file or folder; paths are relative to the granted folder: did you mean `src/error.rs`?";
        assert_eq!(missing("no/folder/src/error.rs"), format!("read `no/folder/src/error.rs`: {told}"));
        assert_eq!(missing("/no/folder/src/error.rs"), format!("read `/no/folder/src/error.rs`: {told}"));
        assert_eq!(missing("no/nothing"), "read `no/nothing`: no such file or folder");
        assert_eq!(missing("src/Cargo.toml"), "read `src/Cargo.toml`: no such file or folder");
        let written = fs::metadata("no/Cargo.toml").at("append to", "no/Cargo.toml").expect_err("missing").to_string();
        assert_eq!(written, "append to `no/Cargo.toml`: no such file or folder");
        assert_eq!(missing("no/../Cargo.toml"), "read `no/../Cargo.toml`: no such file or folder");
    }

    #[test]
    fn what_is_not_there_or_there_already_is_of_a_kind_of_its_own() {
        let kind = |kind: ErrorKind| Err::<(), _>(io::Error::from(kind)).at("read", "a").expect_err("failed").kind();
        assert_eq!(kind(ErrorKind::NotFound), FailureKind::NotFound);
        assert_eq!(kind(ErrorKind::AlreadyExists), FailureKind::Conflict);
        assert_eq!(kind(ErrorKind::PermissionDenied), FailureKind::Failed);
    }

    #[test]
    fn details_are_always_an_object() {
        let more = |details| Error::invalid("no").details(details).more().map(str::to_owned);
        assert_eq!(more(json!({ "a": 1 })).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(more(json!(1)).as_deref(), Some(r#"{"value":1}"#));
    }

    #[test]
    fn an_unusual_error_keeps_its_own_words() {
        let odd: io::Result<()> = Err(io::Error::other("the tape is torn"));
        let message = odd.at("read", "tape").expect_err("odd").to_string();
        assert_eq!(message, "read `tape`: the tape is torn");
    }

    #[test]
    fn the_words_of_the_system_become_ours() {
        assert_eq!(plain("Directory not empty (os error 55)"), "directory not empty");
        assert_eq!(plain(""), "");
    }

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug)]
        struct Outer(&'static str, io::Error);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
        }
        impl StdError for Outer {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(&self.1)
            }
        }
        let cause = || io::Error::other("no ink");
        assert_eq!(Error::from(Outer("print failed", cause())).to_string(), "print failed: no ink");
        assert_eq!(Error::from(Outer("print: no ink", cause())).to_string(), "print: no ink");
    }
}
