//! Names of environment variables: trimmed, converted to upper case, checked and deduplicated.

/// Normalizes the names of `field`, ordered by first occurrence.
///
/// # Errors
///
/// The format's own message, without the name of the entry.
pub(super) fn normalise(field: &str, names: Vec<String>) -> Result<Vec<String>, String> {
    let mut seen = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let trimmed = name.trim();
        if trimmed.is_empty() {
            return Err(format!("{field}[{index}]: empty name"));
        }
        let upper = trimmed.to_uppercase();
        if !valid(&upper) {
            return Err(format!("{field}[{index}]: invalid name {trimmed:?} (must match [A-Z_][A-Z0-9_]*)"));
        }
        if !seen.contains(&upper) {
            seen.push(upper);
        }
    }
    Ok(seen)
}

fn valid(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::normalise;

    fn names(names: &[&str]) -> Result<Vec<String>, String> {
        normalise("envPassthrough", names.iter().map(|name| name.to_string()).collect())
    }

    #[test]
    fn names_are_trimmed_upper_cased_and_kept_once_in_order() {
        let got = names(&["oai_api_key", "OAI_API_KEY", " Path ", "TZ"]);
        assert_eq!(got, Ok(vec!["OAI_API_KEY".into(), "PATH".into(), "TZ".into()]));
    }

    #[test]
    fn bad_names_are_refused_with_the_formats_words() {
        let invalid = |index, name: &str| {
            Err(format!("envPassthrough[{index}]: invalid name {name:?} (must match [A-Z_][A-Z0-9_]*)"))
        };
        assert_eq!(names(&["OAI-API-KEY"]), invalid(0, "OAI-API-KEY"));
        assert_eq!(names(&["TZ", "1BAD"]), invalid(1, "1BAD"));
        assert_eq!(names(&["ÜBER"]), invalid(0, "ÜBER"));
        assert_eq!(names(&["TZ", "  "]), Err("envPassthrough[1]: empty name".into()));
    }
}
