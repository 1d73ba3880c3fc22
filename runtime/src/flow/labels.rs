//! Labels of places: the marks that bytes from a file, a host, a variable or a secret have.
//!
//! Without a label of the operator, files, variables and secrets are trusted and `private`, and hosts are untrusted and public.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use crate::tool::{Destination, Glob, Host, Scheme};

use super::label::{Label, LabelError, MAX_SOURCE_LEN, Mark, PRIVATE_MARK, checked_name};

/// Place with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelPlace {
    /// A file, or a folder and everything below it.
    Path(PathBuf),
    /// Hosts, as in a permission.
    Host(Destination),
    /// Environment variables.
    Variable(Glob),
    /// Secrets, and the responses to requests with them.
    Secret(Glob),
}

/// The text names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no place: write a path, `host:example.com`, `variable:NAME` or `secret:NAME`{reason}")]
pub struct LabelsError {
    text: String,
    reason: String,
}

/// Reads a path, `host:HOST`, `variable:NAME` or `secret:NAME`.
impl FromStr for LabelPlace {
    type Err = LabelsError;

    fn from_str(text: &str) -> Result<Self, LabelsError> {
        let error = |reason: String| LabelsError { text: text.to_owned(), reason };
        let glob = |name: &str| match name.is_empty() {
            true => Err(error(String::new())),
            false => name.parse().map_err(|reason| error(format!(" ({reason})"))),
        };
        match text.split_once(':') {
            Some(("host", host)) => match host.parse::<Destination>() {
                Ok(hosts) if hosts.has_methods() => Err(error(" (a method says nothing about a response)".to_owned())),
                hosts => hosts.map(LabelPlace::Host).map_err(|reason| error(format!(" ({reason})"))),
            },
            Some(("variable", name)) => glob(name).map(LabelPlace::Variable),
            Some(("secret", name)) => glob(name).map(LabelPlace::Secret),
            // A drive has one letter.
            Some((word, _)) if word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                Err(error(format!(" (`{word}:` is none of them; a path can begin with `./`)")))
            }
            _ if text.contains(['*', '?']) => Err(error(" (a path has no patterns: name the folder)".to_owned())),
            _ if text.trim().is_empty() => Err(error(String::new())),
            _ => Ok(LabelPlace::Path(text.into())),
        }
    }
}

/// Meaning of a label for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Nobody but the operator's own people and programs writes there.
    Trusted,
    /// Others write there.
    Untrusted,
    /// Everybody may read it.
    Public,
    /// Confidential, under this name.
    Confidential(Arc<str>),
}

impl Meaning {
    /// Reads `trusted`, `untrusted`, `public`, `private`, or a name of the operator's own.
    ///
    /// # Errors
    ///
    /// The name is malformed.
    pub fn parse(word: &str) -> Result<Self, LabelError> {
        Ok(match word {
            "trusted" => Self::Trusted,
            "untrusted" => Self::Untrusted,
            "public" => Self::Public,
            name => Self::Confidential(checked_name(name)?),
        })
    }

    /// Returns the mark that the label gives; `None` for one that takes a mark away.
    fn mark(&self) -> Option<Mark> {
        match self {
            Self::Trusted | Self::Public => None,
            Self::Untrusted => Some(Mark::Untrusted),
            Self::Confidential(name) => Some(Mark::Named(name.clone())),
        }
    }
}

/// Source of bytes in a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    File(&'a Path),
    Host(Scheme, &'a Host, u16),
    Variable(&'a str),
    Secret(&'a str),
}

impl Source<'_> {
    /// Returns the text for a label. Of a long one, the beginning and the end are left.
    pub(crate) fn text(self) -> Arc<str> {
        let text = self.to_string();
        let length = text.chars().count();
        if length <= MAX_SOURCE_LEN {
            return text.into();
        }
        let half = MAX_SOURCE_LEN / 2;
        let begin = text.chars().take(half).chain(['…']);
        begin.chain(text.chars().skip(length - half)).collect::<String>().into()
    }
}

/// Writes the kind and the name, as in a label.
impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(f, "file:{}", path.display()),
            Source::Host(_, host, _) => write!(f, "host:{host}"),
            Source::Variable(name) => write!(f, "variable:{name}"),
            Source::Secret(name) => write!(f, "secret:{name}"),
        }
    }
}

/// Labels of places, as an operator gives them. Of several for one source, the most specific place counts: the longest path, or a
/// name before a pattern. At the same place, the stricter label counts.
#[derive(Debug, Clone, Default)]
pub struct Labels(Vec<(LabelPlace, Meaning)>);

