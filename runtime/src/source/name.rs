//! Names of tools: what every dialect asks of them.

use super::report::Report;

/// The longest name of a tool, in characters.
const LONGEST: usize = 128;

/// An error where a name is longer than any source may give.
pub(super) fn check_length(name: &str, report: &mut Report) {
    report.that(name.chars().count() <= LONGEST, &format!("name is longer than {LONGEST} characters"));
}

/// A warning where model servers would not take a name as it is.
pub(super) fn warn_of_servers(name: &str, report: &mut Report) {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !plain || !(1..=64).contains(&name.len()) {
        report.warn("model servers take names of 1 to 64 letters, digits, `_` and `-`");
    }
}

/// As much of a name as a message can hold.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(LONGEST).collect()
}
