//! References to content in a registry: `[oci://]host[:port]/path[:tag][@digest]`.
//!
//! Parsing is strict. The host is always required: a name without one is never completed with a default registry, so
//! a reference means the same on every machine.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::digest::{Digest, DigestError};

/// Longest reference accepted, in bytes.
pub const MAX_REFERENCE_BYTES: usize = 1024;
/// Longest repository path accepted, in bytes: the limit that registries share.
pub const MAX_REPOSITORY_BYTES: usize = 255;
/// Longest tag accepted, in bytes. Source: OCI distribution specification 1.1, "Pulling manifests".
pub const MAX_TAG_BYTES: usize = 128;
/// Longest host name accepted, in bytes. Source: RFC 1035, section 2.3.4.
pub const MAX_HOST_BYTES: usize = 253;

/// Reason why a text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The text is longer than [`MAX_REFERENCE_BYTES`].
    #[error("a reference has at most {MAX_REFERENCE_BYTES} bytes, found {found}")]
    TooLong {
        /// Length found, in bytes.
        found: usize,
    },
    /// The text names another scheme.
    #[error("the only scheme of a reference is `oci://`")]
    Scheme,
    /// The text has no path after the host, or no host before the path.
    #[error("a reference has the form `oci://host[:port]/path[:tag][@digest]`; host or path is missing")]
    Incomplete,
    /// The first part is not clearly a host.
    #[error(
        "`{found}` is not a registry host; write it in full, for example `registry.example.com/path` or `localhost:5000/path`"
    )]
    AmbiguousHost {
        /// Part before the first slash.
        found: String,
    },
    /// The host is not a DNS name or an address.
    #[error("`{found}` is not a valid host name or address")]
    Host {
        /// Host as found.
        found: String,
    },
    /// The port is not a number from 1 to 65535.
    #[error("`{found}` is not a port from 1 to 65535")]
    Port {
        /// Port as found.
        found: String,
    },
    /// The repository path breaks the rules of the distribution specification.
    #[error(
        "`{found}` is not a repository path: lowercase letters and digits in parts divided by `/`, joined within a part by `.`, `_`, `__` or `-`, at most {MAX_REPOSITORY_BYTES} bytes"
    )]
    Repository {
        /// Path as found.
        found: String,
    },
    /// The tag breaks the rules of the distribution specification.
    #[error(
        "`{found}` is not a tag: letters, digits, `_`, `.`, `-`, the first none of `.` and `-`, at most {MAX_TAG_BYTES} characters"
    )]
    Tag {
        /// Tag as found.
        found: String,
    },
    /// The digest after `@` is not valid.
    #[error("the digest after `@` is not valid")]
    Digest(#[from] DigestError),
    /// The reference has neither a tag nor a digest, and the operation needs one.
    #[error("the reference has neither a tag nor a digest; add `:tag` or `@sha256:...`")]
    NoVersion,
}

/// Host and port of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Registry {
    text: String,
}

/// Registry and repository: the place that holds manifests and blobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Repository {
    registry: Registry,
    path: String,
}

/// Tag of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(String);

/// Repository with an optional tag and an optional digest.
///
/// With both, the digest decides and the tag is a remark for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    repository: Repository,
    tag: Option<Tag>,
    digest: Option<Digest>,
}

impl Registry {
    /// Returns `host` or `host:port` in lower case.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host and port that answer API requests.
    ///
    /// They differ for `docker.io` alone, the name of a registry at `registry-1.docker.io`.
    pub(crate) fn api_authority(&self) -> &str {
        match self.text.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            text => text,
        }
    }
}

impl FromStr for Registry {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.len() > MAX_REFERENCE_BYTES {
            return Err(ReferenceError::TooLong { found: text.len() });
        }
        let text = text.to_ascii_lowercase();
        let (host, port) = split_port(&text);
        if !is_host(host) {
            return Err(ReferenceError::Host { found: crate::text::excerpt(host) });
        }
        if let Some(port) = port {
            let digits = !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
            if !digits || port.starts_with('0') || port.parse::<u16>().is_err() {
                return Err(ReferenceError::Port { found: crate::text::excerpt(port) });
            }
        }
        Ok(Self { text })
    }
}

impl Repository {
    /// Returns the registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the path below the registry, for example `team/tools`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Tag {
    /// Returns the tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Tag {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let valid = text.len() <= MAX_TAG_BYTES
            && text.bytes().next().is_some_and(word)
            && text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'));
        if valid { Ok(Self(text.to_owned())) } else { Err(ReferenceError::Tag { found: crate::text::excerpt(text) }) }
    }
}

impl Reference {
    /// Returns the repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the tag.
    pub fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }

    /// Returns the digest.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Returns the reference pinned to `digest`. The tag stays as a remark.
    #[must_use]
    pub fn with_digest(mut self, digest: Digest) -> Self {
        self.digest = Some(digest);
        self
    }

    /// Returns the text that selects the manifest: the digest, or else the tag.
    pub(crate) fn selector(&self) -> Result<String, ReferenceError> {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => Ok(digest.to_string()),
            (None, Some(tag)) => Ok(tag.0.clone()),
            (None, None) => Err(ReferenceError::NoVersion),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.len() > MAX_REFERENCE_BYTES {
            return Err(ReferenceError::TooLong { found: text.len() });
        }
        let rest = match text.split_once("://") {
            Some(("oci", rest)) => rest,
            Some(_) => return Err(ReferenceError::Scheme),
            None => text,
        };
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>()?)),
            None => (rest, None),
        };
        let (host, rest) = rest.split_once('/').ok_or(ReferenceError::Incomplete)?;
        if host.is_empty() || rest.is_empty() {
            return Err(ReferenceError::Incomplete);
        }
        let named_in_full = host.contains(['.', ':']) || host.eq_ignore_ascii_case("localhost");
        if !named_in_full {
            return Err(ReferenceError::AmbiguousHost { found: crate::text::excerpt(host) });
        }
        let registry: Registry = host.parse()?;
        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) => (path, Some(tag.parse::<Tag>()?)),
            None => (rest, None),
        };
        if !is_repository(path) {
            return Err(ReferenceError::Repository { found: crate::text::excerpt(path) });
        }
        Ok(Self { repository: Repository { registry, path: path.to_owned() }, tag, digest })
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}", self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// Splits `host:port`. The colons within `[...]` belong to an IPv6 address.
fn split_port(text: &str) -> (&str, Option<&str>) {
    let after_address = text.rfind(']').map_or(0, |end| end + 1);
    match text[after_address..].find(':') {
        Some(colon) => (&text[..after_address + colon], Some(&text[after_address + colon + 1..])),
        None => (text, None),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let labels_valid = host.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    });
    // A last label that starts with a digit is read as an IPv4 number, in which octal and short forms mean another
    // address to some programs.
    let numeric = host.rsplit('.').next().is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()));
    host.len() <= MAX_HOST_BYTES && labels_valid && (!numeric || host.parse::<std::net::Ipv4Addr>().is_ok())
}

fn is_repository(path: &str) -> bool {
    path.len() <= MAX_REPOSITORY_BYTES && path.split('/').all(is_component)
}

/// Returns `true` if `part` matches `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`.
fn is_component(part: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bounded = part.bytes().next().is_some_and(word) && part.bytes().next_back().is_some_and(word);
    let separators = part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    bounded
        && separators
            .filter(|separator| !separator.is_empty())
            .all(|separator| matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-'))
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
