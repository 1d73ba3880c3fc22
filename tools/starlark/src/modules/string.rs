//! Module `string`: bounded texts.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;

use super::error;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Truncates a text to `max` characters; a cut text ends in the suffix.
    fn truncate(text: &str, max: i32, #[starlark(default = "…")] suffix: &str) -> starlark::Result<String> {
        let max = count("string.truncate", max)?;
        Ok(truncated(text, max, suffix))
    }

    /// Returns the first `max` lines of a text.
    fn lines(text: &str, max: i32) -> starlark::Result<Vec<String>> {
        let max = count("string.lines", max)?;
        Ok(text.lines().take(max).map(str::to_owned).collect())
    }
}

fn count(function: &str, max: i32) -> starlark::Result<usize> {
    usize::try_from(max).map_err(|_| error(function, format!("max must be 0 or more, found {max}")))
}

fn truncated(text: &str, max: usize, suffix: &str) -> String {
    if text.char_indices().nth(max).is_none() {
        return text.to_owned();
    }
    // A suffix that does not fit is cut too.
    let suffix: String = suffix.chars().take(max).collect();
    let kept = max - suffix.chars().count();
    text.chars().take(kept).chain(suffix.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_text_is_never_longer_than_asked() {
        assert_eq!(truncated("größer", 6, "…"), "größer");
        assert_eq!(truncated("größer", 5, "…"), "größ…");
        assert_eq!(truncated("größer", 3, " [cut]"), " [c");
        assert_eq!(truncated("größer", 0, "…"), "");
    }
}
