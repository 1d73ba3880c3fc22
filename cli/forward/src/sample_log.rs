//! Logs for tests, written by the documented format.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use toolcrib_foundation::hex;

/// Appends records to the file of a day, after a number and a chain value, and returns the last ones.
pub(crate) fn append(folder: &Path, day: &str, after: (u64, String), records: u64) -> (u64, String) {
    let path = folder.join(format!("{day}.log"));
    let mut text = fs::read_to_string(&path).unwrap_or_default();
    let (mut seq, mut chain) = after;
    for _ in 0..records {
        seq += 1;
        let covered = format!(
            "{{\"ts\":\"2026-03-01T12:30:45.678Z\",\"tool\":\"echo\",\"outcome\":\"ok\",\"arguments\":{{\"json\":{seq}}},\"seq\":{seq}"
        );
        chain = hex(&Sha256::digest(format!("{chain}{covered}")));
        text += &format!("{covered},\"chain\":\"{chain}\"}}\n");
    }
    fs::write(path, text).unwrap();
    (seq, chain)
}

/// Creates a log of one day.
pub(crate) fn log(folder: &Path, records: u64) -> (u64, String) {
    append(folder, "20260301", start(), records)
}

/// Returns the number and chain value before the first record.
pub(crate) fn start() -> (u64, String) {
    (0, "0".repeat(64))
}