impl Labels {
    /// Adds a label. A path should be absolute, without links.
    #[must_use]
    pub fn with(mut self, place: LabelPlace, meaning: Meaning) -> Self {
        self.0.push((place, meaning));
        self
    }

    /// Returns `true` if any host counts as trusted.
    pub(crate) fn trusts_a_host(&self) -> bool {
        self.0.iter().any(|(place, meaning)| matches!((place, meaning), (LabelPlace::Host(_), Meaning::Trusted)))
    }

    /// Names of confidentiality that places have.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(_, meaning)| match meaning {
            Meaning::Confidential(name) => Some(name.as_ref()),
            _ => None,
        })
    }

    /// Returns `true` if a file can have other marks than the files beside it.
    pub(crate) fn has_paths(&self) -> bool {
        self.0.iter().any(|(place, _)| matches!(place, LabelPlace::Path(_)))
    }

    /// Marks of a file without a label.
    pub(crate) fn of_files(&self) -> [Mark; 1] {
        [PRIVATE_MARK.clone()]
    }

    /// Returns the marks of a file or folder with all that is below it.
    pub(crate) fn of_all_below(&self, path: &Path) -> Vec<Mark> {
        let below =
            self.0.iter().filter(|(place, _)| matches!(place, LabelPlace::Path(inner) if inner.starts_with(path)));
        let below = below.filter_map(|(_, meaning)| meaning.mark());
        self.marks(Source::File(path)).into_iter().chain(below).collect()
    }

    /// Returns the marks of a file that can be any.
    pub(crate) fn of_any_file(&self) -> Vec<Mark> {
        self.of_all_below(Path::new(""))
    }

    /// Returns the label of a file.
    pub(crate) fn label_of_file(&self, path: &Path) -> Label {
        let (mut label, source) = (Label::default(), Source::File(path));
        let text = source.text();
        for mark in self.marks(source) {
            label.mark(&mark, &text);
        }
        label
    }

    /// Returns the marks of a source.
    pub(crate) fn marks(&self, source: Source<'_>) -> Vec<Mark> {
        let ranked = || self.0.iter().filter_map(|(place, meaning)| Some((rank(place, meaning, source)?, meaning)));
        let integrity = ranked().filter(|(_, meaning)| matches!(meaning, Meaning::Trusted | Meaning::Untrusted));
        let best = integrity.clone().map(|(rank, _)| rank).max();
        let is_untrusted = match best {
            Some(best) => {
                integrity.filter(|(rank, _)| *rank == best).any(|(_, meaning)| *meaning == Meaning::Untrusted)
            }
            None => matches!(source, Source::Host(..)),
        };
        let named = ranked().filter(|(_, meaning)| matches!(meaning, Meaning::Public | Meaning::Confidential(_)));
        let best = named.clone().map(|(rank, _)| rank).max();
        let mut marks: Vec<Mark> = is_untrusted.then_some(Mark::Untrusted).into_iter().collect();
        match best {
            Some(best) => {
                marks.extend(named.filter(|(rank, _)| *rank == best).filter_map(|(_, meaning)| meaning.mark()))
            }
            None if matches!(source, Source::Host(..)) => {}
            None => marks.push(PRIVATE_MARK.clone()),
        }
        marks
    }
}

