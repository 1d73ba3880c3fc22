//! Files of a case of the shipped tools, and its repeated texts.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Content of the file beside the granted folder, which no call may reach.
pub(crate) const OUTSIDE: &str = "canary outside the grant";

/// Creates the files, folders and links of a case: in `work`, and one file beside it.
pub(crate) fn lay(folder: &Path, case: &Value) {
    let work = folder.join("work");
    fs::write(folder.join("outside.txt"), OUTSIDE).unwrap();
    let at = |path: &str| {
        let path = work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    for (path, content) in case["files"].as_object().into_iter().flatten() {
        let bytes = match content {
            Value::String(text) => text.clone().into_bytes(),
            Value::Object(_) if content["base64"].is_string() => base64(content["base64"].as_str().unwrap()),
            content => repeated(content).as_str().expect("a text").as_bytes().to_vec(),
        };
        fs::write(at(path), bytes).unwrap();
    }
    for (path, mode) in case["modes"].as_object().into_iter().flatten() {
        let mode = u32::from_str_radix(mode.as_str().expect("a text"), 8).expect("an octal number");
        set_mode(&work.join(path), mode);
    }
    for folder in case["folders"].as_array().into_iter().flatten() {
        fs::create_dir_all(work.join(folder.as_str().unwrap())).unwrap();
    }
    for (path, to) in case["links"].as_object().into_iter().flatten() {
        crate::crib::link(to.as_str().unwrap(), &at(path));
    }
}

/// Sets the mode of a file, on systems that have one.
fn set_mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    #[cfg(not(unix))]
    let _ = (path, mode);
}

/// Returns the mode of a file as an octal number, on systems where a call keeps it.
pub(crate) fn mode(path: &Path) -> Option<String> {
    #[cfg(target_os = "linux")]
    return Some(format!("{:o}", std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).ok()?) & 0o777));
    #[cfg(not(target_os = "linux"))]
    None
}

/// Expands each `{"text": …, "times": N}` in a value.
pub(crate) fn repeated(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 2 && value["times"].is_u64() && value["text"].is_string() => {
            let times = usize::try_from(value["times"].as_u64().unwrap()).unwrap();
            value["text"].as_str().unwrap().repeat(times).into()
        }
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), repeated(value))).collect(),
        Value::Array(items) => items.iter().map(repeated).collect(),
        other => other.clone(),
    }
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = text.bytes().filter_map(|byte| ALPHABET.iter().position(|known| *known == byte));
    let bits: Vec<u8> = sextets.flat_map(|sextet| (0..6).rev().map(move |bit| (sextet >> bit & 1) as u8)).collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
}
