//! Version order: the precedence of Semantic Versioning, for versions with any number of numeric parts.

use std::cmp::Ordering;

/// Compares two versions. A leading `v` and everything after a `+` do not count. Versions that do not begin with a number
/// have no order: `None`.
pub(crate) fn compare(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (Parts::of(one)?, Parts::of(other)?);
    let longest = one.numbers.len().max(other.numbers.len());
    let number = |of: &Parts<'_>, at: usize| of.numbers.get(at).copied().unwrap_or("0").to_owned();
    let numbers = (0..longest).map(|at| numeric(&number(&one, at), &number(&other, at)));
    let by_numbers = numbers.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
    Some(by_numbers.then_with(|| pre_releases(one.pre_release, other.pre_release)))
}

/// Returns `true` for a version of two or more numbers. A tag of one number, such as `1`, usually moves with every release of it.
pub(crate) fn is_fixed(version: &str) -> bool {
    Parts::of(version).is_some_and(|parts| parts.numbers.len() > 1)
}

/// Returns the highest version above `present` in the same form: with as many numbers, with `v` or without, and without a
/// pre-release unless `present` is one.
pub(crate) fn newest<'a>(present: &str, versions: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let form = |version: &str| Some((Parts::of(version)?.numbers.len(), version.starts_with('v')));
    let is_pre_release = |version: &str| Parts::of(version).is_some_and(|parts| parts.pre_release.is_some());
    let is_newer = |version: &&str| {
        form(version) == form(present)
            && (is_pre_release(present) || !is_pre_release(version))
            && compare(version, present) == Some(Ordering::Greater)
    };
    versions.filter(is_newer).max_by(|one, other| compare(one, other).unwrap_or(Ordering::Equal))
}

/// Numbers and pre-release of a version.
struct Parts<'a> {
    numbers: Vec<&'a str>,
    pre_release: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(version: &'a str) -> Option<Self> {
        let version = version.strip_prefix('v').unwrap_or(version);
        let version = version.split('+').next().unwrap_or_default();
        let (numbers, pre_release) = match version.split_once('-') {
            Some((numbers, pre_release)) => (numbers, Some(pre_release)),
            None => (version, None),
        };
        let numbers: Vec<&str> = numbers.split('.').collect();
        numbers.iter().all(|number| is_number(number)).then_some(Self { numbers, pre_release })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Compares whole numbers of any length.
fn numeric(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

/// Compares pre-releases; a version without one is higher.
fn pre_releases(one: Option<&str>, other: Option<&str>) -> Ordering {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return other.is_some().cmp(&one.is_some()),
    };
    let mut pairs = (one.split('.'), other.split('.'));
    loop {
        let order = match (pairs.0.next(), pairs.1.next()) {
            (None, None) => return Ordering::Equal,
            (one, None) => return one.is_some().cmp(&false),
            (None, Some(_)) => return Ordering::Less,
            (Some(one), Some(other)) => match (is_number(one), is_number(other)) {
                (true, true) => numeric(one, other),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => one.cmp(other),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_in_this_order() {
        let rising = [
            "0.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2",
            "1.10.0",
            "2",
            "10.0.0",
            "99999999999999999999999.0",
        ];
        for (at, one) in rising.iter().enumerate() {
            for (other_at, other) in rising.iter().enumerate() {
                assert_eq!(compare(one, other), Some(at.cmp(&other_at)), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_prefix_zeros_and_builds_do_not_count() {
        for (one, other) in [("v1.2.0", "1.2.0"), ("1.2", "1.2.0"), ("1.02.0", "1.2.0"), ("1.2.0+a", "1.2.0+b")] {
            assert_eq!(compare(one, other), Some(Ordering::Equal), "{one} {other}");
        }
    }

    #[test]
    fn the_newest_version_has_the_form_of_the_present_one() {
        let tags = ["latest", "1", "2", "1.2", "1.10", "v9.0.0", "1.2.0", "1.3.0", "1.10.0", "2.0.0-rc.1", "sha-1.9.9"];
        for (present, expected) in [
            ("1.2.0", Some("1.10.0")),
            ("1.10.0", None),
            ("2.0.0-alpha", Some("2.0.0-rc.1")),
            ("1.2", Some("1.10")),
            ("v1.0.0", Some("v9.0.0")),
            ("main", None),
        ] {
            assert_eq!(newest(present, tags.into_iter()), expected, "{present}");
        }
        assert!(is_fixed("1.2.0") && is_fixed("v1.2-rc") && !is_fixed("1") && !is_fixed("latest"));
    }

    #[test]
    fn words_have_no_order() {
        for word in ["latest", "", "-", "1.x", "1..2", "main-2", ".", "v"] {
            assert_eq!(compare(word, "1.0.0"), None, "{word}");
            assert_eq!(compare("1.0.0", word), None, "{word}");
        }
    }
}
