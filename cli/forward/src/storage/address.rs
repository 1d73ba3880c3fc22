//! Addresses of buckets.

use std::fmt;
use std::str::FromStr;

use anyhow::anyhow;
use object_store::path::Path;
use reqwest::Url;
use toolcrib_base::http::{self, shown};

/// Scheme of the addresses.
pub(crate) const SCHEME: &str = "s3";
/// Query parameter with the address of a server other than Amazon's.
const ENDPOINT: &str = "endpoint";
/// Variables with this address.
const VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// Address of a bucket, `s3://BUCKET[/PREFIX][?endpoint=URL]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketAddress {
    pub(crate) name: String,
    /// Start of the objects' names, without `/` at its ends.
    pub(crate) prefix: String,
    pub(crate) endpoint: Option<Url>,
}

impl BucketAddress {
    /// Returns the address with the server that the environment names, unless it has one.
    ///
    /// # Errors
    ///
    /// A variable has no valid address.
    pub(crate) fn at_environment(self) -> anyhow::Result<Self> {
        let set = |name: &'static str| Some((name, std::env::var(name).ok().filter(|text| !text.is_empty())?));
        let Some((name, text)) = VARIABLES.into_iter().find_map(set).filter(|_| self.endpoint.is_none()) else {
            return Ok(self);
        };
        let endpoint = http::address(name, &text, "https://storage.example:9000").map_err(|error| anyhow!(error))?;
        Ok(Self { endpoint: Some(endpoint), ..self })
    }

    /// Returns `true` if objects leave this machine without encryption.
    pub(crate) fn is_exposed(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|url| url.scheme() == "http" && !http::is_loopback(url))
    }
}

impl FromStr for BucketAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "expected `s3://BUCKET`, `s3://BUCKET/PREFIX` or one of them with `?endpoint=https://HOST`".to_owned();
        // The parser would resolve them.
        if text.split(['/', '?']).any(|part| part == "." || part == "..") {
            return Err(wrong());
        }
        let url = Url::parse(text).map_err(|_| wrong())?;
        let is_plain = url.scheme() == SCHEME && url.username().is_empty() && url.password().is_none();
        let name = url.host_str().filter(|_| is_plain && url.port().is_none() && url.fragment().is_none());
        let name = name.filter(|name| !name.is_empty()).ok_or_else(wrong)?.to_owned();
        let mut endpoint = None;
        for (key, value) in url.query_pairs() {
            if key != ENDPOINT || endpoint.is_some() {
                return Err(wrong());
            }
            let found = http::address(ENDPOINT, &value, "https://storage.example:9000")?;
            if !found.username().is_empty() || found.password().is_some() {
                return Err(format!(
                    "`{}`: credentials are those of the environment, and not in an address",
                    shown(&found)
                ));
            }
            endpoint = Some(found);
        }
        let prefix = url.path().trim_matches('/');
        // As the storage takes it: without empty parts and dots.
        let is_usual = Path::parse(prefix).is_ok_and(|path| path.as_ref() == prefix);
        if !is_usual {
            return Err(wrong());
        }
        Ok(Self { name, prefix: prefix.to_owned(), endpoint })
    }
}

impl fmt::Display for BucketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}://{}", self.name)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        match &self.endpoint {
            Some(endpoint) => write!(f, "?{ENDPOINT}={}", shown(endpoint).trim_end_matches('/')),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_buckets_are_read_and_shown_without_credentials() {
        for (text, shown, is_exposed) in [
            ("s3://logs", "s3://logs", false),
            ("s3://logs/a/b/", "s3://logs/a/b", false),
            ("s3://logs?endpoint=https://minio.example:9000/", "s3://logs?endpoint=https://minio.example:9000", false),
            ("s3://logs/a?endpoint=http://minio.example", "s3://logs/a?endpoint=http://minio.example", true),
            ("s3://logs?endpoint=http://127.0.0.1:9000", "s3://logs?endpoint=http://127.0.0.1:9000", false),
        ] {
            let address: BucketAddress = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.is_exposed()), (shown, is_exposed), "{text}");
            assert_eq!(shown.parse::<BucketAddress>().unwrap(), address);
        }
        for text in [
            "s3://",
            "s3://a:b@logs",
            "s3://logs:9000",
            "s3://logs#x",
            "s3://logs?region=x",
            "s3://logs/a//b",
            "s3://logs/../b",
            "s3://logs?endpoint=ftp://x",
            "s3://logs?endpoint=https://a:b@x",
            "s3://logs?endpoint=https://x&endpoint=https://y",
        ] {
            assert!(text.parse::<BucketAddress>().is_err(), "{text}");
        }
    }
}
