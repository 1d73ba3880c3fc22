//! Meaning of a key or a line that a person types at an approval prompt.

use toolcrib::policy::ApprovalAnswer;

/// Durations that a prompt offers besides the single call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Durations {
    pub(super) session: bool,
    pub(super) always: bool,
}

/// Meaning of a typed key or line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Answer(ApprovalAnswer),
    /// Request for the full prompt.
    Details,
    /// No, with a reason that is typed next.
    Reason,
}

impl Typed {
    /// Parses a key or a line; `None` if it is not understood. An empty line means no, and text after a no is its reason.
    pub(super) fn parse(line: &str, offered: Durations, has_details: bool) -> Option<Self> {
        use ApprovalAnswer::{Always, No, NoBecause, Once, Session};
        let line = line.trim();
        let answer = match line.to_lowercase().as_str() {
            "o" | "once" | "y" | "yes" => Once,
            "s" | "session" if offered.session => Session,
            "a" | "always" if offered.always => Always,
            "n" | "no" | "" => No,
            "d" | "details" if has_details => return Some(Self::Details),
            "r" | "reason" => return Some(Self::Reason),
            _ => match reason(line)? {
                "" => No,
                reason => NoBecause(reason.to_owned()),
            },
        };
        Some(Self::Answer(answer))
    }
}

/// Returns the text after a no; `None` if the line starts with another word.
fn reason(line: &str) -> Option<&str> {
    let (word, rest) = line.split_at(line.find(|c: char| !c.is_alphabetic())?);
    let is_separated = rest.starts_with(|c: char| c.is_whitespace() || ",:;.-–—".contains(c));
    let is_no = ["n", "no"].contains(&word.to_lowercase().as_str());
    (is_no && is_separated).then(|| rest.trim_start_matches(|c: char| c.is_whitespace() || ",:;.-–—".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Durations = Durations { session: true, always: true };

    #[test]
    fn answers_are_understood_as_people_type_them() {
        use ApprovalAnswer::{Always, No, Once, Session};
        for (words, answer) in [
            (&["y", "Y", "yes", "Yes ", "o", "once"][..], Once),
            (&["s", "SESSION"], Session),
            (&["a", "always"], Always),
            (&["", " ", "n", "N", "no", "No.", "no,"], No),
        ] {
            for word in words {
                assert_eq!(Typed::parse(word, ALL, true), Some(Typed::Answer(answer.clone())), "{word:?}");
            }
        }
        for word in ["d", "Details"] {
            assert_eq!(Typed::parse(word, ALL, true), Some(Typed::Details));
            assert_eq!(Typed::parse(word, ALL, false), None);
        }
        for word in ["r", "R", "reason"] {
            assert_eq!(Typed::parse(word, ALL, false), Some(Typed::Reason));
        }
    }

    #[test]
    fn text_after_a_no_is_its_reason() {
        for line in ["n use Plan B", "no, use Plan B", "No: use Plan B", "NO – use Plan B", "n  use Plan B "] {
            let answer = ApprovalAnswer::NoBecause("use Plan B".to_owned());
            assert_eq!(Typed::parse(line, ALL, true), Some(Typed::Answer(answer)), "{line:?}");
        }
    }

    #[test]
    fn nothing_else_is_an_answer() {
        let words =
            ["x", "ya", "yess", "yes please", "y, once", "once more", "not yet", "nope", "n2", "always no", "?", "é y"];
        for word in words {
            assert_eq!(Typed::parse(word, ALL, true), None, "{word:?}");
        }
        let once = Durations { session: false, always: false };
        for word in ["s", "session", "a", "always"] {
            assert_eq!(Typed::parse(word, once, true), None, "{word:?}");
        }
    }
}
