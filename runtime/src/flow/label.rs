//! Label of a result: its integrity and its confidentiality, each with the first sources.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::de::Error;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::store::results::StoredResult;

/// Confidentiality without a name from the operator.
pub(crate) const PRIVATE: &str = "private";
/// Confidentiality in place of more names than a label holds: a pattern with any name matches it.
pub(super) const MANY: &str = "many";
/// Mark of places without a label.
pub(super) static PRIVATE_MARK: LazyLock<Mark> = LazyLock::new(|| Mark::Named(Arc::from(PRIVATE)));
/// Maximum number of names in one label.
pub(super) const MAX_NAMES: usize = 16;
/// Maximum number of sources that a label lists for one mark.
const MAX_SOURCES: usize = 8;
/// Maximum length of a source in a label, in characters.
pub(super) const MAX_SOURCE_LEN: usize = 256;
/// Maximum length of a name.
const MAX_NAME_LEN: usize = 32;

/// Integrity of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Integrity {
    /// It depends on no untrusted source.
    Trusted,
    /// Text of others can be in it, and can have decided about it.
    Untrusted,
}

/// Mark that bytes get from their source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    Untrusted,
    /// Confidential, under this name.
    Named(Arc<str>),
}

/// Label of a result. It only grows: each further source adds its marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// First untrusted sources; none if all are trusted.
    untrusted: Vec<Arc<str>>,
    /// First sources of each confidentiality; none if all is public.
    confidential: BTreeMap<Arc<str>, Vec<Arc<str>>>,
}

/// The text is not a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The value has another shape.
    #[error(r#"a label is like {{"integrity": "untrusted", "confidentiality": ["private"]}}: {0}"#)]
    Shape(String),
    /// A name is malformed or reserved.
    #[error(
        "`{0}` is no name of a label: use up to 32 of `a` to `z`, `0` to `9`, `-` and `_`, and none of the words `trusted`, `untrusted`, `public` and `many`"
    )]
    Name(String),
    /// There are too many names.
    #[error("a label has at most 16 names")]
    TooManyNames,
}

/// Label as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    #[serde(default)]
    integrity: Option<Integrity>,
    #[serde(default)]
    confidentiality: Vec<String>,
    #[serde(default)]
    sources: BTreeMap<String, Vec<String>>,
}

impl Stated {
    fn label(self, sources: impl Fn(Option<Vec<String>>) -> Vec<String>) -> Result<Label, LabelError> {
        let Self { integrity, confidentiality, sources: mut known } = self;
        // With the name in place of more.
        if confidentiality.len() > MAX_NAMES + 1 {
            return Err(LabelError::TooManyNames);
        }
        let untrusted =
            (integrity == Some(Integrity::Untrusted)).then(|| Ok(("untrusted".to_owned(), Mark::Untrusted)));
        let named = confidentiality.into_iter().map(|name| match name.as_str() {
            MANY => Ok((name, Mark::Named(MANY.into()))),
            _ => checked_name(&name).map(|mark| (name, Mark::Named(mark))),
        });
        let mut label = Label::default();
        for mark in untrusted.into_iter().chain(named) {
            let (word, mark) = mark?;
            for source in sources(known.remove(&word)) {
                label.mark(&mark, &Arc::from(source));
            }
        }
        Ok(label)
    }
}

impl Label {
    /// Reads a label that a caller states, such as `{"integrity": "untrusted", "confidentiality": ["private"]}`. `source` names the
    /// caller among the sources.
    ///
    /// # Errors
    ///
    /// The value is no label.
    pub fn stated(value: &serde_json::Value, source: &str) -> Result<Self, LabelError> {
        let stated = Stated::deserialize(value).map_err(|error| LabelError::Shape(error.to_string()))?;
        stated.label(|_| vec![source.to_owned()])
    }

    /// Creates the label of a source about which nothing is known: untrusted and private.
    pub fn unknown(source: &str) -> Self {
        let (mut label, source) = (Self::default(), source.chars().take(MAX_SOURCE_LEN).collect::<String>().into());
        label.mark(&Mark::Untrusted, &source);
        label.mark(&PRIVATE_MARK, &source);
        label
    }

    /// Creates the label of an answer that another conversation stored. One without a label is of an unknown source.
    pub(crate) fn of_stored(stored: &StoredResult) -> Self {
        let source = format!("result:{}", stored.reference);
        let known = stored.label.as_ref().and_then(|label| Self::stated(label, &source).ok());
        known.unwrap_or_else(|| Self::unknown(&source))
    }

    /// Returns the marks alone.
    pub(crate) fn without_sources(&self) -> Self {
        let mut marks = self.clone();
        marks.untrusted.truncate(1);
        marks.confidential.values_mut().for_each(|sources| sources.truncate(1));
        marks.map_sources(|_| "result".to_owned());
        marks
    }

    /// Returns the integrity.
    pub fn integrity(&self) -> Integrity {
        if self.untrusted.is_empty() { Integrity::Trusted } else { Integrity::Untrusted }
    }

    /// Returns the names of the confidentiality; none if the result is public.
    pub fn confidentiality(&self) -> impl Iterator<Item = &str> {
        self.confidential.keys().map(AsRef::as_ref)
    }

    /// Returns the first untrusted sources, such as `host:example.com`.
    pub fn untrusted_sources(&self) -> impl Iterator<Item = &str> {
        self.untrusted.iter().map(AsRef::as_ref)
    }

    /// Returns the first sources of a confidentiality, such as `file:/home/ann/customers.csv`.
    pub fn sources(&self, name: &str) -> impl Iterator<Item = &str> {
        self.confidential.get(name).into_iter().flatten().map(AsRef::as_ref)
    }

