//! Rules for the names of tools in every dialect.

use toolcrib_foundation::text::{MAX_NAME, prefix};

use crate::tool::Place;

use super::diagnostics::Diagnostics;

/// Checks the length of a name.
///
/// # Errors
///
/// Fails if the name is longer than 128 characters.
pub(super) fn check_length(name: &str) -> Result<(), String> {
    match name.chars().count() <= MAX_NAME {
        true => Ok(()),
        false => Err(format!("name is longer than {MAX_NAME} characters")),
    }
}

/// Returns the name if a faulty tool can be listed under it.
pub(super) fn usable(name: String) -> Option<String> {
    Some(name).filter(|name| !name.trim().is_empty() && check_length(name).is_ok())
}

/// Warns of a name that model servers do not accept.
pub(super) fn warn_of_servers(name: &str, place: Option<Place>, report: &mut Diagnostics) {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !plain || !(1..=64).contains(&name.len()) {
        report.warn_at(place, "model servers take names of 1 to 64 letters, digits, `_` and `-`");
    }
}

/// Truncates a name for a message.
pub(super) fn shortened(name: &str) -> String {
    prefix(name, MAX_NAME)
}
