//! The command line of a command of the program, as a person types it.

use std::ffi::OsStr;
use std::process::Command;

/// Maximum characters of an argument that is shown whole.
const MAX_ARGUMENT: usize = 400;

/// Variables of every command of a crib.
const OF_A_CRIB: [&str; 8] = [
    "HOME",
    "TOOLCRIB_SYSTEM_CONFIG",
    "TOOLCRIB_CACHE_DIR",
    "TOOLCRIB_AUDIT_DIR",
    "TOOLCRIB_RESULTS_DIR",
    "TOOLCRIB_APPROVALS",
    "TOOLCRIB_SECRETS_STORE",
    "TOOLCRIB_SECRETS_FILE",
];

/// Returns the command line, with the variables that are not in every crib.
pub(crate) fn line(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let (Some(name), Some(value)) = (name.to_str(), value)
            && !OF_A_CRIB.contains(&name)
        {
            words.push(format!("{name}={}", quoted(value)));
        }
    }
    words.push("toolcrib".to_owned());
    words.extend(command.get_args().map(quoted));
    words.join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let count = word.chars().count();
    if count > MAX_ARGUMENT {
        let start: String = word.chars().take(20).collect();
        return format!("'{start}…' [{count} characters]");
    }
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./:@,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
