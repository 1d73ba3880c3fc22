//! Buckets of S3-compatible storage. Credentials are those of the environment: keys, a web identity, or the machine's role. Every
//! operation ends within a bounded time, and no answer is read beyond a bound.

mod address;
mod bucket;
mod connections;
mod error;

pub use address::BucketAddress;
pub(crate) use address::SCHEME;
pub(crate) use bucket::Bucket;
pub(crate) use error::StorageError;
