//! Address of a PostgreSQL database for state that servers share. It holds no password, and allows plain text only on this machine
//! or where it is written.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use url::Url;

/// Port of PostgreSQL.
const DEFAULT_PORT: u16 = 5432;
/// Time to wait for the database at the start of a server.
const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// Maximum time to wait, in seconds.
const MAX_WAIT: u64 = 600;
/// Maximum length of an address in bytes.
const MAX_LEN: usize = 2048;
/// Form of an address, for errors.
const EXPECTED: &str = "expected an address such as `postgres://toolcrib@db.example.com/toolcrib`";

/// Address of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreAddress {
    /// User of the database.
    pub user: String,
    /// Name of the database.
    pub database: String,
    /// Way to its server.
    pub host: StoreHost,
    /// Protection of the connection.
    pub encryption: StoreEncryption,
    /// Time to wait for the database at the start of a server.
    pub wait: Duration,
}

/// Way to the server of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreHost {
    /// Host name or address with a port.
    Network(String, u16),
    /// Unix socket in a folder, by its port.
    Socket(PathBuf, u16),
}

/// Protection of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreEncryption {
    /// TLS with a certificate of the host, from an authority of the system or of this PEM file.
    Verified(Option<PathBuf>),
    /// None.
    Plain,
}

impl StoreHost {
    fn is_local(&self) -> bool {
        match self {
            Self::Network(name, _) => {
                name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Self::Socket(..) => true,
        }
    }
}

impl StoreAddress {
    /// Returns the file with the certificate authority, if one is named.
    pub fn authority(&self) -> Option<&Path> {
        match &self.encryption {
            StoreEncryption::Verified(file) => file.as_deref(),
            StoreEncryption::Plain => None,
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, database, host, .. } = self;
        match host {
            StoreHost::Network(host, port) => write!(f, "postgres://{user}@{host}:{port}/{database}"),
            StoreHost::Socket(folder, port) => {
                write!(f, "postgres://{user}@{}:{port}/{database}", folder.display())
            }
        }
    }
}

impl FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The text may contain a password by mistake, so no error repeats it.
        if text.len() > MAX_LEN || text.chars().any(char::is_control) {
            return Err(EXPECTED.to_owned());
        }
        let url = Url::parse(text).map_err(|_| EXPECTED)?;
        if !matches!(url.scheme(), "postgres" | "postgresql") || url.fragment().is_some() {
            return Err(EXPECTED.to_owned());
        }
        if url.password().is_some() {
            return Err("a password does not belong here: `server.store_password_env` names its variable, and \
                        `server.store_password_file` its file"
                .to_owned());
        }
        let user = decoded(url.username());
        let database = url.path().strip_prefix('/').map(decoded).unwrap_or_default();
        if user.is_empty() || database.is_empty() || database.contains('/') {
            return Err(EXPECTED.to_owned());
        }
        let (mut mode, mut authority, mut wait) = (None, None, DEFAULT_WAIT);
        for (name, value) in url.query_pairs() {
            match &*name {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => authority = Some(absolute(&name, &value)?),
                "connect_timeout" => {
                    let seconds = value.parse().ok().filter(|seconds| (1..=MAX_WAIT).contains(seconds));
                    wait = Duration::from_secs(
                        seconds.ok_or_else(|| format!("`connect_timeout`: expected 1 to {MAX_WAIT} seconds"))?,
                    );
                }
                _ => {
                    return Err("expected no parameters but `sslmode`, `sslrootcert` and `connect_timeout`".to_owned());
                }
            }
        }
        let port = url.port().unwrap_or(DEFAULT_PORT);
        let name = decoded(url.host_str().unwrap_or_default().trim_matches(['[', ']']));
        let host = match name.starts_with('/') {
            true => StoreHost::Socket(PathBuf::from(name), port),
            false if name.is_empty() => return Err(EXPECTED.to_owned()),
            false => StoreHost::Network(name, port),
        };
        let encryption = match mode.as_deref() {
            Some("disable") => StoreEncryption::Plain,
            None if host.is_local() && authority.is_none() => StoreEncryption::Plain,
            None | Some("verify-full") => StoreEncryption::Verified(authority),
            // The other modes accept a server that nobody has verified.
            Some(_) => return Err("`sslmode`: expected `verify-full` or `disable`".to_owned()),
        };
        Ok(Self { user, database, host, encryption, wait })
    }
}

fn absolute(name: &str, value: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(value);
    if path.is_absolute() { Ok(path) } else { Err(format!("`{name}`: expected an absolute path")) }
}

/// Returns a part of an address without its escapes.
fn decoded(part: &str) -> String {
    let form = format!("x={}", part.replace('+', "%2B"));
    url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> StoreAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn plain_text_is_for_this_machine_unless_it_is_written() {
        use StoreEncryption::{Plain, Verified};
        let ca = || Some(PathBuf::from("/etc/db.pem"));
        for (text, encryption) in [
            ("postgres://a@127.0.0.1/b", Plain),
            ("postgresql://a@localhost:5433/b", Plain),
            ("postgres://a@[::1]/b", Plain),
            ("postgres://a@%2Frun%2Fpostgresql:5433/b", Plain),
            ("postgres://a@db.example.com/b", Verified(None)),
            ("postgres://a@10.0.0.1/b?sslmode=disable", Plain),
            ("postgres://a@localhost/b?sslrootcert=/etc/db.pem", Verified(ca())),
            ("postgres://a@db/b?sslmode=verify-full&sslrootcert=/etc/db.pem", Verified(ca())),
        ] {
            assert_eq!(parsed(text).encryption, encryption, "{text}");
        }
    }

    #[test]
    fn an_address_names_all_parts_and_no_password() {
        let address = parsed("postgres://a%40b@db.example.com:6000/state?connect_timeout=3");
        assert_eq!((&*address.user, &*address.database), ("a@b", "state"));
        assert_eq!(address.host, StoreHost::Network("db.example.com".to_owned(), 6000));
        assert_eq!(address.wait, Duration::from_secs(3));
        let socket = parsed("postgres://a@%2Frun%2Fpostgresql:5433/b").host;
        assert_eq!(socket, StoreHost::Socket("/run/postgresql".into(), 5433));
        for text in [
            "postgres://a:hunter2@db/b",
            "postgres://db/b",
            "postgres://a@db",
            "postgres://a@db/b/hunter2",
            "mysql://a@db/hunter2",
            "postgres://a@db/b?password=hunter2",
            "postgres://a@db/b?sslmode=hunter2",
            "postgres://a@db/b?sslmode=require",
            "postgres://a@db/b?host=/run",
            "postgres://a@/b",
            "postgres://a@db/b?sslrootcert=hunter2",
            "postgres://a@db/b?connect_timeout=0",
            "postgres://a@db/b?connect_timeout=601",
            "hunter2",
        ] {
            let error = text.parse::<StoreAddress>().unwrap_err();
            assert!(
                !error.contains("hunter2") && error.contains("expected") | error.contains("password"),
                "{text}: {error}"
            );
        }
        assert!(format!("postgres://a@db/{}", "b".repeat(MAX_LEN)).parse::<StoreAddress>().is_err());
    }
}
