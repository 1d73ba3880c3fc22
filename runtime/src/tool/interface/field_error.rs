//! Errors of declaring interface fields.

/// Error when a field of an [`Interface`](super::Interface) is declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// Value of another type.
    #[error("{field} must be {expected}, found {found}")]
    Type {
        /// Name of the field.
        field: String,
        /// Description of the expected JSON.
        expected: &'static str,
        /// Start of the JSON that was found.
        found: String,
    },
    /// Text or template with too many characters.
    #[error("{field}: a {kind} of {chars} characters, more than the {max} allowed")]
    TooLong {
        /// Name of the field.
        field: String,
        /// `text` or `template`.
        kind: &'static str,
        /// Number of characters.
        chars: usize,
        /// Maximum number of characters.
        max: usize,
    },
    /// Template with too many placeholders.
    #[error("{field}: {placeholders} placeholders, more than the {max} allowed")]
    TooManyPlaceholders {
        /// Name of the field.
        field: String,
        /// Number of placeholders.
        placeholders: usize,
        /// Maximum number of placeholders.
        max: usize,
    },
    /// List with too many entries.
    #[error("{field}: {entries} entries, more than the {max} allowed")]
    TooManyEntries {
        /// Name of the field.
        field: String,
        /// Number of entries.
        entries: usize,
        /// Maximum number of entries.
        max: usize,
    },
}
