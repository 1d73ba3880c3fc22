//! Detection of a model that makes the same call again and again: same tool, same arguments, same result. A new call that
//! may have changed something ends a series, since the same call can then have another meaning.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use serde_json::Value;

/// Maximum number of different calls that are remembered.
const MAX_CALLS: usize = 10_000;

/// Calls since the last message of the user, with their results.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// Number of identical calls at which the model is told; 0 for none.
    limit: u32,
    hasher: RandomState,
    /// Numbers of the same calls with the same result.
    seen: HashMap<u64, u32>,
    /// Calls without their results.
    made: HashSet<u64>,
    /// Calls of this step with their results: the model has not seen one when it makes the next.
    in_step: HashSet<u64>,
    /// Call that was made twice as often, with its number.
    stuck: Option<(String, u32)>,
}

impl Repeats {
    /// Creates the detection; the model is told at `limit` calls, and the run stops at twice as many.
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Begins the calls of a step.
    pub(crate) fn begin_step(&mut self) {
        self.in_step.clear();
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
        self.made.clear();
        self.stuck = None;
    }

    /// Notes a call with its result; returns a note for the model if the call was made too often.
    pub(crate) fn note(&mut self, name: &str, arguments: &str, result: &str, is_change: bool) -> Option<String> {
        if self.limit == 0 {
            return None;
        }
        // The spelling of the same arguments may differ.
        let parsed: Option<Value> = serde_json::from_str(arguments).ok();
        let arguments = parsed.map_or_else(|| arguments.to_owned(), |value| value.to_string());
        let call = self.hasher.hash_one((name, &arguments));
        let is_new = self.made.insert(call);
        if (is_new && is_change) || self.seen.len() == MAX_CALLS {
            self.seen.clear();
        }
        if self.made.len() > MAX_CALLS {
            self.made.clear();
        }
        let ended = self.hasher.hash_one((name, &arguments, result));
        if !self.in_step.insert(ended) {
            return None;
        }
        let count = self.seen.entry(ended).or_default();
        *count = count.saturating_add(1);
        if *count >= self.limit.saturating_mul(2) {
            self.stuck = Some((name.to_owned(), *count));
        }
        (*count >= self.limit).then(|| {
            format!(
                "[This is call {count} of `{name}` with the same arguments and the same result. Calling it again changes nothing: \
                 use the result, try something else, or say what is missing.]"
            )
        })
    }

    /// Takes the call that was made twice as often as the limit, with its number.
    pub(crate) fn take_stuck(&mut self) -> Option<(String, u32)> {
        let stuck = self.stuck.take();
        if stuck.is_some() {
            self.clear();
        }
        stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes a call in a step of its own.
    fn noted(repeats: &mut Repeats, name: &str, arguments: &str, result: &str, is_change: bool) -> Option<String> {
        repeats.begin_step();
        repeats.note(name, arguments, result, is_change)
    }

    #[test]
    fn calls_of_one_step_count_once() {
        let mut repeats = Repeats::new(2);
        repeats.begin_step();
        assert!((0..100).all(|_| repeats.note("a", "{}", "r", false).is_none()));
        assert!(noted(&mut repeats, "a", "{}", "r", false).is_some());
    }

    #[test]
    fn the_same_call_with_the_same_result_is_counted() {
        let mut repeats = Repeats::new(2);
        assert_eq!(noted(&mut repeats, "a", r#"{"x":1}"#, "r", false), None);
        assert_eq!(noted(&mut repeats, "a", r#"{"x":1}"#, "other", false), None, "another result");
        assert_eq!(noted(&mut repeats, "a", r#"{"x":2}"#, "r", false), None, "other arguments");
        assert_eq!(noted(&mut repeats, "b", r#"{"x":1}"#, "r", false), None, "another tool");
        let told = noted(&mut repeats, "a", r#"{ "x" : 1 }"#, "r", false);
        assert!(told.is_some_and(|note| note.starts_with("[This is call 2 of `a`")));
        assert_eq!(repeats.take_stuck(), None);
        assert!(noted(&mut repeats, "a", r#"{"x":1}"#, "r", false).is_some());
        assert!(noted(&mut repeats, "a", r#"{"x":1}"#, "r", false).is_some());
        assert_eq!(repeats.take_stuck(), Some(("a".to_owned(), 4)));
        assert_eq!(
            (noted(&mut repeats, "a", r#"{"x":1}"#, "r", false), repeats.take_stuck()),
            (None, None),
            "it begins anew"
        );
    }

    #[test]
    fn a_new_change_ends_a_series_and_a_repeated_one_does_not() {
        let mut repeats = Repeats::new(2);
        assert_eq!(noted(&mut repeats, "test", "{}", "failed", false), None);
        assert_eq!(noted(&mut repeats, "edit", "1", "ok", true), None);
        assert_eq!(noted(&mut repeats, "test", "{}", "failed", false), None);
        assert_eq!(noted(&mut repeats, "edit", "2", "ok", true), None);
        assert_eq!(noted(&mut repeats, "test", "{}", "failed", false), None);
        assert!(noted(&mut repeats, "edit", "2", "ok", true).is_some(), "the same change again");
        assert!(noted(&mut repeats, "test", "{}", "failed", false).is_some());
        let mut off = Repeats::new(0);
        assert!((0..100).all(|_| noted(&mut off, "a", "{}", "r", false).is_none()) && off.take_stuck().is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut repeats = Repeats::new(5);
        for number in 0..=2 * MAX_CALLS {
            noted(&mut repeats, "a", &number.to_string(), "r", false);
        }
        assert!(repeats.seen.len() <= MAX_CALLS && repeats.made.len() <= MAX_CALLS);
    }
}
