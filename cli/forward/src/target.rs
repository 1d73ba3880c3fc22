//! Targets: a collector of logs, a syslog receiver, a bucket, or a folder, parsed from one text.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use reqwest::Url;
use toolcrib_base::http::{self, shown};

use super::storage::{BucketAddress, SCHEME};

/// Path of the logs at a collector.
const LOGS: [&str; 2] = ["v1", "logs"];
/// Default port of syslog over TCP, and over TLS (RFC 5425).
const SYSLOG_PORTS: (u16, u16) = (514, 6514);
const EXPECTED: &str =
    "a directory, `file:///DIR`, `s3://BUCKET`, `https://HOST`, `http://HOST`, `syslog+tls://HOST` or `syslog://HOST`";

/// Place that records are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardTarget {
    /// A folder, one file per batch.
    Folder(PathBuf),
    /// An OpenTelemetry collector, with the address of its logs.
    Collector(Url),
    /// A bucket of S3-compatible storage, one object per batch.
    Bucket(BucketAddress),
    /// A syslog receiver over TCP.
    Syslog {
        /// Name or address of the host.
        host: String,
        /// Port of the receiver.
        port: u16,
        /// `true` if the connection is encrypted.
        is_encrypted: bool,
    },
}

impl ForwardTarget {
    /// Returns the target with the server that the environment names for a bucket.
    ///
    /// # Errors
    ///
    /// A variable has no valid address.
    pub fn at_environment(self) -> anyhow::Result<Self> {
        match self {
            Self::Bucket(address) => address.at_environment().map(Self::Bucket),
            other => Ok(other),
        }
    }

    /// Returns a text that distinguishes the target from every other one, such as another data set of a collector. It has no
    /// password, which may be replaced by a new one, and may have keys: it is for digests alone.
    pub(crate) fn identity(&self) -> String {
        let Self::Collector(url) = self else { return self.to_string() };
        let mut url = url.clone();
        // An address without a host has no password.
        let _ = url.set_password(None);
        url.into()
    }

    /// Returns `true` if records leave this machine without encryption.
    pub fn is_exposed(&self) -> bool {
        match self {
            Self::Folder(_) => false,
            Self::Collector(url) => url.scheme() == "http" && !http::is_loopback(url),
            Self::Bucket(address) => address.is_exposed(),
            Self::Syslog { is_encrypted: true, .. } => false,
            Self::Syslog { host, .. } => {
                let url = Url::parse(&format!("http://{}", bracketed(host)));
                !url.is_ok_and(|url| http::is_loopback(&url))
            }
        }
    }
}

impl FromStr for ForwardTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, _)) = text.split_once("://") else {
            return if text.is_empty() { Err(format!("expected {EXPECTED}")) } else { Ok(Self::Folder(text.into())) };
        };
        if scheme.eq_ignore_ascii_case(SCHEME) {
            return text.parse().map(Self::Bucket);
        }
        // An unparsable address cannot be masked, so it is not repeated.
        let url = Url::parse(text).map_err(|error| format!("{error}; expected {EXPECTED}"))?;
        let has_more = url.query().is_some() || url.fragment().is_some();
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" if url.fragment().is_none() => {
                let has_path = url.path_segments().is_some_and(|path| path.collect::<Vec<_>>().ends_with(&LOGS));
                let url = if has_path { url } else { http::below(&url, &LOGS).map_err(|error| error.to_string())? };
                Ok(Self::Collector(url))
            }
            "file" if !has_more => {
                let wrong =
                    || format!("`{text}` names no directory of this machine; example: `file:///var/spool/audit`");
                url.to_file_path().map(Self::Folder).map_err(|()| wrong())
            }
            scheme @ ("syslog" | "syslog+tls") => {
                let is_plain = url.username().is_empty() && url.password().is_none() && !has_more;
                let host = url.host_str().filter(|_| is_plain && matches!(url.path(), "" | "/"));
                let host = host.map(|host| host.trim_matches(['[', ']']).to_owned()).filter(|host| !host.is_empty());
                let host =
                    host.ok_or_else(|| format!("expected a host and a port alone, such as `{scheme}://HOST:514`"))?;
                let is_encrypted = scheme == "syslog+tls";
                let port = if is_encrypted { SYSLOG_PORTS.1 } else { SYSLOG_PORTS.0 };
                Ok(Self::Syslog { host, port: url.port().unwrap_or(port), is_encrypted })
            }
            _ => Err(format!("unknown target `{}`; expected {EXPECTED}", shown(&url))),
        }
    }
}

/// Formats the target without passwords and keys.
impl fmt::Display for ForwardTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Collector(url) => f.write_str(&shown(url)),
            Self::Bucket(address) => address.fmt(f),
            Self::Syslog { host, port, is_encrypted } => {
                let scheme = if *is_encrypted { "syslog+tls" } else { "syslog" };
                write!(f, "{scheme}://{}:{port}", bracketed(host))
            }
        }
    }
}

/// Writes an IPv6 address in brackets.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_shown_without_secrets() {
        for (text, expected, is_exposed) in [
            ("out", "out", false),
            ("file:///var/spool/audit", "/var/spool/audit", false),
            ("https://otel.example", "https://otel.example/v1/logs", false),
            (
                "https://ada:secret@otel.example:4318/x/?key=1",
                "https://ada:***@otel.example:4318/x/v1/logs?key=***",
                false,
            ),
            ("http://otel.example/v1/logs", "http://otel.example/v1/logs", true),
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/logs", false),
            ("syslog://log.example", "syslog://log.example:514", true),
            ("syslog://localhost:601/", "syslog://localhost:601", false),
            ("syslog+tls://[2001:db8::1]", "syslog+tls://[2001:db8::1]:6514", false),
            ("syslog://[::1]:7", "syslog://[::1]:7", false),
        ] {
            let target: ForwardTarget = text.parse().unwrap();
            assert_eq!((target.to_string().as_str(), target.is_exposed()), (expected, is_exposed), "{text}");
        }
        let identity = |text: &str| text.parse::<ForwardTarget>().unwrap().identity();
        assert_ne!(identity("https://otel.example?dataset=a"), identity("https://otel.example?dataset=b"));
        assert_eq!(identity("https://ada:old@otel.example"), identity("https://ada:new@otel.example"));
        assert_eq!(identity("syslog://log.example"), "syslog://log.example:514");
        for text in
            ["", "ftp://x", "syslog://", "syslog://a/b", "syslog://ada@x", "syslog://x?y", "https://", "file://x/y?z"]
        {
            assert!(text.parse::<ForwardTarget>().is_err(), "{text}");
        }
    }
}