/// Returns the weight of a place that holds a source; `None` if it does not.
fn rank(place: &LabelPlace, meaning: &Meaning, source: Source<'_>) -> Option<usize> {
    match (place, source) {
        (LabelPlace::Path(folder), Source::File(path)) => path.starts_with(folder).then(|| folder.components().count()),
        (LabelPlace::Host(hosts), Source::Host(scheme, host, port)) => {
            let method = hosts.any_method();
            let holds = match meaning {
                // As in a permission, `*` is no address.
                Meaning::Trusted | Meaning::Public => hosts.allows(scheme, host, port, method),
                _ => hosts.matches(scheme, host, port, method),
            };
            holds.then(|| hosts.specificity())
        }
        (LabelPlace::Variable(names), Source::Variable(name)) | (LabelPlace::Secret(names), Source::Secret(name)) => {
            let is_name = !names.as_str().contains(['*', '?']);
            names.is_match(name).then(|| if is_name { usize::MAX } else { names.as_str().len() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(labels: &Labels, source: Source<'_>) -> Vec<String> {
        let shown = |mark: &Mark| match mark {
            Mark::Untrusted => "untrusted".to_owned(),
            Mark::Named(name) => name.to_string(),
        };
        labels.marks(source).iter().map(shown).collect()
    }

    #[test]
    fn places_without_a_label_are_private_and_hosts_are_untrusted() {
        let none = Labels::default();
        for source in [Source::File(Path::new("/a")), Source::Variable("A"), Source::Secret("a")] {
            assert_eq!(marks(&none, source), ["private"]);
        }
        let host = Host::parse("example.com").unwrap();
        assert_eq!(marks(&none, Source::Host(Scheme::Https, &host, 443)), ["untrusted"]);
        let long = format!("/{}/end", "ž".repeat(10_000));
        let text = Source::File(Path::new(&long)).text();
        assert!(text.chars().count() == MAX_SOURCE_LEN + 1 && text.starts_with("file:/ž") && text.ends_with("/end"));
    }

    #[test]
    fn the_longest_path_counts_for_integrity_and_for_confidentiality_each() {
        let labels = [
            ("/w", "public"),
            ("/w/mail", "untrusted"),
            ("/w/mail", "private"),
            ("/w/crm", "customers"),
            ("/w/crm", "private"),
            ("/w/mail/sent", "trusted"),
        ];
        let labels = labels.into_iter().fold(Labels::default(), |labels, (path, word)| {
            labels.with(path.parse().unwrap(), Meaning::parse(word).unwrap())
        });
        let of = |path: &str| marks(&labels, Source::File(Path::new(path)));
        assert_eq!(of("/w/x"), [""; 0]);
        assert_eq!(of("/w/mail/1"), ["untrusted", "private"]);
        assert_eq!(of("/w/mail/sent/1"), ["private"]);
        assert_eq!(of("/w/crm/1"), ["customers", "private"]);
        assert_eq!(of("/w/crm-old"), [""; 0]);
        assert_eq!(of("/x"), ["private"]);
    }

    #[test]
    fn the_stricter_label_counts_at_one_place_and_a_name_before_a_pattern() {
        let labels = [
            ("/w", "public"),
            ("/w", "customers"),
            ("/w", "trusted"),
            ("/w", "untrusted"),
            ("variable:*", "public"),
            ("variable:TOKEN", "private"),
            ("host:*", "trusted"),
            ("host:*.evil.example", "untrusted"),
        ];
        for labels in [labels.to_vec(), labels.iter().rev().copied().collect()] {
            let labels = labels.into_iter().fold(Labels::default(), |labels, (place, word)| {
                labels.with(place.parse().unwrap(), Meaning::parse(word).unwrap())
            });
            assert_eq!(marks(&labels, Source::File(Path::new("/w/x"))), ["untrusted", "customers"]);
            assert_eq!(marks(&labels, Source::Variable("TOKEN")), ["private"]);
            assert_eq!(marks(&labels, Source::Variable("LANG")), [""; 0]);
            let of = |host: &str| marks(&labels, Source::Host(Scheme::Https, &Host::parse(host).unwrap(), 443));
            assert_eq!(of("a.evil.example"), ["untrusted"]);
            assert_eq!(of("a.example"), [""; 0]);
            assert_eq!(of("10.0.0.1"), ["untrusted"], "an address is none of all names");
            let all: Vec<_> = labels.of_all_below(Path::new("/")).into_iter().collect();
            assert!(all.contains(&Mark::Untrusted) && all.contains(&Mark::Named("customers".into())));
        }
    }

    #[test]
    fn a_place_is_a_path_or_says_its_kind() {
        let labels = Labels::default()
            .with("host:*.corp.example".parse().unwrap(), Meaning::Trusted)
            .with("variable:PUBLIC_*".parse().unwrap(), Meaning::Public)
            .with("secret:crm".parse().unwrap(), Meaning::Confidential("customers".into()));
        let of = |host: &str| marks(&labels, Source::Host(Scheme::Http, &Host::parse(host).unwrap(), 8080));
        assert_eq!(of("wiki.corp.example"), [""; 0]);
        assert_eq!(of("corp.example.org"), ["untrusted"]);
        assert_eq!(marks(&labels, Source::Variable("PUBLIC_KEY")), [""; 0]);
        assert_eq!(marks(&labels, Source::Secret("crm")), ["customers"]);
        for wrong in [
            "",
            " ",
            "host:",
            "host:a b",
            "host:POST a.example",
            "hots:a.example",
            "https://a.example",
            "*",
            "a/*",
            "variable:",
            "secret:",
        ] {
            assert!(wrong.parse::<LabelPlace>().is_err(), "{wrong}");
        }
    }
}
