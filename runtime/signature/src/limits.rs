//! Limits on everything that a document of a signature, a key or a trust root may contain.

/// Largest JSON document, in bytes.
pub const MAX_JSON_BYTES: usize = 1 << 20;
/// Deepest nesting of arrays and objects.
pub const MAX_JSON_DEPTH: usize = 32;
/// Longest payload of an envelope, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 512 << 10;
/// Longest canonical body of a log entry, in bytes.
pub const MAX_LOG_BODY_BYTES: usize = 256 << 10;
/// Longest certificate in DER, checkpoint of a log, timestamp, file with a secret key and document of minisign, in bytes.
pub const MAX_PART_BYTES: usize = 16 << 10;
/// Longest trusted comment, in bytes; the limit of the program `minisign`.
pub const MAX_TRUSTED_COMMENT_BYTES: usize = 8192;
/// Longest text field unless a smaller limit is named, and longest public key, in bytes.
pub const MAX_TEXT_BYTES: usize = 4096;
/// Longest signature, passphrase, untrusted comment and text of a provenance, in bytes.
pub const MAX_FIELD_BYTES: usize = 1024;
/// Longest key hint, identifier and salt, in bytes.
pub const MAX_HINT_BYTES: usize = 256;
/// Most trusted keys, trusted identities, authorities or logs of one kind, and hashes of an inclusion proof: a tree of 2^64
/// entries needs 64.
pub const MAX_ENTRIES: usize = 64;
/// Most transparency log entries and most signed timestamps of a bundle.
pub const MAX_EVIDENCE: usize = 4;
/// Most certificates in the chain of one authority.
pub const MAX_CHAIN_CERTIFICATES: usize = 8;
/// Most subjects of a statement, and source repositories of a provenance.
pub const MAX_SUBJECTS: usize = 16;
/// Most dependencies of a provenance.
pub const MAX_DEPENDENCIES: usize = 256;
/// Most memory that scrypt may use to decrypt a key, in bytes.
pub const MAX_SCRYPT_MEMORY: u64 = 256 << 20;
/// Highest parallelism parameter of scrypt, which multiplies the time.
pub const MAX_SCRYPT_PARALLELISM: u64 = 8;
/// Most rounds of PBKDF2 to decrypt a key.
pub const MAX_PBKDF2_ROUNDS: u32 = 10_000_000;
/// Most memory that scrypt may use for a key of minisign, in bytes; that program uses exactly this much.
pub const MAX_MINISIGN_MEMORY: u64 = 1 << 30;
/// Most operations of scrypt for a key of minisign, in the unit of libsodium; that program uses exactly as many.
pub const MAX_MINISIGN_OPERATIONS: u64 = 1 << 25;
