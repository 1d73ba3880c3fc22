//! Serde attributes that change the form of a type, as far as its schema needs them; attributes that a schema cannot
//! express are errors.

use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Meta, Result, Token};

use crate::literal;

/// Attributes of a type, a variant or a field.
#[derive(Default)]
pub(crate) struct Serde {
    /// Name.
    pub(crate) rename: Option<String>,
    /// Case of the names inside.
    pub(crate) rename_all: Option<Case>,
    /// `true` if the field may be missing; on a type, if every field may.
    pub(crate) default: bool,
    /// `true` if serde does not read it.
    pub(crate) skip: bool,
    /// `true` if unknown fields are refused.
    pub(crate) deny_unknown_fields: bool,
    /// `true` if it has the form of its only field.
    pub(crate) transparent: bool,
    /// `true` if the variants have no names in JSON.
    pub(crate) untagged: bool,
    /// Member that names the variant.
    pub(crate) tag: Option<String>,
    /// Member that holds the variant.
    pub(crate) content: Option<String>,
}

impl Serde {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut serde = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            for meta in attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
                serde.take(&meta)?;
            }
        }
        Ok(serde)
    }

    fn take(&mut self, meta: &Meta) -> Result<()> {
        let word = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
        match word.as_str() {
            "rename" => self.rename = name_for_reading(meta)?.or(self.rename.take()),
            "rename_all" => {
                if let Some(case) = name_for_reading(meta)? {
                    let message = format!("`{case}` is not a case that serde knows");
                    self.rename_all = Some(Case::of(&case).ok_or_else(|| Error::new_spanned(meta, message))?);
                }
            }
            "default" => self.default = true,
            "skip" | "skip_deserializing" => self.skip = true,
            "deny_unknown_fields" => self.deny_unknown_fields = true,
            "transparent" => self.transparent = true,
            "untagged" => self.untagged = true,
            "tag" => self.tag = name_for_reading(meta)?,
            "content" => self.content = name_for_reading(meta)?,
            "flatten" => return Err(cannot(meta, "write the fields out in this type")),
            "with" | "deserialize_with" | "from" | "try_from" => {
                return Err(cannot(meta, "give it a type of its own with `Schema` written by hand"));
            }
            "rename_all_fields" | "other" => {
                return Err(cannot(meta, "rename the fields or list the variants one by one"));
            }
            // Other serde attributes do not change the schema.
            _ => {}
        }
        Ok(())
    }
}

fn cannot(meta: &Meta, instead: &str) -> Error {
    Error::new_spanned(meta, format!("a derived schema cannot follow this attribute: {instead}"))
}

/// Reads `key = "…"`, or the part of `key(…)` for deserialization.
fn name_for_reading(meta: &Meta) -> Result<Option<String>> {
    match meta {
        Meta::NameValue(pair) => literal::text(&pair.value).map(Some),
        Meta::List(list) => {
            let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
            inner.iter().find(|meta| meta.path().is_ident("deserialize")).map_or(Ok(None), name_for_reading)
        }
        Meta::Path(_) => Err(Error::new_spanned(meta, "this needs a value: write `… = \"…\"`")),
    }
}

/// Case of names.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "lowercase" => Self::Lower,
            "UPPERCASE" => Self::Upper,
            "PascalCase" => Self::Pascal,
            "camelCase" => Self::Camel,
            "snake_case" => Self::Snake,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "kebab-case" => Self::Kebab,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            _ => return None,
        })
    }

    /// Name of a variant, which Rust writes in `PascalCase`.
    pub(crate) fn variant(self, name: &str) -> String {
        let mut snake = String::new();
        for (at, c) in name.char_indices() {
            if at > 0 && c.is_uppercase() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        match self {
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Pascal => name.to_owned(),
            Self::Camel => with_first(name, u8::to_ascii_lowercase),
            other => other.separated(&snake),
        }
    }

    /// Name of a field, which Rust writes in `snake_case`.
    pub(crate) fn field(self, name: &str) -> String {
        let pascal = || name.split('_').map(|word| with_first(word, u8::to_ascii_uppercase)).collect::<String>();
        match self {
            Self::Lower => name.to_owned(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Pascal => pascal(),
            Self::Camel => with_first(&pascal(), u8::to_ascii_lowercase),
            other => other.separated(name),
        }
    }

    fn separated(self, snake: &str) -> String {
        match self {
            Self::ScreamingSnake => snake.to_ascii_uppercase(),
            Self::Kebab => snake.replace('_', "-"),
            Self::ScreamingKebab => snake.to_ascii_uppercase().replace('_', "-"),
            _ => snake.to_owned(),
        }
    }
}

fn with_first(word: &str, change: fn(&u8) -> u8) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) if first.is_ascii() => format!("{}{}", char::from(change(&(first as u8))), chars.as_str()),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_serde_writes_them() {
        let all = [
            ("lowercase", "twowords", "two_words"),
            ("UPPERCASE", "TWOWORDS", "TWO_WORDS"),
            ("PascalCase", "TwoWords", "TwoWords"),
            ("camelCase", "twoWords", "twoWords"),
            ("snake_case", "two_words", "two_words"),
            ("SCREAMING_SNAKE_CASE", "TWO_WORDS", "TWO_WORDS"),
            ("kebab-case", "two-words", "two-words"),
            ("SCREAMING-KEBAB-CASE", "TWO-WORDS", "TWO-WORDS"),
        ];
        for (case, variant, field) in all {
            let case = Case::of(case).expect("a case");
            assert_eq!((case.variant("TwoWords"), case.field("two_words")), (variant.to_owned(), field.to_owned()));
        }
        assert!(Case::of("Title Case").is_none());
    }
}
