//! Differences between platforms that are right, each with its reason. A difference is as narrow as it can be named: one
//! platform, one group, the cases whose names begin with a text, and one part.

/// Named difference.
pub(crate) struct Difference {
    pub(crate) platform: &'static str,
    pub(crate) group: &'static str,
    /// Start of the names of the cases.
    pub(crate) case: &'static str,
    /// Start of the names of the parts.
    pub(crate) part: &'static str,
    pub(crate) reason: &'static str,
}

pub(crate) const NAMED: &[Difference] = &[];

/// Returns the entry for a difference.
pub(crate) fn find(platform: &str, group: &str, case: &str, part: &str) -> Option<usize> {
    NAMED.iter().position(|named| {
        named.platform == platform
            && named.group == group
            && case.starts_with(named.case)
            && part.starts_with(named.part)
    })
}
