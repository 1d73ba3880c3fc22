//! An open bucket: objects below its prefix are written, read and listed.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, RetryConfig};
use toolcrib_base::http;

use super::address::BucketAddress;
use super::connections::BoundedConnector;
use super::error::StorageError;

/// Maximum size of an object that is read, in bytes.
const MAX_OBJECT: usize = 64 << 20;
/// Variables of the environment that apply; of two for one thing the later one.
const VARIABLES: [&str; 13] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_METADATA_ENDPOINT",
];
/// Time limit of one operation.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Open bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: AmazonS3,
    prefix: Path,
}

impl Bucket {
    /// Prepares requests to a bucket. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// A variable of the environment is not valid, or there is no HTTP client.
    pub(crate) fn open(address: &BucketAddress) -> anyhow::Result<Self> {
        let is_local = address.endpoint.as_ref().is_some_and(http::is_loopback);
        let client = if is_local { http::local_client() } else { http::client() }?;
        // The forwarder tries again; a part of an object is none.
        let retries = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let builder = of_environment().with_bucket_name(&address.name).with_retry(retries);
        let connector = BoundedConnector { client, max_answer: MAX_OBJECT };
        let builder = builder.with_http_connector(connector).with_allow_http(true);
        let builder = match &address.endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint.as_str().trim_end_matches('/')),
            None => builder,
        };
        Ok(Self { store: builder.build()?, prefix: Path::from(address.prefix.as_str()) })
    }

    /// Writes an object.
    ///
    /// # Errors
    ///
    /// The storage refuses it, or does not answer.
    pub(crate) async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), StorageError> {
        in_time(self.store.put(&self.prefix.clone().join(name), content.into())).await.map(drop)
    }

    /// Reads the objects below the prefix that `is_wanted`, sorted by name, and passes the last part of each name and the content to
    /// `take`, until that fails. Returns the number of the others.
    ///
    /// # Errors
    ///
    /// An object cannot be read, or `take` fails.
    pub(crate) async fn read_all<E: From<StorageError>>(
        &self,
        is_wanted: impl Fn(&str) -> bool,
        mut take: impl FnMut(&str, Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut others = 0;
        let mut objects = self.store.list(Some(&self.prefix));
        while let Some(object) = in_time(async { objects.next().await.transpose() }).await? {
            match object.location.filename().filter(|name| is_wanted(name)) {
                Some(name) => take(name, self.read(&object.location).await?)?,
                None => others += 1,
            }
        }
        Ok(others)
    }

    async fn read(&self, path: &Path) -> Result<Vec<u8>, StorageError> {
        in_time(async { self.store.get(path).await?.bytes().await }).await.map(Vec::from)
    }
}

/// Creates a builder with the credentials and the region of the environment. The server is that of the address.
fn of_environment() -> AmazonS3Builder {
    let set = VARIABLES.iter().filter_map(|name| {
        let key: AmazonS3ConfigKey = name.to_ascii_lowercase().parse().ok()?;
        Some((key, std::env::var(name).ok().filter(|value| !value.is_empty())?))
    });
    set.fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value))
}

/// Waits for an operation for at most [`MAX_TIME`].
async fn in_time<T>(operation: impl Future<Output = Result<T, Error>>) -> Result<T, StorageError> {
    match tokio::time::timeout(MAX_TIME, operation).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(StorageError::Late(MAX_TIME.as_secs())),
    }
}
