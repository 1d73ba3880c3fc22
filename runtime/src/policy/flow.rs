//! Rules about flows, and the labels of places that they depend on.

use std::sync::Arc;

use crate::call::Behavior;
use crate::flow::{Label, Labels, Way, Ways};
use crate::tool::{Access, Body, Builtin, Service, Tool};

use super::{Grant, Rule, Rules};

/// Labels of places and rules about flows, for all calls.
#[derive(Debug, Default)]
pub(crate) struct FlowPolicy {
    pub(crate) labels: Labels,
    rules: Vec<Arc<Rule>>,
}

impl FlowPolicy {
    pub(crate) fn new(labels: Labels, rules: &Rules) -> Self {
        Self { labels, rules: rules.about_flows().cloned().collect() }
    }

    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Returns the rules that deny a call with the label `all` its ways out, and then those that ask about one with the label
    /// `decisive`.
    pub(crate) fn matching<'a>(
        &'a self,
        all: &'a Label,
        decisive: &'a Label,
        ways: Ways,
    ) -> impl Iterator<Item = &'a Arc<Rule>> {
        let of = move |behavior: Behavior, label: &'a Label| {
            self.rules.iter().filter(move |rule| {
                let flow = rule.pattern().flow().filter(|flow| !flow.ways().both(ways).is_empty());
                rule.behavior() == behavior && flow.is_some_and(|flow| flow.matches(label))
            })
        };
        of(Behavior::Deny, all).chain(of(Behavior::Ask, decisive))
    }
}

/// Returns the ways out that a tool has with its grant.
pub(crate) fn ways_out(tool: &Tool, grant: &Grant) -> Ways {
    let registers = grant.rights().check(Service::Meta, None).is_ok();
    let ways = [
        (Way::Write, grant.folders().iter().any(|folder| folder.access == Access::Write)),
        (Way::Net, !grant.network().is_empty()),
        (Way::Code, registers || matches!(tool.body, Body::Builtin(Builtin::RunCode))),
    ];
    let has = ways.into_iter().filter(|(_, has)| *has).fold(Ways::default(), |ways, (way, _)| ways.with(way));
    has.both(closable(grant))
}

/// Returns the ways out that a rule can close. What a stage holds back goes nowhere before somebody commits it.
pub(crate) fn closable(grant: &Grant) -> Ways {
    let ways = Ways::default().with(Way::Net).with(Way::Code);
    if grant.is_held_back() { ways } else { ways.with(Way::Write) }
}
