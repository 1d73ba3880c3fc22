//! Names of tools: what every dialect asks of them.

use crate::tool::Place;

use super::diagnostics::Diagnostics;

/// The longest name of a tool, in characters.
const MAX_CHARS: usize = 128;

/// Refuses a name that is longer than any source may give.
pub(super) fn check_length(name: &str) -> Result<(), String> {
    match name.chars().count() <= MAX_CHARS {
        true => Ok(()),
        false => Err(format!("name is longer than {MAX_CHARS} characters")),
    }
}

/// A name under which a tool with an error can be listed.
pub(super) fn usable(name: String) -> Option<String> {
    Some(name).filter(|name| !name.trim().is_empty() && check_length(name).is_ok())
}

/// A warning where model servers would not take a name as it is.
pub(super) fn warn_of_servers(name: &str, place: Option<Place>, report: &mut Diagnostics) {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !plain || !(1..=64).contains(&name.len()) {
        report.warn_at(place, "model servers take names of 1 to 64 letters, digits, `_` and `-`");
    }
}

/// As much of a name as a message can hold.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(MAX_CHARS).collect()
}
