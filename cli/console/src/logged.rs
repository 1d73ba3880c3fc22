//! Audit log records about a run's calls: the calls of its model, and the calls that its tools made.

use std::collections::{HashMap, HashSet};

use toolcrib::audit;
use toolcrib_agent::message::{Message, sent_name};
use toolcrib_agent::runs::KeptRun;
use toolcrib_agent::turn::Call;

use super::record::Record;
use super::view::Views;
use super::visit::{ViewError, Visit};

/// Maximum listed calls that one call made, itself or through others. Further ones are counted.
const MAX_NESTED: usize = 100;
/// Maximum records of such calls that are kept to find the ones in the run.
const MAX_MADE: usize = 2_000;
/// Record member for a call that a tool made.
const PARENT: &str = "\"parent\":";
/// Records between two looks at the time.
const INTERVAL: usize = 1_000;

/// Records of calls.
#[derive(Default)]
pub(super) struct Logged {
    /// By the tools and identifiers of the calls. A call that was made again after a kill has several.
    calls: HashMap<(String, String), Vec<Record>>,
    /// Calls that tools made, by the invocations of those that made them.
    made: HashMap<String, Vec<Record>>,
    made_count: usize,
}

/// Calls that one call made, itself or through others.
#[derive(Default)]
pub(super) struct Nested<'l> {
    pub(super) records: Vec<&'l Record>,
    pub(super) left_out: usize,
}

impl Logged {
    /// Finds the records for the calls in messages of a run.
    pub(super) fn read(views: &Views, visit: &Visit, run: &KeptRun, messages: &[Message]) -> Result<Self, ViewError> {
        let calls = messages.iter().flat_map(Message::calls);
        let calls: HashMap<_, _> = calls.map(|call| ((call.name, call.id), Vec::new())).collect();
        let mut logged = Self { calls, ..Self::default() };
        if logged.calls.is_empty() || !views.audit.is_dir() {
            return Ok(logged);
        }
        let names: HashSet<String> = logged.calls.keys().map(|(name, _)| name.clone()).collect();
        for (at, entry) in audit::records(&views.audit)?.enumerate() {
            if at % INTERVAL == 0 {
                visit.check_time()?;
            }
            let entry = entry?;
            // Model servers reuse call IDs in many runs, so the run ID decides. Only these records are read whole.
            let is_named = |tool: &str| names.contains(tool) || names.contains(&sent_name(tool));
            if entry.run != run.header.id || !(is_named(&entry.tool) || entry.text.contains(PARENT)) {
                continue;
            }
            logged.add(Record::of(&entry));
        }
        Ok(logged)
    }

    fn add(&mut self, record: Record) {
        if let Some(parent) = record.more.parent.clone() {
            self.made_count += 1;
            if self.made_count <= MAX_MADE {
                self.made.entry(parent).or_default().push(record);
            }
        } else {
            let key = |name: String| (name, record.more.call_id.clone());
            // The conversation has some names in another form than the log.
            let names = [key(record.tool.clone()), key(sent_name(&record.tool))];
            if let Some(name) = names.iter().find(|name| self.calls.contains_key(*name)) {
                self.calls.entry(name.clone()).or_default().push(record);
            }
        }
    }

    /// Returns the records of a model's call.
    pub(super) fn of(&self, call: &Call) -> &[Record] {
        self.calls.get(&(call.name.clone(), call.id.clone())).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the calls that a call of the model made, each before those that it made; none if it has several records.
    pub(super) fn nested(&self, call: &Call) -> Nested<'_> {
        let mut nested = Nested::default();
        if let [record] = self.of(call) {
            self.collect(&record.more.invocation, &mut nested);
        }
        nested
    }

    fn collect<'l>(&'l self, invocation: &str, nested: &mut Nested<'l>) {
        // A log that was changed may have a call that made itself: what is full is not followed.
        for record in self.made.get(invocation).into_iter().flatten() {
            if nested.records.len() == MAX_NESTED {
                nested.left_out += 1;
                continue;
            }
            nested.records.push(record);
            self.collect(&record.more.invocation, nested);
        }
    }

    /// Number of tool calls in the log, from other runs too, that were not looked at.
    pub(super) fn unread(&self) -> usize {
        self.made_count.saturating_sub(MAX_MADE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(invocation: &str, parent: Option<&str>) -> Record {
        let mut record = Record { tool: "t".to_owned(), ..Record::default() };
        (record.more.call_id, record.more.invocation) = ("c".to_owned(), invocation.to_owned());
        record.more.parent = parent.map(str::to_owned);
        record
    }

    fn logged(records: impl IntoIterator<Item = Record>) -> Logged {
        let mut logged =
            Logged { calls: HashMap::from([(("t".to_owned(), "c".to_owned()), Vec::new())]), ..Logged::default() };
        records.into_iter().for_each(|record| logged.add(record));
        logged
    }

    fn call() -> Call {
        Call { id: "c".to_owned(), name: "t".to_owned(), arguments: "{}".to_owned(), ..Call::default() }
    }

    #[test]
    fn calls_of_tools_belong_to_the_call_of_the_model_that_began_them() {
        let logged = logged([
            record("2", Some("1")),
            record("3", Some("2")),
            record("other", Some("elsewhere")),
            record("4", Some("1")),
            record("1", None),
        ]);
        let nested = logged.nested(&call());
        let made: Vec<_> = nested.records.iter().map(|record| record.more.invocation.as_str()).collect();
        assert_eq!((made, nested.left_out), (vec!["2", "3", "4"], 0));
    }

    #[test]
    fn a_name_that_the_conversation_has_in_another_form_is_found() {
        let name = "weather.".repeat(10);
        let calls = HashMap::from([((sent_name(&name), "c".to_owned()), Vec::new())]);
        let mut logged = Logged { calls, ..Logged::default() };
        logged.add(Record { tool: name.clone(), ..record("1", None) });
        assert_eq!(logged.of(&Call { name: sent_name(&name), ..call() }).len(), 1);
    }

    #[test]
    fn they_are_bounded_and_a_call_that_made_itself_ends() {
        let many = (0..MAX_MADE + 5).map(|_| record("x", Some("1"))).chain([record("1", None)]);
        let many = logged(many);
        let nested = many.nested(&call());
        assert_eq!((nested.records.len(), nested.left_out, many.unread()), (MAX_NESTED, MAX_MADE - MAX_NESTED, 5));
        let itself = logged([record("1", Some("1")), record("1", None)]);
        assert_eq!(itself.nested(&call()).records.len(), MAX_NESTED);
        let twice = logged([record("2", Some("1")), record("1", None), record("1", None)]);
        assert!(twice.nested(&call()).records.is_empty());
    }
}