    /// Returns `true` for a label of trusted and public sources alone.
    pub fn is_empty(&self) -> bool {
        self.untrusted.is_empty() && self.confidential.is_empty()
    }

    /// Adds the marks of another label.
    pub fn join(&mut self, other: &Self) {
        for source in &other.untrusted {
            self.mark(&Mark::Untrusted, source);
        }
        for (name, sources) in &other.confidential {
            let mark = Mark::Named(name.clone());
            for source in sources {
                self.mark(&mark, source);
            }
        }
    }

    /// Adds a mark from a source, and returns `true` if the label did not have it.
    pub(crate) fn mark(&mut self, mark: &Mark, source: &Arc<str>) -> bool {
        let sources = match mark {
            Mark::Untrusted => &mut self.untrusted,
            Mark::Named(name) if self.has_no_room() && !self.confidential.contains_key(name) => {
                self.confidential.entry(Arc::from(MANY)).or_default()
            }
            Mark::Named(name) => self.confidential.entry(name.clone()).or_default(),
        };
        let is_new = sources.is_empty();
        if sources.len() < MAX_SOURCES && !sources.contains(source) {
            sources.push(source.clone());
        }
        is_new
    }

    /// Returns `true` if a further name has no room.
    fn has_no_room(&self) -> bool {
        self.confidential.len() - usize::from(self.confidential.contains_key(MANY)) >= MAX_NAMES
    }

    /// Returns `true` if more sources of a mark would not be listed.
    pub(crate) fn is_full(&self, mark: &Mark) -> bool {
        self.sources_of(mark).is_some_and(|sources| sources.len() >= MAX_SOURCES)
    }

    /// Returns `true` if the label has all marks of another.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let has_names = || other.confidential.keys().all(|name| self.confidential.contains_key(name));
        (other.untrusted.is_empty() || !self.untrusted.is_empty()) && has_names()
    }

    /// Returns `true` if the label has this confidentiality, or more names than it holds.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.confidential.contains_key(name) || self.confidential.contains_key(MANY)
    }

    fn sources_of(&self, mark: &Mark) -> Option<&Vec<Arc<str>>> {
        match mark {
            Mark::Untrusted => Some(&self.untrusted),
            Mark::Named(name) => self.confidential.get(name),
        }
    }

    /// Changes the text of each source, as for a mask.
    pub fn map_sources(&mut self, change: impl Fn(&str) -> String) {
        for source in self.untrusted.iter_mut().chain(self.confidential.values_mut().flatten()) {
            *source = change(source).into();
        }
    }
}

/// Writes `integrity`, `confidentiality`, and the first `sources` of each mark.
impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Label", 3)?;
        fields.serialize_field("integrity", &self.integrity())?;
        fields.serialize_field("confidentiality", &self.confidential.keys().collect::<Vec<_>>())?;
        let untrusted = (!self.untrusted.is_empty()).then_some(("untrusted", &self.untrusted));
        let named = self.confidential.iter().map(|(name, sources)| (name.as_ref(), sources));
        fields.serialize_field("sources", &untrusted.into_iter().chain(named).collect::<BTreeMap<_, _>>())?;
        fields.end()
    }
}

/// Reads a label that was written, with its sources.
impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let known = |sources: Option<Vec<String>>| match sources {
            Some(sources) if !sources.is_empty() => sources,
            _ => vec!["unknown".to_owned()],
        };
        Stated::deserialize(deserializer)?.label(known).map_err(D::Error::custom)
    }
}

/// Checks a name.
pub(super) fn checked_name(name: &str) -> Result<Arc<str>, LabelError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let is_reserved = matches!(name, "trusted" | "untrusted" | "public" | MANY);
    match !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(is_plain) && !is_reserved {
        true => Ok(Arc::from(name)),
        false => Err(LabelError::Name(name.chars().take(MAX_NAME_LEN).collect())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_only_grows_and_lists_the_first_sources() {
        let mut label = Label::stated(&json!({"confidentiality": ["customers"]}), "caller").unwrap();
        assert_eq!(label.integrity(), Integrity::Trusted);
        for number in 0..100 {
            label.mark(&Mark::Untrusted, &format!("host:{number}").into());
            label.mark(&Mark::Named(format!("n{number}").into()), &"file:x".into());
        }
        label.join(&Label::default());
        assert_eq!(label.integrity(), Integrity::Untrusted);
        assert_eq!(label.untrusted_sources().count(), MAX_SOURCES);
        let names: Vec<_> = label.confidentiality().collect();
        assert!(names.len() == MAX_NAMES + 1 && names.contains(&"customers") && names.contains(&MANY));
        assert!(label.has_name("customers") && label.has_name("a name that found no room"));
        let again: Label = serde_json::from_value(serde_json::to_value(&label).unwrap()).unwrap();
        assert_eq!(again, label);
    }

    #[test]
    fn what_a_caller_states_is_checked_and_can_be_a_label_that_was_returned() {
        for wrong in [
            json!("private"),
            json!({"integrity": "great"}),
            json!({"confidentiality": ["Private"]}),
            json!({"confidentiality": ["public"]}),
            json!({"confidentiality": [""]}),
            json!({"confidentiality": vec!["a"; 18]}),
            json!({"trusted": true}),
        ] {
            assert!(Label::stated(&wrong, "caller").is_err(), "{wrong}");
        }
        let label = Label::stated(&json!({"integrity": "untrusted", "confidentiality": ["private"]}), "x").unwrap();
        let again = Label::stated(&serde_json::to_value(&label).unwrap(), "x").unwrap();
        assert_eq!(again, label);
        assert_eq!(serde_json::from_value::<Label>(serde_json::to_value(&label).unwrap()).unwrap(), label);
        assert!(Label::stated(&json!({}), "x").unwrap().is_empty());
    }
}
