//! Previews of one step's calls, in call order: each is shown once it is decided about the calls up to its own.

use std::collections::{HashMap, HashSet};

use crate::watch::CallEvent;

/// Previews that wait for the calls before theirs.
#[derive(Debug, Default)]
pub(super) struct Previews {
    /// Identifiers of the calls in their order.
    order: Vec<String>,
    held: HashMap<String, CallEvent>,
    /// Calls that were decided about or have ended.
    decided: HashSet<String>,
    /// Number of calls that have had their turn.
    shown: usize,
}

impl Previews {
    /// Creates the previews of calls with these identifiers.
    pub(super) fn of<'a>(order: impl IntoIterator<Item = &'a str>) -> Self {
        Self { order: order.into_iter().map(str::to_owned).collect(), ..Self::default() }
    }

    /// Holds a call's preview; returns it if the call is not of this step.
    pub(super) fn hold(&mut self, seen: CallEvent) -> Option<CallEvent> {
        if !self.order.contains(&seen.call_id) {
            return Some(seen);
        }
        self.held.insert(seen.call_id.clone(), seen);
        None
    }

    /// Returns the previews whose turn has come with the decision about a call, or its end.
    pub(super) fn after(&mut self, decided: &str) -> Vec<CallEvent> {
        self.decided.insert(decided.to_owned());
        let mut ready = Vec::new();
        while let Some(id) = self.order.get(self.shown).filter(|id| self.decided.contains(*id)) {
            ready.extend(self.held.remove(id));
            self.shown += 1;
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::CallEventKind;

    fn preview(id: &str) -> CallEvent {
        let kind = CallEventKind::Preview(id.to_owned());
        CallEvent { call_id: id.to_owned(), name: "t".to_owned(), kind }
    }

    fn ids(ready: Vec<CallEvent>) -> Vec<String> {
        ready.into_iter().map(|seen| seen.call_id).collect()
    }

    #[test]
    fn previews_wait_for_the_calls_before_theirs() {
        let mut previews = Previews::of(["a", "b", "c"]);
        assert!(previews.hold(preview("a/1")).is_some(), "a call of a tool is not of the step");
        assert!(previews.hold(preview("c")).is_none() && previews.after("c").is_empty());
        assert!(previews.hold(preview("a")).is_none());
        assert_eq!(ids(previews.after("a")), ["a"]);
        assert_eq!(ids(previews.after("b")), ["c"], "`b` was refused");
        assert!(previews.after("b").is_empty());
    }
}
