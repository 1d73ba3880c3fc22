//! Reasons to refuse a release, each with a code for machines and the command that overrides or resolves it.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Code of a refusal. It is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The lock, the source and the user's records name different contents.
    WrongDigest,
    /// The name of the bundle belongs to another source.
    NameTaken,
    /// The name of a tool belongs to another bundle.
    ToolTaken,
    /// None of the pinned signers signed the release.
    SignerChanged,
    /// The release has no verified signature, and the installed one has.
    SignatureMissing,
    /// The version is lower than the installed one.
    Downgrade,
    /// The version is the installed one, and the content is another.
    TagMoved,
    /// The release is younger than the minimum age.
    TooYoung,
    /// Nobody agreed to the release.
    NeedsReview,
    /// The lock entry differs from the release's entry.
    LockDiffers,
}

impl Code {
    /// Codes that `--accept` overrides.
    const OVERRIDABLE: [Self; 6] = [
        Self::SignerChanged,
        Self::SignatureMissing,
        Self::Downgrade,
        Self::TagMoved,
        Self::NameTaken,
        Self::WrongDigest,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::WrongDigest => "wrong-digest",
            Self::NameTaken => "name-taken",
            Self::ToolTaken => "tool-taken",
            Self::SignerChanged => "signer-changed",
            Self::SignatureMissing => "signature-missing",
            Self::Downgrade => "downgrade",
            Self::TagMoved => "tag-moved",
            Self::TooYoung => "too-young",
            Self::NeedsReview => "needs-review",
            Self::LockDiffers => "lock-differs",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Code {
    type Err = String;

    /// Parses a code that `--accept` overrides.
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::OVERRIDABLE.into_iter().find(|code| code.as_str() == text);
        let all = Self::OVERRIDABLE.map(Self::as_str).join("`, `");
        found.ok_or_else(|| format!("expected one of `{all}`"))
    }
}

/// Reason to refuse a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Code of the reason.
    pub code: Code,
    /// The reason.
    pub message: String,
    /// Command that resolves it.
    pub cure: String,
}

impl Refusal {
    /// Creates a refusal with its reason and the way to resolve it.
    pub fn new(code: Code, message: String, cure: String) -> Self {
        Self { code, message, cure }
    }

    /// Adds the flags of this command to a cure that repeats it. A flag of the cure itself counts instead.
    pub fn add_flags(&mut self, flags: &[(&str, String)]) {
        if !["toolcrib install", "toolcrib update"].iter().any(|command| self.cure.starts_with(command)) {
            return;
        }
        let of_cure = self.cure.clone();
        for (name, value) in flags {
            let flag = if value.is_empty() { format!(" --{name}") } else { format!(" --{name}={value}") };
            let is_there = match *name {
                "name" | "min-age" => of_cure.contains(&format!(" --{name}=")),
                _ => of_cure.contains(&flag),
            };
            if !is_there {
                self.cure += &flag;
            }
        }
    }

    /// Returns advice beside the command.
    pub fn advice(&self) -> &'static str {
        match self.code {
            Code::WrongDigest => "to review the other content",
            Code::NameTaken if self.cure.contains("--name=") => {
                "to have both, or to replace it from the new source with --accept=name-taken"
            }
            Code::NameTaken => "to replace it from the new source",
            Code::ToolTaken if self.cure.starts_with("toolcrib remove") => "to remove the other bundle first",
            Code::ToolTaken => "rename or remove the tool in the other source first; to list the available tools",
            Code::SignerChanged => "if the publisher announced the new signer",
            Code::SignatureMissing => "if the publisher announced releases without signatures",
            Code::Downgrade => "to go back to that version",
            Code::TagMoved => "if the publisher announced that the version was replaced",
            Code::TooYoung => "to install it before that time",
            Code::NeedsReview => "to agree to exactly this release",
            Code::LockDiffers => "to review the bundle and rewrite its entry",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_one_name_in_text_and_json() {
        for code in Code::OVERRIDABLE {
            assert_eq!(code.to_string().parse(), Ok(code));
            assert_eq!(serde_json::to_value(code).unwrap(), code.to_string());
        }
        for code in [Code::ToolTaken, Code::TooYoung, Code::NeedsReview, Code::LockDiffers] {
            assert_eq!(serde_json::to_value(code).unwrap(), code.to_string());
            assert!(code.to_string().parse::<Code>().is_err(), "{code} has a cure of its own");
        }
    }
}
